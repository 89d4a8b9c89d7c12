"""Speculative trace refinement (TR1669 §3.2): candidate invariants from the folded trace, and the splits they suggest.

Two analyses run over the observed locations and steps: affine relations modulo 2^w among registers and the most used
memory variables, and strided intervals of each of them. What they find, and what every visited state confirms, is a
candidate. Nothing depends on its being true: a node is split into the states that satisfy it and those that do not
(Fig. 6), and the driver finds out whether the latter can be reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mcveto.dpg.graph import Graph, Witness, holds
from mcveto.dpg.liveness import Place, live_places
from mcveto.dpg.location import Blocks, Location
from mcveto.dpg.runs import Run
from mcveto.dpg.trace_analysis import (
    NARROWING_ROUNDS,
    AffineAnalysis,
    FoldedTrace,
    GivenUp,
    Places,
    StridedAnalysis,
    StridedState,
    fixpoint,
)
from mcveto.dpg.variables import Accesses, choose, identify, observe
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.affine import Form, to_term
from mcveto.machine.strided import StridedInterval
from mcveto.machine.tracked_cells import MemoryCell
from mcveto.program.program import Program

MAX_CELLS = 24
# A trace with more locations is not analysed: recursion gives each call its own.
MAX_LOCATIONS = 300
# States per run and location that a candidate is checked against.
MAX_STATES = 12


class _Ranked(NamedTuple):
    """A candidate with its rank, least first: relations before bounds, then by how little their places are used."""

    kind: int
    unused: int
    term: Term


class Speculation:
    """Finds candidates, again and again as runs are added; each run's accesses are looked at once."""

    def __init__(self, program: Program, blocks: Blocks | None = None) -> None:
        self._program = program
        self._blocks = blocks or Blocks(program)
        self._accesses = Accesses()
        self._observed: set[int] = set()

    def candidates(
        self, graph: Graph, runs: Sequence[Run], deadline: float | None = None
    ) -> dict[Location, list[Term]]:
        """What seems to hold at each location, as predicates over the state, most promising first."""
        program = self._program
        if len(graph.by_location) > MAX_LOCATIONS:
            return {}
        for run in runs:
            if run.number not in self._observed:
                self._observed.add(run.number)
                observe(program, run, self._accesses)
        variables = identify(self._accesses.counts.items(), self._accesses.copies)
        uses: dict[Place, int] = {variable.cell: variable.accesses for variable in variables}
        trace = FoldedTrace(program, graph, self._blocks, self._accesses, deadline)
        row, layout = program.decoder.row, program.decoder.layout
        fixed = {trace.stack_pointer, trace.frame_pointer}
        registers = tuple(
            cell
            for cell in layout.cells
            if cell.name in row.general and cell not in fixed and layout.significant_bits(cell) == cell.bits
        )
        everything = Places(registers, tuple(choose(variables, MAX_CELLS)))
        words = Places(
            tuple(cell for cell in everything.registers if cell.bits == row.address_bits),
            tuple(cell for cell in everything.cells if cell.bits == row.address_bits),
        )
        found: dict[Location, list[_Ranked]] = {location: [] for location in trace.order}
        live = live_places(trace, everything)
        ranges = _strided(trace, everything, live, uses, found)
        _affine(trace, words, ranges, live, uses, found)
        visited = _visited(runs)
        return {
            location: [
                term
                for term in dict.fromkeys(ranked.term for ranked in sorted(items, key=lambda item: item[:2]))
                if all(holds(term, witness) for witness in visited.get(location, ()))
            ]
            for location, items in found.items()
        }


def candidates(program: Program, graph: Graph, runs: Sequence[Run]) -> dict[Location, list[Term]]:
    """What seems to hold at each location the runs visited, as predicates over the state, most promising first."""
    return Speculation(program).candidates(graph, runs)


def apply(graph: Graph, found: Mapping[Location, Iterable[Term]]) -> int:
    """Splits nodes by candidates where all their witnesses satisfy them (Fig. 6); how many splits were made.

    Start nodes are left alone: that no entry state violates a candidate would have to be shown first.
    """
    splits = 0
    for location, candidates_here in found.items():
        for candidate in candidates_here:
            for number in list(graph.by_location.get(location, ())):
                node = graph.nodes[number]
                if (
                    node.witnesses
                    and not node.is_start
                    and candidate not in node.literals
                    and all(holds(candidate, witness) for witness in node.witnesses)
                ):
                    graph.split(number, t.bnot(candidate))
                    splits += 1
    return splits


def _affine(
    trace: FoldedTrace,
    places: Places,
    ranges: Mapping[Location, StridedState],
    live: Mapping[Location, set[Place]],
    uses: Mapping[Place, int],
    found: dict[Location, list[_Ranked]],
) -> None:
    # Variables are eliminated in this order, so that relations among the most used ones remain.
    cells = tuple(sorted(places.cells, key=lambda cell: (uses.get(cell, 0), cell)))
    everything: list[Place] = [*places.registers, *cells]
    try:
        states = fixpoint(trace, AffineAnalysis(trace, Places(places.registers, cells)), 0)
    except GivenUp:
        return
    for location, relations in states.items():
        space = relations
        for number, place in enumerate(everything):
            # What the other analysis knows to be constant makes more of the relations.
            known = ranges[location][place].constant if location in ranges else None
            if known is not None:
                space = space.constrained(Form(space.bits, -known & ((1 << space.bits) - 1), ((number, 1),)))
        kept = [number for number, place in enumerate(everything) if place in live[location]]
        terms = [_term(trace.program, everything[number]) for number in kept]
        for form in space.projected(kept).equations():
            term = to_term(form, terms)
            if term.op != "const":
                least = min(uses.get(everything[kept[number]], 0) for number, _ in form.terms)
                found[location].append(_Ranked(0, -least, term))


def _strided(
    trace: FoldedTrace,
    places: Places,
    live: Mapping[Location, set[Place]],
    uses: Mapping[Place, int],
    found: dict[Location, list[_Ranked]],
) -> dict[Location, StridedState]:
    try:
        states = fixpoint(trace, StridedAnalysis(trace, places), NARROWING_ROUNDS)
    except GivenUp:
        return {}
    for location, state in states.items():
        for place, interval in state.items():
            if place in live[location]:
                for candidate in interval_terms(_term(trace.program, place), interval):
                    found[location].append(_Ranked(1, -uses.get(place, 0), candidate))
    return states


def interval_terms(term: Term, interval: StridedInterval) -> list[Term]:
    """The bounds and the congruence that say that a term is in an interval."""
    bits = interval.bits
    low, high = t.const(interval.low, bits), t.const(interval.high, bits)
    if interval.stride == 0:
        return [t.eq(term, low)]
    # Bounds as unsigned ones where that is the same, because then the upper one often is enough.
    at_most = t.ule if interval.low >= 0 else t.sle
    found = []
    if interval.high - interval.low + interval.stride < 1 << bits:
        found = [at_most(low, term), at_most(term, high)]
    if interval.stride > 1:
        stride = t.const(interval.stride, bits)
        found.append(t.eq(t.urem(t.sub(term, low), stride), t.const(0, bits)))
    return [candidate for candidate in found if candidate.op != "const"]


def _term(program: Program, place: Place) -> Term:
    """A register or memory cell as the predicates of the graph name it."""
    if isinstance(place, MemoryCell):
        space = program.space
        memory = t.memory("mem", space.address_bits)
        return t.load(memory, t.const(place.address, space.address_bits), place.size, space.big_endian)
    return t.var(place.name, place.bits)


def _visited(runs: Sequence[Run]) -> dict[Location, list[Witness]]:
    """The visits whose state was kept, by location."""
    found: dict[Location, list[Witness]] = {}
    for run in runs:
        seen: dict[Location, int] = {}
        for visit in run.visits:
            if visit.state is not None and seen.get(visit.location, 0) < MAX_STATES:
                seen[visit.location] = seen.get(visit.location, 0) + 1
                found.setdefault(visit.location, []).append(Witness(run, visit))
    return found
