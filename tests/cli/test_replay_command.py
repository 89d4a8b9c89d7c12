"""`mcveto replay` and `verify --cex`: first lines, exit codes, JSON, complaints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call

DEMO = ("--spec", "examples/demo/demo.yaml")


@pytest.fixture
def folder(call: Call, tmp_path: Path) -> Path:
    destination = tmp_path / "cex"
    result = call("verify", *DEMO, "--cex", destination, "--json", tmp_path / "verdict.json", "--timeout", "100")
    assert (result.code, result.first) == (10, "VIOLATED(reach)")
    return destination


def test_folder_and_file(call: Call, folder: Path, tmp_path: Path) -> None:
    result = call("replay", folder)
    lines = result.out.splitlines()
    assert (result.code, lines[0]) == (10, "CONFIRMED(reach)")
    assert lines[1].startswith("reason: 0x8048110 is reached, after ")
    assert lines[2:4] == ["emulator: agrees", "unicorn: agrees"]
    assert lines[4].startswith("native: ")
    assert call("replay", folder / "counterexample.json").out == result.out
    assert call("replay", folder, "examples/demo/demo.elf").first == "CONFIRMED(reach)"
    verdict = tmp_path / "verdict.json"
    assert json.loads(verdict.read_text())["confirmed_by"][:2] == ["emulator", "unicorn"]
    assert call("replay", verdict, "examples/demo/demo.elf", *DEMO).first == "CONFIRMED(reach)"
    # Without the spec, nothing is asked of the program, and the input function is the program's own.
    assert call("replay", verdict, "examples/demo/demo.elf", "--max-steps", 1000).code == 5

    record = json.loads(call("replay", folder, "--json", "-").out)
    assert (record["schema"], record["confirmed"], record["property"]) == ("mcveto-replay-1", True, "reach")
    assert record["confirmed_by"][:2] == ["emulator", "unicorn"]
    assert [machine["name"] for machine in record["machines"]][:2] == ["unicorn", "native"]
    assert all((machine["difference"], machine["steps"] > 0) == (None, True) for machine in record["machines"][:1])


def test_other_inputs_are_not_confirmed(call: Call, folder: Path) -> None:
    file = folder / "counterexample.json"
    record = json.loads(file.read_text())
    record["inputs"][0]["value"] ^= 1
    file.write_text(json.dumps(record))
    result = call("replay", folder)
    assert result.code == 5
    assert result.first == "NOT CONFIRMED(the run ends at 0x8048120: halted)"
    machine_readable = json.loads(call("replay", folder, "--json", "-").out)
    assert (machine_readable["confirmed"], machine_readable["confirmed_by"]) == (False, [])


def test_another_binary_is_refused(complain: Call, folder: Path) -> None:
    result = complain("replay", folder, "examples/fig10/x86-32/fig9.elf")
    assert (result.code, "belongs to another file" in result.err) == (2, True)


def test_complaints(complain: Call, tmp_path: Path) -> None:
    assert complain("replay", tmp_path).code == 3
    assert complain("replay", "examples/demo/demo.elf").code == 3
    assert complain("replay").code == 2
    (tmp_path / "file").write_text("")
    result = complain("verify", *DEMO, "--cex", tmp_path / "file")
    assert (result.code, "is not a folder" in result.err) == (2, True)
    assert complain("verify", *DEMO, "--cex", tmp_path / "a" / "b").code == 2


def test_no_folder_without_a_violation(call: Call, tmp_path: Path) -> None:
    result = call("verify", "--spec", "examples/fig10/x86-32/ex6.yaml", "--cex", tmp_path / "cex", "--timeout", "100")
    assert result.first == "PROVED"
    assert not (tmp_path / "cex").exists()
