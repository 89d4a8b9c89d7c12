"""The room rules: which folder may import which, and who may know a third-party library."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "mcveto"

# A room may import itself, `errors`, and what is listed.
ALLOWED: dict[str, set[str]] = {
    "logic": set(),
    "automata": set(),
    "machine": {"logic"},
    "whilelang": {"machine", "logic"},
    "program": {"whilelang", "machine", "logic"},
    "property": {"program", "machine", "logic", "automata"},
    "dpg": {"property", "program", "machine", "logic", "automata"},
    "engines": {"dpg", "property", "program", "machine", "logic", "automata"},
    "check": {"property", "program", "whilelang", "machine"},
    "counterexamples": {"property", "program", "machine", "logic", "automata", "dpg", "engines"},
    "translate": {"program", "machine", "logic"},
    "viewer": {"logic", "machine", "program", "property", "dpg", "check", "counterexamples", "report"},
    "report": {"program", "machine"},
    "cli": {
        "logic",
        "automata",
        "machine",
        "program",
        "property",
        "dpg",
        "engines",
        "check",
        "counterexamples",
        "translate",
        "whilelang",
        "report",
        "viewer",
    },
}
# Only these folders may import the library.
OWNERS: dict[str, tuple[str, ...]] = {
    "pypcode": ("machine/isa",),
    "bitwuzla": ("logic/solver", "check/discharge.py"),
    "z3": ("logic/solver", "check", "whilelang/arithmetic.py"),
    "lief": ("program/image",),
    "elftools": ("program/image",),
    "click": ("cli",),
    "rich": ("cli", "report"),
    "unicorn": ("check", "cli/doctor"),
}


def imports(path: Path) -> Iterator[str]:
    """Absolute dotted names of everything a file imports, also inside functions."""
    package = ["mcveto", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                module = ".".join([*base, *([node.module] if node.module else [])])
            else:
                module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_file_imports_only_what_its_room_may(path: Path) -> None:
    place = path.relative_to(SOURCE).as_posix()
    room = place.split("/")[0]
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "mcveto" and len(parts) > 1 and (SOURCE / parts[1]).is_dir() and room in ALLOWED:
            assert parts[1] == room or parts[1] in ALLOWED[room], f"{place} imports {name}"
        if parts[0] == "mcveto" and parts[1:] == ["errors"]:
            assert room not in ("logic", "automata"), f"{place} imports {name}"
        if parts[0] in OWNERS:
            assert place.startswith(OWNERS[parts[0]]), f"{place} imports {name}"


def test_every_room_has_a_rule() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= ALLOWED.keys()


def test_dpg_never_mentions_an_instruction_set() -> None:
    for path in sorted((SOURCE / "dpg").rglob("*.py")) if (SOURCE / "dpg").exists() else []:
        text = path.read_text().lower()
        assert "x86" not in text and "powerpc" not in text, path
