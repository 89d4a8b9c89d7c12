"""`mcveto bench air`: lock discipline in drivers, Figs. 3 and 4 of Chaki and Ivers (air-powerpc) beside our figures.

Every program of `examples/air` is verified by engine `cegar` under the paper's three treatments of bitwise operations,
and by `dpg`. The paper's programs are not to be had; ours have their shapes and are smaller: the columns compare the
treatments with each other, not the tools. Exit code 0 if no answer is wrong (UNKNOWN is not wrong), 70 otherwise.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcveto.cli.bench import RIGHT, UNKNOWN, WRONG, examples_folder, grade
from mcveto.cli.progress import ProgressDisplay
from mcveto.errors import UsageError
from mcveto.search import BITWISE, Question, search
from mcveto.verdict import EXIT_INTERNAL, Verdict

if TYPE_CHECKING:
    from mcveto.program.program import Program

DPG = "dpg"
WAYS = (*BITWISE, DPG)
_WIDTHS = (30, 13, -5, -5, -4, -4, 10, -8, -7, -6, -5, -5, -6, 8)
_TITLES = ("program", "treatment", "KLOC", "T", "M", "I", "ours", "T", "CPU", "M", "I", "pred", "ref", "")


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    way: str
    verdict: Verdict
    grade: str


def bench_air(timeout: float, seed: int, only: tuple[str, ...]) -> int:
    root = examples_folder() / "air"
    figures = tomllib.loads((root / "paper.toml").read_text(encoding="utf-8"))["row"]
    rows: list[Row] = []
    chosen = _chosen(root, only)
    print(_line(_TITLES))
    for path in chosen:
        paper = _paper_row(path.stem, figures)
        for way in WAYS:
            row = _run(path, str(path.relative_to(root).with_suffix("")), way, timeout, seed)
            rows.append(row)
            print(_line((*_paper_cells(row, paper), *_our_cells(row))), flush=True)
            if row.verdict.reason == "interrupted":
                break
    for line in _totals(rows):
        print(line)
    return EXIT_INTERNAL if any(row.grade == WRONG or row.verdict.is_internal_error for row in rows) else 0


def _chosen(root: Path, only: tuple[str, ...]) -> list[Path]:
    """The specs of the folder, or those whose name begins with one of the names given."""
    paths = sorted(root.rglob("*.yaml"), key=lambda path: (path.parent, path.stem))
    for name in only:
        if not any(path.stem.startswith(name) for path in paths):
            raise UsageError(f"no program of examples/air is called '{name}'", "e.g. memname, or memname-fix-O1")
    return [path for path in paths if not only or any(path.stem.startswith(name) for name in only)]


def _paper_row(stem: str, figures: list[dict[str, Any]]) -> dict[str, Any] | None:
    for row in figures:
        if stem.startswith(f"{row['ours']}-{row['version']}"):
            return row
    return None


def _run(path: Path, name: str, way: str, timeout: float, seed: int) -> Row:
    from mcveto.program.spec import load_spec

    spec = load_spec(str(path))

    def load() -> Program:
        from mcveto.program.program import load_program

        return load_program(None, spec)

    question = Question(
        DPG if way == DPG else "cegar",
        timeout=timeout,
        seed=seed,
        bitwise="interpreted" if way == DPG else way,
    )
    display = ProgressDisplay()
    try:
        verdict = search(load, question, display.show).verdict
    finally:
        display.clear()
    return Row(name, way, verdict, grade(verdict, spec))


def _paper_cells(row: Row, paper: dict[str, Any] | None) -> Iterator[str]:
    yield row.name
    yield row.way
    yield str(paper["kloc"]) if paper is not None else ""
    yield from paper[row.way] if paper is not None and row.way in paper else ("", "", "")


def _our_cells(row: Row) -> Iterator[str]:
    counts = row.verdict.statistics
    yield row.verdict.kind
    yield f"{counts.get('seconds', 0):.2f}"
    yield f"{counts.get('cpu_seconds', 0):.2f}"
    yield f"{counts.get('peak_rss_mb', 0):.0f}"
    for key in ("iterations", "predicates", "refinements"):
        yield str(counts.get(key, "-"))
    yield row.grade


def _totals(rows: list[Row]) -> Iterator[str]:
    for way in WAYS:
        mine = [row for row in rows if row.way == way]
        if not mine:
            continue
        grades = [row.grade for row in mine]
        seconds = sum(float(row.verdict.statistics.get("cpu_seconds", 0)) for row in mine)
        counted = ", ".join(f"{grades.count(kind)} {kind}" for kind in (RIGHT, UNKNOWN, WRONG))
        yield f"{way}: {len(mine)} programs, {counted}, {seconds:.1f} s of CPU time"
    for row in rows:
        if row.grade == UNKNOWN:
            yield f"{row.name} ({row.way}): {row.verdict.headline}"


def _line(cells: Iterable[str]) -> str:
    return " ".join(
        f"{cell:<{width}}" if width > 0 else f"{cell:>{-width}}" for cell, width in zip(cells, _WIDTHS, strict=True)
    ).rstrip()
