"""The program between its cut points, under the constants found there.

Constants are assumed first and checked afterwards: the registers and memory words that had one value whenever a run
passed a cut point are taken to be constant there, which resolves the addresses, return targets and branches that
depend on them; together with simple bounds they are then filtered to an inductive set (Houdini). Where a constant is
dropped the steps from that cut point are built again. Bounds take part, and relations where the program writes through
pointers, because one store through an index that might be anything would overwrite every constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from mcveto.dpg.location import ANY, Blocks, Location
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.big_steps import BigStep, BigSteps
from mcveto.dpg.strengthen.cuts import Shape, live_registers
from mcveto.dpg.strengthen.houdini import surviving
from mcveto.dpg.strengthen.path_state import entry_state, state_at
from mcveto.dpg.strengthen.places import Places, Samples, relevant_places
from mcveto.dpg.strengthen.queries import Queries
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.program.program import Program

PRUNE_SECONDS = 0.3
MAX_ROUNDS = 5

Source = Location | None
MakeBounds = Callable[["System", Location, Iterable[Term], bool], list[Term]]


class System:
    def __init__(
        self, program: Program, steps: Steps, blocks: Blocks, shape: Shape, samples: Samples, queries: Queries
    ) -> None:
        self.program = program
        self.shape = shape
        self.samples = samples
        self.queries = queries
        self.places = Places(program)
        self._steps = steps
        layout, row = program.decoder.layout, program.decoder.row
        (stack,), (frame,) = layout.named(row.stack_pointer), layout.named(row.frame_pointer)
        self._pointers = (stack.cell.number, frame.cell.number)
        self._live = live_registers(program, blocks, shape)
        self._enumerate = BigSteps(steps, shape, self._live, self._pointers, self._feasible)
        self.constants: dict[Location, dict[Term, int]] = {cut: {} for cut in shape.cuts}
        self.invariants: dict[Location, dict[Term, None]] = {cut: {} for cut in shape.cuts}
        """What is known to be inductive, the constants included."""
        self.steps_from: dict[Source, list[BigStep]] = {}
        self.sources: list[Source] = [None, *shape.cuts]
        self._built_under: dict[Source, dict[Term, int]] = {}
        self.refuted_at_entry: dict[tuple[Location, Term], int] = {}
        """Values that all runs saw and that other inputs would change."""

    @property
    def cuts(self) -> list[Location]:
        return self.shape.cuts

    def all_steps(self) -> list[BigStep]:
        return [step for source in self.sources for step in self.steps_from[source]]

    def into(self, target: Location) -> list[BigStep]:
        return [step for step in self.all_steps() if step.target is target or step.target == target]

    def paths_to(self, location: Location) -> list[BigStep]:
        """The paths from cut points to a location between them."""
        return [step for source in self.sources for step in self._enumerate.passed[source].get(location, ())]

    def exits(self) -> list[BigStep]:
        return [step for step in self.all_steps() if step.target is None]

    def assume_constants(self, make_bounds: MakeBounds) -> None:
        """Finds the inductive constants and bounds and builds the steps under them."""
        universe = self.places.read_by_blocks(self._steps, self.shape.order)
        universe |= self.places.written_by_blocks(self._steps, self.shape.order)
        rejected: dict[Location, set[Term]] = {cut: set() for cut in self.cuts}
        for _ in range(MAX_ROUNDS):
            for cut in self.cuts:
                self.constants[cut] = self._sampled(cut, universe - rejected[cut])
            self._build(self.sources)
            lost = self._filter(make_bounds)
            relevant = relevant_places(self.places, self.all_steps())
            found = set().union(*relevant.values()) if relevant else set()
            if found <= universe and not lost:
                return
            universe |= found
            # Only the first to fall are wrong for certain: the others may have fallen because of them, and get another
            # chance with bounds for those that are no constants.
            for cut, place in lost:
                rejected[cut].add(place)

    def _sampled(self, cut: Location, universe: Iterable[Term]) -> dict[Term, int]:
        """The places that had one value at all visits; where there were none, at those of all cut points."""
        cuts = [cut] if self.samples.visits[cut] else self.cuts
        live = self._live[cut]
        layout = self.program.decoder.layout
        pointers = zip(self._pointers, (cut.stack_pointer, cut.frame_pointer), strict=True)
        said = {number for number, value in pointers if value != ANY}
        found: dict[Term, int] = {}
        for place in sorted(universe, key=lambda term: term.serial):
            if place.op == "var":
                number = layout.by_name[str(place.data)].number
                if number not in live or number in said:
                    continue
            values = [value for where in cuts for value in self.samples.values(where, place)]
            if values and min(values) == max(values):
                found[place] = values[0]
        return found

    def _build(self, sources: Iterable[Source]) -> None:
        layout = self.program.decoder.layout
        for source in sources:
            built_under = {} if source is None else dict(self.constants[source])
            if self._built_under.get(source) == built_under:
                continue
            self._built_under[source] = built_under
            if source is None:
                self.steps_from[None] = self._enumerate.of(None, entry_state(self.program))
                continue
            registers: dict[int, int] = {}
            known: dict[int, int] = {}
            for place, value in self.constants[source].items():
                if place.op == "var":
                    registers[layout.by_name[str(place.data)].number] = value
                else:
                    size, big_endian = place.data
                    content = value.to_bytes(size, "big" if big_endian else "little")
                    for i, byte in enumerate(content):
                        known[(place.args[1].data + i) & self.program.space.mask] = byte
            state = state_at(self.program, source, self._pointers, registers, known)
            self.steps_from[source] = self._enumerate.of(source, state)

    def _filter(self, make_bounds: MakeBounds) -> list[tuple[Location, Term]]:
        """Keeps the inductive constants and bounds; returns the constants that were the first to be dropped."""
        relevant = relevant_places(self.places, self.all_steps())
        pointers = any(step.state.writes_through_pointers() for step in self.all_steps())
        candidates: dict[Location, dict[Term, None]] = {}
        for cut in self.cuts:
            constants = self.constants[cut]
            open_places = [place for place in relevant.get(cut, ()) if place not in constants]
            equations = {t.eq(place, t.const(value, place.width)): None for place, value in constants.items()}
            candidates[cut] = {**equations, **dict.fromkeys(make_bounds(self, cut, open_places, pointers))}
        first: list[tuple[Location, Term]] = []

        def rebuild(cut: Location, kept: Mapping[Term, None], source: Source) -> None:
            lost = [
                place
                for place, value in self.constants[cut].items()
                if t.eq(place, t.const(value, place.width)) not in kept
            ]
            if source is None or not first:
                first.extend((cut, place) for place in lost)
                if source is None:
                    self.refuted_at_entry.update({(cut, place): self.constants[cut][place] for place in lost})
            for place in lost:
                del self.constants[cut][place]
            if lost:
                self._build([cut])

        self.invariants = surviving(self, candidates, rebuild)
        return first

    def _feasible(self, source: Source, guard: Sequence[Term]) -> bool:
        return not self.queries.refutes(guard, source is None, PRUNE_SECONDS)
