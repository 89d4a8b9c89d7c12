"""Loops whose end no input decides: joined after a few turns, and run to their end only where that lost something.

A buffer that is cleared or sorted takes hundreds of turns, and mostly nothing depends on what they leave there. So such
a loop is joined like any other after a few turns; what stands for anything since is told by the number of its
variable, and what its stores have made unknown by their ranges. A store of the loop that could go anywhere, and a
target that seems to be reached because of what is unknown now, are reasons to go back to before the loop, which is run
from then on: loops to unroll as in Rival and Mauborgne, "The trace partitioning abstract domain" (TOPLAS 2007), but
found by refinement instead of being chosen before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from mcveto.engines.path import KeyTable
from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.engines.state import PathState, Place
from mcveto.logic.terms import Term

# Turns after which such a loop is joined, and fewer if they take so many instructions; the same for one that is run.
SOON = 8
FEW_TURNS = 2
LONG_RUN = 400
MOST_TURNS = 300
FEW_LONG_TURNS = 4
LONGEST_RUN = 6000
# Bytes: a store that can go this far has lost its bounds.
WIDE = 2048

Range = tuple[int, int]


class RunLoops(Exception):
    """A call that is followed for a summary is to be followed again, because some loops are run from now on."""


class Made(NamedTuple):
    """Variables that stand for what loops have left: from which number to which, and the heads of these loops."""

    before: int
    until: int
    heads: frozenset[int]


class CertainLoops:
    def __init__(self, unknowns: Unknowns) -> None:
        self._unknowns = unknowns
        self._run: set[int] = set()
        """The heads of those that are run."""
        self._joined: dict[int, int] = {}
        """Heads of those that were joined, with how many variables there were when the loop was come to last."""
        self._function: dict[int, int] = {}
        self._made: list[Made] = []
        self._ranges: dict[int, set[Range]] = {}
        """What their stores made unknown."""
        self._begun: dict[int, int] = {}

    def begin(self, head: int) -> None:
        """A loop is come to from outside."""
        self._begun[head] = self._unknowns.count

    def is_due(self, head: int, turns: int, instructions: int) -> bool:
        """Whether a loop is to be joined already, after so many turns that took so many instructions."""
        if head in self._run:
            return turns > MOST_TURNS or (turns > FEW_LONG_TURNS and instructions > LONGEST_RUN)
        return turns > SOON or (turns > FEW_TURNS and instructions > LONG_RUN)

    def note_joined(self, place: Place, before: int) -> None:
        """A join at the head made all variables since there were so many."""
        head = place.pc
        if head not in self._run:
            self._joined[head] = self._begun.get(head, 0)
            self._function[head] = place.function
            self._made.append(Made(before, self._unknowns.count, frozenset((head,))))

    def note_summary(self, functions: frozenset[int], before: int) -> None:
        """The ends of a call of these functions were made of a summary."""
        heads = frozenset(head for head in self._joined if self._function[head] in functions)
        if heads:
            self._made.append(Made(before, self._unknowns.count, heads))

    def of_store(self, place: Place | None, ranges: Sequence[Range], is_bounded: bool) -> list[int]:
        """The innermost loop to be run because of a store that has lost its bounds within it."""
        around = [head for head in _heads_around(place) if head in self._joined and head not in self._run]
        if not is_bounded or sum(high - low for low, high in ranges) > WIDE:
            return around[:1]
        for head in around:
            self._ranges.setdefault(head, set()).update(ranges)
        return []

    def of_term(self, term: Term, table: KeyTable) -> list[int]:
        """The loops that made something unknown which a term depends on."""
        return sorted({head for variable in table.of(term) for head in self._of(variable)} - self._run)

    def behind(self, state: PathState, table: KeyTable) -> list[int]:
        """The loops that made something unknown which the way here depends on; those of what was tested last."""
        return next((heads for term in reversed(state.path.terms) if (heads := self.of_term(term, table))), [])

    def left(self) -> list[int]:
        """All that were joined and are not run."""
        return sorted(self._joined.keys() - self._run)

    def run(self, heads: Collection[int]) -> int:
        """From now on they are run. How many variables there were when the first of them was come to."""
        self._run.update(heads)
        return min(self._joined[head] for head in heads)

    def functions(self, heads: Collection[int]) -> set[int]:
        return {self._function[head] for head in heads}

    def _of(self, variable: object) -> Iterator[int]:
        number = self._unknowns.number_of(variable) if isinstance(variable, Term) else None
        if number is None:
            return
        assert isinstance(variable, Term)
        at = bisect_left(self._made, number, key=lambda made: made.until)
        if at < len(self._made) and self._made[at].before < number:
            yield from self._made[at].heads
        places = [origin[1:3] for origin in self._unknowns.origins_of(variable) if origin[0] == "memory"]
        read = self._unknowns.places.get(variable)
        for start, size in [*places, *([read] if read is not None else [])]:
            assert isinstance(start, int) and isinstance(size, int)
            for head, ranges in self._ranges.items():
                if any(low < start + size and start < high for low, high in ranges):
                    yield head


def _heads_around(place: Place | None) -> Iterator[int]:
    """Of all loops around a place, innermost first, also in the functions that called."""
    while place is not None:
        yield from (head for head, turns in reversed(place.loops) if turns)
        place = place.caller
