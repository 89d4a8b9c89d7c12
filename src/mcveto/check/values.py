"""The checker's value domain for the P-code interpreter: Python integers where a value is certain, else Z3 expressions.

Written for reading, not for speed. An operator on integers is the emulator's own (`machine.operators`); otherwise it is
the SMT-LIB operator of the same meaning. Memory is one Z3 array from addresses to bytes. Nothing is simplified except
by Z3 itself. What a path depends on is collected in `guard`; at a decision the `script` says which way to go, and ways
not yet in the script are left in `other_ways` for the caller to try.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import z3

from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ, WRITE
from mcveto.machine.operators import FUNCTIONS
from mcveto.machine.pcode import FreshOrigin
from mcveto.machine.registers import Cell, RegisterLayout

Value = Any  # int | z3.BitVecRef
Formula = Any  # z3.BoolRef


def all_of(formulas: list[Any]) -> Any:
    """Their conjunction; of one, itself: not every solver reads a conjunction of one."""
    return formulas[0] if len(formulas) == 1 else z3.And(formulas)


def any_of(formulas: list[Any]) -> Any:
    return formulas[0] if len(formulas) == 1 else z3.Or(formulas)


def vector(value: Value, bits: int) -> Any:
    return z3.BitVecVal(value, bits) if isinstance(value, int) else value


def plain(value: Any) -> Value:
    """`value` as Z3 simplifies it; an integer if it is one."""
    return value.as_long() if z3.is_bv_value(value := z3.simplify(value)) else value


class Vocabulary:
    """The names an invariant may use: registers (flags are Booleans) and the memory `mem`."""

    def __init__(self, layout: RegisterLayout, address_bits: int) -> None:
        self.layout = layout
        self._address_bits = address_bits
        self.memory = self.named("mem", 0)

    def named(self, name: str, bits: int) -> Any:
        """A variable of so many bits; of 0 bits, a memory."""
        if bits == 0:
            return z3.Array(name, z3.BitVecSort(self._address_bits), z3.BitVecSort(8))
        return z3.Bool(name) if bits == 1 else z3.BitVec(name, bits)

    def variable(self, cell: Cell) -> Any:
        """What a register's name stands for in an invariant: its significant bits."""
        return self.named(cell.name, self.layout.significant_bits(cell))

    def before(self, cell: Cell) -> Value:
        """A register's whole value in a state that nothing was done to; insignificant bits are zero."""
        variable, bits = self.variable(cell), self.layout.significant_bits(cell)
        if bits == 1:
            return z3.If(variable, z3.BitVecVal(1, cell.bits), z3.BitVecVal(0, cell.bits))
        return z3.ZeroExt(cell.bits - bits, variable) if bits < cell.bits else variable

    def after(self, cell: Cell, value: Value) -> Any:
        """What a register's name stands for where its whole value is `value`."""
        bits = self.layout.significant_bits(cell)
        low = z3.Extract(bits - 1, 0, vector(value, cell.bits)) if bits < cell.bits else vector(value, cell.bits)
        return low == 1 if bits == 1 else low

    def insignificant(self, cell: Cell, value: Value) -> list[Formula]:
        """That the bits of a register which can never be set are not."""
        bits = self.layout.significant_bits(cell)
        return [z3.Extract(cell.bits - 1, bits, vector(value, cell.bits)) == 0] if bits < cell.bits else []


def reads(pending: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The memories that are read in some formulas, without the stores to them, each with an address; uses up the
    list, which may grow on the way."""
    seen: set[int] = set()
    while pending:
        term = pending.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            pending.extend(term.children())
            memories = [term.arg(0)] if z3.is_select(term) else []
            for memory in memories:
                parts = [part for part in memory.children() if part.sort() == memory.sort()]
                memories += parts
                yield from () if parts else ((memory, term.arg(1)),)


def allows(space: AddressSpace, address: Value, kind: int) -> Formula:
    """That the byte at `address` may be read, written or executed."""
    where = vector(address, space.address_bits)
    spans = [(at.start, at.end - 1) for at in space.regions if at.permissions & kind and at.size]
    return within(where, spans)


def within(address: Value, spans: Iterable[tuple[int, int]]) -> Formula:
    """That an address lies in one of some ranges, the last address of each included."""
    return any_of([z3.And(z3.UGE(address, low), z3.ULE(address, high)) for low, high in spans])


def _truth(condition: Formula, bits: int) -> Any:
    return z3.If(condition, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))


def _sign(value: Any) -> Formula:
    return z3.Extract(value.size() - 1, value.size() - 1, value) == 1


_Binary = dict[str, Callable[[Any, Any], Any]]
_BINARY: _Binary = (
    {"INT_ADD": operator.add, "INT_SUB": operator.sub, "INT_MULT": operator.mul, "INT_DIV": z3.UDiv}
    | {"INT_REM": z3.URem, "INT_SDIV": operator.truediv, "INT_SREM": z3.SRem}
    | {"INT_AND": operator.and_, "INT_OR": operator.or_, "INT_XOR": operator.xor}
    | {"BOOL_AND": operator.and_, "BOOL_OR": operator.or_, "BOOL_XOR": operator.xor}
)
_SHIFT: _Binary = {"INT_LEFT": operator.lshift, "INT_RIGHT": z3.LShR, "INT_SRIGHT": operator.rshift}
_COMPARE: _Binary = (
    {"INT_EQUAL": operator.eq, "INT_NOTEQUAL": operator.ne, "INT_LESS": z3.ULT, "INT_LESSEQUAL": z3.ULE}
    | {"INT_SLESS": operator.lt, "INT_SLESSEQUAL": operator.le, "INT_CARRY": lambda a, b: z3.ULT(a + b, a)}
    | {"INT_SCARRY": lambda a, b: _sign((a ^ (a + b)) & (b ^ (a + b)))}
    | {"INT_SBORROW": lambda a, b: _sign((a ^ b) & (a ^ (a - b)))}
)


class CheckerDomain:
    foreign: Sequence[tuple[int, int]] = ()
    """Where what is not mapped may belong to another module."""

    def __init__(self, vocabulary: Vocabulary, space: AddressSpace, script: Sequence[bool]) -> None:
        self._vocabulary = vocabulary
        self._space = space
        self.strays: list[list[Formula]] = []
        """When an access is to an address where another module may be, which nobody can follow."""
        self.registers: dict[int, Value] = {}
        self.memory = vocabulary.memory
        self.guard: list[Formula] = []
        self._script = tuple(script)
        self._taken: list[bool] = []
        self.other_ways: list[tuple[bool, ...]] = []
        self.fresh_count = 0

    def constant(self, value: int, bits: int) -> Value:
        return value & ((1 << bits) - 1)

    def apply(self, opcode: str, arguments: tuple[Value, ...], input_bits: int, output_bits: int) -> Value:
        if all(isinstance(argument, int) for argument in arguments):
            masks = (1 << output_bits) - 1, (1 << input_bits) - 1, 1 << (input_bits - 1)
            return FUNCTIONS[opcode](arguments, *masks, input_bits)
        if opcode == "SELECT":
            condition = vector(arguments[0], input_bits) != 0
            return z3.If(condition, vector(arguments[1], output_bits), vector(arguments[2], output_bits))
        first, *rest = (vector(argument, input_bits) for argument in arguments)
        if opcode in _BINARY:
            return _BINARY[opcode](first, rest[0])
        if opcode in _COMPARE:
            return _truth(_COMPARE[opcode](first, rest[0]), output_bits)
        match opcode:
            case "INT_ZEXT":
                return z3.ZeroExt(output_bits - input_bits, first)
            case "INT_SEXT":
                return z3.SignExt(output_bits - input_bits, first)
            case "INT_NEGATE":
                return ~first
            case "INT_2COMP":
                return -first
            case "BOOL_NEGATE":
                return first ^ 1
            case "POPCOUNT":
                ones = [z3.ZeroExt(output_bits - 1, z3.Extract(at, at, first)) for at in range(input_bits)]
                return sum(ones[1:], ones[0])
            case "LZCOUNT":
                zeros = z3.BitVecVal(input_bits, output_bits)
                for at in range(input_bits):
                    found = z3.BitVecVal(input_bits - 1 - at, output_bits)
                    zeros = z3.If(z3.Extract(at, at, first) == 1, found, zeros)
                return zeros
        raise AssertionError(f"an operator without a meaning: {opcode}")

    def shift(self, opcode: str, value: Value, amount: Value, bits: int, amount_bits: int) -> Value:
        if isinstance(value, int) and isinstance(amount, int):
            mask = (1 << bits) - 1
            return FUNCTIONS[opcode]((value, amount), mask, mask, 1 << (bits - 1), bits)
        wide = max(bits, amount_bits)
        extend = z3.SignExt if opcode == "INT_SRIGHT" else z3.ZeroExt
        operand = extend(wide - bits, vector(value, bits))
        distance = z3.ZeroExt(wide - amount_bits, vector(amount, amount_bits))
        return z3.Extract(bits - 1, 0, _SHIFT[opcode](operand, distance))

    def extract(self, value: Value, low: int, bits: int, total_bits: int) -> Value:
        if isinstance(value, int):
            return value >> low & ((1 << bits) - 1)
        return z3.Extract(low + bits - 1, low, value)

    def insert(self, old: Value, value: Value, low: int, bits: int, total_bits: int) -> Value:
        if low:
            value = self.concatenate(value, self.extract(old, 0, low, total_bits), bits, low)
        above = total_bits - low - bits
        if above:
            value = self.concatenate(self.extract(old, low + bits, above, total_bits), value, above, low + bits)
        return value

    def concatenate(self, high: Value, low: Value, high_bits: int, low_bits: int) -> Value:
        if isinstance(high, int) and isinstance(low, int):
            return high << low_bits | low
        return z3.Concat(vector(high, high_bits), vector(low, low_bits))

    def read_register(self, cell: Cell) -> Value:
        return self.registers.setdefault(cell.number, self._vocabulary.before(cell))

    def write_register(self, cell: Cell, value: Value) -> None:
        self.registers[cell.number] = value

    def load(self, address: Value, size: int) -> Value:
        self._access(address, size, READ)
        bits, result = 0, 0
        for place in self._places(address, size):
            fixed = self._space.fixed_bytes(place, 1) if isinstance(place, int) else None
            byte = fixed[0] if fixed is not None else self.memory[vector(place, self._space.address_bits)]
            result = self.concatenate(result, byte, bits, 8) if bits else byte
            bits += 8
        return result if isinstance(result, int) else plain(result)

    def store(self, address: Value, value: Value, size: int) -> None:
        self._access(address, size, WRITE)
        for number, place in enumerate(self._places(address, size)):
            byte = self.extract(value, 8 * (size - 1 - number), 8, 8 * size)
            self.memory = z3.Store(self.memory, vector(place, self._space.address_bits), vector(byte, 8))

    def _access(self, address: Value, size: int, kind: int) -> None:
        """Raises the fault of a certain address; the faults of others are left out of the path by its guard."""
        if isinstance(address, int):
            self._space.check(address, size, kind)
            return
        for byte in range(size) if self.foreign else {0, size - 1}:
            allowed = allows(self._space, address + byte, kind)
            # What comes before the end of the script was told of the way that left it.
            if self.foreign and len(self._taken) >= len(self._script):
                self.strays.append([*self.guard, z3.Not(allowed), within(address + byte, self.foreign)])
            self.guard.append(allowed)

    def _places(self, address: Value, size: int) -> Iterable[Value]:
        """The addresses of the bytes of an access, most significant byte first."""
        offsets = range(size) if self._space.big_endian else reversed(range(size))
        for offset in offsets:
            yield address + offset & self._space.mask if isinstance(address, int) else address + offset

    def decide(self, condition: Value) -> bool:
        if isinstance(condition, int):
            return condition != 0
        holds = z3.simplify(condition != 0)
        if z3.is_true(holds) or z3.is_false(holds):
            return bool(z3.is_true(holds))
        at = len(self._taken)
        way = self._script[at] if at < len(self._script) else True
        if at >= len(self._script):
            self.other_ways.append((*self._taken, False))
        self._taken.append(way)
        self.guard.append(holds if way else z3.Not(holds))
        return way

    def fresh(self, bits: int, origin: FreshOrigin, usual: Value) -> Value:
        self.fresh_count += 1
        value = self._vocabulary.named(f"fresh!{self.fresh_count}.{bits}", bits)
        return _truth(value, 1) if bits == 1 else value
