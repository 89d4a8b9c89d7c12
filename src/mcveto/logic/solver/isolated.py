"""A solver in a process of its own, so that limits of time and memory hold whatever the library does.

The worker is forked, gets commands in batches (only `check` and questions about its answer are waited for),
and is killed when it overruns a limit by more than GRACE. The next command starts a new one and tells it
the assertion stack again. A worker that dies by itself (out of memory, a crash in the library) counts as
`unknown`, too. What a process of much memory has forked is not kept for the next question: both would soon have
pages of their own.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import time
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Any

from mcveto.limits import limit_growth, resident_mb
from mcveto.logic.node import Term, WidthError
from mcveto.logic.solver.interface import Answer, MemoryModel, SolverError, Statistics
from mcveto.logic.wire import Decoder, Encoder
from mcveto.orphans import die_with

GRACE = 0.25
ORPHAN_SECONDS = 30  # a worker whose parent is gone ends itself this long after its limit
# Megabytes that a worker may need beyond what it was forked with. A question to Z3 about a thousand stores and as many
# loads has taken seven gigabytes, a hundred seconds after its limit of a tenth of one.
MOST_GROWTH = 400
# A process with more megabytes is forked for one question at a time.
LARGE = 300

_open_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


class _Overrun(Exception):
    pass


def _serve(connection: Connection, name: str) -> None:
    """The worker: carry out batches until the other end is closed."""
    from mcveto.logic.solver import make_solver

    solver = make_solver(name)
    decoder = Decoder()
    while True:
        try:
            nodes, commands = marshal.loads(connection.recv_bytes())
        except EOFError:
            return
        decoder.extend(nodes)
        result: Any = None
        try:
            for command, *operands in commands:
                result = _execute(solver, decoder, command, operands)
        except Exception as error:
            if isinstance(error, MemoryError) or "memory" in str(error):
                return  # its limit: not known, like everything that a worker dies of
            connection.send_bytes(marshal.dumps(("error", f"{type(error).__name__}: {error}")))
        else:
            connection.send_bytes(marshal.dumps(("done", result)))


def _say_nothing() -> None:
    """What native code writes when it dies of a refused allocation is not the user's business."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _execute(solver: Any, decoder: Decoder, command: str, operands: list[Any]) -> Any:
    if command == "push":
        solver.push()
    elif command == "pop":
        solver.pop()
    elif command == "add":
        solver.add(decoder.term(operands[0]))
    elif command == "check":
        assumptions, timeout = operands
        signal.alarm(0 if timeout is None else int(timeout) + ORPHAN_SECONDS)
        answer = solver.check([decoder.term(i) for i in assumptions], timeout)
        signal.alarm(0)
        return answer
    elif command == "value":
        return solver.value(decoder.term(operands[0]))
    elif command == "memory":
        model = solver.model_memory(decoder.term(operands[0]))
        return model.default, model.cells
    elif command == "core":
        wanted = set(solver.core())
        return [i for i in operands[0] if decoder.term(i) in wanted]
    return None


class _Worker:
    """A forked process and the pipe to it."""

    def __init__(self, name: str) -> None:
        from mcveto.logic.solver import load

        load(name)  # here, where the next worker has it too, and no question waits for it
        self.encoder = Encoder()
        self.connection, theirs = Pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                die_with(parent)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                self.connection.close()
                for other in list(_open_connections):  # else a sibling would not notice that its owner is gone
                    other.close()
                limit_growth(MOST_GROWTH)
                _say_nothing()
                _serve(theirs, name)
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        _open_connections.add(self.connection)
        self._end = weakref.finalize(self, _kill, self.pid, os.getpid())

    def call(self, terms: list[Term], commands: list[Any], limit: float | None) -> Any:
        """Run a batch whose integers are positions in terms; the result of its last command."""
        nodes, numbers = self.encoder.encode(terms)
        self.connection.send_bytes(marshal.dumps((nodes, [_renumber(c, numbers) for c in commands])))
        if not self.connection.poll(limit):
            raise _Overrun
        status, result = marshal.loads(self.connection.recv_bytes())
        if status == "error":
            raise SolverError(result)
        return result

    def kill(self) -> None:
        """End the process."""
        self._end()
        self.connection.close()


def _kill(pid: int, owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked copy of the owner: not ours to end
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _renumber(command: tuple[Any, ...], numbers: list[int]) -> tuple[Any, ...]:
    if command[0] in ("add", "value", "memory"):
        return command[0], numbers[command[1]]
    if command[0] in ("check", "core"):
        return command[0], [numbers[i] for i in command[1]], *command[2:]
    return command


class IsolatedSolver:
    """The `Solver` protocol, carried out by a worker."""

    def __init__(self, name: str) -> None:
        self.statistics = Statistics()
        self._name = name
        self._worker: _Worker | None = None
        self._scopes: list[list[Term]] = [[]]
        self._terms: list[Term] = []  # of the batch not yet sent
        self._batch: list[tuple[Any, ...]] = []
        self._last: Answer | None = None
        self._assumed: list[Term] = []
        self._closed = False

    def push(self) -> None:
        """Open a scope."""
        self._last = None
        self._scopes.append([])
        self._batch.append(("push",))

    def pop(self) -> None:
        """Drop the innermost scope with everything added in it."""
        if len(self._scopes) == 1:
            raise SolverError("pop without push")
        self._last = None
        self._scopes.pop()
        self._batch.append(("pop",))

    def add(self, term: Term) -> None:
        """Assert a Boolean in the current scope."""
        if term.width != 1:
            raise WidthError(f"a Boolean is needed, not width {term.width}")
        self._last = None
        self._scopes[-1].append(term)
        self._queue("add", term)

    def _queue(self, command: str, term: Term) -> None:
        self._batch.append((command, len(self._terms)))
        self._terms.append(term)

    def _restart(self) -> None:
        """Drop a worker that failed."""
        if self._worker is not None:
            self.statistics.restarts += 1
        self._end_worker()

    def _end_worker(self) -> None:
        """The next batch rebuilds the assertion stack."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None
        self._replay()

    def _replay(self) -> None:
        self._terms, self._batch = [], []
        for depth, terms in enumerate(self._scopes):
            if depth:
                self._batch.append(("push",))
            for t in terms:
                self._queue("add", t)

    def _call(self, limit: float | None) -> Any:
        if self._closed:
            raise SolverError("the solver is closed")
        terms, commands = self._terms, self._batch
        self._terms, self._batch = [], []
        if self._worker is None:
            self._worker = _Worker(self._name)
        return self._worker.call(terms, commands, limit)

    def check(self, assumptions: Sequence[Term] = (), timeout: float | None = None) -> Answer:
        """Satisfiability under assumptions; `unknown` after timeout seconds, whatever the library does."""
        started = time.monotonic()
        self._last = None
        if self._worker is not None and resident_mb(os.getpid()) > LARGE:
            self._end_worker()
        self._assumed = list(dict.fromkeys(assumptions))
        if any(t.width != 1 for t in self._assumed):
            raise WidthError("assumptions must be Booleans")
        positions = range(len(self._terms), len(self._terms) + len(self._assumed))
        self._batch.append(("check", list(positions), timeout))
        self._terms.extend(self._assumed)
        answer: Answer = "unknown"
        try:
            answer = self._call(None if timeout is None else timeout + GRACE)
        except (_Overrun, EOFError, OSError):
            self._restart()
        except SolverError:
            self._restart()
            raise
        self._last = answer
        self.statistics.count(answer, time.monotonic() - started)
        return answer

    def _ask(self, command: str, terms: Sequence[Term], needed: Answer) -> Any:
        if self._last != needed:
            raise SolverError(f"the last check did not say {needed}, or the solver was changed since")
        first = len(self._terms)
        self._terms.extend(terms)
        if command == "core":
            self._batch.append((command, list(range(first, first + len(terms)))))
        else:
            self._batch.append((command, first))
        try:
            return self._call(None)
        except (EOFError, OSError) as error:
            self._last = None
            self._restart()
            raise SolverError(f"the {self._name} worker died") from error

    def value(self, term: Term) -> int:
        """The value of a bit-vector or Boolean in the model."""
        if term.width == 0:
            raise WidthError("a memory has no single value; use model_memory")
        return int(self._ask("value", [term], "sat"))

    def model_memory(self, term: Term) -> MemoryModel:
        """The contents of a memory in the model."""
        if term.width:
            raise WidthError("not a memory")
        default, cells = self._ask("memory", [term], "sat")
        return MemoryModel(default, cells)

    def core(self) -> list[Term]:
        """Assumptions of the last check that suffice for unsat."""
        needed = self._ask("core", self._assumed, "unsat")
        assert self._worker is not None
        _, numbers = self._worker.encoder.encode(self._assumed)
        return [t for t, i in zip(self._assumed, numbers, strict=True) if i in needed]

    def close(self) -> None:
        """End the worker."""
        self._closed = True
        if self._worker is not None:
            self._worker.kill()
            self._worker = None
