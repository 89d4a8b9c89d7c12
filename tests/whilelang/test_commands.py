"""`mcveto while` and `mcveto models`: first line, exit code, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.cli.main import run_command_line

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "while"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> object:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = run_command_line([str(item) for item in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def example(name: str) -> Path:
    return EXAMPLES / f"{name}.w"


@pytest.mark.parametrize(
    ("arguments", "code", "first"),
    [
        (["run", example("multiply"), "--set", "x=3", "--set", "y=5"], 0, "ENDED"),
        (["run", example("multiply"), "--set", "x=3"], 10, "ENDED"),
        (["run", example("fill"), "--set", "n=8", "--trace"], 10, "ABORTED(memory)"),
        (["run", example("guess"), "--inputs", "101"], 10, "ABORTED(assertion)"),
        (["run", example("guess"), "--inputs", "5"], 0, "BLOCKED"),
        (["run", example("countdown"), "--set", "x=2", "--max-steps", "1"], 5, "LIMIT"),
        (["prove", example("swap")], 0, "PROVED"),
        (["prove", example("swap"), "--rule", "substitution"], 0, "PROVED"),
        (["prove", example("fill"), "--property", "memory-safety", "--no-tree"], 10, "VIOLATED(memory)"),
        (["bmc", example("countdown"), "--unwind", "2"], 0, "PROVED"),
        (["bmc", example("countdown"), "--unwind", "9", "--unwind-loop", "3=2"], 0, "PROVED"),
        (["bmc", example("countdown"), "--unwind", "1", "--cut", "assume"], 5, "UNKNOWN(no violation up to the bound)"),
        (["symex", example("paths"), "--graph"], 10, "VIOLATED(assertion)"),
        (["symex", example("swap"), "--invariant", "z = a"], 10, "VIOLATED(invariant)"),
        (["verify", example("fill_fixed")], 0, "PROVED"),
        (["verify", example("fill")], 10, "VIOLATED(memory)"),
        (["verify", example("guess")], 10, "VIOLATED(assertion)"),
        (["verify", example("multiply"), "--theory", "u8"], 10, "VIOLATED(postcondition)"),
    ],
    ids=lambda item: "-".join(map(str, item)).replace(str(EXAMPLES), "") if isinstance(item, list) else None,
)
def test_first_line_and_exit_code(call: object, arguments: list[object], code: int, first: str) -> None:
    assert callable(call)
    found, out, err = call("while", *arguments)
    assert (found, out.splitlines()[0], err) == (code, first, "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["prove", "nowhere.w"], 3),
        (["prove", EXAMPLES], 3),
        (["prove", example("swap"), "--theory", "u99"], 2),
        (["bmc", example("swap"), "--unwind-loop", "x"], 2),
        (["symex", example("swap"), "--invariant", "x +"], 3),
        (["run", example("swap"), "--set", "q=1"], 2),
        (["run", example("swap"), "--cell", "99=1"], 2),
        (["lower", example("swap")], 2),
        (["prove", example("guess"), "--rule", "substitution"], 2),
        (["format", example("swap"), "--write"], 3),
    ],
)
def test_complaints_are_one_line(call: object, arguments: list[object], code: int) -> None:
    assert callable(call)
    found, _, err = call("while", *arguments)
    assert found == code and err.startswith("mcveto: ") and err.count("\n") == 1


def test_format_rewrites_and_checks(call: object, tmp_path: Path) -> None:
    assert callable(call)
    path = tmp_path / "a.w"
    path.write_text("x:=1;if(x>0){y:=2}")
    assert call("while", "format", path, "--check")[0] == 10
    assert call("while", "format", path, "--write")[0] == 0
    assert call("while", "format", path, "--check")[0] == 0
    assert path.read_text() == "theory Z;\nmemory 16;\n\nx := 1;\nif (x > 0) {\n  y := 2;\n}\n"


def test_derivations_are_written(call: object, tmp_path: Path) -> None:
    assert callable(call)
    page, document = tmp_path / "a.html", tmp_path / "a.tex"
    assert call("while", "prove", example("swap"), "--html", page, "--latex", document)[0] == 0
    assert "<details" in page.read_text() and r"\begin{document}" in document.read_text()


def test_lower_prints_p_code(call: object) -> None:
    assert callable(call)
    code, out, _ = call("while", "lower", example("fill"))
    assert code == 0 and "STORE" in out and "# abort: memory" in out


def test_models_are_listed(call: object) -> None:
    assert callable(call)
    code, out, _ = call("models")
    assert code == 0 and "memcpy: returns" in out and "exit: ends the run" in out and "assumes:" in out
    assert "while (c != 0)" in call("models", "strlen")[1]
    assert call("models", "memcopy")[0] == 2
