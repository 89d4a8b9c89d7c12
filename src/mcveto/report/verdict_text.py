"""A verdict as text: the headline, then what supports it, one fact a line."""

from __future__ import annotations

from collections.abc import Iterator

from mcveto.errors import one_line
from mcveto.verdict import Verdict

MAX_INPUTS_SHOWN = 20
MAX_PATH_SHOWN = 30
_COUNTED = (
    ("concrete_runs", "run"),
    ("symbolic_runs", "symbolic run"),
    ("iterations", "iteration"),
    ("refinements", "refinement"),
    ("predicates", "predicate"),
    ("lemmas", "lemma"),
    ("solver_calls", "solver call"),
    ("instructions_executed", "instruction"),
    ("locations", "location"),
    ("nodes", "node"),
)


def verdict_lines(verdict: Verdict, properties: str) -> Iterator[str]:
    """`properties` says what was asked."""
    yield one_line(verdict.headline)
    if verdict.kind == "violated":
        yield one_line(f"reason: {verdict.reason}")
    for line in verdict.aftermath:
        yield one_line(f"after the violation: {line}")
    yield one_line(f"checked: {properties}")
    for number, item in enumerate(verdict.inputs[:MAX_INPUTS_SHOWN]):
        yield one_line(f"input {number}: {item.value} ({item.bits} bits, {item.where})")
    more = len(verdict.inputs) - MAX_INPUTS_SHOWN
    if more > 0:
        yield f"… and {more} more inputs (--json lists all)"
    yield from path_lines(verdict)
    if verdict.confirmed_by:
        yield f"confirmed by: {', '.join(verdict.confirmed_by)}"
    if verdict.kind == "proved":
        yield from support_lines(verdict)
    else:
        yield from warning_lines(verdict)
    for assumption in verdict.assumptions:
        yield one_line(f"assumption: {assumption}")
    yield f"statistics: {statistics_text(verdict)}"


def path_lines(verdict: Verdict) -> Iterator[str]:
    """The end of the way to a violation, as assembly."""
    more = len(verdict.path) - MAX_PATH_SHOWN
    if more > 0:
        yield f"path: … {more} instructions before (--json lists all)"
    for line in verdict.path[-MAX_PATH_SHOWN:]:
        yield one_line(f"path: {line}")


def support_lines(verdict: Verdict) -> Iterator[str]:
    """How a proof was checked, and whether anything happens in the runs it speaks of."""
    support = verdict.support
    if support.get("obligations") is not None:
        yield f"self-check: {support['obligations']} obligations hold"
    else:
        yield "self-check: skipped"
    met = {None: "", True: ", the assumptions", False: ""}[support.get("assumptions_met")]  # type: ignore[index]
    reached = f"the entry{met}{' and a halt' if support.get('halt_reached') else ''}"
    if support.get("entry_reached"):
        yield f"reached in runs: {reached}"
    yield from warning_lines(verdict)


def warning_lines(verdict: Verdict) -> Iterator[str]:
    for warning in verdict.warnings:
        yield one_line(f"warning: {warning}")


def statistics_text(verdict: Verdict) -> str:
    counts = verdict.statistics
    parts = [
        f"{counts.get('seconds', 0):.2f} s "
        f"({counts.get('cpu_seconds', 0):.2f} s CPU, {counts.get('peak_rss_mb', 0):.0f} MB)"
    ]
    parts += [_plural(int(counts[name]), noun) for name, noun in _COUNTED if name in counts]
    return ", ".join(parts)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
