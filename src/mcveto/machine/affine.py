"""Affine relations modulo 2^w: a value domain of the interpreter, and the states it maps.

Values are affine forms c + Σ aᵢ·xᵢ over the variables of the state before (word-sized registers and chosen memory
cells), or unknown. A state is an affine space, the points x with (1, x) in a row space; running a block gives a
transfer: equations that hold on this way through it, and a form or "unknown" for every variable after it. Transfers
map spaces to spaces exactly up to what is unknown, spaces are joined to their affine hull, and the equations entailed
by a space are its annihilator (Müller-Olm and Seidl, "Analysis of modular arithmetic"; Elder et al., "Abstract domains
of affine relations").

The low k bits of a form are a form modulo 2^k, so truncation is exact; extensions, bit operations and products of
forms are unknown. A load or store at an address that is not constant reads something unknown, or changes every
writable cell, unless `may_touch` knows better: the domain is sound if that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from mcveto.late_methods import dataclass

from ..logic import terms as t
from ..logic.terms import Term
from .address_space import AddressSpace
from .howell import RowSpace, Vector, dot
from .memory import READ, WRITE
from .operators import FUNCTIONS
from .pcode import FreshOrigin
from .registers import Cell
from .tracked_cells import MemoryCell, TrackedCells, fixed_value


class Form(NamedTuple):
    """(constant + Σ coefficient · x[variable]) mod 2^bits; variables ascending, no coefficient zero."""

    bits: int
    constant: int
    terms: tuple[tuple[int, int], ...] = ()


class Equation(NamedTuple):
    """A truth value: whether `form` is zero, or is not zero if `negated`."""

    form: Form
    negated: bool


class Unknown(NamedTuple):
    bits: int


AffineValue = Form | Equation | Unknown
# The cells a store through an unknown address may change, or None for all of them.
MayTouch = Callable[[AffineValue, int], Iterable[MemoryCell] | None]


def combine(first: Form, factor: int, second: Form) -> Form:
    """first + factor · second."""
    mask = (1 << first.bits) - 1
    sums = dict(first.terms)
    for variable, coefficient in second.terms:
        sums[variable] = sums.get(variable, 0) + factor * coefficient
    return _form(first.bits, (first.constant + factor * second.constant) & mask, sums)


def _form(bits: int, constant: int, coefficients: Mapping[int, int]) -> Form:
    mask = (1 << bits) - 1
    kept = [(variable, value & mask) for variable, value in sorted(coefficients.items()) if value & mask]
    return Form(bits, constant & mask, tuple(kept))


class AffineDomain:
    """The identity state of the variables 0…n-1: first `registers`, then `cells`, all of `bits` bits.

    `choose` is asked which way to go where the domain does not know, given how many decisions came before.
    """

    def __init__(
        self,
        space: AddressSpace,
        bits: int,
        registers: Sequence[Cell],
        cells: Sequence[MemoryCell],
        choose: Callable[[int], bool],
        may_touch: MayTouch | None = None,
        known: Mapping[int, int] | None = None,
    ) -> None:
        """`known` gives variables that are constant in every state considered: addresses made of them are constant."""
        assert all(place.bits == bits for place in registers) and all(place.bits == bits for place in cells)
        self._space = space
        self._bits = bits
        self._tracked = tuple(registers)
        self._cells = tuple(cells)
        self._choose = choose
        self._may_touch = may_touch
        constants = known or {}
        initial: list[AffineValue] = [
            Form(bits, constants[number]) if number in constants else Form(bits, 0, ((number, 1),))
            for number in range(len(registers) + len(cells))
        ]
        self.registers: dict[int, AffineValue] = {
            cell.number: value for cell, value in zip(registers, initial, strict=False)
        }
        chosen = dict(zip(cells, initial[len(registers) :], strict=True))
        self.memory: TrackedCells[AffineValue] = TrackedCells(space, Unknown, chosen)
        self.guards: list[Form] = []
        self.decisions = 0

    def transfer(self) -> Transfer:
        """What the execution so far does to the variables."""
        after = [self.registers[cell.number] for cell in self._tracked]
        after += [self.memory.values[cell] for cell in self._cells]
        return Transfer(tuple(self.guards), tuple(value if isinstance(value, Form) else None for value in after))

    def constant(self, value: int, bits: int) -> AffineValue:
        return Form(bits, value & ((1 << bits) - 1))

    def apply(self, opcode: str, arguments: tuple[AffineValue, ...], input_bits: int, output_bits: int) -> AffineValue:
        constants = [value.constant for value in arguments if isinstance(value, Form) and not value.terms]
        if len(constants) == len(arguments):
            masks = ((1 << output_bits) - 1, (1 << input_bits) - 1, 1 << (input_bits - 1))
            return Form(output_bits, FUNCTIONS[opcode](tuple(constants), *masks, input_bits))
        result = self._known(opcode, arguments, input_bits)
        return Unknown(output_bits) if result is None else result

    def _known(self, opcode: str, arguments: tuple[AffineValue, ...], bits: int) -> AffineValue | None:
        first = arguments[0]
        second = arguments[1] if len(arguments) == 2 else None
        if isinstance(first, Form) and isinstance(second, Form):
            return _binary(opcode, first, second, bits)
        if isinstance(first, Form) and second is None:
            if opcode == "INT_2COMP":
                return combine(Form(bits, 0), -1, first)
            if opcode == "INT_NEGATE":
                return combine(Form(bits, -1 & ((1 << bits) - 1)), -1, first)
        if isinstance(first, Equation):
            if opcode == "BOOL_NEGATE" or (opcode == "INT_EQUAL" and second == Form(bits, 0)):
                return Equation(first.form, not first.negated)
            if opcode == "INT_NOTEQUAL" and second == Form(bits, 0):
                return first
        if opcode == "INT_AND" or opcode == "INT_MULT":
            zero = Form(bits, 0)
            return zero if zero in arguments else None
        if opcode == "SELECT" and len(arguments) == 3 and arguments[1] == arguments[2]:
            return arguments[1] if isinstance(arguments[1], Form) else None
        return None

    def shift(self, opcode: str, value: AffineValue, amount: AffineValue, bits: int, amount_bits: int) -> AffineValue:
        if not isinstance(amount, Form) or amount.terms or not isinstance(value, Form):
            return Unknown(bits)
        if not value.terms:
            mask = (1 << bits) - 1
            return Form(bits, FUNCTIONS[opcode]((value.constant, amount.constant), mask, mask, 1 << (bits - 1), bits))
        if opcode == "INT_LEFT":
            return combine(Form(bits, 0), 1 << min(amount.constant, bits), value)
        return value if amount.constant == 0 else Unknown(bits)

    def extract(self, value: AffineValue, low: int, bits: int, total_bits: int) -> AffineValue:
        if isinstance(value, Form):
            if not value.terms:
                return Form(bits, value.constant >> low & ((1 << bits) - 1))
            if low == 0:
                return _form(bits, value.constant, dict(value.terms))
        return Unknown(bits)

    def insert(self, old: AffineValue, value: AffineValue, low: int, bits: int, total_bits: int) -> AffineValue:
        if bits == total_bits:
            return value
        if isinstance(old, Form) and isinstance(value, Form) and not old.terms and not value.terms:
            hole = ((1 << bits) - 1) << low
            return Form(total_bits, old.constant & ~hole | value.constant << low)
        return Unknown(total_bits)

    def concatenate(self, high: AffineValue, low: AffineValue, high_bits: int, low_bits: int) -> AffineValue:
        if isinstance(high, Form) and isinstance(low, Form) and not high.terms and not low.terms:
            return Form(high_bits + low_bits, high.constant << low_bits | low.constant)
        return Unknown(high_bits + low_bits)

    def read_register(self, cell: Cell) -> AffineValue:
        return self.registers.get(cell.number, Unknown(cell.bits))

    def write_register(self, cell: Cell, value: AffineValue) -> None:
        self.registers[cell.number] = value

    def load(self, address: AffineValue, size: int) -> AffineValue:
        if not isinstance(address, Form) or address.terms:
            return Unknown(8 * size)
        self._space.check(address.constant, size, READ)
        known = self.memory.load(address.constant, size)
        if known is not None:
            return known
        fixed = fixed_value(self._space, address.constant, size)
        return Unknown(8 * size) if fixed is None else Form(8 * size, fixed)

    def store(self, address: AffineValue, value: AffineValue, size: int) -> None:
        if isinstance(address, Form) and not address.terms:
            self._space.check(address.constant, size, WRITE)
            self.memory.store(address.constant, size, value)
            return
        touched = self._may_touch(address, size) if self._may_touch is not None else None
        if touched is None:
            self.memory.forget(self.memory.writable())
        else:
            for cell in touched:
                self.memory.forget(self.memory.overlapping(*cell))

    def decide(self, condition: AffineValue) -> bool:
        self.decisions += 1
        if isinstance(condition, Form) and not condition.terms:
            return condition.constant != 0
        taken = self._choose(self.decisions - 1)
        if isinstance(condition, Equation) and taken != condition.negated:
            # form = 0 modulo 2^k says 2^(w-k) · form = 0 modulo 2^w.
            form = condition.form
            factor = 1 << (self._bits - form.bits)
            wide = {variable: factor * coefficient for variable, coefficient in form.terms}
            self.guards.append(_form(self._bits, factor * form.constant, wide))
        return taken

    def fresh(self, bits: int, origin: FreshOrigin, usual: AffineValue) -> AffineValue:
        return Unknown(bits)


def _binary(opcode: str, first: Form, second: Form, bits: int) -> AffineValue | None:
    match opcode:
        case "INT_ADD":
            return combine(first, 1, second)
        case "INT_SUB":
            return combine(first, -1, second)
        case "INT_MULT" if not first.terms:
            return combine(Form(bits, 0), first.constant, second)
        case "INT_MULT" if not second.terms:
            return combine(Form(bits, 0), second.constant, first)
        case "INT_AND" | "INT_OR" if first == second:
            return first
        case "INT_XOR" if first == second:
            return Form(bits, 0)
        case "INT_AND" if Form(bits, 0) in (first, second):
            return Form(bits, 0)
        case "INT_OR" | "INT_XOR" if Form(bits, 0) in (first, second):
            return second if first == Form(bits, 0) else first
        case "INT_EQUAL" | "INT_NOTEQUAL":
            difference = combine(first, -1, second)
            if difference.terms:
                return Equation(difference, opcode == "INT_NOTEQUAL")
            return Form(8, int((difference.constant == 0) == (opcode == "INT_EQUAL")))
    return None


@dataclass(frozen=True, slots=True)
class Transfer:
    """One way through some code: equations (forms that are zero) over the state before, and every variable after
    as a form over the state before, or None."""

    guards: tuple[Form, ...]
    after: tuple[Form | None, ...]


class AffineSpace:
    """Points of (Z/2^bits)^variables that satisfy affine equations; possibly none."""

    def __init__(self, rows: RowSpace) -> None:
        """The points x with (1, x) in the row space."""
        self._rows = rows if rows.rows() and rows.rows()[0][0] == 1 else RowSpace(rows.bits, rows.columns)
        self.bits = rows.bits
        self.variables = rows.columns - 1

    @staticmethod
    def product(bits: int, values: Sequence[int | None]) -> AffineSpace:
        """Each variable has the given value, or any."""
        rows = RowSpace(bits, len(values) + 1, [[1, *(value or 0 for value in values)]])
        for number, value in enumerate(values):
            if value is None:
                rows.insert(_unit(number + 1, len(values) + 1))
        return AffineSpace(rows)

    @staticmethod
    def nothing(bits: int, variables: int) -> AffineSpace:
        return AffineSpace(RowSpace(bits, variables + 1))

    @property
    def is_empty(self) -> bool:
        return not self._rows.rows()

    def __contains__(self, point: Sequence[int]) -> bool:
        return (1, *point) in self._rows

    def __eq__(self, other: object) -> bool:
        return self._rows == other._rows if isinstance(other, AffineSpace) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __le__(self, other: AffineSpace) -> bool:
        return self._rows <= other._rows

    def joined(self, other: AffineSpace) -> AffineSpace:
        """The affine hull of the union."""
        return AffineSpace(self._rows.joined(other._rows))

    def constrained(self, form: Form) -> AffineSpace:
        """The points where the form is zero."""
        return AffineSpace(self._rows.annihilated_by(self._vector(form)))

    def transformed(self, transfer: Transfer) -> AffineSpace:
        """The least affine space that contains every point the transfer reaches."""
        before = self
        for guard in transfer.guards:
            before = before.constrained(guard)
        mask, width = (1 << self.bits) - 1, self.variables + 1
        rows = RowSpace(self.bits, width)
        for row in before._rows:
            mapped = [
                0
                if form is None
                else (form.constant * row[0] + sum(factor * row[number + 1] for number, factor in form.terms)) & mask
                for form in transfer.after
            ]
            rows.insert([row[0], *mapped])
        if not before.is_empty:
            for number, form in enumerate(transfer.after):
                if form is None:
                    rows.insert(_unit(number + 1, width))
        return AffineSpace(rows)

    def entails(self, form: Form) -> bool:
        """Whether the form is zero at every point."""
        vector = self._vector(form)
        return all(dot(vector, row, (1 << self.bits) - 1) == 0 for row in self._rows)

    def projected(self, kept: Sequence[int]) -> AffineSpace:
        """What the points say about the variables `kept`, in that order."""
        return AffineSpace(self._rows.projected([0, *(number + 1 for number in kept)]))

    def constants(self) -> dict[int, int]:
        """The variables that have one value only."""
        if self.is_empty:
            return {}
        point, *directions = self._rows.rows()
        return {
            number: point[number + 1]
            for number in range(self.variables)
            if not any(row[number + 1] for row in directions)
        }

    def equations(self) -> list[Form]:
        """Forms whose being zero is exactly the space, in echelon form: variables are eliminated in their order."""
        order = [*range(1, self.variables + 1), 0]
        return [
            _form(self.bits, row[-1], dict(enumerate(row[:-1]))) for row in self._rows.projected(order).annihilator()
        ]

    def _vector(self, form: Form) -> Vector:
        vector = [0] * (self.variables + 1)
        vector[0] = form.constant
        for variable, coefficient in form.terms:
            vector[variable + 1] = coefficient
        return tuple(vector)


def to_term(form: Form, variables: Sequence[Term]) -> Term:
    """ "The form is zero" over terms for the variables."""
    total = t.const(form.constant, form.bits)
    for variable, coefficient in form.terms:
        total = t.add(total, t.mul(t.const(coefficient, form.bits), variables[variable]))
    return t.eq(total, t.const(0, form.bits))


def _unit(column: int, columns: int) -> list[int]:
    return [int(other == column) for other in range(columns)]
