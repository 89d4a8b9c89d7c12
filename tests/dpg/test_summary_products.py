"""Recursion that multiplies: claims against the samples they come from, and a product that commutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.summaries.products import product_claims
from mcveto.dpg.summaries.prove import verdict_by_summaries
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term
from mcveto.program.program import Program
from tests.dpg.blob_program import blob_program

from .test_summaries import SECONDS, certificate, problem

N, M, RESULT = (t.var(name, 32) for name in ("n", "m", "result"))
MASK = 0xFFFFFFFF

# x = input(); y = input(); if (f(x, y) != f(y, x)) target(): ret; bad: call target; hlt; input: ret
HEAD = "e82800000089c3e82100000089c689d989f2e81700000089c789f189dae80c00000039f87501c3e8TARGETf4c3"
# f(n in ECX, m in EDX) is 0 if m is 0, else n + f(n, m - 1); or n + 1 + f(n, m - 1)
BODIES = {"product": "85d2750331c0c34ae8f3ffffff01c8c3", "more": "85d2750331c0c34ae8f3ffffff8d440801c3"}


def program(folder: Path, body: str) -> Program:
    length = len(bytes.fromhex(body))
    content = bytes.fromhex(HEAD.replace("TARGET", (length + 2).to_bytes(4, "little").hex()) + body + "f4")
    return blob_program(folder, content, 0x102D, 0x1000 + len(content) - 1)


def test_multiplication_by_repeated_addition_commutes(tmp_path: Path) -> None:
    made = program(tmp_path, BODIES["product"])
    assert problem(made, certificate(made)) == ""


def test_what_does_not_commute_is_violated(tmp_path: Path) -> None:
    verdict = verdict_by_summaries(program(tmp_path, BODIES["more"]), SECONDS)
    assert verdict is not None and verdict.kind == "violated"


def _holds(term: Term, n: int, m: int, result: int) -> bool:
    values = {N: n & MASK, M: m & MASK, RESULT: result & MASK}
    return bool(Evaluator(lambda variable: values[variable], lambda _, address: 0).value(term))


@given(
    st.tuples(*(st.integers(-3, 3) for _ in range(6))),
    st.lists(st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 31), (1 << 31) - 1)), max_size=4),
)
def test_the_polynomial_that_was_computed_is_found(factors: tuple[int, ...], more: list[tuple[int, int]]) -> None:
    a, b, c, d, e, f = factors
    pairs = [(n, m) for n in range(-2, 3) for m in range(5)] + more

    def value(n: int, m: int) -> int:
        return a * n * n + b * n * m + c * m * m + d * n + e * m + f

    samples = [((n & MASK, m & MASK), value(n, m) & MASK) for n, m in pairs if abs(value(n, m)) < 1 << 31]
    claims = product_claims([N, M], RESULT, samples, 32)
    assert bool(claims) == bool(a or b or c)
    for claim in claims:
        for n, m in [*pairs[:25], (17, 40), (-9, 1000)]:
            assert _holds(claim, n, m, value(n, m)) and not _holds(claim, n, m, value(n, m) + 1)


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_samples_say_nothing(count: int) -> None:
    samples = [((n, n + 1), n * (n + 1)) for n in range(count)]
    assert product_claims([N, M], RESULT, samples, 32) == []
