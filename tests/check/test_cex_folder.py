"""The folder of a counterexample repeats the violation without mcveto, and `mcveto replay` reads it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mcveto
from mcveto.check.cex_folder import read_counterexample, write_folder
from mcveto.check.counterexample import counterexample_of
from mcveto.check.recording import recorded
from mcveto.cli.main import run_command_line
from mcveto.errors import InputFileError, UsageError
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputMemory, PropertySpec, Spec
from mcveto.verdict import Verdict, VerdictInput

from .test_replay import DEMO, native_runs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DEMO_INPUTS = tuple(VerdictInput(value, 8, "call of 0x8048100") for value in DEMO)


def demo() -> tuple[Program, Verdict]:
    program = mcveto.load(spec=str(EXAMPLES / "demo/demo.yaml"))
    return program, Verdict("violated", "reach", "0x8048110 is reached", DEMO_INPUTS, ("emulator",), ("none",))


def written(folder: Path, program: Program, verdict: Verdict) -> Path:
    write_folder(folder, verdict, recorded(program, counterexample_of(verdict)), "0")
    return folder


def violated(name: str) -> tuple[Program, Verdict]:
    program = mcveto.load(spec=str(EXAMPLES / f"{name}.yaml"))
    verdict = mcveto.verify(program, timeout=100)
    assert verdict.kind == "violated", verdict.headline
    return program, verdict


def script(folder: Path, *command: str) -> tuple[int, str]:
    """Runs a command in the folder, without any way to find mcveto."""
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    return run.returncode, run.stdout + run.stderr


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("cex") / "demo", *demo())


def test_files(demo_folder: Path) -> None:
    names = {path.name for path in demo_folder.iterdir()}
    wanted = {"README.txt", "counterexample.json", "inputs.bin", "trace.txt", "run.sh", "replay.gdb"}
    assert names == {*wanted, "replay_unicorn.py", "demo.elf"}
    assert (demo_folder / "inputs.bin").read_bytes() == bytes(DEMO)
    record = json.loads((demo_folder / "counterexample.json").read_text())
    assert [item["value"] for item in record["inputs"]] == list(DEMO)
    assert (record["property"], record["steps"], record["pc"]) == ("reach", 35, 0x8048110)
    readme = (demo_folder / "README.txt").read_text()
    assert "104 (8 bits, call of 0x8048100)" in readme and "./run.sh" in readme
    assert str(demo_folder) not in readme


def test_trace_is_annotated(demo_folder: Path) -> None:
    lines = (demo_folder / "trace.txt").read_text().splitlines()
    assert lines[0] == "violation of reach: 0x8048110 is reached"
    assert "PUSH EDI" in lines[2] and "ESP = 0x7ffeeff8; write 4 at 0x7ffeeff8: 0x0" in lines[3]
    assert sum("input 104 (call of 0x8048100); EAX = 0x68" in line for line in lines) == 1
    assert lines[-1].split() == ["35", "0x08048110", "<-", "here", "the", "target", "is", "reached"]


@pytest.mark.skipif(shutil.which("gdb") is None or not native_runs(), reason="no gdb, or no process can be traced")
def test_gdb_stops_at_the_violation(demo_folder: Path) -> None:
    code, output = script(demo_folder, "./run.sh")
    assert (code, "REPRODUCED" in output, "NOT" in output) == (0, True, False), output
    assert "reach is violated: 0x8048110 is reached" in output


@pytest.mark.skipif(shutil.which("gdb") is None or not native_runs(), reason="no gdb, or no process can be traced")
@pytest.mark.parametrize(
    "name", ["machine/tricks/return-overwrite", "fig10/x86-32/smc2", "fig10/x86-32/clobber-CASE-8"]
)
def test_gdb_reproduces(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path / "cex", *violated(name))
    code, output = script(folder, "./run.sh")
    assert (code, "REPRODUCED" in output, "NOT" in output) == (0, True, False), output


def test_unicorn_script_reproduces(demo_folder: Path) -> None:
    code, output = script(demo_folder, sys.executable, "-I", "replay_unicorn.py", "--trace")
    assert (code, output.splitlines()[-1]) == (0, "REPRODUCED")
    assert "     34  0x" in output


def test_unicorn_script_notices_other_inputs(demo_folder: Path, tmp_path: Path) -> None:
    text = (demo_folder / "replay_unicorn.py").read_text()
    # The second value of EAX that the input function returns: 104 becomes 105.
    assert text.count(" 104)") == 1
    (tmp_path / "changed.py").write_text(text.replace(" 104)", " 105)"))
    code, output = script(tmp_path, sys.executable, "-I", "changed.py")
    assert code == 1 and "NOT REPRODUCED" in output


@pytest.mark.parametrize("name", ["fig10/ppc32-be/clobber", "fig10/ppc32-be/store-REACH-1"])
def test_unicorn_script_for_another_machine(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path / "cex", *violated(name))
    assert not (folder / "replay.gdb").exists()
    assert "no gdb script" in (folder / "README.txt").read_text()
    code, output = script(folder, sys.executable, "-I", "replay_unicorn.py")
    assert (code, output.splitlines()[-1]) == (0, "REPRODUCED")


def test_entry_values_are_in_the_scripts(tmp_path: Path) -> None:
    """Input registers and memory, and a register the spec does not name."""
    # cmp ecx, 1234; jne end; cmp byte [0x1018], 77; jne end; test eax, eax; jz end; target: nop; end: ret
    code = "81f9d204000075 0e 803d181000004d 7505 85c0 7401 90 c3 90 90".replace(" ", "")
    file = tmp_path / "blob"
    file.write_bytes(bytes.fromhex(code))
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry=0x1000,
        input_registers=("ECX",),
        input_memory=(InputMemory(0x1018, 1),),
        properties=(PropertySpec("reach", (0x1015,)),),
    )
    inputs = (
        VerdictInput(1234, 32, "register ECX"),
        VerdictInput(77, 8, "memory 0x1018"),
        VerdictInput(9, 32, "unspecified register EAX at entry"),
    )
    program = load_program(str(file), spec)
    folder = written(tmp_path / "cex", program, Verdict("violated", "reach", "", inputs, ("emulator",)))
    assert script(folder, sys.executable, "-I", "replay_unicorn.py")[0] == 0
    assert (folder / "inputs.bin").read_bytes() == (1234).to_bytes(4, "little") + b"\x4d"
    assert run_command_line(["replay", str(folder)]) == 10


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        written(tmp_path / "file", *demo())


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"schema": "mcveto-run-1"}', "\x00", '{"schema": "mcveto-counterexample-1"}', "[" * 100_000],
)
def test_what_is_no_counterexample(tmp_path: Path, content: str) -> None:
    file = tmp_path / "cex.json"
    file.write_text(content)
    with pytest.raises(InputFileError):
        read_counterexample(file)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": 3},
        {"inputs": [{"value": "x", "bits": 8, "where": ""}]},
        {"inputs": [{"bits": 8}]},
        {"binary": None},
        {"spec": {"nonsense": 1}},
        {"property": "typestate"},
    ],
)
def test_damaged_counterexamples(demo_folder: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    record = json.loads((demo_folder / "counterexample.json").read_text())
    file = tmp_path / "cex.json"
    file.write_text(json.dumps({**record, **change}))
    with pytest.raises((InputFileError, UsageError)):
        read_counterexample(file)
