"""The list of counterexamples of a driver is exactly the set of its violating runs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mcveto.counterexamples.entry_values import Confirmed
from mcveto.counterexamples.finder import Request
from mcveto.counterexamples.machine_code import MachineFound, machine_counterexamples
from mcveto.counterexamples.machine_rendering import machine_lines
from mcveto.counterexamples.rendering import Style
from mcveto.program.inputs import InputSource
from mcveto.property.library import find_typestate
from tests.counterexamples.random_drivers import MOST_STEPS, compiled, random_driver, violating_traces

TARGETS = ("x86-32", "ppc32-be", "x86-64", "arm")
LEVELS = ("-O0", "-O1", "-O2")
# Drivers with several violations.
SOME = {"x86-32": 26, "ppc32-be": 41}


def compare(seed: int, target: str, level: str, folder: Path) -> MachineFound:
    """Compares the list with the truth."""
    pytest.importorskip("ziglang")
    program = compiled(random_driver(seed), target, level, folder)
    truth = violating_traces(program)
    if truth is None:
        pytest.skip("too many runs")
    result = machine_counterexamples(program, find_typestate("lock"), {}, Request(count=10_000), 250.0)
    assert result.is_exhaustive
    assert len(result.confirmed) == len(truth)
    traces = set()
    for item in result.confirmed:
        assert isinstance(item.outcome, Confirmed)
        machine = program.machine(InputSource([entry.value for entry in item.outcome.inputs], 0))
        machine.run(MOST_STEPS)
        pcs = tuple(step.pc for step in machine.trace)
        traces |= {trace for trace in truth if pcs[: len(trace)] == trace}
    assert traces == truth
    return result


@pytest.mark.parametrize("target", SOME)
def test_some_drivers(target: str, tmp_path: Path) -> None:
    result = compare(SOME[target], target, "-O1", tmp_path)
    count = len(result.confirmed)
    assert count > 1
    shown = list(machine_lines(result, Style(), 1))
    assert sum(line.startswith("counterexample ") for line in shown) == 1
    assert f"… and {count - 1} more counterexamples with inputs (--max {count} shows them)" in shown


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120))
def test_drivers(seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    compare(seed, generator.choice(TARGETS), generator.choice(LEVELS), tmp_path)
