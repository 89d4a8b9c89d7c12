"""Verdicts of the engines on example programs: those they must decide, and none that is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcveto.engines.bmc import bmc
from mcveto.engines.symex import symex
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.search import Question, search

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 120.0

BOTH = (
    "demo/demo",
    "fig10/ppc32-be/store-REACH-0",
    "fig10/ppc32-be/store-REACH-1",
    "fig10/x86-32/clobber-CASE-4",
    "fig10/x86-32/clobber-CASE-8",
    "fig10/x86-32/clobber-CASE-9",
    "fig10/x86-32/count-COUNT-6",
    "fig10/x86-32/ex",
    "fig10/x86-32/ex5",
    "fig10/x86-32/ex6",
    "fig10/x86-32/ex8",
    "fig10/x86-32/fig5-gap",
    "fig10/x86-32/fig7a",
    "fig10/x86-32/fig7b",
    "fig10/x86-32/fig9",
    "fig10/x86-32/instraliasing-REACH-0",
    "fig10/x86-32/instraliasing-REACH-1",
    "fig10/x86-32/jmp",
    "fig10/x86-32/overview",
    "fig10/x86-32/simp_bad",
    "fig10/x86-32/smc1-REACH-0",
    "fig10/x86-32/smc1-REACH-1",
    "fig10/x86-32/smc1-unbounded",
    "fig10/x86-32/smc2",
    "fig10/x86-32/store-REACH-0",
    "fig10/x86-32/store-REACH-1",
    "fig10/x86-32/underflow",
    "machine/tricks/arm-interworking",
    "machine/tricks/buffer-overflow",
    "machine/tricks/conditional-moves",
    "machine/tricks/mips-delay",
    "machine/tricks/overlap-input",
    "machine/tricks/return-overwrite",
    "machine/tricks/riscv-overlap",
    "machine/tricks/smc-64",
    "machine/tricks/smc-input",
    "machine/tricks/x86-64",
)
SYMEX = (
    "arrays/x86-32/sort-safe-O0",
    "bugs/x86-32/table-bug-O0",
    "bugs/x86-32/table-safe-O0",
    "drivers/x86-32/lock-safe-O0",
    "drivers/x86-32/refcount-safe-O2",
    "drivers/x86-32/request-bug-O2",
    "fig10/x86-32/share-CASE-0",
    "fig10/x86-32/simp_ok",
    "machine/tricks/smc-input-safe",
)


def load(name: str) -> Program:
    return load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))


@pytest.mark.parametrize("name", [*BOTH, *SYMEX])
def test_symex_decides(name: str) -> None:
    program = load(name)
    verdict = symex(program, SECONDS)
    assert verdict.kind == program.spec.expected, verdict.headline
    if verdict.kind == "violated":
        assert verdict.about in program.spec.notes["expected_properties"]
        assert verdict.confirmed_by == ("emulator",)


@pytest.mark.parametrize("name", BOTH)
def test_bmc_decides(name: str) -> None:
    program = load(name)
    verdict = bmc(program, SECONDS)
    assert verdict.kind == program.spec.expected, verdict.headline


def test_bmc_says_how_far_it_looked() -> None:
    """Finding COUNT = 6 takes seven arrivals at the head of the loop."""
    program = load("fig10/x86-32/count-COUNT-6")
    assert bmc(program, SECONDS, unwind=3).headline == "UNKNOWN(no violation up to 3)"
    assert bmc(program, SECONDS, unwind=6).kind == "violated"


def test_bmc_with_enough_turns_is_complete() -> None:
    """The loop of smc1 makes a known number of turns."""
    assert bmc(load("fig10/x86-32/smc1-REACH-0"), SECONDS, unwind=100).kind == "proved"


def test_symex_with_merging() -> None:
    for name in ("fig10/x86-32/count-COUNT-6", "fig10/x86-32/fig7a", "drivers/x86-32/lock-bug-O0"):
        program = load(name)
        assert symex(program, SECONDS, merges=True).kind == program.spec.expected


def test_a_counterexample_behind_ten_thousand_turns() -> None:
    program = load("bugs/x86-32/deep-bug-O2")
    verdict = symex(program, SECONDS)
    assert verdict.kind == "violated"
    state = 1
    for turn in range(1, 10001):
        state = (5 * state + turn) & 0xFFFFFFFF
    keys = [item.value for item in verdict.inputs if item.where.startswith("call of")]
    assert [(3 * key + state) & 0xFFFFFFFF for key in keys] == [0x12345678]


@pytest.mark.parametrize("name", ["fig10/x86-32/ex6", "fig10/x86-32/jmp", "fig10/x86-32/overview"])
def test_portfolio(name: str) -> None:
    """As a command: what the tests before this one left in memory would count towards the limit."""
    spec = str(EXAMPLES / f"{name}.yaml")
    limits = ["--timeout", str(SECONDS), "--memory", "4096"]
    command = [sys.executable, "-m", "mcveto", "verify", "--spec", spec, "--engine", "portfolio", *limits]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout.partition("\n")[0].partition("(")[0].lower() == load_spec(spec).expected, ended.stdout


def test_portfolio_keeps_its_limit() -> None:
    answer = search(lambda: load("machine/tricks/division"), Question("portfolio", timeout=3.0))
    assert answer.verdict.kind in ("unknown", "proved")
    assert answer.verdict.statistics["seconds"] < 10
