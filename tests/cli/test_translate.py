"""`mcveto translate`."""

from __future__ import annotations

from pathlib import Path

from .conftest import Call

SPEC = "examples/machine/tricks/jump-table.yaml"


def test_c_on_stdout_and_the_account_on_stderr(call: Call) -> None:
    result = call("translate", "--spec", SPEC, "--to", "c")
    assert result.code == 0
    assert "int main(void)" in result.out
    assert "instructions in" in result.err and "not translated" in result.err


def test_c_into_a_file(call: Call, tmp_path: Path) -> None:
    for memory in ("array", "pointers"):
        result = call("translate", "--spec", SPEC, "--to", "c", "-o", tmp_path / "out.c", "--memory", memory)
        assert result.code == 0 and result.out == ""
        assert ("(u8 *)(uintptr_t)a" in (tmp_path / "out.c").read_text()) == (memory == "pointers")


def test_complaints(complain: Call, tmp_path: Path) -> None:
    assert complain("translate", "--spec", SPEC, "--to", "fortran").code == 2
    assert complain("translate", "--spec", SPEC).code == 2
    assert complain("translate", "--spec", SPEC, "--to", "c", "-o", tmp_path / "no" / "where.c").code == 2
    assert complain("verify", "--spec", SPEC, "--engine", "external:no-such-tool").code == 2
