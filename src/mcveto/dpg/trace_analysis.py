"""Dataflow analysis of the folded trace: what an abstract domain finds out about the runs' locations and steps.

The graph analysed has the locations the runs visited and the steps they took, nothing else (TR1669 §3.2): what holds
there is a candidate for an invariant of the program, not one. A block is run in the domain once per way through it;
what a way leads to is passed on along the observed steps it fits. Loop heads are the targets of back edges.

Likewise a store through an address the domain does not know changes only what that instruction was seen writing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from mcveto.dpg.graph import Graph
from mcveto.dpg.location import ANY, Blocks, Location
from mcveto.dpg.loop_heads import reverse_postorder
from mcveto.dpg.variables import Accesses
from mcveto.late_methods import dataclass
from mcveto.machine import strided
from mcveto.machine.affine import AffineDomain, AffineSpace, AffineValue, Form, Transfer
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.pcode import Space
from mcveto.machine.registers import Cell
from mcveto.machine.strided import StridedInterval
from mcveto.machine.strided_conditions import Contradiction
from mcveto.machine.strided_domain import StridedDomain, StridedValue
from mcveto.machine.tracked_cells import MemoryCell, initial_value
from mcveto.program.program import Program

# More ways through one block than this are not followed; nothing is claimed about what comes after.
MAX_WAYS = 64
# Joins at a loop head before it is widened, and rounds that take back what widening lost.
JOINS_BEFORE_WIDENING = 2
NARROWING_ROUNDS = 2
# An analysis that has not settled after visiting every location this often on average is given up.
MAX_VISITS = 12

V = TypeVar("V")
S = TypeVar("S")
Choose = Callable[[int], bool]


class GivenUp(Exception):
    """A block has more ways through it than we follow or does something unsupported, or an analysis does not settle."""


@dataclass(frozen=True)
class Places:
    """What an analysis tracks."""

    registers: tuple[Cell, ...]
    cells: tuple[MemoryCell, ...]


class FoldedTrace:
    """The locations of a graph with their observed steps, and the blocks that run from them."""

    def __init__(
        self,
        program: Program,
        graph: Graph,
        blocks: Blocks,
        accesses: Accesses,
        deadline: float | None = None,
    ) -> None:
        """Analyses of the trace are given up at `deadline`, a time of the monotonic clock."""
        self.program = program
        self.deadline = deadline
        self.blocks = blocks
        self.accesses = accesses
        self.successors = {location: sorted(found) for location, found in graph.successors.items()}
        self.entry = min(graph.nodes[number].location for number in graph.nodes if graph.nodes[number].is_start)
        self.order, self.loop_heads = reverse_postorder(self.entry, self.successors)
        layout, row = program.decoder.layout, program.decoder.row
        (stack,), (frame,) = layout.named(row.stack_pointer), layout.named(row.frame_pointer)
        self.stack_pointer, self.frame_pointer = stack.cell, frame.cell

    def pointers(self, location: Location) -> Iterator[tuple[Cell, int]]:
        """The stack and frame pointers, where the location fixes them."""
        for cell, value in (
            (self.stack_pointer, location.stack_pointer),
            (self.frame_pointer, location.frame_pointer),
        ):
            if value != ANY:
                yield cell, value

    def constants(self) -> list[int]:
        """Numbers the code compares with, signed, and their neighbours: where the bounds of a loop are likely to be."""
        found = {-1, 0, 1}
        for location in self.order:
            for instruction in self.blocks.of(location):
                for op in instruction.ops:
                    for varnode in op.inputs:
                        if op.opcode in strided.COMPARISONS and varnode.space is Space.CONST:
                            number = strided.signed(varnode.offset, 8 * varnode.size)
                            found.update((number - 1, number, number + 1))
        return sorted(found)


class _Analysis(Protocol[S]):
    """States of one analysis; None is unreachable."""

    def entry(self) -> S: ...

    def step(self, location: Location, state: S) -> dict[Location, S]:
        """The states after the block, by observed successor; raises GivenUp."""
        ...

    def join(self, old: S, new: S) -> S: ...

    def widen(self, old: S, new: S) -> S: ...


def fixpoint(trace: FoldedTrace, analysis: _Analysis[S], narrowing: int) -> dict[Location, S]:
    """A state for every location that can be reached along the observed steps, stable under all of them."""
    position = {location: number for number, location in enumerate(trace.order)}
    states: dict[Location, S] = {trace.entry: analysis.entry()}
    visits: dict[Location, int] = {}
    waiting = {trace.entry}
    budget = MAX_VISITS * len(trace.order) + 100
    while waiting:
        location = min(waiting, key=position.__getitem__)
        waiting.discard(location)
        visits[location] = visits.get(location, 0) + 1
        budget -= 1
        if not budget:
            raise GivenUp
        for following, state in analysis.step(location, states[location]).items():
            old = states.get(following)
            if old is not None:
                widened = following in trace.loop_heads and visits.get(following, 0) > JOINS_BEFORE_WIDENING
                state = analysis.widen(old, state) if widened else analysis.join(old, state)
            if old is None or state != old:
                states[following] = state
                waiting.add(following)
    for _ in range(narrowing):
        states = _narrowed(trace, analysis, states)
    return states


def _narrowed(trace: FoldedTrace, analysis: _Analysis[S], states: dict[Location, S]) -> dict[Location, S]:
    """One descending round: every state again from those before it, which are already the new ones where possible."""
    current = dict(states)
    arriving: dict[Location, dict[Location, S]] = {}
    for location in [location for location in trace.order if location in states]:
        for following, state in analysis.step(location, states[location]).items():
            arriving.setdefault(following, {})[location] = state
    for location in [location for location in trace.order if location in states]:
        incoming = list(arriving.get(location, {}).values())
        if location == trace.entry:
            incoming.append(analysis.entry())
        if not incoming:
            del current[location]
            continue
        state = incoming[0]
        for other in incoming[1:]:
            state = analysis.join(state, other)
        current[location] = state
        for following, after in analysis.step(location, state).items():
            arriving.setdefault(following, {})[location] = after
    return current


class AffineAnalysis:
    """Affine relations among word-sized registers and cells."""

    def __init__(self, trace: FoldedTrace, places: Places) -> None:
        self._trace = trace
        self._places = places
        self._bits = trace.program.decoder.row.address_bits
        self._interpreter: Interpreter[AffineValue] = Interpreter(trace.program.decoder)
        self._known: dict[tuple[Location, tuple[tuple[int, int], ...]], list[tuple[Transfer, int | None]]] = {}

    def entry(self) -> AffineSpace:
        program = self._trace.program
        values = [program.registers.get(cell.number) for cell in self._places.registers]
        values += [initial_value(program.space, cell) for cell in self._places.cells]
        return AffineSpace.product(self._bits, values)

    def step(self, location: Location, state: AffineSpace) -> dict[Location, AffineSpace]:
        constants = state.constants()
        key = (location, tuple(sorted(constants.items())))
        transfers = self._known.get(key)
        if transfers is None:
            transfers = self._known[key] = self._transfers(location, constants)
        result: dict[Location, AffineSpace] = {}
        for transfer, target in transfers:
            after = state.transformed(transfer)
            if after.is_empty:
                continue
            for following in self._trace.successors[location]:
                if target is None or target == following.pc:
                    old = result.get(following)
                    result[following] = after if old is None else old.joined(after)
        return result

    def join(self, old: AffineSpace, new: AffineSpace) -> AffineSpace:
        return old.joined(new)

    widen = join

    def _transfers(self, location: Location, constants: dict[int, int]) -> list[tuple[Transfer, int | None]]:
        trace, places = self._trace, self._places
        result = []

        def make(choose: Choose, touched: Callable[[], list[MemoryCell]]) -> AffineDomain:
            domain = AffineDomain(
                trace.program.space,
                self._bits,
                places.registers,
                places.cells,
                choose,
                lambda address, size: touched(),
                constants,
            )
            for cell, value in trace.pointers(location):
                domain.registers[cell.number] = domain.constant(value, cell.bits)
            return domain

        for domain, target in ways(trace, location, self._interpreter, make):
            pc = target.constant if isinstance(target, Form) and not target.terms else None
            result.append((domain.transfer(), pc))
        return result


StridedState = dict[Cell | MemoryCell, StridedInterval]


class StridedAnalysis:
    """A strided interval for every register and cell."""

    def __init__(self, trace: FoldedTrace, places: Places) -> None:
        self._trace = trace
        self._places = places
        self._interpreter: Interpreter[StridedValue] = Interpreter(trace.program.decoder)
        self._thresholds = trace.constants()

    def entry(self) -> StridedState:
        program = self._trace.program
        state: StridedState = {
            cell: _interval(program.registers.get(cell.number), cell.bits) for cell in self._places.registers
        }
        state.update((cell, _interval(initial_value(program.space, cell), cell.bits)) for cell in self._places.cells)
        return state

    def step(self, location: Location, state: StridedState) -> dict[Location, StridedState]:
        trace, places = self._trace, self._places
        registers = {cell.number: state[cell] for cell in places.registers}
        registers.update((cell.number, strided.singleton(at, cell.bits)) for cell, at in trace.pointers(location))
        cells = {cell: state[cell] for cell in places.cells}

        def make(choose: Choose, touched: Callable[[], list[MemoryCell]]) -> StridedDomain:
            layout = trace.program.decoder.layout
            return StridedDomain(layout, trace.program.space, registers, cells, choose, lambda address, size: touched())

        result: dict[Location, StridedState] = {}
        for domain, target in ways(trace, location, self._interpreter, make):
            after: StridedState = {cell: domain.register(cell) for cell in places.registers}
            after.update((cell, domain.cell(cell)) for cell in places.cells)
            for following in trace.successors[location]:
                if following.pc in target.interval:
                    old = result.get(following)
                    result[following] = after if old is None else self.join(old, after)
        return result

    def join(self, old: StridedState, new: StridedState) -> StridedState:
        return {place: strided.join(old[place], new[place]) for place in old}

    def widen(self, old: StridedState, new: StridedState) -> StridedState:
        return {place: strided.widen(old[place], new[place], self._thresholds) for place in old}


def _interval(value: int | None, bits: int) -> StridedInterval:
    return strided.top(bits) if value is None else strided.singleton(value, bits)


W = TypeVar("W", AffineDomain, StridedDomain)


def ways(
    trace: FoldedTrace,
    location: Location,
    interpreter: Interpreter[V],
    make: Callable[[Choose, Callable[[], list[MemoryCell]]], W],
) -> Iterator[tuple[W, V]]:
    """Every way through the block of a location: the domain at its end and the next program counter."""
    block = trace.blocks.of(location)
    scripts: list[dict[int, bool]] = [{}]
    found = 0
    pc = [0]

    def touched() -> list[MemoryCell]:
        return sorted(trace.accesses.written.get((location, pc[0]), ()))

    def chooser(script: dict[int, bool]) -> Choose:
        def choose(number: int) -> bool:
            if number not in script:
                scripts.append({**script, number: False})
                script[number] = True
            return script[number]

        return choose

    while scripts:
        if trace.deadline is not None and time.monotonic() > trace.deadline:
            raise GivenUp
        choose = chooser(scripts.pop())
        found += 1
        if found > MAX_WAYS:
            raise GivenUp
        domain = make(choose, touched)
        try:
            for instruction in block:
                pc[0] = instruction.pc
                step = interpreter.execute(instruction, domain)  # type: ignore[arg-type]
        except (Fault, Contradiction):
            continue
        except Unsupported as error:
            raise GivenUp from error
        yield domain, step.target  # type: ignore[misc]
