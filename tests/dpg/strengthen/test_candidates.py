"""Candidates from the program's own numbers: the ends of ranges that comparisons describe, by trying all values."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.strengthen.candidates import _compared_numbers
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term

X = t.var("x", 8)
UNSIGNED: list[Callable[[Term, Term], Term]] = [t.ult, t.ule]


@given(st.sampled_from(UNSIGNED), st.integers(1, 255), st.integers(0, 255), st.booleans())
def test_every_end_of_a_range_is_a_number_of_the_comparison(
    compare: Callable[[Term, Term], Term], added: int, limit: int, is_above: bool
) -> None:
    sides = t.add(X, t.const(added, 8)), t.const(limit, 8)
    comparison = compare(*sides[::-1]) if is_above else compare(*sides)
    if comparison.op not in ("ult", "ule"):
        return  # always true, or one value
    near = {(number + apart) & 255 for number in _compared_numbers(comparison) for apart in (-1, 0, 1)}
    holds = [Evaluator({X: x}.__getitem__, lambda *_: 0).value(comparison) for x in range(256)]
    ends = [x for x in range(256) if holds[x] != holds[x - 1]]
    assert all(x in near and (x - 1) & 255 in near for x in ends)


def test_where_memory_is_is_no_range_of_numbers() -> None:
    pointer = t.var("p", 32)
    inside = t.ult(t.sub(pointer, t.const(0x8049000, 32)), t.const(0x2000, 32))
    assert list(_compared_numbers(inside)) == [0x2000]


def test_a_range_check_as_compilers_write_it() -> None:
    """1 <= x <= 200 is x - 201 >= 56 without signs."""
    outside = t.ult(t.sub(X, t.const(201, 8)), t.const(56, 8))
    assert {1, t.signed(201, 8)} <= set(_compared_numbers(outside))
