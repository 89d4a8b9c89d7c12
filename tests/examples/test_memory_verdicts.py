"""Errors of memory are found and their repaired twins proved: none is wrong, and most are decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.program.program import load_program
from mcveto.program.spec import load_spec
from mcveto.search import Question, search
from mcveto.verdict import Verdict

MEMORY = Path(__file__).resolve().parents[2] / "examples" / "memory"
ALL = sorted(MEMORY.rglob("*.yaml"))
FAST = (
    ("x86-32/off-by-one-bug", "heap block", 4),
    ("x86-32/off-by-one-safe", "", 0),
    ("x86-64/use-after-free-bug", "freed heap block", 4),
    ("ppc32-be/stack-smash-bug", "saved registers", 0),
    ("ppc32-be/read-only-bug", "permission", 0),
    ("ppc32-be/null-bug", "null", 4),
    ("x86-64/null-safe", "", 0),
)


def verdict(path: Path, engine: str, seconds: float) -> Verdict:
    spec = load_spec(str(path))
    return search(lambda: load_program(None, spec), Question(engine=engine, timeout=seconds)).verdict


@pytest.mark.parametrize(("name", "kind", "distance"), FAST)
def test_some(name: str, kind: str, distance: int) -> None:
    path = MEMORY / f"{name}.yaml"
    found = verdict(path, "symex", 120)
    assert found.kind == load_spec(str(path)).expected, found.reason
    if kind:
        region = found.violation["region"]
        assert isinstance(region, dict)
        assert (region["kind"], found.violation["distance"]) == (kind, distance)
        assert found.confirmed_by[:2] == ("emulator", "monitor") and "unicorn" in found.confirmed_by


@pytest.mark.slow
def test_all() -> None:
    kinds = {path: verdict(path, "portfolio", 60) for path in ALL}
    solved = [path for path, found in kinds.items() if found.kind != "unknown"]
    assert [path for path in solved if kinds[path].kind != load_spec(str(path)).expected] == []
    assert len(solved) >= 0.8 * len(ALL)
