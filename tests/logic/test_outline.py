"""An outline is true wherever its formulas are, and says enough to see that bounds exclude each other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.outline import outline
from mcveto.logic.solver import make_solver
from mcveto.logic.terms import Term

A, B, C = (t.var(name, 8) for name in "abc")
values = st.recursive(
    st.sampled_from([A, B, C, t.const(3, 8), t.const(200, 8)]),
    lambda inner: st.builds(
        lambda make, one, other: make(one, other), st.sampled_from([t.add, t.mul, t.bxor, t.band, t.sub]), inner, inner
    ),
    max_leaves=5,
)
conditions = st.builds(
    lambda make, one, other: make(one, other), st.sampled_from([t.eq, t.ult, t.ule, t.slt, t.sle]), values, values
)
formulas = st.recursive(
    conditions,
    lambda inner: st.one_of(st.builds(t.bnot, inner), st.builds(lambda one, other: t.disj([one, other]), inner, inner)),
    max_leaves=3,
)


@settings(max_examples=500, deadline=None)
@given(st.lists(formulas, min_size=1, max_size=3), st.tuples(*[st.integers(0, 255)] * 3))
def test_what_makes_the_formulas_true_makes_their_outline_true(said: list[Term], numbers: tuple[int, ...]) -> None:
    found = outline(said)
    if found is None:
        return
    given_values = dict(zip((A, B, C), numbers, strict=True))
    evaluator = Evaluator(lambda variable: given_values.get(variable, 0), lambda memory, address: 0)
    if not all(evaluator.value(term) for term in said):
        return
    # Fixing a, b and c, some values of the new variables must do.
    solver = make_solver("z3")
    for term in found:
        solver.add(term)
    for variable, number in given_values.items():
        solver.add(t.eq(variable, t.const(number, 8)))
    assert solver.check(()) == "sat"


def test_bounds_of_one_value_exclude_each_other() -> None:
    value = t.add(t.mul(A, B), t.bxor(B, t.mul(C, C)))
    found = outline([t.ult(t.const(9, 8), value), t.ult(value, t.const(5, 8))])
    assert found is not None
    assert {part.op for part in t.postorder(found)} <= {"var", "const", "ult", "not", "ule"}
    solver = make_solver("z3")
    for term in found:
        solver.add(term)
    assert solver.check(()) == "unsat"


def test_the_constant_of_a_sum_stays() -> None:
    value = t.add(t.mul(A, B), t.bxor(B, C))
    more = t.add(value, t.const(1, 8))
    found = outline([t.ult(value, t.const(5, 8)), t.ult(t.const(9, 8), more)])
    assert found is not None
    solver = make_solver("z3")
    for term in found:
        solver.add(term)
    assert solver.check(()) == "unsat"


def test_nothing_is_left_out_where_nothing_is_computed() -> None:
    assert outline([t.ult(A, B), t.eq(t.add(C, t.const(1, 8)), A)]) is None
