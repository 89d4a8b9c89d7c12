"""What strategy `auto` decides by itself, without the strategy it falls back on; losing one is a regression."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.verdict import Verdict

EXAMPLES = Path(__file__).parents[3] / "examples"
QUICK = (
    "fig10/ppc32-be/overview",
    "fig10/x86-32/blast2",
    "fig10/x86-32/cars",
    "fig10/x86-32/count-COUNT-6",
    "fig10/x86-32/efm",
    "fig10/x86-32/ex6",
    "fig10/x86-32/overview",
    "fig10/x86-32/share-CASE-0",
    "fig10/x86-32/slam1",
    "fig10/x86-32/smc1-unbounded",
    "loops/x86-32-O0/delay-safe",
    "loops/x86-32-O0/handshake-safe",
    "loops/x86-32-O0/handshake-unsafe",
    "loops/x86-32-O0/lock-safe",
    "loops/x86-32-O0/lock-unsafe",
    "loops/x86-32-O0/stride-safe",
    "loops/x86-32-O1/clamp-unsafe",
)
LONGER = (
    "arrays/x86-32/all-text-safe-O0",
    "fig10/x86-32/barber",
    "fig10/x86-32/berkeley-fixed",
    "fig10/x86-32/ex8",
    "fig10/x86-32/simp_bad",
    "fig10/x86-32/simp_ok",
    "loops/x86-32-O0/growing-safe",
)


def decide(name: str, seed: int = 0) -> tuple[Verdict, str | None]:
    spec = load_spec(str(EXAMPLES / f"{name}.yaml"))
    limits = Limits(seconds=250.0)
    return AutoDriver(load_program(None, spec), limits, seed).run(), spec.expected


@pytest.mark.parametrize("name", QUICK)
def test_decided_without_help(name: str) -> None:
    verdict, expected = decide(name)
    assert verdict.kind == expected, verdict.headline


@pytest.mark.slow
@pytest.mark.parametrize("name", LONGER)
def test_decided_without_help_given_time(name: str) -> None:
    verdict, expected = decide(name)
    assert verdict.kind == expected, verdict.headline


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", QUICK)
def test_never_wrong_on_other_seeds(name: str, seed: int) -> None:
    verdict, expected = decide(name, seed)
    assert verdict.kind in (expected, "unknown"), verdict.headline
