"""Random runs find violations that need no more than a style of input, and claim nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcveto
from mcveto.engines.random_runs import STYLES, StyledSource, random_runs
from mcveto.program.program import Program
from mcveto.property.attach import attach
from mcveto.search import Question, search

MEMORY = Path(__file__).parents[2] / "examples/memory/x86-32"


def program(name: str) -> Program:
    return mcveto.load(spec=str(MEMORY / f"{name}.yaml"))


@pytest.mark.parametrize("name", ["stack-smash", "negative", "underflow"])
def test_a_violation_is_found_and_confirmed(name: str) -> None:
    found = search(lambda: program(f"{name}-bug"), Question(engine="runs", timeout=100)).verdict
    assert (found.kind, found.about) == ("violated", "memory-safety"), found.reason
    assert found.confirmed_by[:2] == ("emulator", "monitor")
    again = search(lambda: program(f"{name}-bug"), Question(engine="runs", timeout=100)).verdict
    assert again.inputs == found.inputs


def test_nothing_is_ever_proved() -> None:
    found = random_runs(attach(program("negative-safe")).program, 1.0, 0, lambda counts, place: None)
    assert found.kind == "unknown" and "random runs" in found.reason


def test_a_source_can_start_again() -> None:
    source = StyledSource()
    draws = []
    for _ in range(2):
        source.restart("seed", STYLES[1])
        draws.append([source.next(bits, "here") for bits in (1, 8, 16, 32, 64) * 4])
        assert all(0 <= value < 1 << item.bits for value, item in zip(draws[-1], source.consumed, strict=True))
    assert draws[0] == draws[1] and len(source.consumed) == 20
