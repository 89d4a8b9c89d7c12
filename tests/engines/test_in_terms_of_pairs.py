"""Values said in terms of what stands for other pairs, against every valuation of the two states."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcveto.engines.domain import as_term
from mcveto.engines.simulation.in_terms_of_pairs import InTermsOfPairs
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term

INDEX, READ, BEFORE, NEW = t.var("index", 8), t.var("read", 8), t.var("before", 8), t.var("new", 8)
BIT = t.extract(READ, 2, 2)
# The first state has an index in a variable, the second as a bit of what it has read: NEW stands for both.
IS_FIRST = t.eq(INDEX, t.const(0, 8))


def number(value: int) -> Term:
    return t.const(value, 8)


def met(first: list[Term], second: list[Term]) -> InTermsOfPairs:
    meeting: Any = SimpleNamespace(
        pairs={(8, INDEX, t.zext(BIT, 8)): NEW},
        indices=[],
        first=SimpleNamespace(path=SimpleNamespace(terms=first)),
        second=SimpleNamespace(path=SimpleNamespace(terms=second)),
    )
    return InTermsOfPairs(meeting)


def values(is_first: bool) -> list[dict[Term, int]]:
    """Everything that the variables of a state can be, with what NEW is then."""
    own = INDEX if is_first else READ
    return [
        {own: mine, BEFORE: before, NEW: mine if is_first else mine >> 2 & 1}
        for mine, before in product((0, 1) if is_first else range(8), (0, 1, 7))
    ]


def evaluated(term: Term, given_values: dict[Term, int]) -> int:
    # What only the other state speaks of may be anything.
    return Evaluator(lambda variable: given_values.get(variable, 5), lambda memory, address: 0).value(term)


def flags(condition: Term) -> st.SearchStrategy[Term]:
    conditions = st.sampled_from([condition, t.bnot(condition), t.disj([condition, t.eq(BEFORE, number(7))])])
    leaves = st.sampled_from([number(0), number(1), BEFORE])
    return st.one_of(
        st.builds(t.ite, conditions, leaves, leaves),
        st.builds(t.ite, conditions, st.builds(t.ite, conditions, leaves, leaves), leaves),
        conditions.map(lambda bit: t.zext(bit, 8)),
    )


@given(flags(IS_FIRST), flags(t.bnot(BIT)))
def test_what_is_said_of_both_holds_in_each(a: Term, b: Term) -> None:
    split = met([], []).split(a, b)
    if split is None:
        return
    for index, side in enumerate((a, b)):
        for valuation in values(index == 0):
            case = split.if_true if evaluated(split.condition, valuation) else split.if_false
            assert evaluated(as_term(case[index], 8), valuation) == evaluated(side, valuation)


def test_a_lock_that_is_held_by_its_index_and_by_a_bit() -> None:
    terms = met([], [])
    split = terms.split(t.zext(IS_FIRST, 8), t.zext(t.bnot(BIT), 8))
    assert split is not None and split.condition is t.eq(NEW, number(0))
    assert (split.if_true, split.if_false) == ((1, 1), (0, 0))
    split = terms.split(t.ite(IS_FIRST, number(1), BEFORE), t.zext(t.bnot(BIT), 8))
    assert split is not None and {split.if_true, split.if_false} == {(1, 1), (BEFORE, 0)}
    # A part of the condition decides as well.
    other = t.eq(BEFORE, number(7))
    split = terms.split(t.ite(IS_FIRST, number(1), BEFORE), t.zext(t.disj([other, t.bnot(BIT)]), 8))
    assert split is not None and {split.if_true, split.if_false} == {(1, 1), (BEFORE, t.zext(other, 8))}
    assert terms.split(t.ite(IS_FIRST, number(1), BEFORE), t.ite(other, number(1), BEFORE)) is None


def test_what_tells_two_states_apart_that_name_it_differently() -> None:
    said = t.eq(t.ite(IS_FIRST, BEFORE, number(3)), number(2))
    denied = t.ne(t.ite(BIT, number(3), BEFORE), number(2))
    gate = met([said], [denied]).gate()
    assert gate is not None
    for index in (0, 1):
        for valuation in values(index == 0):
            path = (said, denied)[index]
            if evaluated(path, valuation):
                assert evaluated(gate, valuation) == 1 - index
    assert met([said], [t.bnot(denied)]).gate() is None
