"""Typestate automata in the C: a compiled run ends in an error exactly if the emulator with ghost state does."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from mcveto.cli.main import run_command_line
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.property.attach import Attached, attach, with_typestates
from mcveto.translate.to_c import CTranslation
from tests.translate.running import compile_c, emulated, executed, write

EXAMPLES = Path(__file__).parents[2] / "examples" / "typestate"
FAKE = Path(__file__).with_name("fake_verifier.py")
RUNS = 12
COUNTING = """automaton counting
event lock = call {lock}
event unlock = call {unlock}
var depth = 0
var last = 7
states even odd
start even
error many "two locks in a row"
even -> odd on lock when depth == 0 do depth := 1, last := depth
odd -> many on lock when depth != 0 and last <u 7
odd -> even on unlock when 0 <s depth do depth := last, last := depth
"""


def watched(name: str, automaton: str) -> Attached:
    spec = load_spec(str(EXAMPLES / f"{name}.yaml"))
    return attach(load_program(str(EXAMPLES / f"{name}.sym.elf"), with_typestates(spec, [automaton])))


def endings(attached: Attached, folder: Path) -> set[bool]:
    """Whether runs reached an error; both machines agree on every one, and on the final state."""
    translation = CTranslation(attached.program)
    compiled = compile_c(write(translation, folder / "program.c"), "-DMC_RUN")
    names = translation.registers
    draw = random.Random(8)
    found: set[bool] = set()
    for number in range(RUNS):
        inputs = [draw.choice([0, 1, 2, 5, draw.getrandbits(32)]) for _ in range(12)]
        state = folder / f"state-{number}"
        expected = emulated(attached.program, inputs, number, names, state)
        if expected is None:
            continue
        actual = executed(compiled, state)
        assert (actual.kind, actual.pc) == (expected.kind, expected.pc)
        ghosts = [name for name in names if name.startswith("ghost")]
        assert ghosts and {n: actual.registers[n] for n in ghosts} == {n: expected.registers[n] for n in ghosts}
        found.add(expected.pc in attached.errors)
    return found


@pytest.mark.parametrize("target", ["ppc32-be", "x86-32"])
@pytest.mark.parametrize("missing", [0, 1])
def test_errors_are_reached_where_the_emulator_reaches_them(target: str, missing: int, tmp_path: Path) -> None:
    found = endings(watched(f"{target}/driver-MISSING-{missing}", "lock"), tmp_path)
    assert found == ({True, False} if missing else {False})


def test_variables_guards_and_assignments_are_translated(tmp_path: Path) -> None:
    lock = (Path(__file__).parents[2] / "src/mcveto/property/library/lock.fsm").read_text()
    points = {line.split()[1].split("(")[0]: line.split("=", 1)[1] for line in lock.splitlines() if "event" in line}
    automaton = tmp_path / "counting.fsm"
    text = COUNTING.replace("call {lock}", points["lock"]).replace("call {unlock}", points["unlock"])
    automaton.write_text(text)
    attached = watched("x86-32/driver-MISSING-1", str(automaton))
    assert True in endings(attached, tmp_path)


def test_an_external_tool_is_told_of_the_property(capsys: pytest.CaptureFixture[str]) -> None:
    name = EXAMPLES / "ppc32-be" / "driver-MISSING-1"
    arguments = ["verify", f"{name}.sym.elf", "--spec", f"{name}.yaml", "--property", "lock", "--quiet"]
    engine = f"external:{sys.executable} {FAKE} 4294967295,1,1,1,1,1,1,1"
    assert run_command_line([*arguments, "--engine", engine]) == 10
    assert capsys.readouterr().out.splitlines()[0] == "VIOLATED(lock)"
