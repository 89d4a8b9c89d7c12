"""Where a simulation is: the places that wait, and all that a part of it can be done again from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mcveto.engines.state import Calls, PathState, Place

if TYPE_CHECKING:
    from mcveto.engines.simulation.early_turns import Turn

Key = tuple[object, ...]

# Instructions between two checkpoints, and how many of them.
STRETCH = 2000
MOST_CHECKPOINTS = 16
# Instructions that are executed again.
FAR_BACK = 4000


@dataclass
class Slot:
    """A place that waits to be executed, with the abstract state of all that arrived there."""

    state: PathState
    marks: frozenset[int]
    """Heads of loops around it whose end depends on inputs, or that have none and read some."""
    is_kept: bool = False
    """Whether a checkpoint has the state, too: executing uses it up."""
    passed: int | None = None
    """The number of the turn in which all that arrived there has come through the head of an outermost loop last
    (`early_turns`)."""
    is_begun_again: bool = False
    """Whether it stands for a state at the head of a loop that is begun again, and is executed in any case."""


class Begun(NamedTuple):
    """When a call was made last."""

    serial: int
    """Variables made later are newer."""
    caller: Place | None
    """From where, and in which turns of the loops there."""


@dataclass
class Checkpoint:
    """All that a part of the simulation can be done again from."""

    serial: int
    """Variables made later are newer."""
    slots: dict[Key, Slot]
    heads: dict[Key, tuple[PathState, int]]
    joined: dict[Key, int]
    open: dict[str, None]
    gaps: dict[str, None]
    steps: int
    """Edges of the abstract graph that were known."""
    replays: int
    """Summaries that had been used."""
    nodes: int
    """States that had been executed (of those that are recorded)."""
    instructions: int
    """Instructions that had been executed."""
    met: frozenset[int]
    """Functions that had been called."""
    begun: dict[tuple[Calls, int], Begun]
    turn: Turn | None
    """The turn of an outermost loop that was being followed."""


class Checkpoints:
    """Of the older ones, every other is forgotten when they are many."""

    def __init__(self, instructions: Callable[[], int]) -> None:
        self._instructions = instructions
        """How many have been executed."""
        self._kept: list[Checkpoint] = []
        self._next = 0

    def is_due(self) -> bool:
        return self._instructions() >= self._next

    def keep(self, point: Checkpoint) -> None:
        kept = self._kept
        kept.append(point)
        if len(kept) > MOST_CHECKPOINTS:
            kept[:] = [point for index, point in enumerate(kept) if index % 2 == 0 or index >= len(kept) - 4]
        self._next = self._instructions() + STRETCH

    def back(self, serial: int) -> Checkpoint:
        """Forgets what came after a variable was made, except for the first one of all; the last that is left."""
        while len(self._kept) > 1 and self._kept[-1].serial >= serial:
            self._kept.pop()
        self._next = self._instructions() + STRETCH
        return self._kept[-1]

    def cost(self, serial: int) -> int:
        """How many instructions are executed again, if what was done since a variable was made is done again."""
        last = next((point for point in reversed(self._kept) if point.serial < serial), self._kept[0])
        return self._instructions() - last.instructions

    def is_far_back(self, serial: int) -> bool:
        return self.cost(serial) >= FAR_BACK


class Refined(Exception):
    """Something more is kept apart: what was done since the variable with this number was made is to be done again."""

    def __init__(self, serial: int) -> None:
        super().__init__()
        self.serial = serial


def addresses(calls: Calls | None) -> Iterator[int]:
    while calls is not None:
        yield calls.address
        calls = calls.parent


def callers(place: Place | None) -> Iterator[int]:
    """The functions that a place is in, innermost first."""
    while place is not None:
        yield place.function
        place = place.caller


def again(state: PathState) -> PathState:
    """A copy that can be executed."""
    twin = state.fork(state.pc, dict(state.registers), state.memory.copy(), state.model)
    twin.key = state.key
    return twin


def run_of(state: PathState) -> tuple[int, ...]:
    """Of a state at the head of a loop: that loop, and the turns of those around it, as in the order of all places."""
    return state.key[:-3]


def left(state: PathState, head: int, frame: Calls | None) -> bool:
    """Whether a state has left the loop, seen from the same call."""
    return state.calls is frame and state.place is not None and all(item != head for item, _ in state.place.loops)
