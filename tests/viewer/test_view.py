"""`mcveto view` takes what the other commands write, and refuses the rest in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcveto.cli.main import run_command_line
from mcveto.cli.view import pages_of
from mcveto.errors import InputFileError
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.report.verdict_json import verdict_record
from mcveto.verdict import Verdict, VerdictInput
from tests.viewer import samples

SPEC = str(samples.EXAMPLES / "demo" / "demo.yaml")


def record(sha256: str) -> dict[str, object]:
    inputs = tuple(VerdictInput(value, 8, "call of 0x8048100") for value in (103, 32, 25))
    verdict = Verdict("violated", "reach", "0x8048110 is reached", inputs, ("emulator",), at=0x8048110)
    command = ["mcveto", "verify", "--spec", SPEC, "--json", "x"]
    return verdict_record(verdict, version="0", path="demo.elf", sha256=sha256, command=command, seed=0)


def written(tmp_path: Path, content: object) -> str:
    path = tmp_path / "result.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_a_bundle_is_shown_as_it_is(tmp_path: Path) -> None:
    pages = samples.unknown_pages()
    assert pages_of(written(tmp_path, pages)) == pages


def test_a_verdict_is_shown_with_code_and_run_if_the_binary_is_the_same(tmp_path: Path) -> None:
    sha256 = load_program(None, load_spec(SPEC)).image.sha256
    pages = pages_of(written(tmp_path, record(sha256)))
    assert pages["runs"][0]["total"] == 35
    assert pages["again"][-1] == "--inputs=103,32,25"
    other = pages_of(written(tmp_path, record("0" * 64)))
    assert other["runs"] == [] and any("is not the file" in note for note in other["notes"])
    assert [item["value"] for item in other["inputs"]] == ["103", "32", "25"]


def test_counterexamples_are_put_together_again(tmp_path: Path) -> None:
    models = samples.EXAMPLES / "models"
    path = str(tmp_path / "found.json")
    arguments = [str(models / "fig2.pds"), "--property", str(models / "fig2.fsm"), "--json", path]
    assert run_command_line(["counterexamples", *arguments]) == 10
    direct = samples.model_sample()
    again = pages_of(path)
    for ours, theirs in zip(again["traces"], direct["traces"], strict=True):
        for left, right in zip(ours["states"], theirs["states"], strict=True):
            assert (left["kind"], left["node"], left["stack"], left["state"], left["changes"]) == (
                right["kind"], right["node"], right["stack"], right["state"], right["changes"],
            )  # fmt: skip


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"schema": "x"}', '{"schema": "mcveto-pages-1"}', '{"schema": "mcveto-verdict-1"}',
     '{"schema": "mcveto-counterexamples-1", "mcveto": 1}'],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputFileError):
        pages_of(written(tmp_path, content))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="no such file"):
        pages_of(str(tmp_path / "none.json"))
