"""A child process that gets ready for a search while the command line is still being read.

Half of a short answer's time is importing. What a search needs differs from what the command line needs, so `mcveto
verify` forks before it has imported either: the child imports the former, in the order of use, until the work arrives
on a pipe; the parent imports the latter. Without a second core nothing is lost, every module is imported once.

Work that cannot be sent (it must be pickled), and a child that is not there any more, make `limits.start_limited` fork
as usual. A child that is given nothing ends when its parent does.
"""

from __future__ import annotations

import os
import sys

# What nearly every search imports, first what is used first.
_NEEDED = (
    "mcveto.limits",
    "ctypes",
    "mcveto.search",
    "mcveto.program.program",
    "mcveto.property.attach",
    "mcveto.program.image.elf",
    "mcveto.machine.isa.sleigh",
    "mcveto.engines.alongside",
    "mcveto.check.replay",
)


class Ready:
    """The parent's ends of the pipes to the child."""

    def __init__(self, child: int, reader: int, writer: int) -> None:
        self.child = child
        self.reader = reader
        """What the child says, as in `limits`."""
        self._writer = writer

    def give(self, work: bytes) -> bool:
        """Sends the work; says whether there was somebody to take it."""
        message = memoryview(work)
        try:
            while message:
                message = message[os.write(self._writer, message) :]
        except OSError:
            return False
        finally:
            os.close(self._writer)
        return True

    def dismiss(self) -> None:
        import signal

        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.reader)


_ready: Ready | None = None


def get_ready() -> None:
    """Starts the child; to be called before anything is printed and before there are threads."""
    global _ready
    if _ready is not None or not hasattr(os, "fork"):
        return
    work, giver = os.pipe()
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(giver)
        os.close(reader)
        _wait(work, writer, parent)
    os.close(work)
    os.close(writer)
    _ready = Ready(child, reader, giver)


def taken() -> Ready | None:
    """The child that is ready, if there is one; it can be had once."""
    global _ready
    ready, _ready = _ready, None
    return ready


def _wait(work: int, writer: int, parent: int) -> None:
    """Never returns."""
    code = 1
    try:
        import gc
        import select
        import signal
        from importlib import import_module

        from mcveto.orphans import die_with

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        die_with(parent)
        # What is imported stays: looking for garbage among it finds nothing.
        gc.disable()
        for name in _NEEDED:
            if select.select([work], [], [], 0)[0]:
                break
            import_module(name)
        from mcveto.limits import perform

        received = bytearray()
        while chunk := os.read(work, 1 << 16):
            received += chunk
        os.close(work)
        if received:
            import pickle

            task, limits = pickle.loads(received)
            gc.enable()
            perform(task, limits, writer, parent)
        code = 0
    except BaseException:
        if os.environ.get("MCVETO_DEBUG"):
            sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
