"""Large-block steps (Beyer et al., "Software model checking via large-block encoding", FMCAD 2009): one step per
loop-free path from a cut point to the next, or to where the path leaves what was explored.

A step's guard and the state behind it are terms over the state at its source, so that `Pre` over a whole path is one
substitution. We enumerate paths instead of encoding them into one formula: each step then has a conjunction as its
guard, from which cubes and cores are read off directly; `cuts` keeps their number small.

The steps whose source is `None` start in an entry state. Those whose target is `None` are exits: into TS, that is into
a target, a wrong return or anything not explored. No exit can be taken iff the explored graph is complete and safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcveto.dpg.location import Location
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.cuts import Shape
from mcveto.dpg.strengthen.path_state import PathState
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_STEPS_PER_SOURCE = 3000


class TooManyPaths(Exception):
    """More loop-free paths from one cut point than we enumerate."""


@dataclass(frozen=True, eq=False)
class BigStep:
    source: Location | None
    target: Location | None
    guard: tuple[Term, ...]
    state: PathState
    """Behind the step; for an exit, before its last block."""
    fresh: tuple[Term, ...]
    trail: tuple[Location, ...]
    """The locations passed, the target left out."""
    unsupported: str = ""

    def pre(self, predicate: Term) -> Term:
        """What a predicate behind the step says before it (without the guard)."""
        return self.state.value(predicate)


Feasible = Callable[[Location | None, Sequence[Term]], bool]


@dataclass(frozen=True, slots=True)
class _Place:
    location: Location
    state: PathState
    guard: tuple[Term, ...]
    fresh: tuple[Term, ...]
    trail: tuple[Location, ...]


class BigSteps:
    """Enumerates the steps from a cut point in a given state; `feasible` prunes paths."""

    def __init__(
        self,
        steps: Steps,
        shape: Shape,
        live: dict[Location, set[int]],
        pointers: tuple[int, int],
        feasible: Feasible,
    ) -> None:
        self._steps = steps
        self._shape = shape
        self._cuts = set(shape.cuts)
        self._live = live
        self._pointers = pointers
        self._feasible = feasible
        self.passed: dict[Location | None, dict[Location, list[BigStep]]] = {}
        """Per source and location between cut points, the paths that lead there."""

    def of(self, source: Location | None, state: PathState) -> list[BigStep]:
        start = source if source is not None else self._shape.entry
        found: list[BigStep] = []
        passed: dict[Location, list[BigStep]] = {}
        self.passed[source] = passed
        if source is None and start in self._cuts:
            return [BigStep(None, start, (), state, (), ())]
        waiting = [_Place(start, state, (), (), ())]
        while waiting:
            place = waiting.pop()
            if source is None or place.trail:
                here = BigStep(source, place.location, place.guard, place.state, place.fresh, place.trail)
                passed.setdefault(place.location, []).append(here)
            for outcome in self._steps.outcomes(place.location):
                self._take(source, place, outcome, found, waiting)
            if len(found) + len(waiting) > MAX_STEPS_PER_SOURCE:
                raise TooManyPaths(f"more than {MAX_STEPS_PER_SOURCE} paths from {start}")
        return found

    def _take(
        self, source: Location | None, place: _Place, outcome: Outcome, found: list[BigStep], waiting: list[_Place]
    ) -> None:
        location, state = place.location, place.state
        fresh = (*place.fresh, *(state.value(variable) for variable in outcome.fresh))
        trail = (*place.trail, location)
        successors = self._shape.successors[location]
        for literals in self._steps.outside(location, outcome, successors):
            guard = self._extended(source, place, literals)
            if guard is not None:
                found.append(BigStep(source, None, guard, state, fresh, trail, outcome.unsupported))
        if outcome.unsupported:
            return
        for target in successors:
            arrival = self._steps.into(location, outcome, target, ())
            guard = None if arrival is None else self._extended(source, place, arrival)
            if guard is None:
                continue
            after = state.after(outcome, target, self._live[target], self._pointers)
            if target in self._cuts:
                found.append(BigStep(source, target, guard, after, fresh, trail))
            else:
                waiting.append(_Place(target, after, guard, fresh, trail))

    def _extended(self, source: Location | None, place: _Place, literals: Sequence[Term]) -> tuple[Term, ...] | None:
        """The path's guard with the literals of one more block, or None if that cannot hold."""
        known = dict.fromkeys(place.guard)
        for literal in literals:
            value = place.state.value(literal)
            for part in value.args if value.op == "and" and value.width == 1 else (value,):
                if part is t.FALSE or t.bnot(part) in known:
                    return None
                if part is not t.TRUE:
                    known[part] = None
        guard = tuple(known)
        if len(guard) > len(place.guard) and not self._feasible(source, guard):
            return None
        return guard
