"""Conditions along a progression: what is said to hold at every turn does, by trying all of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.progression import Progression
from mcveto.logic.terms import Term

WIDTH = 6
X, Y, Z = (t.var(name, WIDTH) for name in "xyz")
NUMBERS = st.integers(0, (1 << WIDTH) - 1)


def words(depth: int) -> st.SearchStrategy[Term]:
    leaf = st.one_of(st.sampled_from((X, Y, Z)), NUMBERS.map(lambda number: t.const(number, WIDTH)))
    if depth == 0:
        return leaf
    smaller = words(depth - 1)
    low = st.integers(0, WIDTH - 2)
    return st.one_of(
        leaf,
        st.builds(t.add, smaller, smaller),
        st.builds(t.sub, smaller, smaller),
        st.builds(lambda a, n: t.mul(a, t.const(n, WIDTH)), smaller, NUMBERS),
        st.builds(lambda a, n: t.zext(t.extract(a, WIDTH - 1, n), WIDTH), smaller, low),
        st.builds(lambda a, n: t.extract(t.sext(t.extract(a, n, 0), 2 * WIDTH), WIDTH - 1, 0), smaller, low),
        st.builds(lambda a, b: t.extract(t.concat(a, b), WIDTH + 1, 2), smaller, smaller),
        st.builds(t.band, smaller, smaller),
        st.builds(lambda c, a, b: t.ite(t.ult(c, a), a, b), smaller, smaller, smaller),
    )


COMPARISONS = st.sampled_from((t.eq, t.ne, t.ult, t.ule, t.slt, t.sle, t.carry, t.scarry, t.sborrow))
ATOMS = st.builds(lambda compare, a, b: compare(a, b), COMPARISONS, words(2), words(2))
CONDITIONS = st.one_of(
    ATOMS,
    st.builds(lambda a, b: t.conj([a, b]), ATOMS, ATOMS),
    st.builds(lambda a, b: t.disj([a, b]), ATOMS, ATOMS),
    st.builds(t.bnot, ATOMS),
)


@settings(max_examples=300, deadline=None)
@given(CONDITIONS, st.tuples(NUMBERS, NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS), st.integers(0, 40))
def test_what_holds_holds_at_every_turn(
    condition: Term, start: tuple[int, int, int], stride: tuple[int, int], last: int
) -> None:
    begin = dict(zip((X, Y, Z), start, strict=True))
    grows = {X: stride[0], Y: stride[1]}
    if not Progression(begin, grows, last).holds(condition):
        return
    for turn in range(last + 1):
        values = {variable: (begin[variable] + turn * grows.get(variable, 0)) % (1 << WIDTH) for variable in begin}
        assert Evaluator(values.__getitem__, lambda memory, address: 0).value(condition)


def test_counters_are_decided_up_to_where_they_change() -> None:
    below = t.ult(X, t.const(40, WIDTH))
    assert Progression({X: 1}, {X: 3}, 12).holds(below)
    assert not Progression({X: 1}, {X: 3}, 13).holds(below)
    assert Progression({X: 40, Y: 1}, {X: -1, Y: 2}, 12).holds(t.ult(Y, X))
    assert Progression({X: 30}, {X: -1}, 30).holds(t.sle(t.const(0, WIDTH), X))
    assert not Progression({X: 30}, {X: -1}, 31).holds(t.sle(t.const(0, WIDTH), X))
    assert Progression({X: 3}, {X: 1}, 20).holds(t.ult(t.extract(X, WIDTH - 1, 3), t.const(3, WIDTH - 3)))
    assert not Progression({X: 3}, {X: 1}, 21).holds(t.ult(t.extract(X, WIDTH - 1, 3), t.const(3, WIDTH - 3)))
