"""Comparisons that bounds decide."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.cegar.bounds import decided
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute

X = t.var("EBX", 32)

TERMS = st.recursive(
    st.one_of(st.just(t.var("x", 4)), st.integers(0, 15).map(lambda number: t.const(number, 4))),
    lambda inner: st.one_of(
        st.builds(t.add, inner, inner),
        st.builds(t.mul, inner, st.integers(0, 3).map(lambda number: t.const(number, 4))),
        st.builds(lambda one, other: t.zext(t.eq(one, other), 4), inner, inner),
        st.builds(lambda one: t.zext(t.extract(one, 1, 0), 4), inner),
        st.builds(t.urem, inner, st.just(t.const(3, 4))),
    ),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([t.ult, t.eq]), TERMS, TERMS, st.booleans())
def test_decided_comparisons(compare: object, one: t.Term, other: t.Term, negated: bool) -> None:
    literal = compare(one, other)  # type: ignore[operator]
    literal = t.bnot(literal) if negated else literal
    found = decided(literal)
    truths = {substitute(literal, {t.var("x", 4): t.const(number, 4)}) for number in range(16)}
    assert found is None or truths == {t.TRUE if found else t.FALSE}


def test_what_is_decided() -> None:
    flag = t.zext(t.eq(X, t.const(5, 32)), 32)
    assert decided(t.ult(t.const(5, 32), t.mul(flag, t.const(2, 32)))) is False
    assert decided(t.bnot(t.ult(t.const(5, 32), t.mul(flag, t.const(3, 32))))) is True
    assert decided(t.ult(t.const(5, 32), X)) is None
