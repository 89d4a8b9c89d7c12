"""What verify answers on the programs of examples/air: never the wrong verdict, the right one where it is known to."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.search import Question, search

AIR = Path(__file__).resolve().parents[2] / "examples" / "air"
COMPILED = sorted((AIR / "ppc32-be").glob("*.yaml"))
# Not proved within the time; README.md says so, too.
OPEN = {"raid-poll-fix-O1", "raid-poll-fix-O2"}


def answer(path: Path, seconds: float) -> tuple[str, str]:
    """(expected, found) verdicts."""
    spec = load_spec(str(path))
    found = search(lambda: load_program(None, spec), Question(timeout=seconds)).verdict
    return str(spec.expected), found.kind


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")
@pytest.mark.parametrize("name", ["memname-bug", "memname-fix"])
def test_from_assembly_text(name: str) -> None:
    expected, found = answer(AIR / "text" / f"{name}.yaml", 200)
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_compiled(path: Path) -> None:
    expected, found = answer(path, 40 if path.stem in OPEN else 300)
    assert found == expected or (path.stem in OPEN and found == "unknown")
