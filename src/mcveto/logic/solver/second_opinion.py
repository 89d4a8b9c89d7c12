"""Two solvers, one after the other: the second gets what the first could not decide in its share of the time.

Measured on queries from machine-code traces, the two fail on different ones. The second is started when
first needed, and then told what was asserted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mcveto.logic.node import Term
from mcveto.logic.solver.interface import Answer, MemoryModel, Solver, SolverError, Statistics

FIRST_SHARE = 0.5
FIRST_SECONDS = 10.0  # the first solver's share of a query without a limit


class SecondOpinion:
    """The `Solver` protocol on top of two others."""

    def __init__(self, first: Callable[[], Solver], second: Callable[[], Solver]) -> None:
        self.statistics = Statistics()
        self._first = first()
        self._make_second = second
        self._second: Solver | None = None
        self._scopes: list[list[Term]] = [[]]
        self._answered: Solver | None = None

    def push(self) -> None:
        """Open a scope."""
        self._answered = None
        self._scopes.append([])
        self._first.push()
        if self._second is not None:
            self._second.push()

    def pop(self) -> None:
        """Drop the innermost scope with everything added in it."""
        if len(self._scopes) == 1:
            raise SolverError("pop without push")
        self._answered = None
        self._scopes.pop()
        self._first.pop()
        if self._second is not None:
            self._second.pop()

    def add(self, term: Term) -> None:
        """Assert a Boolean in the current scope."""
        self._answered = None
        self._first.add(term)
        self._scopes[-1].append(term)
        if self._second is not None:
            self._second.add(term)

    def check(self, assumptions: Sequence[Term] = (), timeout: float | None = None) -> Answer:
        """Ask the first solver, and the second if the first does not know."""
        started = time.monotonic()
        self._answered = None
        answer = self._first.check(assumptions, FIRST_SECONDS if timeout is None else timeout * FIRST_SHARE)
        if answer != "unknown":
            self._answered = self._first
        else:
            remaining = None if timeout is None else timeout - (time.monotonic() - started)
            if remaining is None or remaining > 0:
                second = self._started_second()
                answer = second.check(assumptions, remaining)
                self._answered = second if answer != "unknown" else None
        self.statistics.count(answer, time.monotonic() - started)
        return answer

    def _started_second(self) -> Solver:
        if self._second is None:
            self._second = self._make_second()
            for depth, terms in enumerate(self._scopes):
                if depth:
                    self._second.push()
                for t in terms:
                    self._second.add(t)
        return self._second

    def _source(self) -> Solver:
        if self._answered is None:
            raise SolverError("the last check was not decided, or the solver was changed since")
        return self._answered

    def value(self, term: Term) -> int:
        """The value in the model of the solver that answered."""
        return self._source().value(term)

    def model_memory(self, term: Term) -> MemoryModel:
        """The memory in the model of the solver that answered."""
        return self._source().model_memory(term)

    def core(self) -> list[Term]:
        """The core of the solver that answered."""
        return self._source().core()

    def close(self) -> None:
        """Close both."""
        self._first.close()
        if self._second is not None:
            self._second.close()
