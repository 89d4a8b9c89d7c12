"""Nothing recurses to the depth of a term, and nothing is quadratic: 100,000 operators deep.

Python code is tested with 25,000 as well, which recursion does not survive either (and 100,000 in the slow tier)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import pytest

from mcveto.logic import smtlib
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.infix import pretty
from mcveto.logic.solver import make_solver
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import (
    Term,
    add,
    bor,
    bxor,
    conj,
    const,
    disj,
    eq,
    extract,
    free_variables,
    ite,
    load,
    memory,
    mul,
    postorder,
    slt,
    store,
    sub,
    ult,
    var,
    zext,
)
from mcveto.logic.wire import Decoder, Encoder

DEPTH = 100_000
LESS_DEEP = 25_000
x, y = var("x", 32), var("y", 32)
m = memory("m", 32)
pool = [var(f"v{i}", 32) for i in range(1000)]


def _nest(depth: int, start: Term, step: Callable[[Term, int], Term]) -> Term:
    t = start
    for i in range(depth):
        t = step(t, i)
    return t


def _mixed(t: Term, i: int) -> Term:
    return bxor(add(t, const(i % 100 + 1, 32)), pool[i % 1000])


def _junctions(t: Term, i: int) -> Term:
    return (conj if i % 2 else disj)([t, eq(pool[i % 1000], const(i, 32))])


SHAPES: dict[str, Callable[[int], Term]] = {
    "sum and xor": lambda depth: _nest(depth, x, _mixed),
    "product": lambda depth: _nest(depth, x, lambda t, i: add(mul(t, y), const(i, 32))),
    "sum": lambda depth: _nest(depth, x, lambda t, i: add(t, mul(pool[i % 1000], pool[i * 7 % 999]))),
    "choice": lambda depth: _nest(depth, x, lambda t, i: ite(eq(pool[i % 1000], const(i, 32)), const(i, 32), t)),
    "junctions": lambda depth: _nest(depth, eq(x, y), _junctions),
    "exclusive or": lambda depth: _nest(depth, eq(x, y), lambda t, i: bxor(t, ult(pool[i % 1000], const(i + 2, 32)))),
    "stores": lambda depth: load(_nest(depth, m, lambda t, i: store(t, pool[i % 1000], x, False)), y, 1, False),
    "loads": lambda depth: _nest(depth, x, lambda t, i: zext(load(m, t, 1, True), 32)),
    "cut and glue": lambda depth: _nest(depth, x, lambda t, i: zext(extract(bxor(t, pool[i % 1000]), 15, 0), 32)),
}


@cache
def _shape(name: str, depth: int = DEPTH) -> Term:
    return SHAPES[name](depth)


USUAL = ("junctions", "stores")


@pytest.mark.parametrize("depth", [LESS_DEEP, pytest.param(DEPTH, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "shape", [s if s in USUAL else pytest.param(s, marks=pytest.mark.slow) for s in sorted(SHAPES)]
)
def test_deep_terms(shape: str, depth: int) -> None:
    term = _shape(shape, depth)
    assert len(postorder([term])) > 3000
    before = Evaluator(lambda v: 5, lambda _, address: address & 0xFF).value(term)
    moved = substitute(term, {x: add(y, const(0, 32)), y: x})
    assert Evaluator(lambda v: 5, lambda _, address: address & 0xFF).value(moved) == before
    assert len(pretty(term)) > 1000
    assert smtlib.expression(term).count("(") > 1000
    nodes, (root,) = Encoder().encode([term])
    decoder = Decoder()
    decoder.extend(nodes)
    assert decoder.term(root) is term
    eq(term, const(1, term.width))
    if term.width > 1:
        slt(term, const(0, term.width))
        extract(term, 3, 3)


@pytest.mark.parametrize("depth", [LESS_DEEP, pytest.param(DEPTH, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", ["sum and xor", *(pytest.param(s, marks=pytest.mark.slow) for s in USUAL)])
def test_deep_terms_are_read_back(shape: str, depth: int) -> None:
    term = _shape(shape, depth)
    names = {v.data if v.width else v.data[0]: v for v in free_variables([term])}
    again = smtlib.parse(smtlib.expression(term), names)
    value = Evaluator(lambda v: v.serial * 77, lambda _, address: address).value
    assert value(again) == value(term)


@pytest.mark.parametrize("name", ["bitwuzla", "z3"])
@pytest.mark.parametrize("shape", [pytest.param("product", marks=pytest.mark.slow), "junctions"])
def test_deep_terms_are_translated(shape: str, name: str) -> None:
    term = _shape(shape)
    solver = make_solver(name, isolated=True)
    try:
        solver.add(eq(term, const(1, term.width)))
        assert solver.check(timeout=3) in ("sat", "unknown")
    finally:
        solver.close()


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _sum_of_distinct(count: int) -> None:
    t = x
    for i in range(count):
        t = add(t, var(f"d{i}", 32))


def _stores_then_loads(count: int) -> None:
    t = m
    cells = [sub(x, const(4 * i, 32)) for i in range(count)]
    for i, cell in enumerate(cells):
        t = store(t, cell, pool[i % 1000], False)
    for i in range(count):
        load(t, cells[count - 1 - i % 50], 4, False)


@pytest.mark.parametrize("work", [_sum_of_distinct, _stores_then_loads])
def test_long_chains_cost_linear_time(work: Callable[[int], None]) -> None:
    work(10_000)  # variables and addresses exist afterwards
    small = min(_seconds(lambda: work(2_500)) for _ in range(3))
    large = min(_seconds(lambda: work(10_000)) for _ in range(3))
    assert large < 12 * small + 0.05  # linear is 4, quadratic 16
    assert large < 10


def test_sharing_keeps_texts_small() -> None:
    t = x
    for i in range(200):
        t = bxor(mul(t, t), bor(t, pool[i]))
    assert len(smtlib.expression(t)) < 200 * 120
    assert len(pretty(t)) < 200 * 120
