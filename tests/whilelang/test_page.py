"""What docs/while.md shows is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from mcveto.cli.main import run_command_line

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```text\n\$ (.*?)\n(.*?)^```$", (ROOT / "docs/while.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "output"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_shown_output_is_real(
    command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "mcveto"
    run_command_line(arguments)
    assert capsys.readouterr().out == output


def test_the_page_shows_commands() -> None:
    assert len(BLOCKS) >= 2


def test_the_example_on_the_page_parses() -> None:
    from mcveto.whilelang.parser import parse

    (source,) = re.findall(r"^```\n(theory.*?)^```$", (ROOT / "docs/while.md").read_text(), re.MULTILINE | re.DOTALL)
    assert [item.name for item in parse(source).procedures] == ["fac"]
