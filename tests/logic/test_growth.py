"""Polynomials of the number of turns, against turns that are made one after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.growth import growths, value_at
from mcveto.logic.node import Term

WIDTH = 8
COUNTER, SUM, OTHER = (t.var(name, WIDTH) for name in ("counter", "sum", "other"))
NUMBERS = st.integers(0, (1 << WIDTH) - 1)


def polynomials(*variables: Term) -> st.SearchStrategy[Term]:
    leaves = st.one_of(st.sampled_from(variables), NUMBERS.map(lambda value: t.const(value, WIDTH)))
    return st.recursive(
        leaves,
        lambda parts: st.tuples(st.sampled_from((t.add, t.sub, t.mul)), parts, parts).map(_combined),
        max_leaves=3,
    )


def _combined(choice: tuple[object, Term, Term]) -> Term:
    make, one, other = choice
    assert callable(make)
    made = make(one, other)
    assert isinstance(made, Term)
    return made


@given(
    st.tuples(NUMBERS, NUMBERS, NUMBERS), NUMBERS, polynomials(COUNTER), polynomials(COUNTER, SUM), st.integers(0, 600)
)
def test_values_are_those_of_so_many_turns(
    first: tuple[int, int, int], stride: int, by: Term, by_more: Term, turns: int
) -> None:
    start = dict(zip((COUNTER, SUM, OTHER), first, strict=True))
    found = growths(start, {COUNTER: stride}, {SUM: by, OTHER: by_more})
    assert SUM in found
    now = dict(start)
    for _ in range(turns):
        evaluator = Evaluator(now.__getitem__, lambda memory, address: 0)
        grown = {COUNTER: stride, SUM: evaluator.value(by), OTHER: evaluator.value(by_more)}
        now = {variable: (value + grown[variable]) % (1 << WIDTH) for variable, value in now.items()}
    assert {v: value_at(found[v], turns, WIDTH) for v in found} == {v: now[v] for v in found}


def test_what_grows_with_itself_is_no_polynomial() -> None:
    assert SUM not in growths({SUM: 1, COUNTER: 0}, {COUNTER: 1}, {SUM: SUM})
    assert SUM not in growths({SUM: 1, COUNTER: 0}, {COUNTER: 1}, {SUM: t.band(COUNTER, t.const(7, WIDTH))})
