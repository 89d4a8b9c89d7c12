"""What the in-process back ends share: translation, bookkeeping of scopes, and refusal of stale models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from mcveto.logic.lowering import Lowering, Target
from mcveto.logic.node import Term, WidthError
from mcveto.logic.solver.interface import Answer, MemoryModel, SolverError, Statistics


class InProcessSolver:
    """Subclasses talk to one library; see the underscored methods."""

    def __init__(self, target: Target[Any]) -> None:
        self.statistics = Statistics()
        self._lowering: Lowering[Any] = Lowering(target)
        self._scopes = 0
        self._last: Answer | None = None
        self._assumed: list[Term] = []

    def push(self) -> None:
        """Open a scope."""
        self._last = None
        self._scopes += 1
        self._push()

    def pop(self) -> None:
        """Drop the innermost scope with everything added in it."""
        if self._scopes == 0:
            raise SolverError("pop without push")
        self._last = None
        self._scopes -= 1
        self._pop()

    def add(self, term: Term) -> None:
        """Assert a Boolean in the current scope."""
        self._boolean(term)
        self._last = None
        self._add(self._lowering.lower(term))

    def check(self, assumptions: Sequence[Term] = (), timeout: float | None = None) -> Answer:
        """Satisfiability under assumptions; `unknown` after timeout seconds."""
        started = time.monotonic()
        self._last = None
        self._assumed = []
        for t in assumptions:
            self._boolean(t)
            if t not in self._assumed:
                self._assumed.append(t)
        lowered = [self._lowering.lower(t) for t in self._assumed]
        answer: Answer = "unknown"
        remaining = None if timeout is None else timeout - (time.monotonic() - started)
        if remaining is None or remaining > 0:
            answer = self._check(lowered, remaining)
        self._last = answer
        self.statistics.count(answer, time.monotonic() - started)
        return answer

    def value(self, term: Term) -> int:
        """The value of a bit-vector or Boolean in the model."""
        self._need("sat")
        if term.width == 0:
            raise WidthError("a memory has no single value; use model_memory")
        return int(term.data) if term.op == "const" else self._value(self._lowering.lower(term))

    def model_memory(self, term: Term) -> MemoryModel:
        """The contents of a memory in the model."""
        self._need("sat")
        if term.width:
            raise WidthError("not a memory")
        return self._array(self._lowering.lower(term))

    def core(self) -> list[Term]:
        """Assumptions of the last check that suffice for unsat."""
        self._need("unsat")
        needed = self._core([self._lowering.lower(t) for t in self._assumed])
        return [t for t, wanted in zip(self._assumed, needed, strict=True) if wanted]

    def close(self) -> None:
        """Forgets what was lowered for the solver."""
        self._last = None
        del self._lowering

    def _need(self, answer: Answer) -> None:
        if self._last != answer:
            raise SolverError(f"the last check did not say {answer}, or the solver was changed since")

    @staticmethod
    def _boolean(term: Term) -> None:
        if term.width != 1:
            raise WidthError(f"a Boolean is needed, not width {term.width}")

    def _push(self) -> None:
        raise NotImplementedError

    def _pop(self) -> None:
        raise NotImplementedError

    def _add(self, formula: Any) -> None:
        raise NotImplementedError

    def _check(self, assumptions: list[Any], timeout: float | None) -> Answer:
        raise NotImplementedError

    def _value(self, expression: Any) -> int:
        raise NotImplementedError

    def _array(self, expression: Any) -> MemoryModel:
        raise NotImplementedError

    def _core(self, assumptions: list[Any]) -> list[bool]:
        raise NotImplementedError
