"""What the commands print and return when nothing is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcveto.cli.main import COMMANDS
from mcveto.program.image import load_image

from .conftest import Call

SPEC = "examples/demo/demo.yaml"
IMAGES = Path("tests/program/images")
TRICKS = Path("examples/machine/tricks")
RUN_KEYS = "schema mcveto binary outcome detail fault address pc steps inputs registers assumptions notes seed command"


@pytest.mark.parametrize("command", [[], *([name] for name in sorted(COMMANDS))])
def test_help(call: Call, command: list[str]) -> None:
    for option in ("-h", "--help"):
        result = call(*command, option)
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith("Usage: mcveto")
    assert all(len(line) <= 110 for line in result.out.splitlines())


def test_no_arguments_shows_help(call: Call) -> None:
    result = call()
    assert result.code == 2
    assert "Commands:" in result.out


@pytest.mark.parametrize(
    ("arguments", "code", "first"),
    [
        (["--spec", SPEC, "--inputs", "1,2,3"], 0, "HALTED at 0x8048120 after 35 steps"),
        (["--spec", SPEC, "--inputs", "103 32 25"], 10, "TARGET at 0x8048110 after 35 steps"),
        (["--spec", SPEC, "--inputs", "1,2,3", "--max-steps", "20"], 5, "LIMIT at 0x804814f after 20 steps"),
        (["--spec", SPEC, "--inputs", "1,2,3", "--max-steps", "0"], 5, "LIMIT at 0x8048130 after 0 steps"),
        (["--spec", TRICKS / "store-code.yaml"], 0, "FAULT(write-permission) at 0x"),
        (["--spec", TRICKS / "jump-data.yaml"], 0, "FAULT(execute-permission) at 0x"),
        ([IMAGES / "x86-64.o", "--entry", "_start"], 5, "UNSUPPORTED(jump to import nondet) after"),
        ([IMAGES / "thumb.o", "--entry", "_start"], 5, "UNSUPPORTED(jump to import nondet) after"),
        ([IMAGES / "x86-64.exe"], 5, "UNSUPPORTED(jump to import ExitProcess) after"),
        ([IMAGES / "x86-32.exe"], 5, "UNSUPPORTED(jump to import ExitProcess) after"),
        ([IMAGES / "x86-64.exe", "--halt", "ExitProcess"], 0, "HALTED at 0x"),
        ([IMAGES / "x86-64.macho"], 5, "UNSUPPORTED(jump to something outside the file"),
        ([IMAGES / "x86-64.o", "--entry", "_start", "--halt", "nondet"], 0, "HALTED at 0x"),
    ],
)
def test_outcome(call: Call, arguments: list[object], code: int, first: str) -> None:
    for command in ("run", "trace"):
        result = call(command, *arguments)
        assert result.err == ""
        assert result.first.startswith(first)
        assert result.code == code


def test_trace_of_a_run(call: Call) -> None:
    lines = call("run", "--spec", SPEC, "--inputs", "1,2,3", "--trace", "--accesses").out.splitlines()
    assert lines[1] == "input 0: 1 (8 bits, call of 0x8048100)"
    assert "       0  0x08048130  57                   PUSH EDI" in lines
    assert "       9  0x08048100                         input 8 bits, unsigned" in lines, "indented below its call"
    assert "            write 4 bytes at 0x7ffeeff8: 0x0" in lines


def test_run_prints_registers_and_memory(call: Call) -> None:
    out = call("run", "--spec", "examples/machine/tiny/tiny.yaml", "--registers", "--read", "0x8048100:4").out
    assert "     EAX = 0xf\n" in out
    assert "memory 0x8048100: " in out


def test_run_json(call: Call, tmp_path: Path) -> None:
    arguments = ["run", "--spec", SPEC, "--inputs", "103,32,25", "--read", "0x8048130:2", "--trace", "--json"]
    result = call(*arguments, "-")
    assert result.code == 10
    document = json.loads(result.out)
    assert set(document) == {*RUN_KEYS.split(), "memory", "trace"}
    assert document["outcome"] == "target"
    assert document["inputs"][0] == {"value": 103, "bits": 8, "where": "call of 0x8048100"}
    assert document["memory"] == [{"address": 0x8048130, "size": 2, "bytes": "5756"}]
    assert document["trace"][0] == {"pc": 0x8048130, "bytes": "57", "text": "PUSH EDI"}
    assert len(document["trace"]) == document["steps"]
    path = tmp_path / "result.json"
    with_file = call(*arguments, path)
    assert with_file.first.startswith("TARGET")
    written = json.loads(path.read_text())
    assert {**written, "command": None} == {**document, "command": None}


def test_trace_json_and_smt(call: Call) -> None:
    document = json.loads(call("trace", "--spec", SPEC, "--inputs", "103,32,25", "--json", "-").out)
    assert document["schema"] == "mcveto-trace-1"
    assert [item["kind"] for item in document["path"]] == ["branch"]
    assert document["variables"][0] == {"name": "in0", "bits": 8, "value": 103}
    smt = call("trace", "--spec", SPEC, "--inputs", "103,32,25", "--smt").out
    assert "(declare-const in0 (_ BitVec 8))" in smt or "(declare-fun in0 () (_ BitVec 8))" in smt
    assert smt.count("(") == smt.count(")")


def test_disasm(call: Call) -> None:
    result = call("disasm", "--spec", SPEC, "--count", "2", "--pcode")
    lines = result.out.splitlines()
    assert lines[0] == "0x08048130  57                   PUSH EDI"
    assert any("STORE" in line for line in lines)
    document = json.loads(call("disasm", "--spec", SPEC, "--count", "3", "--json", "-").out)
    assert [item["text"] for item in document["instructions"]] == ["PUSH EDI", "PUSH ESI", "XOR EAX,EAX"]


def test_disasm_ends_with_the_segment(call: Call) -> None:
    lines = call("disasm", "--spec", SPEC, "--count", "100000").out.splitlines()
    assert len(lines) < 2000


def test_disasm_knows_thumb(call: Call) -> None:
    by_symbol = call("disasm", IMAGES / "thumb.o", "--at", "_start", "--count", "4").out
    assert by_symbol.startswith("_start:\n")
    assert "unsupported" not in by_symbol
    document = json.loads(call("disasm", IMAGES / "thumb.o", "--at", "_start", "--count", "4", "--json", "-").out)
    first = document["instructions"][0]
    assert first["pc"] == first["address"] + 1
    by_offset = call("disasm", IMAGES / "thumb.o", "--at", "_start+2", "--count", "3").out
    assert by_offset.splitlines() == by_symbol.splitlines()[2:]


def test_disasm_shows_what_the_file_does_not_determine(call: Call) -> None:
    out = call("disasm", IMAGES / "x86-32.exe", "--at", "0x402040", "--count", "1").out
    assert "??" in out
    assert "not determined by the file" in out


def test_same_seed_same_run(call: Call) -> None:
    runs = [call("run", "--spec", SPEC, "--seed", seed, "--registers").out for seed in (7, 7, 8)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_signed_inputs(call: Call) -> None:
    arguments = ["examples/demo/demo.elf", "--input", "0x8048100:8s", "--halt", "0x8048120"]
    out = call("run", *arguments, "--inputs", "-1,255,0x80").out
    assert [line.split()[2] for line in out.splitlines()[1:]] == ["-1", "-1", "-128"]


def test_inputs_given_in_vain_are_mentioned(call: Call) -> None:
    assert "note: 2 of the given inputs were not used" in call("run", "--spec", SPEC, "--inputs", "1,2,3,4,5").out


def test_unchecked_properties_are_mentioned(call: Call, tmp_path: Path) -> None:
    spec = tmp_path / "x.yaml"
    spec.write_text("properties: [return-address, memory-safety]\n")
    out = call("run", "examples/machine/tiny/tiny.elf", "--spec", spec, "--halt", "0x8048118").out
    assert "note: a run does not check the properties memory-safety, return-address" in out


def test_raw_blob(call: Call, tmp_path: Path) -> None:
    blob = tmp_path / "blob.bin"
    blob.write_bytes(b"\x40\xc3")
    result = call("run", blob, "--arch", "x86-32", "--base", "0x1000", "--entry", "0x1000", "--registers")
    assert result.code == 0
    assert result.first.startswith("HALTED at 0xffff")
    assert "EAX = 0x1\n" in result.out


@pytest.mark.parametrize(
    ("number", "code", "first"), [(60, 0, "EXITED(7) at 0x80481"), (1, 5, "UNSUPPORTED(system call 1 at")]
)
def test_system_calls(call: Call, tmp_path: Path, number: int, code: int, first: str) -> None:
    """exit(7) ends the process; another system call, or one in a file that is not ELF, is unsupported."""
    program = bytes([0xB8, number, 0, 0, 0, 0xBF, 7, 0, 0, 0, 0x0F, 0x05])
    elf = Path("examples/machine/tricks/x86-64.elf").read_bytes()
    start = load_image("examples/machine/tricks/x86-64.elf").read(0x8048100, 16)
    assert start is not None
    at = elf.index(start)
    (tmp_path / "x.elf").write_bytes(elf[:at] + program + elf[at + len(program) :])
    (tmp_path / "x.bin").write_bytes(program)
    for command in ("run", "trace"):
        result = call(command, tmp_path / "x.elf", "--entry", "0x8048100")
        assert result.first.startswith(first)
        assert result.code == code
        raw = call(command, tmp_path / "x.bin", "--arch", "x86-64", "--base", "0x1000", "--entry", "0x1000")
        assert raw.first.startswith("UNSUPPORTED(system call at 0x100a)")


def test_doctor(call: Call) -> None:
    result = call("doctor", "--json", "-")
    states = {check["package"]: check["state"] for check in json.loads(result.out)["checks"]}
    assert states.pop("qemu-user") in ("ok", "optional")  # the only one that is not a Python package
    assert set(states.values()) == {"ok"}, states
    assert result.code == 0
