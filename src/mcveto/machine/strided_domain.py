"""Strided intervals as a value domain of the interpreter, with refinement by the conditions of branches.

A value is an interval together with its term over the state before. The terms, made by the symbolic domain, undo what
compare instructions do to a comparison (a signed "less" spread over three flags), so that a decision becomes a
condition on registers and memory cells again; the intervals of those are then narrowed, and with them every value that
is one of them plus a constant.

Memory is tracked in cells at constant addresses. A store through an address that is not constant changes every cell
in the range of its interval, unless `may_touch` knows better: the domain is sound if that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ..logic import terms as t
from ..logic.terms import Term
from . import strided
from .address_space import AddressSpace
from .memory import READ, WRITE
from .pcode import FreshOrigin
from .registers import Cell, RegisterLayout
from .strided import StridedInterval
from .strided_conditions import Contradiction, Environment
from .strided_operators import apply
from .symbolic import SymbolicDomain, truth
from .tracked_cells import MemoryCell, TrackedCells, fixed_value

# Loads from no more addresses than this are looked up one by one.
MAX_ADDRESSES = 16


class StridedValue(NamedTuple):
    interval: StridedInterval
    term: Term


# The cells a store through an unknown address may change, or None for all in the range of the address.
MayTouch = Callable[[StridedValue, int], Iterable[MemoryCell] | None]


class StridedDomain:
    """Starts where the given registers (by number; others are unknown) and memory cells have the given intervals.

    `choose` is asked which way to go where the domain does not know, given how many decisions came before. Raises
    Contradiction where no execution goes the way chosen.
    """

    def __init__(
        self,
        layout: RegisterLayout,
        space: AddressSpace,
        registers: Mapping[int, StridedInterval],
        cells: Mapping[MemoryCell, StridedInterval],
        choose: Callable[[int], bool],
        may_touch: MayTouch | None = None,
    ) -> None:
        self._space = space
        self._choose = choose
        self._may_touch = may_touch
        self._fresh_count = 0
        self.decisions = 0
        self._symbolic = SymbolicDomain(layout, space, lambda condition: True, lambda bits, origin, usual: usual)
        self.environment = Environment()
        memory = self._symbolic.memory.initial
        chosen: dict[MemoryCell, StridedValue] = {}
        for cell, interval in cells.items():
            term = t.load(memory, t.const(cell.address, space.address_bits), cell.size, space.big_endian)
            self.environment.intervals[term] = interval
            chosen[cell] = StridedValue(interval, term)
        self._memory: TrackedCells[StridedValue] = TrackedCells(space, self._unknown, chosen)
        self._registers: dict[int, StridedValue] = {}
        for number, interval in registers.items():
            term = self._symbolic.read_register(layout.cells[number])
            if term.op == "var":
                self.environment.intervals[term] = interval
            self._registers[number] = StridedValue(interval, term)

    def register(self, cell: Cell) -> StridedInterval:
        """The interval of a register now."""
        return self.read_register(cell).interval

    def cell(self, cell: MemoryCell) -> StridedInterval:
        """The interval of one of the chosen cells now."""
        return self._memory.values[cell].interval

    def constant(self, value: int, bits: int) -> StridedValue:
        return StridedValue(strided.singleton(value, bits), t.const(value, bits))

    def apply(
        self, opcode: str, arguments: tuple[StridedValue, ...], input_bits: int, output_bits: int
    ) -> StridedValue:
        interval = apply(opcode, tuple(value.interval for value in arguments), input_bits, output_bits)
        terms = tuple(value.term for value in arguments)
        return self._value(interval, self._symbolic.apply(opcode, terms, input_bits, output_bits))

    def shift(
        self, opcode: str, value: StridedValue, amount: StridedValue, bits: int, amount_bits: int
    ) -> StridedValue:
        interval = strided.shift(opcode, value.interval, amount.interval)
        return self._value(interval, self._symbolic.shift(opcode, value.term, amount.term, bits, amount_bits))

    def extract(self, value: StridedValue, low: int, bits: int, total_bits: int) -> StridedValue:
        interval = strided.extract(value.interval, low, bits)
        return self._value(interval, self._symbolic.extract(value.term, low, bits, total_bits))

    def insert(self, old: StridedValue, value: StridedValue, low: int, bits: int, total_bits: int) -> StridedValue:
        interval = value.interval
        if low:
            interval = strided.concatenate(interval, strided.extract(old.interval, 0, low))
        if low + bits < total_bits:
            above = strided.extract(old.interval, low + bits, total_bits - low - bits)
            interval = strided.concatenate(above, interval)
        return self._value(interval, self._symbolic.insert(old.term, value.term, low, bits, total_bits))

    def concatenate(self, high: StridedValue, low: StridedValue, high_bits: int, low_bits: int) -> StridedValue:
        interval = strided.concatenate(high.interval, low.interval)
        return self._value(interval, self._symbolic.concatenate(high.term, low.term, high_bits, low_bits))

    def read_register(self, cell: Cell) -> StridedValue:
        value = self._registers.get(cell.number)
        if value is None:
            term = self._symbolic.read_register(cell)
            value = self._registers[cell.number] = self._value(strided.top(cell.bits), term)
        return value

    def write_register(self, cell: Cell, value: StridedValue) -> None:
        self._registers[cell.number] = value

    def load(self, address: StridedValue, size: int) -> StridedValue:
        constant = address.interval.constant
        if constant is not None:
            self._space.check(constant, size, READ)
            return self._at(constant, size)
        value = self._unknown(8 * size)
        if address.interval.count > MAX_ADDRESSES:
            return value
        places = range(address.interval.low, address.interval.high + 1, address.interval.stride)
        found = (self._at(place & self._space.mask, size).interval for place in places)
        return StridedValue(strided.join_all(found), value.term)

    def _at(self, address: int, size: int) -> StridedValue:
        known = self._memory.load(address, size)
        if known is not None:
            return known
        fixed = fixed_value(self._space, address, size)
        if fixed is not None:
            return self.constant(fixed, 8 * size)
        # Read again it will be the same, until something is written there.
        value = self._memory.values[MemoryCell(address, size)] = self._unknown(8 * size)
        return value

    def store(self, address: StridedValue, value: StridedValue, size: int) -> None:
        constant = address.interval.constant
        if constant is not None:
            self._space.check(constant, size, WRITE)
            self._memory.store(constant, size, value)
            return
        touched = self._may_touch(address, size) if self._may_touch is not None else None
        if touched is None:
            self._memory.forget(self._in_range(address.interval, size))
        else:
            for cell in touched:
                self._memory.forget(self._memory.overlapping(*cell))

    def _in_range(self, address: StridedInterval, size: int) -> list[MemoryCell]:
        """The writable cells that an access somewhere in an interval of addresses may overlap."""
        mask = self._space.mask
        halves = address.unsigned()
        return [
            cell
            for cell in self._memory.writable()
            if any(
                (cell.address - half.low) & mask < half.high - half.low + size
                or (half.low - cell.address) & mask < cell.size
                for half in halves
            )
        ]

    def decide(self, condition: StridedValue) -> bool:
        self.decisions += 1
        zero = strided.singleton(0, condition.interval.bits)
        known = strided.compare("INT_NOTEQUAL", condition.interval, zero)
        holds = truth(condition.term)
        if known is None:
            known = self.environment.truth(holds)
        if known is not None:
            return known
        taken = self._choose(self.decisions - 1)
        before = dict(self.environment.intervals)
        self.environment.assume(holds, taken)
        if self.environment.intervals != before:
            self._narrow()
        return taken

    def fresh(self, bits: int, origin: FreshOrigin, usual: StridedValue) -> StridedValue:
        return self._unknown(bits)

    def _unknown(self, bits: int) -> StridedValue:
        """Any value, the same wherever it is copied to: what a condition says about one says it about all."""
        self._fresh_count += 1
        term = t.var(f"unknown!{self._fresh_count}", bits)
        interval = self.environment.intervals[term] = strided.top(bits)
        return StridedValue(interval, term)

    def _value(self, interval: StridedInterval, term: Term) -> StridedValue:
        """The more precise of the two views."""
        if term.op == "const":
            return StridedValue(strided.singleton(term.data, term.width), term)
        narrowed = strided.meet(interval, self.environment.interval(term))
        if narrowed is None:
            raise Contradiction
        constant = narrowed.constant
        return StridedValue(narrowed, term if constant is None else t.const(constant, narrowed.bits))

    def _narrow(self) -> None:
        """Brings every value up to date with the intervals of what it is made of."""
        for number, value in self._registers.items():
            self._registers[number] = self._value(value.interval, value.term)
        for cell, value in self._memory.values.items():
            self._memory.values[cell] = self._value(value.interval, value.term)
