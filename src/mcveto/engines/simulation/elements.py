"""Addresses of the form start + size * index: elements of arrays, also of arrays within elements."""

from __future__ import annotations

from mcveto.engines.domain import as_value
from mcveto.engines.memory import Value
from mcveto.engines.simulation.low_bits import low_bits
from mcveto.logic import linear
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

LARGEST_ELEMENT = 1 << 12
MOST_ELEMENTS = 1 << 16


def element_of(value: Value) -> tuple[int, int] | None:
    """Size and start, if a value is start + size * index."""
    if isinstance(value, int) or value.op != "lin" or len(value.args) != 1:
        return None
    (size,), start = value.data
    return (size, start) if 1 < size <= LARGEST_ELEMENT else None


def index_of(value: Value, size: int, start: int, bits: int) -> Value | None:
    """The index of a value that is start + size * index."""
    if isinstance(value, int):
        distance = t.signed((value - start) & ((1 << bits) - 1), bits)
        index, rest = divmod(distance, size)
        return index if not rest and 0 <= index < MOST_ELEMENTS else None
    shape = element_of(value)
    if shape is None or shape[0] != size:
        return None
    moved = index_of(shape[1], size, start, bits)
    if moved is None:
        return None
    assert isinstance(moved, int)
    return as_value(t.add(value.args[0], t.const(moved, bits)))


def common_summands(a: Value, b: Value, bits: int) -> tuple[Term, Term, Term] | None:
    """What two sums have in common, and the rest of each: fields or words of one device that two ways have chosen
    differently. None if they have only numbers in common."""
    if isinstance(a, int) or isinstance(b, int):
        return None
    mine, others = linear.monomials(a), linear.monomials(b)
    factors = dict(zip(others[0], others[1], strict=True))
    shared = [(c, atom) for atom, c in zip(mine[0], mine[1], strict=True) if factors.get(atom) == c]
    if not shared:
        return None
    common = linear.combine(shared, min(mine[2], others[2]), bits)
    return common, t.sub(a, common), t.sub(b, common)


def trailing_zeros(a: Term, b: Term) -> int:
    """How many of the last bits are 0 in both, whatever their variables are."""
    count = min(low_bits(a)[0], low_bits(b)[0])
    ends = low_bits(a)[1] | low_bits(b)[1] | 1 << count
    return (ends & -ends).bit_length() - 1
