"""The checker shares nothing with the engines, and stays small enough to be read in an hour."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import mcveto.check

FOLDER = Path(mcveto.check.__file__).parent
# What is read: the file, and which program and question it is about.
READING = ("certificate.py", "records.py", "question.py")
# What is proved of it.
PROVING = ("formulas.py", "values.py", "steps.py", "obligations.py", "discharge.py")
# Certificates about recursion of any depth; read after the others.
PROCEDURES = ("stored_words.py", "procedures.py")
# Divisions as compilers write them, decided by comparing numbers; read after the others.
DIVISIONS = ("inverses.py",)
# What the meaning of a program rests on, and nothing that an engine made of it.
TRUSTED = {
    "mcveto.errors",
    "mcveto.orphans",
    "mcveto.check",
    "mcveto.machine.address_space",
    "mcveto.machine.faults",
    "mcveto.machine.interpreter",
    "mcveto.machine.memory",
    "mcveto.machine.operators",
    "mcveto.machine.pcode",
    "mcveto.machine.registers",
    "mcveto.program.exits",
    "mcveto.program.image",
    "mcveto.program.program",
    "mcveto.program.spec",
    # What else a question can rest on: the meaning of properties, library models and While programs.
    "mcveto.program.while_program",
    "mcveto.property.attach",
    "mcveto.property.library",
    "mcveto.whilelang.models",
    "mcveto.whilelang.parser",
}


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_the_checker_imports_only_what_is_trusted() -> None:
    for name in (*READING, *PROVING, *PROCEDURES, *DIVISIONS):
        ours = {module for module in imported(FOLDER / name) if module.startswith("mcveto")}
        assert {m for m in ours if m not in TRUSTED and not m.startswith("mcveto.check.")} == set(), name


def test_the_checker_is_short() -> None:
    assert lines_of_code(PROVING) < 800
    assert lines_of_code(READING) < 170
    assert lines_of_code(PROCEDURES) < 370
    assert lines_of_code(DIVISIONS) < 180


def lines_of_code(names: Iterable[str]) -> int:
    """Lines that are neither blank nor documentation (docstrings, comments)."""
    total = 0
    for name in names:
        text = (FOLDER / name).read_text()
        prose: set[int] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        lines = enumerate(text.splitlines(), 1)
        total += sum(1 for number, line in lines if number not in prose and line.strip()[:1] not in ("", "#"))
    return total
