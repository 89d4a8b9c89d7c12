"""Equations with products, against the samples they come from, and a loop that needs one."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.strengthen.products import multiplies, of_degree_two
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term

WIDTH = 32
PLACES = [t.var(name, WIDTH) for name in ("i", "s", "n")]


def _holds(term: Term, values: tuple[int, ...]) -> bool:
    found = dict(zip(PLACES, values, strict=True))
    return bool(Evaluator(lambda variable: found[variable], lambda _, address: 0).value(term))


def _samples(rows: Sequence[tuple[int, ...]]) -> list[list[int]]:
    return [[value & 0xFFFFFFFF for value in column] for column in zip(*rows, strict=True)]


def test_the_sum_of_the_first_numbers() -> None:
    rows = [(i, i * (i - 1) // 2, n) for n in (3, 7, 12, 20) for i in range(1, n + 2)]
    found = of_degree_two(PLACES, _samples(rows), WIDTH)
    i, s, _ = PLACES
    wanted = t.eq(t.sub(t.mul(i, i), t.add(i, t.mul(s, t.const(2, WIDTH)))), t.const(0, WIDTH))
    assert wanted in found


def test_too_few_samples_say_nothing() -> None:
    assert of_degree_two(PLACES, _samples([(1, 2, 3), (2, 5, 7), (4, 4, 4)]), WIDTH) == []


@given(st.lists(st.tuples(*(st.integers(-(1 << 31), (1 << 31) - 1) for _ in PLACES)), min_size=0, max_size=6))
def test_every_equation_holds_in_all_samples(more: list[tuple[int, int, int]]) -> None:
    rows: list[tuple[int, ...]] = [(i, 3 * i * i - i, i + n) for i in range(5) for n in range(4)]
    rows += [row for row in more if max(map(abs, row)) < 30_000]
    for equation in of_degree_two(PLACES, _samples(rows), WIDTH):
        assert multiplies([equation])
        assert all(_holds(equation, tuple(value & 0xFFFFFFFF for value in row)) for row in rows)


def test_the_step_of_a_loop_turns_the_equation_into_itself() -> None:
    i, s, _ = PLACES
    one = t.const(1, WIDTH)
    equation = t.eq(t.mul(s, t.const(2, WIDTH)), t.mul(i, t.sub(i, one)))
    assert substitute(equation, {i: t.add(i, one), s: t.add(s, i)}) is equation
