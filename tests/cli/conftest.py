"""A way to call a command in this process, and to check that a complaint is one line with the right exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcveto.cli.main import run_command_line

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def first(self) -> str:
        return self.out.splitlines()[0]


Call = Callable[..., Result]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs `mcveto` with these arguments in the repository's folder."""
    monkeypatch.chdir(ROOT)

    def run(*arguments: object) -> Result:
        code = run_command_line([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def complain(call: Call) -> Call:
    """The same for a command that must fail: nothing on stdout, one line on stderr, no traceback."""

    def run(*arguments: object) -> Result:
        result = call(*arguments)
        assert result.out == ""
        assert result.err.startswith("mcveto: ")
        assert result.err.count("\n") == 1
        assert "internal error" not in result.err
        return result

    return run
