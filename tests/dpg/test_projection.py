"""Projection: implied by what it projects, free of fresh values, and false at the witness."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.dpg.projection import project
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import make_solver
from mcveto.logic.terms import Term, free_variables

A, B, FRESH = t.var("a", 4), t.var("b", 4), t.var("fresh", 4)


def evaluator(a: int, b: int, fresh: int = 0) -> Evaluator:
    values = {"a": a, "b": b, "fresh": fresh}
    return Evaluator(lambda variable: values[str(variable.data)], lambda *_: 0)


@st.composite
def comparisons(draw: st.DrawFn) -> Term:
    def operand() -> Term:
        base = draw(
            st.sampled_from([A, B, FRESH, t.add(A, FRESH), t.mul(B, FRESH), t.const(draw(st.integers(0, 15)), 4)])
        )
        return t.add(base, t.const(draw(st.integers(0, 3)), 4))

    make = draw(st.sampled_from([t.eq, t.ne, t.ult, t.ule, t.slt, t.sle]))
    return make(operand(), operand())


@given(st.lists(comparisons(), min_size=1, max_size=4), st.integers(0, 15), st.integers(0, 15))
@settings(max_examples=400, deadline=None)
def test_superset_of_the_projection_without_the_witness(literals: list[Term], a: int, b: int) -> None:
    def satisfiable_at(a_value: int, b_value: int) -> bool:
        """By enumeration: some fresh value satisfies all literals."""
        return any(
            all(evaluator(a_value, b_value, fresh).value(literal) for literal in literals) for fresh in range(16)
        )

    if satisfiable_at(a, b) or any(literal is t.FALSE for literal in literals):
        return
    witness = evaluator(a, b)
    projected = project(literals, (FRESH,), witness.value, make_solver("bitwuzla"), 10)
    assert projected is not None
    result = t.conj(projected)
    assert FRESH not in free_variables([result])
    assert not witness.value(result)
    for a_value in range(16):
        for b_value in range(16):
            if satisfiable_at(a_value, b_value):
                assert evaluator(a_value, b_value).value(result) == 1


def test_an_equation_is_eliminated_exactly() -> None:
    literals = (t.eq(FRESH, A), t.ult(FRESH, B))
    projected = project(literals, (FRESH,), lambda _: 0, make_solver("bitwuzla"), 10)
    assert projected == (t.ult(A, B),)
