"""Unicorn follows compiled code of its instruction sets step by step, IT blocks of Thumb included."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import mcveto
from mcveto.check.counterexample import Counterexample
from mcveto.check.replay import replay
from mcveto.check.unicorn_follower import UnicornFollower
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program

FOLDER = Path(__file__).parents[2] / "examples/machine/checksum"
STEPS = 800
NAMES = sorted(path.stem for path in FOLDER.glob("*-O2.yaml"))
NOT_IN_UNICORN = ("ppc32-le", "arm-be-", "mips32-")


def with_late_target(name: str) -> Program:
    """The program with a target that a run without inputs comes to late."""
    program = mcveto.load(spec=str(FOLDER / f"{name}.yaml"))
    machine = program.machine(InputSource())
    machine.run(STEPS)
    code_address = program.decoder.row.code_address
    first_visits = dict.fromkeys(code_address(step.pc) for step in machine.trace)
    return replace(program, targets=frozenset({list(first_visits)[-1]}))


@pytest.mark.parametrize("name", NAMES)
def test_unicorn_follows(name: str) -> None:
    result = replay(with_late_target(name), Counterexample("reach"), [UnicornFollower])
    assert result.violation is not None and result.violation.steps > 100
    if name.startswith(NOT_IN_UNICORN):
        assert "Unicorn does not have" in result.comparisons[0].skipped
    else:
        assert result.problem == ""
        assert result.comparisons[0].agrees, result.comparisons[0].skipped
