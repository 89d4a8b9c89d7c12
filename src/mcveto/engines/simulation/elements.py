"""Addresses of the form start + size * index: elements of arrays."""

from __future__ import annotations

from mcveto.engines.domain import as_value
from mcveto.engines.memory import Value
from mcveto.logic import terms as t

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
