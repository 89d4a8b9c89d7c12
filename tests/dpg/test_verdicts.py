"""Verdicts on the example programs: never one that the example's own `expected` contradicts."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcveto
from mcveto.program.spec import load_spec

EXAMPLES = Path(__file__).parents[2] / "examples"

# Answers we must give: losing one is a regression. Each takes two seconds of CPU time or less.
MUST_DECIDE = (
    "demo/demo",
    "fig10/ppc32-be/berkeley",
    "fig10/ppc32-be/clobber",
    "fig10/ppc32-be/fib-REACH-1",
    "fig10/ppc32-be/store-REACH-0",
    "fig10/ppc32-be/store-REACH-1",
    "fig10/x86-32/berkeley",
    "fig10/x86-32/berkeley-fixed",
    "fig10/x86-32/blast2",
    "fig10/x86-32/cars",
    "fig10/x86-32/clobber-CASE-4",
    "fig10/x86-32/clobber-CASE-8",
    "fig10/x86-32/clobber-CASE-9",
    "fig10/x86-32/efm",
    "fig10/x86-32/ex",
    "fig10/x86-32/ex5",
    "fig10/x86-32/ex6",
    "fig10/x86-32/ex8",
    "fig10/x86-32/fib-REACH-1",
    "fig10/x86-32/fig5-gap",
    "fig10/x86-32/fig7a",
    "fig10/x86-32/fig7b",
    "fig10/x86-32/fig9",
    "fig10/x86-32/instraliasing-REACH-0",
    "fig10/x86-32/instraliasing-REACH-1",
    "fig10/x86-32/jmp",
    "fig10/x86-32/overview",
    "fig10/x86-32/share-CASE-0",
    "fig10/x86-32/simp_bad",
    "fig10/x86-32/simp_ok",
    "fig10/x86-32/slam1",
    "fig10/x86-32/smc1-REACH-0",
    "fig10/x86-32/smc1-REACH-1",
    "fig10/x86-32/smc2",
    "fig10/x86-32/store-REACH-0",
    "fig10/x86-32/store-REACH-1",
    "fig10/x86-32/underflow",
    "machine/tricks/aarch64",
    "machine/tricks/buffer-overflow",
    "machine/tricks/call-pop",
    "machine/tricks/conditional-moves",
    "machine/tricks/jump-data",
    "machine/tricks/jump-table",
    "machine/tricks/mips-delay",
    "machine/tricks/overlap",
    "machine/tricks/overlap-input",
    "machine/tricks/push-return",
    "machine/tricks/return-overwrite",
    "machine/tricks/riscv-overlap",
    "machine/tricks/smc-64",
    "machine/tricks/smc-decrypt",
    "machine/tricks/smc-input",
    "machine/tricks/smc-next",
    "machine/tricks/stack-overflow",
    "machine/tricks/store-code",
    "machine/tricks/x86-64",
)
# The others, where UNKNOWN is allowed and a wrong answer is not; a trick gets little time, for the rest see `slow`.
ALL = sorted(
    path.relative_to(EXAMPLES).with_suffix("").as_posix()
    for folder in ("demo", "machine/tricks", "fig10/x86-32", "fig10/ppc32-be")
    for path in (EXAMPLES / folder).glob("*.yaml")
)
OTHERS = [name for name in ALL if name not in MUST_DECIDE]


def check(name: str, timeout: float, seed: int = 0) -> str:
    """The kind of verdict, which must not contradict the spec."""
    path = str(EXAMPLES / f"{name}.yaml")
    spec = load_spec(path)
    assert spec.expected is not None
    verdict = mcveto.verify(mcveto.load(spec=path), timeout=timeout, seed=seed)
    assert not verdict.is_internal_error, verdict.headline
    if verdict.kind != "unknown":
        assert verdict.kind == spec.expected, verdict.headline
    if verdict.kind == "violated":
        assert verdict.about in spec.notes["expected_properties"], verdict.headline
        assert verdict.confirmed_by
    return verdict.kind


@pytest.mark.parametrize("name", MUST_DECIDE)
def test_decided_rightly(name: str) -> None:
    assert check(name, timeout=100) != "unknown"


@pytest.mark.parametrize("name", [name for name in OTHERS if name.startswith("machine/")])
def test_never_wrong(name: str) -> None:
    check(name, timeout=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_never_wrong_given_time(name: str) -> None:
    check(name, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", ALL)
def test_never_wrong_on_other_seeds(name: str, seed: int) -> None:
    check(name, timeout=20, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_violated_return_address_on_every_seed(seed: int) -> None:
    """Fig. 9 of the paper."""
    assert check("fig10/x86-32/fig9", timeout=100, seed=seed) == "violated"
