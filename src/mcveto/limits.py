"""Work under limits that hold: a search runs in a child process that is watched, and ended when it must be.

A time limit that is only looked at between steps does not hold inside a solver query or a long run; a memory limit
does not hold in a library that allocates for itself; a crash in native code takes everything with it. So the parent
does nothing but wait: it relays what the child reports and kills it when the time is up, when its resident memory
exceeds the limit, or when the user interrupts. Whatever was last reported is then still known.

The child sends pickled messages over a pipe, each preceded by its length. It ignores SIGINT (a terminal sends it to
both) and is killed by the kernel when its parent dies.
"""

from __future__ import annotations

import gc
import math
import os
import pickle
import resource
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from mcveto.ahead import Ready, taken
from mcveto.errors import McvetoError, one_line
from mcveto.late_methods import dataclass
from mcveto.orphans import die_with

T = TypeVar("T")
Send = Callable[[Any], None]

# A search that watches the clock itself answers better than one that is killed: it gets this much longer.
GRACE_SECONDS = 0.25
POLL_SECONDS = 0.02
MEGABYTE = 1 << 20
# Address space may exceed resident memory by this much before an allocation fails: libraries map more than they use.
_UNUSED_ADDRESS_SPACE = 1 << 30
_HEADER = struct.Struct("<Q")
# A search makes terms by the thousand and keeps most of them; looking for cycles among them that often finds nothing.
_COLLECTED_AFTER = (50_000, 20, 20)


class End(Enum):
    """Why watched work ended."""

    DONE = "done"
    TIME_OUT = "time-out"
    MEMORY = "memory limit"
    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"
    CRASHED = "internal error"


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Wall-clock seconds and megabytes of resident memory; None is no limit."""

    seconds: float | None = None
    memory_mb: int | None = None


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """How it ended, with the result if it is DONE, and what it cost."""

    end: End
    result: T | None
    detail: str
    seconds: float
    cpu_seconds: float
    peak_rss_mb: float


def run_limited(
    work: Callable[[Send], T],
    limits: ResourceLimits,
    on_message: Callable[[Any], None] = lambda message: None,
    on_tick: Callable[[], None] = lambda: None,
) -> Finished[T]:
    """Runs `work` in a child process; what it sends goes to `on_message`, and `on_tick` is called now and then.

    An McvetoError that `work` raises is raised here; any other exception, and any crash, ends as CRASHED.
    """
    watch = start_limited(work, limits)
    try:
        with _signals(watch):
            watch.run(on_message, on_tick)
    finally:
        watch.close()
    if watch.error is not None:
        raise watch.error
    return Finished(
        watch.end,
        watch.result,
        watch.detail,
        round(time.monotonic() - watch.started, 3),
        round(watch.cpu_seconds, 3),
        round(watch.peak_rss_mb, 1),
    )


def start_limited(work: Callable[[Send], Any], limits: ResourceLimits) -> Watch:
    """Starts `work` in a child process; the caller must look after it and close it."""
    started = time.monotonic()
    ready = _given(work, limits)
    if ready is not None:
        return Watch(ready.child, ready.reader, limits, started)
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reader)
        perform(work, limits, writer, parent)
    os.close(writer)
    return Watch(child, reader, limits, started)


def _given(work: Callable[[Send], Any], limits: ResourceLimits) -> Ready | None:
    """The child that got ready ahead, if there is one and it could be given the work."""
    ready = taken()
    if ready is None:
        return None
    try:
        sent = pickle.dumps((work, limits))
    except (pickle.PicklingError, AttributeError, TypeError):
        sent = b""
    if sent and ready.give(sent):
        return ready
    ready.dismiss()
    return None


class Watch:
    """The parent's side: relays messages until the child has ended or must be ended."""

    def __init__(self, child: int, reader: int, limits: ResourceLimits, started: float) -> None:
        self._child = child
        self.reader = reader
        self.started = started
        self._limits = limits
        self._answered = False
        self._deadline = None if limits.seconds is None else started + limits.seconds + GRACE_SECONDS
        self._buffer = bytearray()
        self._status: int | None = None
        self._own_cpu = time.process_time()
        self.stop: End | None = None
        """Set by a signal."""
        self.end = End.CRASHED
        self.result: Any = None
        self.error: McvetoError | None = None
        self.detail = ""
        self.cpu_seconds = 0.0
        self.peak_rss_mb = 0.0

    def run(self, on_message: Callable[[Any], None], on_tick: Callable[[], None]) -> None:
        while True:
            ready, _, _ = select.select([self.reader], [], [], POLL_SECONDS)
            if self.look(bool(ready), on_message):
                break
            on_tick()

    def look(self, ready: bool, on_message: Callable[[Any], None] = lambda message: None) -> bool:
        """Reads what there is to read and ends the child if it must be ended; says whether it has ended."""
        has_died = False
        if ready:
            chunk = os.read(self.reader, 1 << 16)
            has_died = not chunk
            self._buffer += chunk
            for kind, content in self._messages():
                if kind == "message":
                    on_message(content)
                else:
                    self._answered = True
                    self._answer(kind, content)
        if not self._answered and not has_died:
            must_end = self._must_end()
            if must_end is None:
                return False
            self.end = must_end
        self._reap(kill=self._answered or self.end is not End.CRASHED)
        if not self._answered and self.end is End.CRASHED:
            self._diagnose()
        return True

    @property
    def resident_mb(self) -> float:
        return resident_mb(self._child)

    def close(self) -> None:
        self._reap(kill=True)
        os.close(self.reader)

    def _messages(self) -> Iterator[tuple[str, Any]]:
        while len(self._buffer) >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._buffer)
            if len(self._buffer) < _HEADER.size + size:
                return
            content = bytes(self._buffer[_HEADER.size : _HEADER.size + size])
            del self._buffer[: _HEADER.size + size]
            kind, value = pickle.loads(content)
            yield kind, value

    def _answer(self, kind: str, content: Any) -> None:
        if kind == "result":
            self.end, self.result = End.DONE, content
        elif kind == "error":
            self.error = content
        elif kind == "memory":
            self.end = End.MEMORY
        else:
            self.end, self.detail = End.CRASHED, content

    def _must_end(self) -> End | None:
        if self.stop is not None:
            return self.stop
        if self._deadline is not None and time.monotonic() > self._deadline:
            return End.TIME_OUT
        if self._limits.memory_mb is not None and resident_mb(self._child) > self._limits.memory_mb:
            return End.MEMORY
        return None

    def _reap(self, kill: bool) -> None:
        if self._status is not None:
            return
        if kill:
            os.kill(self._child, signal.SIGKILL)
        _, self._status, usage = os.wait4(self._child, 0)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime + time.process_time() - self._own_cpu
        self.peak_rss_mb = usage.ru_maxrss / (1024 if sys.platform != "darwin" else MEGABYTE)

    def _diagnose(self) -> None:
        """The child died without a word."""
        assert self._status is not None
        number = os.WTERMSIG(self._status) if os.WIFSIGNALED(self._status) else 0
        limit = self._limits.memory_mb
        if limit is not None and self.peak_rss_mb > 0.8 * limit and number in (signal.SIGABRT, signal.SIGSEGV):
            # Native code does not survive a refused allocation.
            self.end = End.MEMORY
        elif number == signal.SIGKILL:
            self.end, self.detail = End.TERMINATED, "killed by the system, probably out of memory"
        elif number == signal.SIGTERM:
            self.end = End.TERMINATED
        elif number:
            self.detail = f"the search died of {signal.Signals(number).name}"
        else:
            self.detail = f"the search exited with code {os.waitstatus_to_exitcode(self._status)}"


def perform(work: Callable[[Send], Any], limits: ResourceLimits, writer: int, parent: int) -> NoReturn:
    """The child's side. Never returns: neither exception handlers nor exit hooks of the parent may run twice."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with(parent)
        gc.freeze()
        gc.set_threshold(*_COLLECTED_AFTER)
        if limits.memory_mb is not None:
            _limit_address_space(limits.memory_mb)

        def send(kind: str, content: Any) -> None:
            text = pickle.dumps((kind, content))
            message = memoryview(_HEADER.pack(len(text)) + text)
            while message:
                message = message[os.write(writer, message) :]

        try:
            send("result", work(lambda message: send("message", message)))
        except McvetoError as error:
            send("error", error)
        except MemoryError:
            send("memory", None)
        except BaseException as error:
            if os.environ.get("MCVETO_DEBUG"):
                import traceback

                traceback.print_exc()
            send("crash", one_line(f"{type(error).__name__}: {error}"))
        code = 0
    finally:
        os._exit(code)


def _limit_address_space(memory_mb: int) -> None:
    """A sudden allocation beyond the limit fails at once instead of being noticed when it has happened."""
    limit = memory_mb * MEGABYTE + _UNUSED_ADDRESS_SPACE
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def limit_growth(megabytes: int) -> None:
    """Allocations fail that would take this process so far beyond what it has now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return  # this system has no /proc: the limit of its parent holds
    limit = pages * resource.getpagesize() + megabytes * MEGABYTE
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if limit < min(value for value in (soft, hard, math.inf) if value != resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def resident_mb(pid: int) -> float:
    """Megabytes of memory that a process has."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0  # it has ended, or this system has no /proc: the address space is limited all the same
    return pages * resource.getpagesize() / MEGABYTE


def give_back_memory() -> None:
    """Returns to the system what native libraries have freed, where the C library keeps it for later: it counts as
    memory of the process."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextmanager
def _signals(watch: Watch) -> Iterator[None]:
    """SIGINT and SIGTERM end the watched work, not the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        watch.stop = End.INTERRUPTED if number == signal.SIGINT else End.TERMINATED

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
