"""What every solver back end offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, Protocol

from mcveto.late_methods import dataclass
from mcveto.logic.node import Term

Answer = Literal["sat", "unsat", "unknown"]


class SolverError(RuntimeError):
    """A solver was asked for what it does not have, or failed."""


@dataclass
class Statistics:
    """What the solver did so far."""

    checks: int = 0
    sat: int = 0
    unsat: int = 0
    unknown: int = 0
    seconds: float = 0.0
    restarts: int = 0

    def count(self, answer: Answer, seconds: float) -> None:
        """Record one query."""
        self.checks += 1
        self.seconds += seconds
        setattr(self, answer, getattr(self, answer) + 1)


@dataclass(frozen=True)
class MemoryModel:
    """The contents a model gives to a memory: explicit cells, and the byte everywhere else."""

    default: int
    cells: dict[int, int] = field(default_factory=dict)

    def byte(self, address: int) -> int:
        """The byte at an address."""
        return self.cells.get(address, self.default)


class Solver(Protocol):
    """An incremental solver.

    `value` and `model_memory` speak of the last `check` if that said sat, `core` if it said unsat; all three
    only until the next `push`, `pop`, `add` or `check`."""

    statistics: Statistics

    def push(self) -> None:
        """Open a scope."""

    def pop(self) -> None:
        """Drop the innermost scope with everything added in it."""

    def add(self, term: Term) -> None:
        """Assert a Boolean in the current scope."""

    def check(self, assumptions: Sequence[Term] = (), timeout: float | None = None) -> Answer:
        """Is what was asserted satisfiable together with the assumptions? `unknown` after timeout seconds."""

    def value(self, term: Term) -> int:
        """The value of a bit-vector or Boolean in the model."""

    def model_memory(self, term: Term) -> MemoryModel:
        """The contents of a memory in the model."""

    def core(self) -> list[Term]:
        """Assumptions of the last check that suffice for unsat, in the order they were given."""

    def close(self) -> None:
        """Release what the solver holds (processes); it cannot be used afterwards."""
