"""The evaluator's memory of values and its histories of stores."""

from __future__ import annotations

import pytest

from mcveto.logic.evaluate import Evaluator, evaluate
from mcveto.logic.terms import Term, add, concat, const, ite, load, memory, store, var

x, y, flag = var("x", 32), var("y", 32), var("flag", 1)
m = memory("m", 16)
p, q = var("p", 16), var("q", 16)


def test_environments() -> None:
    assert evaluate(add(x, y), {x: 7, y: -1}) == 6
    word = load(m, p, 2, True)
    assert evaluate(word, {p: 0xFFFF, m: {0xFFFF: 0x12, 0: 0x34}}) == 0x1234
    assert evaluate(word, {p: 3, m: lambda address: address}) == 0x0304
    with pytest.raises(KeyError):
        evaluate(x, {})
    with pytest.raises(TypeError):
        evaluate(x, {x: {}})


def test_only_the_branch_that_is_taken_is_needed() -> None:
    assert evaluate(ite(flag, x, y), {flag: 1, x: 3}) == 3


def test_each_term_is_evaluated_once() -> None:
    asked: list[Term] = []

    def variable(v: Term) -> int:
        asked.append(v)
        return 1

    evaluator = Evaluator(variable, lambda _, address: 0)
    t = x
    for _ in range(10):
        t = add(concat(const(0, 1), t), concat(const(1, 1), t))
        evaluator.value(t)
    assert asked == [x]


def test_histories_branch() -> None:
    values = {p: 10, q: 11, x: 0x11223344, y: 0xAABBCCDD}
    evaluator = Evaluator(lambda v: values[v], lambda _, address: 0xEE)
    base = store(m, p, x, False)
    left, right = store(base, q, y, False), store(base, q, y, True)
    twice = store(left, p, x, True)
    for memory_, expected in (
        (base, [0x44, 0x33, 0x22, 0x11, 0xEE]),
        (left, [0x44, 0xDD, 0xCC, 0xBB, 0xAA]),
        (right, [0x44, 0xAA, 0xBB, 0xCC, 0xDD]),
        (twice, [0x11, 0x22, 0x33, 0x44, 0xAA]),
        (base, [0x44, 0x33, 0x22, 0x11, 0xEE]),
    ):
        assert [evaluator.byte(memory_, 10 + i) for i in range(5)] == expected
