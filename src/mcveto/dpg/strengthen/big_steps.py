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

from mcveto.dpg.location import Location
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.steps import Literals, Steps
from mcveto.dpg.strengthen.cuts import Shape
from mcveto.dpg.strengthen.path_state import PathState
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.logic.words_read import words_read

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
    told: frozenset[Term] = frozenset()
    """Of the guard, what invariants say and the path does not."""

    @property
    def own_guard(self) -> list[Term]:
        return [literal for literal in self.guard if literal not in self.told]

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


@dataclass(frozen=True, slots=True)
class _Way:
    """One outcome of a location's block: what takes it out of the graph, and into each known successor."""

    outcome: Outcome
    outside: list[Literals]
    arrivals: list[tuple[Location, Literals]]


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
        self._reads: dict[Term, frozenset[Term]] = {}
        self._ways: dict[Location, list[_Way]] = {}
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
            for way in self._ways_from(place.location):
                self._take(source, place, way, found, waiting)
            if len(found) + len(waiting) > MAX_STEPS_PER_SOURCE:
                raise TooManyPaths(f"more than {MAX_STEPS_PER_SOURCE} paths from {start}")
        return found

    def _ways_from(self, location: Location) -> list[_Way]:
        known = self._ways.get(location)
        if known is None:
            known = self._ways[location] = []
            successors = self._shape.successors[location]
            for outcome in self._steps.outcomes(location):
                arrivals: list[tuple[Location, Literals]] = []
                for target in successors:
                    arrival = self._steps.into(location, outcome, target, ())
                    if arrival is not None:
                        arrivals.append((target, arrival))
                known.append(_Way(outcome, self._steps.outside(location, outcome, successors), arrivals))
        return known

    def _take(
        self, source: Location | None, place: _Place, way: _Way, found: list[BigStep], waiting: list[_Place]
    ) -> None:
        state, outcome = place.state, way.outcome
        fresh = (*place.fresh, *(state.value(variable) for variable in outcome.fresh))
        trail = (*place.trail, place.location)
        for literals in way.outside:
            guard = self._extended(source, place, literals)
            if guard is not None:
                found.append(BigStep(source, None, guard, state, fresh, trail, outcome.unsupported))
        for target, arrival in way.arrivals:
            guard = self._extended(source, place, arrival)
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
        added = guard[len(place.guard) :]
        if added and self._related(place.guard, added) and not self._feasible(source, guard):
            return None
        return guard

    def _related(self, guard: Sequence[Term], added: Sequence[Term]) -> bool:
        """Whether literals may contradict what a guard says: they speak of something it speaks of."""
        reads = self._reads
        for literal in (*guard, *added):
            if literal not in reads:
                reads[literal] = frozenset(words_read(literal))
        before = set().union(*(reads[literal] for literal in guard))
        return any(not before.isdisjoint(reads[literal]) for literal in added) or len(added) > 1
