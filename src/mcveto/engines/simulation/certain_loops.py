"""Loops whose end no input decides: joined after a few turns, and run to their end only where that lost something.

A buffer that is cleared or sorted takes hundreds of turns, and mostly nothing depends on what they leave there. So such
a loop is joined like any other after a few turns; what stands for anything since is told by the number of its
variable, and what its stores have made unknown by their ranges. A store of the loop that could go anywhere, and a
target that seems to be reached because of what is unknown now, are reasons to go back to before the loop, which is run
from then on: loops to unroll as in Rival and Mauborgne, "The trace partitioning abstract domain" (TOPLAS 2007), but
found by refinement instead of being chosen before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from mcveto.engines.path import KeyTable
from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.engines.state import PathState, Place
from mcveto.logic.terms import Term

# Turns after which such a loop is joined, and fewer if they take so many instructions.
SOON = 8
FEW_TURNS = 2
LONG_RUN = 400
# Bytes: a store that can go this far has lost its bounds.
WIDE = 2048

Range = tuple[int, int]


class RunLoops(Exception):
    """A call that is followed for a summary is to be followed again, because some loops are run from now on."""


class CertainLoops:
    def __init__(self, unknowns: Unknowns) -> None:
        self._unknowns = unknowns
        self.to_run: set[int] = set()
        """The heads of those that are run."""
        self._joined: dict[int, int] = {}
        """Heads of those that were joined, with how many variables there were when the loop was come to last."""
        self.function_of: dict[int, int] = {}
        self._made: list[tuple[int, int, int | frozenset[int]]] = []
        """From which variable to which a join at a head has made some, or a summary of these functions."""
        self._ranges: dict[int, set[Range]] = {}
        """What their stores made unknown."""
        self._begun: dict[int, int] = {}

    def begin(self, place: Place) -> None:
        """A loop is come to from outside."""
        self._begun[place.pc] = self._unknowns.count

    def is_due(self, head: int, turns: int, instructions: int) -> bool:
        """Whether a loop is to be joined already, after so many turns that took so many instructions."""
        if head in self.to_run:
            return False
        return turns > SOON or (turns > FEW_TURNS and instructions > LONG_RUN)

    def note_joined(self, place: Place, before: int) -> None:
        """A join at the head made all variables since there were so many."""
        head = place.pc
        self._joined[head] = self._begun.get(head, 0)
        self.function_of[head] = place.function
        self._made.append((before, self._unknowns.count, head))

    def note_summary(self, functions: frozenset[int], before: int) -> None:
        """The ends of a call were made of a summary."""
        if any(self.function_of[head] in functions for head in self._joined):
            self._made.append((before, self._unknowns.count, functions))

    def of_store(self, place: Place | None, ranges: Sequence[Range], is_bounded: bool) -> list[int]:
        """The innermost loop to be run because of a store that has lost its bounds within it."""
        around = [head for head in _heads_around(place) if head in self._joined and head not in self.to_run]
        if not is_bounded or sum(high - low for low, high in ranges) > WIDE:
            return around[:1]
        for head in around:
            self._ranges.setdefault(head, set()).update(ranges)
        return []

    def behind(self, state: PathState, table: KeyTable) -> list[int]:
        """The loops that made something unknown which the way here depends on; those of what was tested last."""
        for term in reversed(state.path.terms):
            found = {head for variable in table.of(term) for head in self._of(variable)}
            if found:
                return sorted(found)
        return []

    def run(self, heads: Iterable[int]) -> int:
        """From now on they are run. How many variables there were when the first of them was come to."""
        chosen = [*heads]
        self.to_run.update(chosen)
        return min(self._joined[head] for head in chosen)

    def left(self) -> list[int]:
        """All that were joined and are not run."""
        return sorted(self._joined.keys() - self.to_run)

    def of_term(self, term: Term, table: KeyTable) -> list[int]:
        return sorted({head for variable in table.of(term) for head in self._of(variable)})

    def _of(self, variable: object) -> Iterable[int]:
        if not isinstance(variable, Term):
            return
        number = self._unknowns.number_of(variable)
        if number is None:
            return
        at = bisect_right(self._made, number, key=lambda item: item[0] + 1) - 1
        if at >= 0 and number <= self._made[at][1]:
            maker = self._made[at][2]
            heads = [maker] if isinstance(maker, int) else self._joined
            yield from (
                head
                for head in heads
                if head not in self.to_run and (maker == head or self.function_of[head] in maker)  # type: ignore[operator]
            )
        places = [origin[1:3] for origin in self._unknowns.origins_of(variable) if origin[0] == "memory"]
        read = self._unknowns.places.get(variable)
        for start, size in [*places, *([read] if read is not None else [])]:
            assert isinstance(start, int) and isinstance(size, int)
            for head, ranges in self._ranges.items():
                if head not in self.to_run and any(low < start + size and start < high for low, high in ranges):
                    yield head


def _heads_around(place: Place | None) -> Iterable[int]:
    """Of all loops around a place, innermost first, also in the functions that called."""
    while place is not None:
        yield from (head for head, turns in reversed(place.loops) if turns)
        place = place.caller
