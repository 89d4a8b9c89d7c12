"""Interpolants against their definition, asked of the ordinary solver."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.solver import interpolation, make_solver
from mcveto.logic.solver.interpolation import interpolant
from mcveto.logic.terms import Term

A, B, C = (t.var(name, 8) for name in ("left", "both 1", "right"))


def excluded(*terms: Term) -> bool:
    return make_solver("z3").check(terms) == "unsat"


def number(value: int) -> Term:
    return t.const(value, 8)


def conditions(private: Term) -> st.SearchStrategy[Term]:
    words = st.one_of(
        st.sampled_from((private, B)),
        st.integers(0, 255).map(number),
        st.integers(0, 7).map(lambda n: t.mul(B, number(2 * n + 1))),
        st.integers(1, 3).map(lambda n: t.lshr(private, number(n))),
    )
    sums = st.builds(t.add, words, words)
    return st.builds(lambda make, x, y: make(x, y), st.sampled_from((t.eq, t.ult, t.sle)), sums, sums)


@settings(max_examples=60, deadline=None)
@given(st.lists(conditions(A), min_size=1, max_size=3), st.lists(conditions(C), min_size=1, max_size=3))
def test_an_interpolant_lies_between(given_: list[Term], refuted: list[Term]) -> None:
    with patch.object(interpolation, "LONGEST", 1 << 30):  # some are lists of bits
        found = interpolant(given_, refuted, 5.0)
    if not excluded(*given_, *refuted):
        assert found is None
        return
    assert found is not None
    assert set(t.free_variables([found])) <= {B}
    assert excluded(*given_, t.bnot(found))
    assert excluded(found, *refuted)


def test_there_is_none_where_a_memory_is_read() -> None:
    cell = t.load(t.memory("mem", 32), t.var("p", 32), 1, False)
    assert interpolant([t.eq(cell, number(1))], [t.eq(cell, number(2))], 5.0) is None
