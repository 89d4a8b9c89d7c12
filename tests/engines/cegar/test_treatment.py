"""The three treatments: what each can refute, and that none refutes what is possible."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.cegar.treatment import Functions, Model, Oracle, Treatment, Unsat
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec

DEMO = Path(__file__).parents[3] / "examples" / "demo" / "demo.yaml"
x, y = t.var("x", 8), t.var("y", 8)


@pytest.fixture(scope="module")
def program() -> Program:
    return load_program(None, load_spec(str(DEMO)))


def oracle(program: Program, treatment: Treatment) -> Oracle:
    return Oracle(program, treatment, lambda: math.inf, 10.0)


def test_only_the_meaning_of_an_operation_refutes(program: Program) -> None:
    """x | y below x is impossible, but only for who knows what | means."""
    literals = [t.ult(t.bor(x, y), x)]
    assert oracle(program, Treatment.INTERPRETED).refutes(literals)
    assert oracle(program, Treatment.SEMI).refutes(literals)
    assert not oracle(program, Treatment.UNINTERPRETED).refutes(literals)


def test_equal_arguments_give_equal_results(program: Program) -> None:
    z = t.var("z", 8)
    literals = [t.eq(x, z), t.ne(t.bxor(x, y), t.bxor(z, y))]
    for treatment in Treatment:
        answer = oracle(program, treatment).ask(literals)
        assert isinstance(answer, Unsat)
        assert answer.core <= set(literals)


def test_what_rewriting_understands_needs_no_meaning(program: Program) -> None:
    """The paper's example: bit 2 of e | 4 is one."""
    bit = t.band(t.lshr(t.bor(x, t.const(4, 8)), t.const(2, 8)), t.const(1, 8))
    assert oracle(program, Treatment.UNINTERPRETED).refutes([t.eq(bit, t.const(0, 8))])


def test_a_model_under_uninterpreted_need_not_be_one(program: Program) -> None:
    literals = [t.ult(t.bor(x, y), x)]
    assert isinstance(oracle(program, Treatment.UNINTERPRETED).ask(literals), Model)


small = st.sampled_from([x, y, *(t.const(value, 8) for value in (0, 1, 3, 4, 128, 255))])
words: st.SearchStrategy[Term] = st.recursive(
    small,
    lambda inner: st.builds(
        lambda make, one, other: make(one, other),
        st.sampled_from([t.band, t.bor, t.bxor, t.add, t.shl, t.lshr, t.ashr]),
        inner,
        inner,
    ),
    max_leaves=4,
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.builds(lambda make, a, b: make(a, b), st.sampled_from([t.eq, t.ult, t.sle]), words, words), max_size=3)
)
def test_no_treatment_refutes_what_is_possible(literals: list[Term]) -> None:
    pairs = itertools.product(range(0, 256, 15), (0, 1, 2, 3, 4, 7, 8, 128, 255))
    if any(holds(literals, {x: a, y: b}) for a, b in pairs):
        demo = load_program(None, load_spec(str(DEMO)))
        for treatment in Treatment:
            assert not oracle(demo, treatment).refutes(literals)


def holds(literals: list[Term], values: dict[Term, int]) -> bool:
    evaluator = Evaluator(lambda variable: values[variable], lambda memory, address: 0)
    return all(evaluator.value(literal) for literal in literals)


def test_formulas_without_bitwise_operations_stay_as_they_are() -> None:
    assert Functions().abstract([t.ult(t.add(x, y), x), t.eq(t.extract(x, 3, 0), t.const(1, 4))]) is None
