"""`mcveto bench fig10`: the programs of the paper's evaluation (TR1669 Fig. 10), its table beside ours.

Each row is a spec of `examples/fig10/x86-32` with the verdict that is right for the binary. Exit code 0 if no answer is
wrong (UNKNOWN is not wrong), 70 otherwise.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcveto.cli.options import MAX_SEED
from mcveto.cli.progress import ProgressDisplay
from mcveto.errors import UsageError
from mcveto.search import Question, search
from mcveto.verdict import EXIT_INTERNAL, Verdict

if TYPE_CHECKING:
    from mcveto.program.program import Program
    from mcveto.program.spec import Spec

RIGHT, UNKNOWN, WRONG = "right", "unknown", "WRONG"
_COLUMNS = ("outcome", "instr", "CE", "SE", "Ref", "seconds")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the paper's figures, our verdict, and whether that is right."""

    paper: dict[str, Any]
    verdict: Verdict
    grade: str

    @property
    def outcome(self) -> str:
        """Our verdict in the paper's words."""
        match self.verdict.kind, self.verdict.about:
            case "proved", _:
                return "proof"
            case "violated", "return-address":
                return "AE violation"
            case "violated", _:
                return "counterexample"
        return "timeout" if self.verdict.reason == "time-out" else "unknown"

    @property
    def paper_terminated(self) -> bool:
        """Rows without figures exceeded the paper's limit."""
        return "seconds" in self.paper


@click.command()
@click.argument("name", metavar="fig10|air|examples")
@click.option("--timeout", type=float, default=60.0, show_default=True, metavar="S", help="Seconds for each program.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this program (or folder); may be repeated.")
@click.option("--engine", default="dpg", show_default=True, help="For examples: the engine to use.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=0, help="Draws the first run's inputs.")
def command(name: str, timeout: float, only: tuple[str, ...], engine: str, seed: int) -> int:
    """Run the programs of a paper's evaluation and print its table beside ours, or run all examples."""
    if name == "examples":
        from mcveto.cli.bench_examples import bench_examples

        return bench_examples(Question(engine, timeout=timeout, seed=seed), only)
    if name == "air":
        from mcveto.cli.bench_air import bench_air

        return bench_air(timeout, seed, only)
    if name != "fig10":
        raise UsageError(f"there is no benchmark '{name}'", "available: fig10, air, examples")
    folder = examples_folder() / "fig10"
    paper = _paper_rows(folder, only)
    question = Question(timeout=timeout, seed=seed, strategy="paper")
    print(_line(("program", *_titles("paper"), *_titles("mcveto"), "")))
    rows = []
    for figures in paper:
        row = _run(folder / "x86-32" / f"{figures['program']}.yaml", figures, question)
        rows.append(row)
        print(_line((figures["program"], *_paper_cells(figures), *_our_cells(row), row.grade)), flush=True)
        if row.verdict.reason == "interrupted":
            break
    for line in _totals(rows, len(paper)):
        print(line)
    return EXIT_INTERNAL if any(row.grade == WRONG or row.verdict.is_internal_error for row in rows) else 0


def examples_folder() -> Path:
    """The examples of the checkout this package is installed from, or of the current directory."""
    for root in (Path(__file__).parents[3], Path.cwd()):
        if (root / "examples" / "fig10" / "paper.toml").is_file():
            return root / "examples"
    raise UsageError("the example programs are not installed", "run this in a checkout of mcveto")


def grade(verdict: Verdict, spec: Spec) -> str:
    """How a verdict compares with what the spec expects."""
    if verdict.kind == "unknown":
        return UNKNOWN
    about = spec.notes.get("expected_properties")
    is_right = verdict.kind == spec.expected and (verdict.kind == "proved" or about is None or verdict.about in about)
    return RIGHT if is_right else WRONG


def _paper_rows(folder: Path, only: tuple[str, ...]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))["row"]
    programs = [row["program"] for row in rows]
    for name in only:
        if name not in programs:
            import difflib

            nearest = difflib.get_close_matches(name, programs, n=1, cutoff=0.0)
            raise UsageError(f"Fig. 10 has no program '{name}'", f"did you mean '{nearest[0]}'?")
    return [row for row in rows if not only or row["program"] in only]


def _run(path: Path, figures: dict[str, Any], question: Question) -> Row:
    from mcveto.program.spec import load_spec

    spec = load_spec(str(path))

    def load() -> Program:
        from mcveto.program.program import load_program

        return load_program(None, spec)

    display = ProgressDisplay()
    try:
        verdict = search(load, question, display.show).verdict
    finally:
        display.clear()
    return Row(figures, verdict, grade(verdict, spec))


def _titles(who: str) -> Iterator[str]:
    yield f"{who}: {_COLUMNS[0]}"
    yield from _COLUMNS[1:]
    if who == "mcveto":
        yield "CPU"


def _paper_cells(figures: dict[str, Any]) -> Iterator[str]:
    yield figures["outcome"]
    for key in ("instructions", "concrete_executions", "symbolic_executions", "refinements", "seconds"):
        yield str(figures.get(key, "-"))


def _our_cells(row: Row) -> Iterator[str]:
    counts = row.verdict.statistics
    yield row.outcome
    for key in ("distinct_instructions", "concrete_runs", "symbolic_runs", "refinements"):
        yield str(counts.get(key, "-"))
    yield f"{counts['seconds']:.2f}"
    yield f"{counts['cpu_seconds']:.2f}"


def _line(cells: Iterable[str]) -> str:
    widths = (22, 14, -5, -3, -4, -4, -7, 15, -5, -5, -5, -5, -7, -6, 8)
    return " ".join(
        f"{cell:<{width}}" if width > 0 else f"{cell:>{-width}}" for cell, width in zip(cells, widths, strict=True)
    ).rstrip()


def _totals(rows: list[Row], asked: int) -> Iterator[str]:
    grades = [row.grade for row in rows]
    yield f"{len(rows)} of {asked} programs: " + ", ".join(f"{grades.count(kind)} {kind}" for kind in (RIGHT, UNKNOWN))
    yield f"wrong: {grades.count(WRONG)}" + "".join(f" {row.paper['program']}" for row in rows if row.grade == WRONG)
    terminated = [row for row in rows if row.paper_terminated]
    alike = sum(row.outcome == row.paper["outcome"] for row in terminated)
    yield f"where the paper's tool terminated, the same kind of verdict: {alike} of {len(terminated)}"
    for row in rows:
        if row.grade == UNKNOWN and row.outcome == "unknown":
            yield f"{row.paper['program']}: {row.verdict.headline}"
