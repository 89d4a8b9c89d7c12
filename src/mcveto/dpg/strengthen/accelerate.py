"""Samples from late iterations: a loop that adds the same to its cells each time is taken many times at once.

Runs are short, so of a loop with a million iterations they see the first few, and of what is behind it nothing; what
holds only in its second phase, or at its end, is never proposed. Here the steps between cut points are taken from the
states of the samples, on the values of the cells that matter. Where a step leads back to its own cut point and adds
the same twice, its last iteration is looked for by doubling and bisection, as if its guard held up to a point and not
beyond (flat loops: Finkel and Leroux, "How to compose Presburger-accelerations", FSTTCS 2002).

The result is used as samples are: a wrong one could only hide a candidate. Steps whose guard or whose effect on such a
cell depends on an input, or on memory at an address that varies, are not taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from mcveto.dpg.graph import Witness
from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.places import relevant_places, value_at
from mcveto.dpg.strengthen.system import System
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term

STARTS_PER_CUT = 4
MAX_STATES = 60
MAX_PER_CUT = 24

Cells = dict[Term, int]


@dataclass(frozen=True, slots=True)
class _State:
    cut: Location
    cells: Cells


def accelerated(system: System) -> dict[Location, list[Cells]]:
    """Values of the cells that matter at each cut point, in iterations that no run came to."""
    return _Acceleration(system).states()


class _Acceleration:
    def __init__(self, system: System) -> None:
        self._system = system
        relevant = relevant_places(system.places, system.all_steps())
        self._cells: dict[Location, list[Term]] = {
            cut: sorted(relevant.get(cut, ()), key=lambda place: place.serial) for cut in system.cuts
        }

    def states(self) -> dict[Location, list[Cells]]:
        found: dict[Location, list[Cells]] = {cut: [] for cut in self._system.cuts}
        seen: set[tuple[Location, tuple[tuple[int, int], ...]]] = set()
        waiting: deque[_State] = deque()
        for cut in self._system.cuts:
            for witness in _ends(self._system.samples.visits[cut], STARTS_PER_CUT):
                state = _State(cut, {place: value_at(place, witness) for place in self._cells[cut]})
                seen.add(_key(state))
                waiting.append(state)
        count = 0
        while waiting and count < MAX_STATES:
            state = waiting.popleft()
            for step in self._system.steps_from[state.cut]:
                for number, new in enumerate(self._taken(step, state)):
                    if _key(new) not in seen and len(found[new.cut]) < MAX_PER_CUT:
                        seen.add(_key(new))
                        found[new.cut].append(new.cells)
                        # From the last turn on first: that is where the next phase begins.
                        (waiting.append if number else waiting.appendleft)(new)
                        count += 1
        return found

    def _taken(self, step: BigStep, state: _State) -> list[_State]:
        """The states behind a step; of one that can be repeated those behind all of its turns, and behind some."""
        if step.target is None or not self._holds(step, state.cells):
            return []
        first = self._behind(step, state.cells)
        if first is None:
            return []
        if step.target != state.cut:
            return [_State(step.target, first)]
        added = _difference(state.cells, first)
        turns = self._turns(step, state.cells, added) if any(added.values()) else 0
        chosen = dict.fromkeys((turns, turns - 1, turns // 2, 1)) if turns > 1 else {1: None}
        return [_State(state.cut, _moved(state.cells, added, number)) for number in chosen if number > 0]

    def _turns(self, step: BigStep, start: Cells, added: Cells) -> int:
        """How often the step can be taken if it goes on as it begins; 0 if it does not add the same again."""

        def goes_on(turns: int) -> bool:
            cells = _moved(start, added, turns)
            if not self._holds(step, cells):
                return False
            behind = self._behind(step, cells)
            return behind is not None and _difference(cells, behind) == added

        if not goes_on(1):
            return 0
        width = max(place.width for place in start)
        low, high = 1, 2
        while high < 1 << width and goes_on(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if goes_on(middle) else (low, middle)
        return low + 1

    def _holds(self, step: BigStep, cells: Mapping[Term, int]) -> bool:
        known = _constants(cells)
        return all(substitute(literal, known) is t.TRUE for literal in step.guard)

    def _behind(self, step: BigStep, cells: Mapping[Term, int]) -> Cells | None:
        assert step.target is not None
        known = _constants(cells)
        found: Cells = {}
        for place in self._cells[step.target]:
            value = substitute(step.pre(place), known)
            if value.op != "const":
                return None
            found[place] = value.data
        return found


def _constants(cells: Mapping[Term, int]) -> dict[Term, Term]:
    return {place: t.const(value, place.width) for place, value in cells.items()}


def _difference(before: Mapping[Term, int], after: Mapping[Term, int]) -> Cells:
    return {place: (after[place] - value) & ((1 << place.width) - 1) for place, value in before.items()}


def _moved(cells: Mapping[Term, int], added: Mapping[Term, int], turns: int) -> Cells:
    return {place: (value + turns * added[place]) & ((1 << place.width) - 1) for place, value in cells.items()}


def _key(state: _State) -> tuple[Location, tuple[tuple[int, int], ...]]:
    return state.cut, tuple((place.serial, value) for place, value in state.cells.items())


def _ends(witnesses: Sequence[Witness], most: int) -> list[Witness]:
    half = most // 2
    return list(witnesses) if len(witnesses) <= most else [*witnesses[:half], *witnesses[-half:]]
