"""Solver back ends: answers, limits; models re-checked by our evaluator, cores by the other solver."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import Solver, SolverError, isolated, make_solver
from mcveto.logic.solver.isolated import IsolatedSolver
from mcveto.logic.solver.second_opinion import SecondOpinion
from mcveto.logic.terms import (
    TRUE,
    Term,
    WidthError,
    add,
    band,
    bnot,
    bxor,
    conj,
    const,
    disj,
    eq,
    free_variables,
    ite,
    load,
    lshr,
    lzcount,
    memory,
    mul,
    ne,
    popcount,
    sborrow,
    scarry,
    sdiv,
    sle,
    slt,
    store,
    sub,
    udiv,
    ule,
    ult,
    urem,
    var,
    zext,
)

NAMES = ["bitwuzla", "z3", "auto"]
# Seconds in which a query must end that would take minutes without its limit; a busy machine is given time.
PATIENCE = 20.0
KINDS = [(name, isolated) for name in NAMES for isolated in (False, True)]
x, y = var("x", 32), var("y", 32)
m = memory("m", 32)


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}{'-isolated' if kind[1] else ''}")
def solver(request: pytest.FixtureRequest) -> Iterator[Solver]:
    made = make_solver(*request.param)
    yield made
    made.close()


def k(value: int) -> Term:
    return const(value, 32)


def holds_in_model(solver: Solver, formula: Term) -> bool:
    memories = {v: solver.model_memory(v) for v in free_variables([formula]) if v.op == "memory"}
    values = {v: solver.value(v) for v in free_variables([formula]) if v.op == "var"}
    return bool(Evaluator(lambda v: values[v], lambda a, i: memories[a].byte(i)).value(formula))


def test_answers_and_scopes(solver: Solver) -> None:
    solver.add(ult(x, k(10)))
    assert solver.check() == "sat"
    assert solver.value(x) < 10
    solver.push()
    solver.add(ult(k(20), x))
    assert solver.check() == "unsat"
    assert solver.core() == []
    solver.pop()
    assert solver.check([eq(x, k(7))]) == "sat"
    assert solver.value(add(x, x)) == 14
    assert solver.check([eq(x, k(7)), TRUE, eq(y, k(1)), eq(x, y)]) == "unsat"
    assert set(solver.core()) == {eq(x, k(7)), eq(y, k(1)), eq(x, y)}
    assert solver.check([eq(x, k(70)), eq(y, k(1))]) == "unsat"
    assert solver.core() == [eq(x, k(70))]
    assert solver.statistics.checks == 5
    assert (solver.statistics.sat, solver.statistics.unsat) == (2, 3)


def test_assumptions_survive_scopes(solver: Solver) -> None:
    a, b = ult(x, k(5)), ult(k(7), x)
    solver.push()
    assert solver.check([a]) == "sat"
    solver.pop()
    assert solver.check([a, b]) == "unsat"
    assert set(solver.core()) == {a, b}


def test_stale_questions_are_refused(solver: Solver) -> None:
    with pytest.raises(SolverError):
        solver.value(x)
    assert solver.check([ult(x, k(3))]) == "sat"
    with pytest.raises(SolverError):
        solver.core()
    solver.add(eq(x, k(5)))
    with pytest.raises(SolverError):
        solver.value(x)
    with pytest.raises(SolverError):
        solver.pop()
    with pytest.raises(WidthError):
        solver.add(x)
    with pytest.raises(WidthError):
        solver.check([x])


def test_models_of_memory(solver: Solver) -> None:
    word = load(store(m, x, k(0x12345678), True), y, 4, False)
    formula = conj([eq(word, k(0x56781122)), eq(load(m, k(0x1000), 2, True), const(0xBEEF, 16))])
    assert solver.check([formula]) == "sat"
    assert solver.value(word) == 0x56781122
    assert solver.model_memory(m).byte(0x1000) == 0xBE
    assert holds_in_model(solver, formula)
    assert solver.model_memory(store(m, k(5), k(1), False)).byte(5) == 1


def test_wide_constants_and_booleans(solver: Solver) -> None:
    wide, flag, one_bit = var("wide", 200), var("flag", 1), memory("tiny", 1)
    formula = conj(
        [
            eq(wide, const(-3, 200)),
            bxor(flag, slt(wide, const(0, 200))),
            eq(load(one_bit, flag, 1, False), const(9, 8)),
            eq(load(one_bit, bnot(flag), 2, True), const(0x0709, 16)),
        ]
    )
    assert solver.check([formula]) == "sat"
    assert solver.value(wide) == 2**200 - 3
    assert solver.value(flag) == 0
    assert holds_in_model(solver, formula)


def _random_formula(rng: random.Random, depth: int) -> Term:
    variables = [var(n, 8) for n in "abcd"]

    def word(depth: int) -> Term:
        if depth == 0 or rng.random() < 0.1:
            return rng.choice([*variables, const(rng.randrange(256), 8)])
        a, b = word(depth - 1), word(depth - 1)
        binary = [add, sub, mul, udiv, urem, sdiv, band, bxor, lshr]
        pick = rng.randrange(len(binary) + 4)
        if pick < len(binary):
            return binary[pick](a, b)
        mem = memory("mem8", 8)
        for _ in range(rng.randrange(3)):
            mem = store(mem, word(depth - 1), word(depth - 1), False)
        return [
            lambda: ite(formula(depth - 1), a, b),
            lambda: load(mem, a, 1, False),
            lambda: popcount(a, 8),
            lambda: lzcount(a, 8),
        ][pick - len(binary)]()

    def formula(depth: int) -> Term:
        a, b = word(max(depth - 1, 0)), word(max(depth - 1, 0))
        tests = [eq, ne, ult, ule, slt, sle, sborrow, scarry]
        first = rng.choice(tests)(a, b)
        if depth <= 0 or rng.random() < 0.4:
            return first
        return rng.choice([conj, disj])([first, formula(depth - 1)])

    return formula(depth)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_random_queries(seed: int) -> None:
    rng = random.Random(seed)
    formulas = [_random_formula(rng, 2) for _ in range(3)]
    answers = {}
    for name in ("bitwuzla", "z3"):
        solver = make_solver(name)
        answer = solver.check(formulas, timeout=20)
        answers[name] = answer
        if answer == "sat":
            assert all(holds_in_model(solver, f) for f in formulas)
            assert all(solver.value(f) == 1 for f in formulas)
        elif answer == "unsat":
            core = solver.core()
            assert set(core) <= set(formulas)
            other = make_solver("z3" if name == "bitwuzla" else "bitwuzla")
            for f in core:
                other.add(f)
            assert other.check(timeout=20) in ("unsat", "unknown")
    assert len(set(answers.values()) - {"unknown"}) <= 1


def _hard() -> Term:
    a, b = var("a", 64), var("b", 64)
    product = mul(zext(a, 128), zext(b, 128))
    number = 11400714785074694791 * 14029467366897019727  # two primes below 2^64
    one = const(1, 64)
    return conj([eq(product, const(number, 128)), ult(one, a), ult(one, b), ule(a, b)])


@pytest.mark.parametrize("name", NAMES)
def test_limits_hold_and_the_next_query_works(name: str) -> None:
    solver = make_solver(name, isolated=True)
    try:
        solver.add(ult(x, k(10)))
        assert solver.check() == "sat"  # start-up is not part of the limit
        started = time.monotonic()
        assert solver.check([_hard()], timeout=1.0) == "unknown"
        assert 0.5 < time.monotonic() - started < PATIENCE
        assert solver.check([eq(x, k(3))], timeout=5.0) == "sat"
        assert solver.value(x) == 3
        assert solver.check([eq(x, k(30))], timeout=5.0) == "unsat"
    finally:
        solver.close()


@pytest.mark.parametrize("name", ["bitwuzla", "z3"])
def test_in_process_limits(name: str) -> None:
    solver = make_solver(name)
    started = time.monotonic()
    assert solver.check([_hard()], timeout=0.5) == "unknown"
    assert time.monotonic() - started < PATIENCE
    assert solver.check([eq(x, k(3))]) == "sat"


def test_a_worker_that_overruns_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcveto.logic.solver import bitwuzla_backend

    def stuck(self: object, assumptions: list[object], timeout: float | None) -> str:
        if assumptions:
            time.sleep(60)
        return "sat"

    solver = IsolatedSolver("bitwuzla")
    monkeypatch.setattr(bitwuzla_backend.BitwuzlaSolver, "_check", stuck)  # inherited by the worker
    solver.push()
    solver.add(ult(x, k(10)))
    started = time.monotonic()
    assert solver.check([eq(y, k(1))], timeout=0.3) == "unknown"
    assert time.monotonic() - started < PATIENCE
    assert solver.statistics.restarts == 1
    monkeypatch.undo()
    assert solver.check([ult(k(9), x)], timeout=5) == "unsat"  # the new worker knows what was asserted
    solver.pop()
    assert solver.check([ult(k(9), x)], timeout=5) == "sat"
    solver.close()


def test_a_worker_that_dies_is_replaced() -> None:
    solver = IsolatedSolver("z3")
    solver.add(ult(x, k(10)))
    assert solver.check() == "sat"
    assert solver._worker is not None
    os.kill(solver._worker.pid, signal.SIGKILL)
    with pytest.raises(SolverError):
        solver.value(x)
    assert solver.check([ult(k(9), x)]) == "unsat"
    solver.close()
    with pytest.raises(SolverError):
        solver.check()


def answers_by_limit(*limits: int) -> list[str]:
    """What Z3 says of a question that needs some hundred megabytes, with so many."""
    mem: Term = m
    for i in range(400):
        mem = store(mem, var(f"to{i}", 32), var(f"stored{i}", 8), True)
    differ = [ne(load(mem, var(f"a{i}", 32), 1, True), load(mem, var(f"b{i}", 32), 1, True)) for i in range(400)]
    answers: list[str] = []
    for isolated.MOST_GROWTH in limits:
        solver = IsolatedSolver("z3")
        for term in differ:
            solver.add(term)
        answers.append(solver.check(timeout=PATIENCE))
        solver.close()
    return answers


def test_memory_of_a_worker_is_limited() -> None:
    """In a process of its own: what this one has held and freed, a worker may use without growing."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        assert fresh.submit(answers_by_limit, 2000, 50, 20).result() == ["sat", "unknown", "unknown"]


def test_a_large_process_forks_for_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "LARGE", 0)
    solver = IsolatedSolver("z3")
    solver.add(ult(x, k(10)))
    assert solver.check([eq(x, k(3))]) == "sat"
    assert solver.value(x) == 3
    assert solver._worker is not None
    first = solver._worker.pid
    solver.push()
    solver.add(ult(k(4), x))
    assert solver.check([eq(x, k(3))]) == "unsat"
    assert solver._worker.pid != first
    assert solver.core() == [eq(x, k(3))]
    solver.pop()
    assert solver.check([eq(x, k(3))]) == "sat"
    assert solver.statistics.restarts == 0  # none has failed
    solver.close()


def test_the_second_of_two_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `auto` asks of Z3 is asked in a process of its own."""
    solver = make_solver("auto")
    assert isinstance(solver, SecondOpinion)
    assert isinstance(solver._started_second(), IsolatedSolver)
    solver.close()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError):
        make_solver("prover9")
