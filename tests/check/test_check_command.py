"""`mcveto check` and `verify --proof`: first line, exit codes, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcveto.check.certificate import to_text
from mcveto.cli.main import run_command_line

from .proofs import EXAMPLES, certificate_for

NAME = "fig10/x86-32/store-REACH-0"
SPEC, BINARY = str(EXAMPLES / f"{NAME}.yaml"), str(EXAMPLES / f"{NAME}.elf")
OTHER = EXAMPLES / "fig10/x86-32/store-REACH-1"


@pytest.fixture
def proof(tmp_path: Path) -> str:
    certificate = certificate_for(NAME)
    assert certificate is not None
    file = tmp_path / "proof.json"
    file.write_text(to_text(certificate))
    return str(file)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_command_line(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_verify_writes_what_check_accepts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "p.json")
    code, out, _ = run(capsys, "verify", "--spec", SPEC, "--proof", file, "--json", str(tmp_path / "result.json"))
    assert code == 0
    assert "self-check: 9 obligations hold\nreached in runs: the entry and a halt\n" in out
    record = json.loads((tmp_path / "result.json").read_text())["proof"]
    assert record == {
        "file": file,
        "locations": 7,
        "obligations": 9,
        "entry_reached": True,
        "halt_reached": True,
        "assumptions_met": None,
        "warnings": [],
    }
    code, out, err = run(capsys, "check", file, BINARY, "--spec", SPEC, "--jobs", "2", "--second-solver")
    assert (code, err) == (0, "")
    assert out.startswith("PROVED\nchecked: reach 0x")
    assert "assumption: the direction flag is clear at entry\n" in out


def test_no_self_check(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "verify", "--spec", SPEC, "--no-self-check")
    assert code == 0 and "self-check: skipped\n" in out


def test_another_binary(capsys: pytest.CaptureFixture[str], proof: str) -> None:
    code, out, _ = run(capsys, "check", proof, f"{OTHER}.elf")
    assert (code, out) == (5, "REJECTED(it is about another binary)\n")


def test_another_spec(capsys: pytest.CaptureFixture[str], proof: str, tmp_path: Path) -> None:
    text = Path(SPEC).read_text().replace("bits: 32", "bits: 16")
    (tmp_path / "spec.yaml").write_text(text)
    code, out, _ = run(capsys, "check", proof, BINARY, "--spec", str(tmp_path / "spec.yaml"), "--quiet")
    assert (code, out) == (5, "REJECTED(it answers another spec: inputs differ)\n")


def test_a_damaged_file(capsys: pytest.CaptureFixture[str], proof: str) -> None:
    text = Path(proof).read_text()
    Path(proof).write_text(text.replace("bvult", "bvule", 1) if "bvult" in text else text.replace("#x0", "#x1", 1))
    code, out, _ = run(capsys, "check", proof, BINARY, "--json", "-")
    assert code == 5
    record = json.loads(out)
    assert (record["result"], record["reason"]) == (
        "rejected",
        "the seal does not fit: the file was changed or damaged",
    )


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": "mcveto-certificate-0"}', "\xff", "[" * 2000])
def test_not_a_certificate(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str) -> None:
    file = tmp_path / "x"
    file.write_text(content, encoding="latin-1")
    code, out, err = run(capsys, "check", str(file), BINARY)
    assert (code, out) == (3, "")
    assert err.startswith("mcveto: ") and err.count("\n") == 1


def test_no_such_files(capsys: pytest.CaptureFixture[str], proof: str, tmp_path: Path) -> None:
    assert run(capsys, "check", str(tmp_path / "none"), BINARY)[0] == 3
    assert run(capsys, "check", proof, str(tmp_path / "none"))[0] == 3
    assert run(capsys, "verify", "--spec", SPEC, "--proof", str(tmp_path / "none" / "x"))[0] == 2
