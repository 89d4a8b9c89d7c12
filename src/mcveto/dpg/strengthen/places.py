"""Places: the registers and memory words that matter at a cut point, and the values the runs saw there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from mcveto.dpg.graph import Witness
from mcveto.dpg.location import Location
from mcveto.dpg.runs import Run
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.path_state import stores_of
from mcveto.dpg.strengthen.quantified import loads_that_vary
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term
from mcveto.program.program import Program

MAX_SAMPLES = 60
MAX_SAMPLES_PER_RUN = 16
UNKNOWN = -1


class Places:
    """Finds the places that terms read; a place is a register variable or a load at a constant address."""

    def __init__(self, program: Program) -> None:
        self._layout = program.decoder.layout
        self._memory = t.memory("mem", program.space.address_bits)
        self._found: dict[Term, frozenset[Term]] = {}

    def of(self, term: Term) -> frozenset[Term]:
        found = self._found.get(term)
        if found is None:
            places = set()
            stack, seen = [term], {term}
            while stack:
                current = stack.pop()
                if current.op == "var":
                    if str(current.data) in self._layout.by_name:
                        places.add(current)
                    continue
                if current.op == "load" and current.args[0] is self._memory and current.args[1].op == "const":
                    places.add(current)
                    continue
                if current.op == "load" and current.args[1].op == "const":  # behind writes that may miss it
                    places.add(t.load(self._memory, current.args[1], *current.data))
                for argument in current.args:
                    if argument not in seen:
                        seen.add(argument)
                        stack.append(argument)
            found = self._found[term] = frozenset(places)
        return found

    def of_all(self, terms: Iterable[Term]) -> set[Term]:
        found: set[Term] = set()
        for term in terms:
            found |= self.of(term)
        return found

    def read_by_blocks(self, steps: Steps, locations: Iterable[Location]) -> set[Term]:
        """What the blocks themselves read."""
        found: set[Term] = set()
        for location in locations:
            for outcome in steps.outcomes(location):
                found |= self.of_all([*outcome.guard, outcome.target, *outcome.state.values()])
        return found

    def written_by_blocks(self, steps: Steps, locations: Iterable[Location]) -> set[Term]:
        """The words that blocks write at constant addresses, where some block reads at another: it may find them, as a
        loop finds the end of a string."""
        written: set[Term] = set()
        reads_elsewhere = False
        for location in locations:
            for outcome in steps.outcomes(location):
                for address, value, big_endian in stores_of(outcome.memory, self._memory):
                    if address.op == "const":
                        written.add(t.load(self._memory, address, value.width // 8, big_endian))
                reads_elsewhere = reads_elsewhere or self._reads_elsewhere([*outcome.guard, *outcome.state.values()])
        return written if reads_elsewhere else set()

    def _reads_elsewhere(self, terms: Iterable[Term]) -> bool:
        return any(term.op == "load" and term.args[1].op != "const" for term in t.postorder(terms))


def relevant_places(places: Places, steps: Iterable[BigStep]) -> dict[Location, set[Term]]:
    """The cone of influence: what guards read, and what flows into that; with arrays read, what is stored there."""
    found: dict[Location, set[Term]] = {}
    known = list(steps)
    reads_arrays = any(loads_that_vary(step.guard) for step in known)
    for step in known:
        if step.source is not None:
            stored = [(at, value) for at, value, _ in step.state.writes() if reads_arrays and at.op != "const"]
            terms = [*step.guard, *(term for pair in stored for term in pair)]
            found.setdefault(step.source, set()).update(places.of_all(terms))
    changed = True
    while changed:
        changed = False
        for step in known:
            if step.source is None or step.target is None:
                continue
            here = found.setdefault(step.source, set())
            before = len(here)
            for place in list(found.get(step.target, ())):
                here |= places.of(step.pre(place))
            changed = changed or len(here) > before
    return found


@dataclass
class Samples:
    """The visits of each location that kept their state, a bounded number of them."""

    visits: dict[Location, list[Witness]]

    def __init__(self, runs: Sequence[Run], locations: Iterable[Location]) -> None:
        wanted = set(locations)
        by_run: dict[Location, list[list[Witness]]] = {location: [] for location in wanted}
        for run in runs:
            mine: dict[Location, list[Witness]] = {}
            for visit in run.visits:
                if visit.state is not None and visit.location in wanted:
                    mine.setdefault(visit.location, []).append(Witness(run, visit))
            for location, witnesses in mine.items():
                by_run[location].append(witnesses)
        self.visits = {}
        for location, groups in by_run.items():
            share = max(2, min(MAX_SAMPLES_PER_RUN, MAX_SAMPLES // max(1, len(groups))))
            chosen: list[Witness] = []
            for group in groups:
                half = share // 2
                chosen += group if len(group) <= share else [*group[: share - half], *group[-half:]]
            self.visits[location] = chosen[: 2 * MAX_SAMPLES]
        self._values: dict[tuple[Location, Term], tuple[int, ...]] = {}
        self._computed: dict[Location, list[dict[Term, Term]]] = {}

    def with_computed(self, computed: Mapping[Location, Sequence[Mapping[Term, int]]]) -> Samples:
        """These samples and states that no run was in, given by what some places hold there."""
        found = copy(self)
        found._values = {}
        found._computed = {
            location: [{place: t.const(value, place.width) for place, value in cells.items()} for cells in states]
            for location, states in computed.items()
        }
        return found

    def values(self, location: Location, term: Term) -> tuple[int, ...]:
        """The values a term had at the visits, and in the computed states, where it may be UNKNOWN."""
        key = (location, term)
        found = self._values.get(key)
        if found is None:
            seen = [value_at(term, witness) for witness in self.visits[location]]
            for cells in self._computed.get(location, ()):
                value = substitute(term, cells)
                seen.append(value.data if value.op == "const" else UNKNOWN)
            found = self._values[key] = tuple(seen)
        return found

    def holds(self, location: Location, predicate: Term) -> bool:
        return all(self.values(location, predicate))


def value_at(term: Term, witness: Witness) -> int:
    state = witness.visit.state
    assert state is not None
    return witness.run.execution.evaluator.value(state.value(term))


Known = Mapping[Location, Mapping[Term, int]]
