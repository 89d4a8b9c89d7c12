"""Cubes against their definition: true in the model, without fresh values, and enough for what they were read off."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.dpg.strengthen.cubes import cube_of
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import make_solver
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term, free_variables

WIDTH = 4
X, Y, F, G = (t.var(name, WIDTH) for name in ("x", "y", "input!0", "input!1"))
COMPARISONS = (t.eq, t.ne, t.ult, t.ule, t.slt, t.sle)


@st.composite
def values(draw: st.DrawFn) -> Term:
    term = draw(st.sampled_from((X, Y, F, G, t.const(3, WIDTH), t.const(8, WIDTH))))
    if draw(st.booleans()):
        term = t.add(term, draw(st.sampled_from((X, Y, F, t.const(1, WIDTH)))))
    if draw(st.integers(0, 3)) == 0:
        term = t.ite(t.ult(draw(st.sampled_from((X, F))), Y), term, t.const(5, WIDTH))
    return term


@st.composite
def literals(draw: st.DrawFn) -> Term:
    literal = draw(st.sampled_from(COMPARISONS))(draw(values()), draw(values()))
    if draw(st.integers(0, 3)) == 0:
        other = draw(st.sampled_from(COMPARISONS))(draw(values()), draw(values()))
        literal = draw(st.sampled_from((t.disj, t.conj)))([literal, other])
    return literal


@settings(deadline=None, max_examples=150)
@given(st.lists(literals(), min_size=1, max_size=4), st.tuples(*(4 * [st.integers(0, 15)])))
def test_a_cube_implies_that_fresh_values_exist(wanted: list[Term], point: tuple[int, ...]) -> None:
    model = dict(zip((X, Y, F, G), point, strict=True))
    evaluator = Evaluator(lambda variable: model[variable], lambda _, address: 0)
    if not all(evaluator.value(literal) for literal in wanted):
        return
    cube = cube_of(wanted, (F, G), evaluator.value)
    assert all(evaluator.value(literal) for literal in cube)
    assert not {F, G} & set(free_variables(cube))
    some = t.disj(
        t.conj(substitute(literal, {F: t.const(f, WIDTH), G: t.const(g, WIDTH)}) for literal in wanted)
        for f in range(16)
        for g in range(16)
    )
    solver = make_solver("bitwuzla")
    assert solver.check([*cube, t.bnot(some)]) == "unsat"


def test_a_defined_input_leaves_no_trace() -> None:
    point = {X: 7, Y: 2, F: 9}
    evaluator = Evaluator(lambda variable: point[variable], lambda _, address: 0)
    assert cube_of([t.eq(F, t.add(X, Y)), t.ult(Y, F)], (F,), evaluator.value) == (t.ult(Y, t.add(X, Y)),)


def test_an_input_compared_once_only_excludes_the_end_of_its_range() -> None:
    point = {X: 7, F: 3}
    evaluator = Evaluator(lambda variable: point[variable], lambda _, address: 0)
    assert cube_of([t.ult(F, X)], (F,), evaluator.value) == (t.ne(X, t.const(0, WIDTH)),)
    assert cube_of([t.ule(F, X)], (F,), evaluator.value) == ()


def test_aliasing_is_decided_as_in_the_model() -> None:
    memory = t.memory("mem", 32)
    p, q = t.var("p", 32), t.var("q", 32)
    read = t.load(t.store(memory, p, t.const(1, 8), False), q, 1, False)
    literal = t.eq(read, t.const(1, 8))
    point = {p: 64, q: 64}
    evaluator = Evaluator(lambda variable: point[variable], lambda _, address: 0)
    assert cube_of([literal], (), evaluator.value) == (t.eq(q, p),)
