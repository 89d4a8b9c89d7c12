"""`mcveto bench examples`: every bundled program with a known verdict, ours beside it.

Prints one line per program and, for each folder, how many answers are right, unknown and wrong, with the times of the
right ones. Exit code 0 if no answer is wrong, 70 otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from mcveto.cli.bench import RIGHT, UNKNOWN, WRONG, examples_folder, grade
from mcveto.cli.progress import ProgressDisplay
from mcveto.errors import UsageError
from mcveto.search import Question, search
from mcveto.verdict import EXIT_INTERNAL, Verdict

if TYPE_CHECKING:
    from mcveto.program.program import Program

FOLDERS = ("loops", "recursion", "bugs", "arrays", "drivers", "fig10")


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    verdict: Verdict
    grade: str

    @property
    def seconds(self) -> float:
        return float(self.verdict.statistics.get("seconds", 0.0))


def bench_examples(question: Question, only: tuple[str, ...]) -> int:
    root = examples_folder()
    rows: list[Row] = []
    for path in _chosen(root, only):
        row = _run(path, str(path.relative_to(root).with_suffix("")), question)
        if row is None:
            continue
        rows.append(row)
        reason = f"  {row.verdict.headline}" if row.grade != RIGHT else ""
        print(f"{row.name:44} {row.grade:8} {row.verdict.kind:9} {row.seconds:7.2f} s{reason}", flush=True)
        if row.verdict.reason == "interrupted":
            break
    for line in _totals(rows):
        print(line)
    return EXIT_INTERNAL if any(row.grade == WRONG or row.verdict.is_internal_error for row in rows) else 0


def _chosen(root: Path, only: tuple[str, ...]) -> list[Path]:
    """The specs of the example folders, or those below the folders or with the names given."""
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.yaml"))]
    if not only:
        return paths
    chosen = [p for p in paths if any(_matches(str(p.relative_to(root).with_suffix("")), name) for name in only)]
    if not chosen:
        raise UsageError(f"no example is called {' or '.join(only)}", f"folders: {', '.join(FOLDERS)}")
    return chosen


def _matches(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name.rstrip('/')}/") or path.rpartition("/")[2] == name


def _run(path: Path, name: str, question: Question) -> Row | None:
    from mcveto.program.spec import load_spec

    spec = load_spec(str(path))
    if spec.expected is None:
        return None

    def load() -> Program:
        from mcveto.program.program import load_program

        return load_program(None, spec)

    display = ProgressDisplay()
    try:
        verdict = search(load, question, display.show).verdict
    finally:
        display.clear()
    return Row(name, verdict, grade(verdict, spec))


def _totals(rows: list[Row]) -> Iterator[str]:
    folders = sorted({row.name.partition("/")[0] for row in rows})
    for folder in [*folders, ""] if len(folders) > 1 else folders:
        some = [row for row in rows if row.name.startswith(f"{folder}/") or not folder]
        counts = ", ".join(f"{sum(row.grade == kind for row in some)} {kind}" for kind in (RIGHT, UNKNOWN, WRONG))
        times = sorted(row.seconds for row in some if row.grade == RIGHT)
        spread = f"; right ones: median {median(times):.2f} s, slowest {times[-1]:.2f} s" if times else ""
        yield f"{folder or 'all'}: {len(some)} programs, {counts}{spread}"
