"""Values and formulas of the checker: Python's where something is certain, else Z3's, made when they are needed.

A value is an integer, a Z3 bit-vector, or one that is made later: most flags are never read. A formula is a Boolean or
Z3's. What is certain is decided here, by Python's own operators; nothing else is simplified, except by Z3 itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import z3

Value = Any  # int | Later | z3.BitVecRef
Formula = Any  # bool | z3.BoolRef
# Made at once if so many others must be made before.
MAX_DEPTH = 50
number_of = cache(z3.BitVecVal)


class Later:
    """An expression that is made when it is needed, and the least and most that it can be."""

    __slots__ = ("_made", "_make", "depth", "span")

    def __init__(self, make: Callable[[], Any], span: tuple[int, int], needs: Sequence[Value] = ()) -> None:
        self._make, self.span = make, span
        self._made: Any = None
        self.depth: int = 1 + max((item.depth for item in needs if isinstance(item, Later)), default=0)
        if self.depth > MAX_DEPTH:
            self.made()

    def made(self) -> Any:
        if self._made is None:
            self._made, self.depth = self._make(), 0
        return self._made


def span_of(value: Value, bits: int) -> tuple[int, int]:
    """The least and the most that a value can be."""
    if isinstance(value, int):
        return value, value
    return value.span if isinstance(value, Later) else (0, (1 << bits) - 1)


def vector(value: Value, bits: int) -> Any:
    if isinstance(value, int):
        return number_of(value, bits)
    return value.made() if isinstance(value, Later) else value


def plain(value: Any) -> Value:
    """`value` as Z3 simplifies it; an integer if it is one."""
    return value.as_long() if z3.is_bv_value(value := z3.simplify(value)) else value


def equal(value: Value, number: int) -> Formula:
    if isinstance(value, int):
        return value == number
    same = z3.simplify(vector(value, 0) == number)
    return bool(z3.is_true(same)) if z3.is_true(same) or z3.is_false(same) else same


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


def within(address: Value, spans: Iterable[tuple[int, int]]) -> Formula:
    """That an address lies in one of some ranges, the last address of each included."""
    if isinstance(address, int):
        return any(low <= address <= high for low, high in spans)
    return any_of([z3.And(z3.UGE(address, low), z3.ULE(address, high)) for low, high in spans])


def parts(pending: list[Any]) -> Iterator[Any]:
    """All terms that formulas are made of; uses up the list, which may grow on the way."""
    seen: set[int] = set()
    while pending:
        term = pending.pop()
        if not isinstance(term, bool) and term.get_id() not in seen:
            seen.add(term.get_id())
            pending.extend(term.children())
            yield term


def reads(pending: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The memories that are read in some formulas, without the stores to them, each with an address; uses up the
    list, which may grow on the way."""
    for term in parts(pending):
        memories = [term.arg(0)] if z3.is_select(term) else []
        for memory in memories:
            within_it = [part for part in memory.children() if part.sort() == memory.sort()]
            memories += within_it
            yield from () if within_it else ((memory, term.arg(1)),)


def is_word(term: Any) -> bool:
    """Whether it is bytes of memory, side by side."""
    return z3.is_select(term) or (term.decl().kind() == z3.Z3_OP_CONCAT and all(map(is_word, term.children())))
