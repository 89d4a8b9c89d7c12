"""The end of a process by a system call."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.machine.emulator import Outcome
from mcveto.machine.faults import FaultKind
from mcveto.machine.isa import isa_rows
from mcveto.program.exits import _CONVENTIONS
from mcveto.program.exits import explained as explained_outcome
from mcveto.program.image import load_image
from mcveto.program.program import make_program
from mcveto.program.spec import Spec

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "machine" / "checksum"


@pytest.mark.parametrize("isa", [name for name in sorted(isa_rows()) if name != "arm-be"])
def test_exit(isa: str) -> None:
    program = make_program(load_image(EXAMPLES / f"{isa}-O0.elf"), Spec())
    convention = _CONVENTIONS[isa]
    outcome = Outcome("fault", 0x1234, FaultKind.SYSTEM_CALL)

    def explained(number: int) -> Outcome:
        values = {convention.number_register: number, convention.argument_register: 0x1FF}
        return explained_outcome(program, outcome, values.__getitem__, None)

    for number in convention.numbers:
        assert explained(number) == Outcome("exited", 0x1234, detail="255")
    assert explained(9999) == Outcome("unsupported", 0x1234, detail="system call 9999 at 0x1234")
    names = {*isa_rows()[isa].general}
    assert {convention.number_register, convention.argument_register} <= names
    other = Outcome("fault", 0x1234, FaultKind.DIVIDE_ERROR)
    assert explained_outcome(program, other, lambda name: 0, None) == other


def test_every_instruction_set_has_a_convention() -> None:
    assert set(_CONVENTIONS) == set(isa_rows())
