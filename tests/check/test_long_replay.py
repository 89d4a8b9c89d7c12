"""Long counterexamples: repeated in stretches, and refused where machines differ or a return goes astray on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.check.counterexample import Counterexample, counterexample
from mcveto.check.long_replay import replay_in_stretches
from mcveto.check.replay import LOCKSTEP_STEPS, replay
from mcveto.check.unicorn_follower import UnicornFollower
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.verdict import VerdictInput

INPUT, TARGET, TURNS = 0x1030, 0x101B, 10_000
# mov ecx, TURNS; xor ebx, ebx; again: call three; add ebx, eax; dec ecx; jnz again
LOOP = "b910270000 31db e814000000 01c3 49 75f6"
# call input; cmp eax, 7; jne +1; target: nop; ret
ASKS = "e81a000000 83f807 7501 90 c3"
# push target; ret
ASTRAY = "681b100000 c3 90909090 90 c3"
THREE = "909090 b803000000 c3"


def program(folder: Path, rest: str = ASKS) -> Program:
    code = bytes.fromhex((LOOP + rest + THREE).replace(" ", "")).ljust(INPUT - 0x1000, b"\x90") + b"\xc3"
    file = folder / "blob"
    file.write_bytes(code)
    properties = (PropertySpec("reach", (TARGET,)),)
    spec = Spec(arch="x86-32", base=0x1000, entry=0x1000, input_calls=(InputCall(INPUT),), properties=properties)
    return load_program(str(file), spec)


def given(*values: int) -> Counterexample:
    return counterexample("reach", [VerdictInput(value, 32, "call of 0x1030") for value in values])


class Wrong(UnicornFollower):
    def stretch(self, pc: int, seconds: float) -> int:
        end = super().stretch(pc, seconds)
        self.set_registers({"EBX": 1}, end)
        return end


class Forgetful(UnicornFollower):
    def read(self, address: int, size: int) -> bytes:
        return bytes(size)


def test_a_long_run_is_confirmed(tmp_path: Path) -> None:
    result = replay(program(tmp_path), given(7))
    assert result.violation is not None
    assert result.violation.steps == 2 + 6 * TURNS + 4 > LOCKSTEP_STEPS
    assert result.confirmed_by == ("emulator", "unicorn")


def test_as_long_as_the_reference_says(tmp_path: Path) -> None:
    subject = program(tmp_path)
    step_by_step = replay(subject, given(7), followers=())
    assert step_by_step.violation == replay(subject, given(7)).violation


@pytest.mark.parametrize("values", [(8,), ()])
def test_other_inputs_violate_nothing(tmp_path: Path, values: tuple[int, ...]) -> None:
    result = replay(program(tmp_path), given(*values))
    assert result.violation is None
    assert result.failure


@pytest.mark.parametrize("follower", [Wrong, Forgetful])
def test_another_state_is_a_difference(tmp_path: Path, follower: type[UnicornFollower]) -> None:
    subject = program(tmp_path)
    found, comparison = replay_in_stretches(subject, given(7), 10**6, follower(subject))
    assert not isinstance(found, str)
    assert comparison.difference is not None
    assert not comparison.agrees


def test_a_target_behind_a_return_that_goes_astray_is_not_reached(tmp_path: Path) -> None:
    result = replay(program(tmp_path, ASTRAY), Counterexample("reach"))
    assert result.violation is None
    assert "return-address" in result.failure
