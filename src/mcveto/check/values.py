"""The checker's value domain for the P-code interpreter: Python integers where a value is certain, else Z3 expressions.

Written for reading. An operator on integers is the emulator's own (`machine.operators`); otherwise it is the SMT-LIB
operator of the same meaning, and made only when something depends on it: most flags are never read. Memory is one Z3
array from addresses to bytes, with the bytes that are known at certain addresses beside it. Nothing is simplified except
by Z3 itself. What a path depends on is collected in `guard`; at a decision the `script` says which way to go, and ways
not yet in the script are left in `other_ways` for the caller to try.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import z3

from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ, WRITE
from mcveto.machine.operators import FUNCTIONS
from mcveto.machine.pcode import FreshOrigin
from mcveto.machine.registers import Cell, RegisterLayout

Value = Any  # int | Later | z3.BitVecRef
Formula = Any  # bool, if it is certain | z3.BoolRef
# Made at once if so many others must be made before.
MAX_DEPTH = 50


class Later:
    """An expression that is made when it is needed; only its `fits` lowest bits can be set."""

    __slots__ = ("_made", "_make", "depth", "fits")

    def __init__(self, make: Callable[[], Any], needs: Sequence[Value] = (), fits: int = 1024) -> None:
        self._make, self.fits = make, fits
        self._made: Any = None
        self.depth: int = 1 + max((item.depth for item in needs if isinstance(item, Later)), default=0)
        if self.depth > MAX_DEPTH:
            self.made()

    def made(self) -> Any:
        if self._made is None:
            self._made, self.depth = self._make(), 0
        return self._made


def _fits(value: Value, bits: int) -> int:
    return value.bit_length() if isinstance(value, int) else value.fits if isinstance(value, Later) else bits


def _joined(formulas: Iterable[Formula], unit: bool, join: Callable[[list[Any]], Any]) -> Formula:
    rest = [formula for formula in formulas if formula is not unit]
    if any(isinstance(formula, bool) for formula in rest):
        return not unit
    return join(rest) if rest[1:] else rest[0] if rest else unit


def all_of(formulas: Iterable[Formula]) -> Formula:
    """Their conjunction; of one, itself: not every solver reads a conjunction of one."""
    return _joined(formulas, True, z3.And)


def any_of(formulas: Iterable[Formula]) -> Formula:
    return _joined(formulas, False, z3.Or)


def no(formula: Formula) -> Formula:
    return not formula if isinstance(formula, bool) else z3.Not(formula)


def equal(value: Value, other: Value, bits: int) -> Formula:
    if isinstance(value, int) and isinstance(other, int):
        return value == other
    same = z3.simplify(vector(value, bits) == vector(other, bits))
    return False if z3.is_false(same) else same


def vector(value: Value, bits: int) -> Any:
    if isinstance(value, int):
        return number_of(value, bits)
    return value.made() if isinstance(value, Later) else value


@cache
def number_of(value: int, bits: int) -> Any:
    return z3.BitVecVal(value, bits)


def plain(value: Any) -> Value:
    """`value` as Z3 simplifies it; an integer if it is one."""
    return value.as_long() if z3.is_bv_value(value := z3.simplify(value)) else value


class Vocabulary:
    """The names an invariant may use: registers (flags are Booleans) and the memory `mem`."""

    def __init__(self, layout: RegisterLayout, address_bits: int) -> None:
        self.layout = layout
        self._address_bits = address_bits
        self._variables: dict[Cell, Any] = {}
        self.memory = self.named("mem", 0)

    def named(self, name: str, bits: int) -> Any:
        """A variable of so many bits; of 0 bits, a memory."""
        if bits == 0:
            return z3.Array(name, z3.BitVecSort(self._address_bits), z3.BitVecSort(8))
        return z3.Bool(name) if bits == 1 else z3.BitVec(name, bits)

    def variable(self, cell: Cell) -> Any:
        """What a register's name stands for in an invariant: its significant bits."""
        if cell not in self._variables:
            self._variables[cell] = self.named(cell.name, self.layout.significant_bits(cell))
        return self._variables[cell]

    def before(self, cell: Cell) -> Value:
        """A register's whole value in a state that nothing was done to; insignificant bits are zero."""
        bits = self.layout.significant_bits(cell)
        if bits == cell.bits:
            return self.variable(cell)
        if bits == 1:
            return Later(lambda: _truth(self.variable(cell), cell.bits), fits=1)
        return Later(lambda: z3.ZeroExt(cell.bits - bits, self.variable(cell)), fits=bits)

    def after(self, cell: Cell, value: Value) -> Any:
        """What a register's name stands for where its whole value is `value`."""
        bits = self.layout.significant_bits(cell)
        low = z3.Extract(bits - 1, 0, vector(value, cell.bits)) if bits < cell.bits else vector(value, cell.bits)
        return low == 1 if bits == 1 else low

    def insignificant(self, cell: Cell, value: Value) -> list[Formula]:
        """That the bits of a register which can never be set are not."""
        bits = self.layout.significant_bits(cell)
        if _fits(value, cell.bits) <= bits:
            return []
        return [z3.Extract(cell.bits - 1, bits, vector(value, cell.bits)) == 0]


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
    return within(address, _spans(space, kind))


@cache
def _spans(space: AddressSpace, kind: int) -> Sequence[tuple[int, int]]:
    """First and last addresses of where that is allowed."""
    spans: list[tuple[int, int]] = []
    for at in (region for region in space.regions if region.permissions & kind and region.size):
        start = spans.pop()[0] if spans and spans[-1][1] + 1 == at.start else at.start
        spans.append((start, at.end - 1))
    return spans


def within(address: Value, spans: Iterable[tuple[int, int]]) -> Formula:
    """That an address lies in one of some ranges, the last address of each included."""
    if isinstance(address, int):
        return any(low <= address <= high for low, high in spans)
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


# Where no more bits can be set in a result than in the operands.
_NARROW = frozenset({"INT_ZEXT", "BOOL_NEGATE", "BOOL_AND", "BOOL_OR", "BOOL_XOR", "INT_AND", "INT_OR", "INT_XOR"})


class CheckerDomain:
    foreign: Sequence[tuple[int, int]] = ()
    """Where what is not mapped may belong to another module."""
    known: dict[int, Value]
    """Bytes at certain addresses."""
    _stores: dict[int, Value]
    _memory: Any

    def __init__(self, vocabulary: Vocabulary, space: AddressSpace, script: Sequence[bool]) -> None:
        self._vocabulary = vocabulary
        self._space = space
        self.strays: list[list[Formula]] = []
        """When an access is to an address where another module may be, which nobody can follow."""
        self.stated: Mapping[int, int] = {}
        """What registers are known to be as long as they are not written."""
        self.registers: dict[int, Value] = {}
        """Those that were written."""
        self.memory = vocabulary.memory
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
        fits = 1 if opcode in _COMPARE else output_bits
        if opcode in _NARROW:
            fits = max(1, (min if opcode == "INT_AND" else max)(_fits(item, input_bits) for item in arguments))
        return Later(lambda: self._applied(opcode, arguments, input_bits, output_bits), arguments, fits)

    def _applied(self, opcode: str, arguments: tuple[Value, ...], input_bits: int, output_bits: int) -> Any:
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

        def make() -> Any:
            operand = extend(wide - bits, vector(value, bits))
            distance = z3.ZeroExt(wide - amount_bits, vector(amount, amount_bits))
            return z3.Extract(bits - 1, 0, _SHIFT[opcode](operand, distance))

        return Later(make, (value, amount), bits)

    def extract(self, value: Value, low: int, bits: int, total_bits: int) -> Value:
        if isinstance(value, int):
            return value >> low & ((1 << bits) - 1)
        fits = min(bits, max(0, _fits(value, total_bits) - low))
        return Later(lambda: z3.Extract(low + bits - 1, low, vector(value, total_bits)), (value,), fits)

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
        make = lambda: z3.Concat(vector(high, high_bits), vector(low, low_bits))  # noqa: E731
        return Later(make, (high, low), low_bits + _fits(high, high_bits))

    def read_register(self, cell: Cell) -> Value:
        if cell.number in self.registers:
            return self.registers[cell.number]
        stated = self.stated.get(cell.number)
        return self._vocabulary.before(cell) if stated is None else stated

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
        address = self._access(address, size, READ)
        bits, result = 0, 0
        for place in self._places(address, size):
            byte = self.byte(place) if isinstance(place, int) else self.memory[place]
            result = self.concatenate(result, byte, bits, 8) if bits else byte
            bits += 8
        return result if isinstance(result, int) else plain(vector(result, bits))

    def store(self, address: Value, value: Value, size: int) -> None:
        address = self._access(address, size, WRITE)
        for number, place in enumerate(self._places(address, size)):
            byte = self.extract(value, 8 * (size - 1 - number), 8, 8 * size)
            if isinstance(place, int):
                self.known[place] = self._stores[place] = byte
                if self.written is not None:
                    self.written.add(place)
            else:
                self.memory, self.written = z3.Store(self.memory, place, vector(byte, 8)), None

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
        if isinstance(condition, int):
            return condition != 0
        holds = z3.simplify(vector(condition, 0) != 0)
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
