"""`mcveto bench fig10`: the table, the totals, and that a wrong answer is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.cli.bench import RIGHT, UNKNOWN, WRONG, grade
from mcveto.cli.main import run_command_line
from mcveto.program.spec import Spec
from mcveto.verdict import Verdict

FAST = ["jmp", "clobber-CASE-9", "smc1-REACH-1"]
PROVED, REACHED = Verdict("proved"), Verdict("violated", "reach")


def test_rows_and_totals(capsys: pytest.CaptureFixture[str]) -> None:
    options = [word for name in FAST for word in ("--only", name)]
    code = run_command_line(["bench", "fig10", "--timeout", "60", *options])
    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines[1:4]] == ["smc1-REACH-1", "jmp", "clobber-CASE-9"]
    assert lines[2].split()[1:8] == ["AE", "violation", "74", "1", "0", "0", "0.015"]
    assert lines[2].split()[8:11] == ["AE", "violation", "49"]
    assert all(line.endswith(" right") for line in lines[1:4])
    assert lines[4] == "3 of 3 programs: 3 right, 0 unknown"
    assert lines[5] == "wrong: 0"
    assert lines[6].endswith("3 of 3")


def test_wrong_answer_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import mcveto.program.spec as spec_module

    load = spec_module.load_spec
    monkeypatch.setattr(spec_module, "load_spec", lambda path: replace(load(path), expected="proved"))
    code = run_command_line(["bench", "fig10", "--only", "jmp"])
    out = capsys.readouterr().out
    assert code == 70
    assert "wrong: 1 jmp" in out


@pytest.mark.parametrize(
    ("verdict", "expected", "about", "result"),
    [
        (PROVED, "proved", None, RIGHT),
        (PROVED, "violated", ["reach"], WRONG),
        (REACHED, "violated", ["reach"], RIGHT),
        (REACHED, "violated", ["return-address"], WRONG),
        (REACHED, "proved", None, WRONG),
        (Verdict("unknown", reason="time-out"), "proved", None, UNKNOWN),
    ],
)
def test_grades(verdict: Verdict, expected: str, about: list[str] | None, result: str) -> None:
    notes = {} if about is None else {"expected_properties": about}
    assert grade(verdict, Spec(expected=expected, notes=notes)) == result


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["bench", "fig11"]) == 2
    assert run_command_line(["bench", "fig10", "--only", "clobber-CASE-5"]) == 2
    assert "did you mean 'clobber-CASE-" in capsys.readouterr().err


def test_without_the_examples(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import mcveto.cli.bench as bench

    monkeypatch.setattr(bench, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["bench", "fig10"]) == 2
    assert capsys.readouterr().err.startswith("mcveto: the example programs are not installed")
