"""Everything a user can get wrong: one line, the documented exit code, no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Call

DEMO = "examples/demo/demo.elf"
SPEC = "examples/demo/demo.yaml"
OBJECT = "tests/program/images/x86-64.o"

USAGE: list[tuple[str, list[str], str]] = [
    ("no such command", ["rnu", DEMO], "did you mean 'run'?"),
    ("no such option", ["run", "--frobnicate"], "--frobnicate"),
    ("no binary", ["run"], "no binary is given"),
    ("spec as binary", ["run", SPEC], f"--spec {SPEC}"),
    ("wrong arch", ["run", DEMO, "--arch", "z80"], "known: x86-32, x86-64, ppc32-be"),
    ("other arch", ["run", DEMO, "--arch", "arm"], "contains x86-32 code, not arm"),
    ("base not a number", ["run", DEMO, "--base", "here"], "--base must be a non-negative number"),
    ("negative base", ["run", DEMO, "--base", "-5"], "--base must be a non-negative number"),
    ("fixed base", ["run", DEMO, "--base", "0x10000"], "cannot be moved"),
    ("entry outside", ["run", DEMO, "--entry", "0x10"], "entry 0x10 is outside the image (mapped: 0x8048"),
    ("entry too wide", ["run", DEMO, "--entry", "0x123456789"], "does not fit 32 bits"),
    ("negative entry", ["run", DEMO, "--entry", "-3"], "'-3' is not an address"),
    ("empty entry", ["run", DEMO, "--entry", ""], "an address is empty"),
    ("malformed entry", ["run", DEMO, "--entry", "0x80zz"], "'0x80zz' is not an address"),
    ("unknown symbol, stripped", ["run", DEMO, "--entry", "main"], "unknown symbol 'main'"),
    ("unknown symbol", ["run", "examples/demo/demo.sym.elf", "--halt", "halo"], "nearest: halt"),
    ("halt outside", ["run", "--spec", SPEC, "--halt", "0x20"], "halt 0x20 is outside the image"),
    ("target outside", ["run", "--spec", SPEC, "--target", "0x20"], "target 0x20 is outside the image"),
    ("input outside", ["run", "--spec", SPEC, "--input", "0x20"], "input function 0x20 is outside the image"),
    ("input twice", ["run", "--spec", SPEC, "--input", "0x8048100"], "given twice"),
    ("input and assume", ["run", "--spec", SPEC, "--assume", "0x8048100"], "cannot be assumed"),
    ("input bits", ["run", DEMO, "--input", "0x8048100:65"], "is not ADDRESS:BITS"),
    ("input register", ["run", DEMO, "--input-register", "EAZ"], "did you mean 'EAX'?"),
    ("fixed register", ["run", DEMO, "--input-register", "esp"], "ESP is fixed at entry"),
    ("register twice", ["run", DEMO, "--input-register", "eax", "--input-register", "EAX"], "given twice"),
    ("input memory", ["run", DEMO, "--input-memory", "0x10:4"], "inputs.memory 0x10 is outside"),
    ("input memory end", ["run", DEMO, "--input-memory", "0x8048160:4000"], "is outside"),
    ("input memory size", ["run", DEMO, "--input-memory", "0x8048100:0"], "is not ADDRESS:SIZE"),
    (
        "input memory twice",
        ["run", DEMO, "--input-memory", "0x8048100:4", "--input-memory", "0x8048103:4"],
        "lists 0x8048103 twice",
    ),
    ("stack zero", ["run", DEMO, "--stack", "0"], "--stack must be positive"),
    ("stack huge", ["run", DEMO, "--stack", "99999999999"], "too large"),
    ("inputs", ["run", "--spec", SPEC, "--inputs", "1,two"], "'two' is not an input value"),
    ("inputs too wide", ["run", "--spec", SPEC, "--inputs", "256"], "does not fit 8 bits"),
    ("inputs too negative", ["run", "--spec", SPEC, "--inputs", "-129"], "does not fit 8 bits"),
    ("inputs huge", ["run", "--spec", SPEC, "--inputs", "9" * 30], "does not fit 64 bits"),
    ("inputs endless", ["run", "--spec", SPEC, "--inputs", "9" * 9000], "is not an input value"),
    ("max-steps negative", ["run", DEMO, "--max-steps", "-1"], "--max-steps"),
    ("max-steps huge", ["run", DEMO, "--max-steps", "1" + "0" * 30], "--max-steps"),
    ("seed", ["run", DEMO, "--seed", "x"], "--seed"),
    ("read outside", ["run", DEMO, "--read", "0x10:4"], "nothing is mapped at 0x10"),
    ("read past the end", ["run", DEMO, "--read", "0x8048160:5000"], "nothing is mapped"),
    ("read malformed", ["run", DEMO, "--read", "0x8048100"], "is not ADDRESS:SIZE"),
    ("read negative", ["run", DEMO, "--read", "0x8048100:-4"], "is not ADDRESS:SIZE"),
    ("read huge", ["run", DEMO, "--read", "0x8048100:99999999999"], "is not ADDRESS:SIZE"),
    ("json folder", ["run", DEMO, "--json", "examples"], "is a directory"),
    ("json nowhere", ["run", DEMO, "--json", "no/such/folder/x.json"], "there is no folder no/such/folder"),
    ("object without entry", ["run", OBJECT], "names no entry (give --entry; the file has the symbols _start"),
    ("disasm without entry", ["disasm", OBJECT], "give --at ADDRESS"),
    ("disasm outside", ["disasm", DEMO, "--at", "0x10"], "address 0x10 is outside the image"),
    (
        "disasm misaligned",
        ["disasm", "examples/machine/checksum/ppc32-be-O0.elf", "--at", "0x8048102"],
        "multiple of 4",
    ),
    ("disasm count", ["disasm", DEMO, "--count", "0"], "--count"),
    ("odd ARM entry", ["run", "examples/machine/checksum/arm-O0.elf", "--entry", "0x8048102"], "Thumb"),
    ("two on stdout", ["trace", "--spec", SPEC, "--smt", "--json", "-"], "standard output"),
]


@pytest.mark.parametrize(("arguments", "expected"), [pytest.param(a, e, id=n) for n, a, e in USAGE])
def test_usage(complain: Call, arguments: list[str], expected: str) -> None:
    result = complain(*arguments)
    assert expected in result.err
    assert result.code == 2


@pytest.mark.parametrize("command", ["run", "trace", "disasm"])
def test_unreadable_binaries(complain: Call, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "short.elf").write_bytes(b"\x7fELF")
    os.mkfifo(tmp_path / "fifo")
    expected = {
        "absent": "no such file",
        "empty": "empty",
        "text": "a text file",
        "short.elf": "",
        "fifo": "not a regular file",
        ".": "is a directory",
    }
    for name, message in expected.items():
        result = complain(command, tmp_path / name)
        assert message in result.err
        assert result.code == 3, name


def test_unreadable_specs(complain: Call, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "huge").write_text("#" * (2 << 20))
    (tmp_path / "broken").write_text("entry: [1, 2\n")
    (tmp_path / "deep").write_text("[" * 5000)
    (tmp_path / "alias").write_text("a: &x [1]\nb: *x\n")
    (tmp_path / "twice").write_text("entry: 1\nentry: 2\n")
    (tmp_path / "set").write_text("? !!set {a}\n: 1\n")
    (tmp_path / "scalar").write_text("entry: !!int ''\n")
    (tmp_path / "nul").write_bytes(b"entry: \0\n")
    expected = {
        "absent": "no such file",
        ".": "is a directory",
        "fifo": "not a regular file",
        "huge": "larger than",
        "broken": "line 2",
        "deep": "",
        "alias": "aliases are not allowed",
        "twice": "given twice (line 2)",
        "set": "",
        "scalar": "not valid",
        "nul": "is not text",
    }
    for name, message in expected.items():
        result = complain("run", "--spec", tmp_path / name)
        assert message in result.err, name
        assert result.code == 3, name


def test_binary_as_spec(complain: Call) -> None:
    result = complain("run", "--spec", DEMO)
    assert result.code == 3
    assert "is not text (a spec is a YAML file" in result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permissions(complain: Call, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0)
    for arguments in (["run", secret], ["run", "--spec", secret]):
        result = complain(*arguments)
        assert (result.code, "permission denied" in result.err) == (3, True)
    tmp_path.chmod(0o500)
    result = complain("run", "--spec", SPEC, "--json", tmp_path / "new.json")
    tmp_path.chmod(0o700)
    assert (result.code, "permission denied" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("entri: 1", "unknown key 'entri' in the spec (did you mean 'entry'?)"),
        ("inputs: {cals: 1}", "did you mean 'calls'?"),
        ("inputs: {calls: {0x8048100: {bit: 8}}}", "did you mean 'bits'?"),
        ("inputs: {memory: [{at: 1, length: 2}]}", "in inputs.memory (did you mean"),
        ("inputs: 0", "inputs must be a mapping"),
        ("inputs: {stdin: 4}", "inputs.stdin is not supported yet"),
        ("inputs: {calls: {0x8048100: {bits: 65}}}", "bits must be between 1 and 64, not 65"),
        ("inputs: {calls: {0x8048100: {bits: true}}}", "bits must be between 1 and 64"),
        ("inputs: {calls: [[1]]}", "inputs.calls must be a non-negative number"),
        ("entry: -1", "entry must be a non-negative number, not -1"),
        ("entry: 1.5", "entry must be a non-negative number, not 1.5"),
        ("halt: 0x8048120", "halt must be a list"),
        ("properties: [memory-safty]", "did you mean 'memory-safety'?"),
        ("properties: [{reach: []}]", "names no address"),
        ("properties: [{return-address: 4}]", "takes no argument"),
        ("stack: 0", "stack must be positive"),
        ("binary: 5", "binary must be text"),
        ("expected: maybe", "one of proved, violated, unknown"),
        ("[1, 2]", "the spec must be a mapping"),
        ("arch: pdp11", "unknown architecture 'pdp11'"),
    ],
)
def test_bad_spec(complain: Call, tmp_path: Path, spec: str, expected: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(spec)
    result = complain("run", DEMO, "--spec", path)
    assert expected in result.err
    assert result.code == 2


def test_control_characters_stay_visible(complain: Call) -> None:
    result = complain("run", "no\nsuch\x1b[31mfile\udcff")
    assert result.code == 3
    assert "no\\nsuch\\x1b[31mfile\\udcff" in result.err
