"""The domain of path exploration: integers where a value is known, terms where it depends on inputs.

Most of what a program computes along a path does not depend on its inputs; such values are computed as the emulator
computes them, by the same templates, and cost no terms. A constant term never occurs as a value. What a symbolic
condition or address means for the exploration (forks, bounds, faults) is the business of `Decisions`.
"""

from __future__ import annotations

from typing import Protocol

from mcveto.engines.memory import PathMemory, Value
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ, WRITE
from mcveto.machine.operators import FUNCTIONS
from mcveto.machine.pcode import FreshOrigin
from mcveto.machine.registers import Cell, RegisterLayout
from mcveto.machine.symbolic import SymbolicDomain, initial_register, truth


class AccessLog(Protocol):
    def read_register(self, number: int) -> None: ...

    def write_register(self, number: int) -> None: ...

    def load(self, address: int, size: int) -> None: ...

    def load_anywhere(self) -> None: ...

    def store(self, address: int, size: int) -> None: ...


class Decisions(Protocol):
    def decide(self, condition: Term) -> bool:
        """Which way this path goes."""

    def load(self, address: Term, size: int) -> Value:
        """A read through a symbolic address."""

    def store(self, address: Term, value: Value, size: int) -> None:
        """A write through a symbolic address."""

    def fresh(self, bits: int, origin: FreshOrigin, usual: Value) -> Value:
        """A value that the program does not determine."""


class PathDomain:
    def __init__(self, layout: RegisterLayout, space: AddressSpace, decisions: Decisions) -> None:
        self.registers: dict[int, Value] = {}
        self.memory = PathMemory(space)
        self._layout = layout
        self._space = space
        self._decisions = decisions
        self._region = space.regions[0]
        self.accesses: AccessLog | None = None
        self._terms = SymbolicDomain(layout, space, lambda condition: True, lambda bits, origin, usual: usual)

    def constant(self, value: int, bits: int) -> Value:
        return value & ((1 << bits) - 1)

    def apply(self, opcode: str, arguments: tuple[Value, ...], input_bits: int, output_bits: int) -> Value:
        for argument in arguments:
            if type(argument) is not int:
                break
        else:
            return FUNCTIONS[opcode](
                arguments,  # type: ignore[arg-type]
                (1 << output_bits) - 1,
                (1 << input_bits) - 1,
                1 << (input_bits - 1),
                input_bits,
            )
        if opcode == "SELECT":
            chooser = arguments[0]
            if isinstance(chooser, int):
                return arguments[1] if chooser else arguments[2]
            terms = (chooser, as_term(arguments[1], output_bits), as_term(arguments[2], output_bits))
        else:
            terms = tuple([as_term(argument, input_bits) for argument in arguments])  # type: ignore[assignment]
        return as_value(self._terms.apply(opcode, terms, input_bits, output_bits))

    def shift(self, opcode: str, value: Value, amount: Value, bits: int, amount_bits: int) -> Value:
        if isinstance(value, int) and isinstance(amount, int):
            mask = (1 << bits) - 1
            return FUNCTIONS[opcode]((value, amount), mask, mask, 1 << (bits - 1), bits)
        return as_value(
            self._terms.shift(opcode, as_term(value, bits), as_term(amount, amount_bits), bits, amount_bits)
        )

    def extract(self, value: Value, low: int, bits: int, total_bits: int) -> Value:
        if isinstance(value, int):
            return value >> low & ((1 << bits) - 1)
        return as_value(t.extract(value, low + bits - 1, low))

    def insert(self, old: Value, value: Value, low: int, bits: int, total_bits: int) -> Value:
        if isinstance(old, int) and isinstance(value, int):
            return (old & ~(((1 << bits) - 1) << low)) | value << low
        return as_value(self._terms.insert(as_term(old, total_bits), as_term(value, bits), low, bits, total_bits))

    def concatenate(self, high: Value, low: Value, high_bits: int, low_bits: int) -> Value:
        if isinstance(high, int) and isinstance(low, int):
            return high << low_bits | low
        return as_value(t.concat(as_term(high, high_bits), as_term(low, low_bits)))

    def read_register(self, cell: Cell) -> Value:
        if self.accesses is not None:
            self.accesses.read_register(cell.number)
        value = self.registers.get(cell.number)
        if value is None:
            value = self.registers[cell.number] = initial_register(self._layout, cell)
        return value

    def write_register(self, cell: Cell, value: Value) -> None:
        if self.accesses is not None:
            self.accesses.write_register(cell.number)
        self.registers[cell.number] = value

    def load(self, address: Value, size: int) -> Value:
        if isinstance(address, int):
            self._check(address, size, READ)
            if self.accesses is not None:
                self.accesses.load(address, size)
            return self.memory.load(address, size)
        return self._decisions.load(address, size)

    def store(self, address: Value, value: Value, size: int) -> None:
        if isinstance(address, int):
            self._check(address, size, WRITE)
            if self.accesses is not None:
                self.accesses.store(address, size)
            self.memory.store(address, value, size)
        else:
            self._decisions.store(address, value, size)

    def _check(self, address: int, size: int, needed: int) -> None:
        """Raises the Fault of an access, if any; most accesses are to the region of the one before."""
        region = self._region
        if not (region.start <= address and address + size <= region.start + region.size):
            found = self._space.region_at(address)
            if found is None or address + size > found.end:
                self._space.check(address, size, needed)
                return
            region = self._region = found
        if not region.permissions & needed:
            self._space.check(address, size, needed)

    def decide(self, condition: Value) -> bool:
        if isinstance(condition, int):
            return condition != 0
        holds = truth(condition)
        if holds.op == "const":
            return holds is t.TRUE
        return self._decisions.decide(holds)

    def fresh(self, bits: int, origin: FreshOrigin, usual: Value) -> Value:
        return self._decisions.fresh(bits, origin, usual)


def as_term(value: Value, bits: int) -> Term:
    return t.const(value, bits) if isinstance(value, int) else value


def as_value(term: Term) -> Value:
    return int(term.data) if term.op == "const" else term
