"""Violations of memory safety and faults: folders that repeat them without mcveto, and `mcveto replay`."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.check.counterexample import counterexample, counterexample_of
from mcveto.check.recording import Recording, recorded
from mcveto.check.replay import confirmed, replay
from mcveto.cli.main import run_command_line
from mcveto.program.image.model import Image, Permission, Segment
from mcveto.program.program import Program, make_program
from mcveto.program.spec import InputMemory, PropertySpec, Spec
from mcveto.verdict import Verdict, VerdictInput

from .test_cex_folder import script, violated, written
from .test_replay import native_runs

# A heap block, a return address, inside a library model, a fault, another machine.
NAMES = ("off-by-one-bug", "stack-smash-bug", "over-read-bug", "use-after-free-bug", "divide-bug")


@pytest.fixture(scope="module", params=NAMES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("cex") / request.param, *violated(f"memory/x86-32/{request.param}"))


def test_the_folder_repeats_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((folder / "counterexample.json").read_text())
    assert record["property"] in ("memory-safety", "no-fault") and record["spec"]["models"]
    assert run_command_line(["replay", str(folder)]) == 10
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"CONFIRMED({record['property']})" and "unicorn: agrees" in lines
    assert record["reason"] in lines[1]
    last = (folder / "trace.txt").read_text().splitlines()[-1]
    assert record["reason"] in last and last.split()[0] == str(record["steps"])
    code, output = script(folder, sys.executable, "-I", "replay_unicorn.py")
    assert (code, output.splitlines()[-1]) == (0, "REPRODUCED"), output


@pytest.mark.skipif(shutil.which("gdb") is None or not native_runs(), reason="no gdb, or no process can be traced")
def test_gdb_stops_at_the_access(folder: Path) -> None:
    code, output = script(folder, "./run.sh")
    assert (code, "REPRODUCED" in output, "NOT REPRODUCED" in output) == (0, True, False), output
    assert " is violated: " in output


def test_other_inputs_are_not_confirmed() -> None:
    program, verdict = violated("memory/x86-32/stack-smash-bug")
    assert set(verdict.confirmed_by) >= {"emulator", "monitor", "unicorn"}
    harmless = replace(verdict, inputs=tuple(replace(item, value=1) for item in verdict.inputs))
    assert not replay(program, counterexample_of(harmless)).confirmed
    assert confirmed(program, harmless).kind == "unknown"
    other = counterexample("no-fault", verdict.inputs)
    assert not replay(program, other).confirmed


def test_another_machine(tmp_path: Path) -> None:
    folder = written(tmp_path / "cex", *violated("memory/ppc32-be/off-by-one-bug"))
    code, output = script(folder, sys.executable, "-I", "replay_unicorn.py")
    assert (code, output.splitlines()[-1]) == (0, "REPRODUCED"), output


def copier() -> Program:
    """Copies four unknown bytes with the model of memcpy; the target is reached if the third is 7."""
    code = "6a04 6800000200 6840000200 e8dd000000 803d4200020007 7501 90 c3"
    image = Image(
        "test",
        "",
        "raw",
        "x86-32",
        0x10000,
        0x10000,
        (
            Segment(0x10000, 4096, bytes.fromhex(code), Permission.READ | Permission.EXECUTE, "code"),
            Segment(0x20000, 4096, bytes(4096), Permission.READ | Permission.WRITE, "data"),
        ),
    )
    spec = Spec(
        input_memory=(InputMemory(0x20000, 4),),
        models=((0x100EE, "memcpy"),),
        properties=(PropertySpec("reach", (0x1001A,)),),
    )
    return make_program(image, spec)


def run_of_the_copier() -> tuple[Program, Verdict]:
    inputs = tuple(VerdictInput(value, 8, f"memory {0x20000 + at:#x}") for at, value in enumerate((1, 2, 7, 4)))
    return copier(), Verdict("violated", "reach", "reached", inputs)


def test_others_follow_what_models_write() -> None:
    program, verdict = run_of_the_copier()
    found = replay(program, counterexample_of(verdict))
    assert found.confirmed and "unicorn" in found.confirmed_by, found.problem


def test_a_call_of_a_model_is_one_visit() -> None:
    program, verdict = run_of_the_copier()
    recording: Recording = recorded(program, counterexample_of(verdict))
    (call,) = recording.calls
    assert len(recording.hooks) > 4
    assert (call.pc, call.next_pc, call.writes) == (0x100EE, 0x10011, ((0x20040, bytes((1, 2, 7, 4))),))
    assert dict(call.changes)["EAX"] == 0x20040 and recording.unfinished is None
