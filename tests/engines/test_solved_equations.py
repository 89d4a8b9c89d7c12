"""Equations of a path, solved for an input, against all values of the inputs."""

from __future__ import annotations

from itertools import product
from pathlib import Path as FilePath

from hypothesis import given
from hypothesis import strategies as st

from mcveto.engines.memory import PathMemory
from mcveto.engines.path import KeyTable, Path
from mcveto.engines.solved_equations import decided, solve_new, solved
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.linear import combine, scale
from mcveto.logic.terms import Term
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.search import Question, search

WIDTH = 3
INPUTS = [t.var(f"in!{name}", WIDTH) for name in range(3)]
factors = st.tuples(*(st.integers(0, 7) for _ in INPUTS))
sums = st.builds(lambda f, c: combine(zip(f, INPUTS, strict=True), c, WIDTH), factors, st.integers(0, 7))
conditions = st.one_of(st.builds(t.eq, sums, sums), st.builds(t.slt, sums, sums), st.builds(t.ule, sums, sums))


def _holds(term: Term, values: tuple[int, ...]) -> bool:
    found = dict(zip(INPUTS, values, strict=True))
    return bool(Evaluator(lambda variable: found[variable], lambda _, address: 0).value(term))


@given(st.builds(t.eq, sums, sums))
def test_a_solved_equation_says_the_same(equation: Term) -> None:
    found = solved(equation)
    if found is None:
        return
    variable, value = found
    assert variable not in t.free_variables([value])
    for values in product(range(8), repeat=3):
        assert _holds(equation, values) == _holds(t.eq(variable, value), values)


def test_an_odd_factor_is_found() -> None:
    a, b, c = INPUTS
    found = solved(t.eq(t.sub(scale(b, 2), a), c))
    assert found is not None and found[0] in (a, c)
    assert solved(t.eq(t.add(scale(a, 2), scale(b, 4)), t.const(6, WIDTH))) is None


def _state(path: list[Term]) -> PathState:
    memory = t.memory("mem", 32)
    return PathState(0, {}, PathMemory.__new__(PathMemory), Path(KeyTable(memory), path), None, None)


@given(st.lists(conditions, max_size=4), conditions)
def test_what_equations_decide_is_so_for_all_inputs(path: list[Term], condition: Term) -> None:
    state = _state([term for term in path if term.op != "const"])
    solve_new(state)
    found = decided(state, condition)
    if found is None:
        return
    way, used = found
    assert all(term in path for term in used)
    for values in product(range(8), repeat=3):
        if all(_holds(term, values) for term in used):
            assert _holds(condition, values) == way


def test_three_speeds_keep_their_distance() -> None:
    """Something that only elimination decides: the condition is none of the path's."""
    a, b, c = INPUTS
    state = _state([t.eq(scale(b, 2), t.add(a, c))])
    solve_new(state)
    moved = t.sub(scale(t.add(b, t.const(1, WIDTH)), 2), t.add(a, c))
    assert decided(state, t.eq(moved, t.const(2, WIDTH))) == (True, tuple(state.path.terms))


def test_cars_are_explored() -> None:
    """A loop whose turns are bounded because of such an equation."""
    spec = load_spec(str(FilePath(__file__).parents[2] / "examples/fig10/x86-32/cars-signed.yaml"))
    question = Question(engine="symex", timeout=60, self_check=False)
    answer = search(lambda: load_program(None, spec), question)
    assert answer.verdict.kind == "proved"
