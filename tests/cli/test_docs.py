"""The commands shown in the documentation print what is shown there, and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from mcveto.cli.main import COMMANDS, EXIT_CLOSED_PIPE, EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_UNKNOWN, EXIT_USAGE
from mcveto.errors import InputFileError

from .conftest import ROOT, Call

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def shown_commands(page: Path) -> list[tuple[str, str]]:
    """(command line, output shown below it) of every console block."""
    blocks = re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    shown = []
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            shown.append((command, output))
    return shown


COMMANDS_SHOWN = [(page.name, command, output) for page in PAGES for command, output in shown_commands(page)]


@pytest.mark.parametrize(("page", "command", "output"), COMMANDS_SHOWN, ids=[f"{p}:{c}" for p, c, _ in COMMANDS_SHOWN])
def test_shown_output_is_real(call: Call, page: str, command: str, output: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "mcveto"
    result = call(*arguments)
    assert result.err == ""
    assert result.out == output


def test_documents_show_commands() -> None:
    assert {page for page, _, _ in COMMANDS_SHOWN} == {"README.md", "tutorial.md"}
    assert len(COMMANDS_SHOWN) >= 10


def test_reference_names_every_option_and_exit_code(call: Call) -> None:
    reference = (ROOT / "docs/reference.md").read_text()
    for command in COMMANDS:
        assert f"mcveto {command}" in reference
        options = set(re.findall(r"(--[a-z-]+)", call(command, "--help").out)) - {"--help"}
        assert {option for option in options if option not in reference} == set()
    codes = (InputFileError.exit_code, EXIT_USAGE, EXIT_UNKNOWN, EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_CLOSED_PIPE)
    for code in (0, 10, *codes):
        assert f"| {code} |" in reference


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        if link.rstrip("/").endswith("agreement"):
            continue  # the tables are written by the long differential tests
        assert (page.parent / link).exists(), link
