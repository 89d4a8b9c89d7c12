"""The checker's value domain for the P-code interpreter: Python integers where a value is certain, else Z3 expressions.

An operator on integers is the emulator's own (`machine.operators`); otherwise it is the SMT-LIB operator of the same
meaning. Memory is one Z3 array from addresses to bytes, with the bytes that are known at certain addresses beside it.
What a path depends on is collected in `guard`; at a decision the `script` says which way to go, and ways not yet in the
script are left in `other_ways` for the caller to try.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import z3

from mcveto.check.formulas import Formula, Later, Value, equal, no, number_of, plain, span_of, vector, within
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ, WRITE
from mcveto.machine.operators import FUNCTIONS
from mcveto.machine.pcode import FreshOrigin
from mcveto.machine.registers import Cell, RegisterLayout

# Bytes that one store through an uncertain address may write, so that they are listed.
MAX_TOUCHED = 4096


class Vocabulary:
    """The names an invariant may use: registers (flags are Booleans) and the memory `mem`; with something before them,
    those of another state."""

    def __init__(self, layout: RegisterLayout, address_bits: int, prefix: str = "") -> None:
        self.layout = layout
        self._address_bits = address_bits
        self._prefix = prefix
        self._variables: dict[int, Any] = {}
        self.memory = self.named(f"{prefix}mem", 0)

    def named(self, name: str, bits: int) -> Any:
        """A variable of so many bits; of 0 bits, a memory."""
        if bits == 0:
            return z3.Array(name, z3.BitVecSort(self._address_bits), z3.BitVecSort(8))
        return z3.Bool(name) if bits == 1 else z3.BitVec(name, bits)

    def variable(self, cell: Cell) -> Any:
        """What a register's name stands for in an invariant: its significant bits."""
        if cell.number not in self._variables:
            bits = self.layout.significant_bits(cell)
            self._variables[cell.number] = self.named(f"{self._prefix}{cell.name}", bits)
        return self._variables[cell.number]

    def before(self, cell: Cell) -> Value:
        """A register's whole value in a state that nothing was done to; insignificant bits are zero."""
        bits, variable = self.layout.significant_bits(cell), self.variable(cell)
        if bits == cell.bits:
            return variable
        extended = _truth if bits == 1 else lambda value, wide: z3.ZeroExt(wide - bits, value)
        return Later(lambda: extended(variable, cell.bits), (0, (1 << bits) - 1))

    def after(self, cell: Cell, value: Value) -> Any:
        """What a register's name stands for where its whole value is `value`."""
        bits = self.layout.significant_bits(cell)
        low = z3.Extract(bits - 1, 0, vector(value, cell.bits)) if bits < cell.bits else vector(value, cell.bits)
        return low == 1 if bits == 1 else low

    def is_whole(self, cell: Cell, value: Value) -> Formula:
        """That the bits of a register which can never be set are not."""
        bits, most = self.layout.significant_bits(cell), span_of(value, cell.bits)[1]
        return most >> bits == 0 or z3.Extract(cell.bits - 1, bits, vector(value, cell.bits)) == 0


def allows(space: AddressSpace, address: Value, kind: int) -> Formula:
    """That the byte at `address` may be read, written or executed."""
    return within(address, [(start, end - 1) for start, end in space.ranges(kind)])


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


def _ones(value: Any, bits: int) -> Any:
    ones = [z3.ZeroExt(bits - 1, z3.Extract(at, at, value)) for at in range(value.size())]
    return sum(ones[1:], ones[0])


def _leading_zeros(value: Any, bits: int) -> Any:
    zeros = z3.BitVecVal(value.size(), bits)
    for at in range(value.size()):
        zeros = z3.If(z3.Extract(at, at, value) == 1, z3.BitVecVal(value.size() - 1 - at, bits), zeros)
    return zeros


_UNARY: dict[str, Callable[[Any, int], Any]] = (
    {"INT_ZEXT": lambda a, bits: z3.ZeroExt(bits - a.size(), a), "INT_NEGATE": lambda a, bits: ~a}
    | {"INT_SEXT": lambda a, bits: z3.SignExt(bits - a.size(), a), "INT_2COMP": lambda a, bits: -a}
    | {"BOOL_NEGATE": lambda a, bits: a ^ 1, "POPCOUNT": _ones, "LZCOUNT": _leading_zeros}
)
# Where no more bits can be set in a result than in the operands.
_NARROW = frozenset({"INT_ZEXT", "BOOL_NEGATE", "BOOL_AND", "BOOL_OR", "BOOL_XOR", "INT_AND", "INT_OR", "INT_XOR"})
_SPANNED = {"INT_ADD": operator.add, "INT_MULT": operator.mul, "INT_LEFT": operator.lshift}


def _span(opcode: str, spans: Sequence[tuple[int, int]], bits: int) -> tuple[int, int]:
    """The least and the most that an operator can make of operands in these ranges."""
    full = (1 << bits) - 1
    if opcode in _COMPARE:
        return 0, 1
    if opcode in _NARROW:
        width = (min if opcode == "INT_AND" else max)(most.bit_length() for _, most in spans)
        return 0, (1 << max(1, width)) - 1
    if opcode in ("INT_ADD", "INT_MULT") or (opcode == "INT_LEFT" and spans[1][1] < bits):
        least, most = map(_SPANNED[opcode], *spans)
        return (least, most) if most <= full else (0, full)
    return 0, full


class CheckerDomain:
    foreign: Sequence[tuple[int, int]] = ()
    """Where what is not mapped may belong to another module."""

    def __init__(self, vocabulary: Vocabulary, space: AddressSpace, script: Sequence[bool]) -> None:
        self._vocabulary = vocabulary
        self._space = space
        self.strays: list[list[Formula]] = []
        """When an access is to an address where another module may be, which nobody can follow."""
        self.stated: Mapping[int, int] = {}
        """What registers are known to be as long as they are not written."""
        self.registers: dict[int, Value] = {}
        """Those that were written."""
        self._memory = vocabulary.memory
        self._stores: dict[int, Value] = {}
        """Bytes that are not in it yet."""
        self.known: dict[int, Value] = {}
        """What bytes at certain addresses are."""
        self.written: set[int] | None = set()
        """The addresses of bytes that were written; None if they are not certain."""
        self.guard: list[Formula] = []
        self._script = tuple(script)
        self._taken: list[bool] = []
        self.other_ways: list[tuple[bool, ...]] = []
        self.fresh_count = 0

    @property
    def memory(self) -> Any:
        for address, byte in self._stores.items():
            self._memory = z3.Store(self._memory, number_of(address, self._space.address_bits), vector(byte, 8))
        self._stores = {}
        return self._memory

    @memory.setter
    def memory(self, memory: Any) -> None:
        """All bytes are what `memory` says; of none it is known what that is."""
        self._memory, self.known, self._stores = memory, {}, {}

    def constant(self, value: int, bits: int) -> Value:
        return value & ((1 << bits) - 1)

    def apply(self, opcode: str, arguments: tuple[Value, ...], input_bits: int, output_bits: int) -> Value:
        if all(isinstance(argument, int) for argument in arguments):
            masks = (1 << output_bits) - 1, (1 << input_bits) - 1, 1 << (input_bits - 1)
            return FUNCTIONS[opcode](arguments, *masks, input_bits)
        span = _span(opcode, [span_of(argument, input_bits) for argument in arguments], output_bits)
        return Later(lambda: self._applied(opcode, arguments, input_bits, output_bits), span, arguments)

    def _applied(self, opcode: str, arguments: tuple[Value, ...], input_bits: int, output_bits: int) -> Any:
        if opcode == "SELECT":
            condition = vector(arguments[0], input_bits) != 0
            return z3.If(condition, vector(arguments[1], output_bits), vector(arguments[2], output_bits))
        first, *rest = (vector(argument, input_bits) for argument in arguments)
        if opcode in _BINARY:
            return _BINARY[opcode](first, rest[0])
        if opcode in _COMPARE:
            return _truth(_COMPARE[opcode](first, rest[0]), output_bits)
        return _UNARY[opcode](first, output_bits)

    def shift(self, opcode: str, value: Value, amount: Value, bits: int, amount_bits: int) -> Value:
        if isinstance(value, int) and isinstance(amount, int):
            return self.apply(opcode, (value, amount), bits, bits)
        wide = max(bits, amount_bits)

        def make() -> Any:
            if opcode == "INT_LEFT" and isinstance(amount, int) and amount < bits:
                return vector(value, bits) * (1 << amount)
            operand = (z3.SignExt if opcode == "INT_SRIGHT" else z3.ZeroExt)(wide - bits, vector(value, bits))
            distance = z3.ZeroExt(wide - amount_bits, vector(amount, amount_bits))
            return z3.Extract(bits - 1, 0, _SHIFT[opcode](operand, distance))

        return Later(make, _span(opcode, [span_of(value, bits), span_of(amount, amount_bits)], bits), (value, amount))

    def extract(self, value: Value, low: int, bits: int, total_bits: int) -> Value:
        if isinstance(value, int):
            return value >> low & ((1 << bits) - 1)
        most = span_of(value, total_bits)[1] >> low
        span = 0, min(most, (1 << bits) - 1)
        return Later(lambda: z3.Extract(low + bits - 1, low, vector(value, total_bits)), span, (value,))

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
        span = 0, (span_of(high, high_bits)[1] + 1 << low_bits) - 1
        return Later(lambda: z3.Concat(vector(high, high_bits), vector(low, low_bits)), span, (high, low))

    def read_register(self, cell: Cell) -> Value:
        value = self.registers.get(cell.number, self.stated.get(cell.number))
        return self._vocabulary.before(cell) if value is None else value

    def write_register(self, cell: Cell, value: Value) -> None:
        self.registers[cell.number] = value

    def byte(self, address: int) -> Value:
        fixed = self._space.fixed_bytes(address, 1)
        if fixed is not None:
            return fixed[0]
        if address not in self.known:
            self.known[address] = self._memory[number_of(address, self._space.address_bits)]
        return self.known[address]

    def load(self, address: Value, size: int) -> Value:
        bits, result = 0, 0
        for place in self._places(self._access(address, size, READ), size):
            byte = self.byte(place) if isinstance(place, int) else self.memory[place]
            result = self.concatenate(result, byte, bits, 8) if bits else byte
            bits += 8
        return result if isinstance(result, int) else plain(vector(result, bits))

    def store(self, address: Value, value: Value, size: int) -> None:
        where = self._access(address, size, WRITE)
        if not isinstance(where, int):
            # What is known of other bytes is known of the new memory as well.
            least, most = span_of(address, self._space.address_bits)
            touched = range(least, most + size) if most + size - 1 <= self._space.mask else range(self._space.mask + 1)
            self.known = {at: byte for at, byte in self.known.items() if at not in touched}
            is_few = self.written is not None and touched.stop - touched.start <= MAX_TOUCHED
            self.written = {*(self.written or ()), *touched} if is_few else None
        for number, place in enumerate(self._places(where, size)):
            byte = self.extract(value, 8 * (size - 1 - number), 8, 8 * size)
            if isinstance(place, int):
                self.known[place] = self._stores[place] = byte
                if self.written is not None:
                    self.written.add(place)
            else:
                self._memory = z3.Store(self.memory, place, vector(byte, 8))

    def _access(self, address: Value, size: int, kind: int) -> Value:
        """Raises the fault of a certain address; the faults of others are left out of the path by its guard."""
        if isinstance(address, int):
            self._space.check(address, size, kind)
            return address
        address = vector(address, self._space.address_bits)
        for byte in range(size) if self.foreign else {0, size - 1}:
            allowed = allows(self._space, address + byte, kind)
            # What comes before the end of the script was told of the way that left it.
            if self.foreign and len(self._taken) >= len(self._script):
                self.strays.append([*self.guard, no(allowed), within(address + byte, self.foreign)])
            self.guard.append(allowed)
        return address

    def _places(self, address: Value, size: int) -> Iterable[Value]:
        """The addresses of the bytes of an access, most significant byte first."""
        offsets = range(size) if self._space.big_endian else reversed(range(size))
        for offset in offsets:
            yield address + offset & self._space.mask if isinstance(address, int) else address + offset

    def decide(self, condition: Value) -> bool:
        if isinstance(holds := no(equal(condition, 0)), bool):
            return holds
        at = len(self._taken)
        way = self._script[at] if at < len(self._script) else True
        if at >= len(self._script):
            self.other_ways.append((*self._taken, False))
        self._taken.append(way)
        self.guard.append(holds if way else no(holds))
        return way

    def fresh(self, bits: int, origin: FreshOrigin, usual: Value) -> Value:
        self.fresh_count += 1
        value = self._vocabulary.named(f"fresh!{self.fresh_count}.{bits}", bits)
        return _truth(value, 1) if bits == 1 else value
