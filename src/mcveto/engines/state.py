"""One path under exploration: where it is, what it knows, and how it got there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mcveto.engines.memory import PathMemory, Value
from mcveto.engines.path import Path
from mcveto.engines.queries import Model
from mcveto.logic.terms import Term
from mcveto.machine.pcode import FreshOrigin


class Drawn(NamedTuple):
    """A fresh value was made after those of `before`."""

    before: Log
    variable: Term
    origin: FreshOrigin
    usual: Value
    pc: int


class Joined(NamedTuple):
    """Two paths met; where the condition holds, the first was taken."""

    condition: Term
    first: Log
    second: Log


Log = Drawn | Joined | None


def drawn(log: Log, model: Model) -> list[Drawn]:
    """The fresh values in the order they were made, on the path the model takes."""
    found: list[Drawn] = []
    while log is not None:
        if isinstance(log, Joined):
            log = log.first if model.value(log.condition) else log.second
        else:
            found.append(log)
            log = log.before
    found.reverse()
    return found


class Script(NamedTuple):
    """How the next instruction is to be executed again: its decisions, and the fresh values it made."""

    decisions: tuple[bool, ...] = ()
    fresh: tuple[Term, ...] = ()


START = Script()
# (head of a loop, how often it was come back to), outermost first.
Loops = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class PathState:
    pc: int
    registers: dict[int, Value]
    memory: PathMemory
    path: Path
    frames: tuple[int, ...]
    """Return addresses expected, innermost last."""
    model: Model | None
    """Inputs that take this path; None if nobody has asked yet whether there are any."""
    log: Log = None
    steps: int = 0
    script: Script = START
    resumes: bool = False
    """Goes on in the middle of what another state was doing, which is therefore no earlier state of its own."""
    places: tuple[tuple[int, int, Loops], ...] = ()
    """For every frame, outermost first: its function, where it is, and the turns of the loops around that place."""
    key: tuple[int, ...] = ()
    """Its place in the order of exploration."""

    def fork(self, pc: int, registers: dict[int, Value], memory: PathMemory, model: Model | None) -> PathState:
        return PathState(
            pc, registers, memory, self.path.copy(), self.frames, model, self.log, self.steps, START, False, self.places
        )
