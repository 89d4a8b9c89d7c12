"""Counterexamples of a binary as text and as a JSON record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mcveto.counterexamples.entry_values import Confirmed
from mcveto.counterexamples.extraction import OVER_APPROXIMATED
from mcveto.counterexamples.feasible import Dies, NeverReached, Open
from mcveto.counterexamples.grouping import grouped, refinements
from mcveto.counterexamples.machine_code import MachineFound, Tried
from mcveto.counterexamples.rendering import (
    Style,
    difference_lines,
    group_lines,
    record,
    refinement_lines,
    trace_lines,
)
from mcveto.errors import one_line

MAX_REJECTED_SHOWN = 20


def machine_lines(result: MachineFound, style: Style, shown: int) -> Iterator[str]:
    """Everything below the headline, with so many counterexamples."""
    return map(one_line, _lines(result, style, shown))


def _lines(result: MachineFound, style: Style, shown: int) -> Iterator[str]:
    confirmed = result.confirmed
    rejected = [item for item in result.tried if not isinstance(item.outcome, Confirmed)]
    plural = "counterexample" if len(confirmed) == 1 else "counterexamples"
    tried = (
        "1 trace of the model that was"
        if len(result.tried) == 1
        else f"{len(result.tried)} traces of the model that were"
    )
    yield f"{len(confirmed)} {plural} with inputs, of {tried} tried"
    yield completeness(result)
    for number, item in enumerate(confirmed[:shown]):
        assert isinstance(item.outcome, Confirmed)
        yield ""
        yield f"counterexample {number + 1}: {result.errors[item.outcome.error][1]}, confirmed by the emulator"
        for index, consumed in enumerate(item.outcome.inputs):
            yield f"  input {index}: {consumed.value} ({consumed.bits} bits, {consumed.where})"
        if number == 0:
            yield from trace_lines(item.witness, style)
        else:
            yield from difference_lines(confirmed[0].witness, item.witness, style)
    if len(confirmed) > shown:
        yield ""
        yield f"… and {len(confirmed) - shown} more counterexamples with inputs (--max {len(confirmed)} shows them)"
    if rejected:
        yield ""
    for item in rejected[:MAX_REJECTED_SHOWN]:
        yield rejection(item)
    if len(rejected) > MAX_REJECTED_SHOWN:
        yield f"… and {len(rejected) - MAX_REJECTED_SHOWN} more that are infeasible or undecided"
    feasible = replace(result.found, witnesses=tuple(item.witness for item in confirmed))
    yield from group_lines(feasible, grouped(feasible.witnesses))
    yield from refinement_lines(refinements(feasible))
    yield ""
    yield f"note: {OVER_APPROXIMATED}"
    for note in (*result.found.notes, *result.extracted.gaps):
        yield f"note: {note}"


def completeness(result: MachineFound) -> str:
    if result.is_proved:
        return "there are none: that is proved"
    if result.is_exhaustive:
        return "these are all, up to rounds of loops and unnecessary recursion"
    reasons = []
    undecided = sum(isinstance(item.outcome, Open) for item in result.tried)
    if undecided:
        reasons.append("1 trace is undecided" if undecided == 1 else f"{undecided} traces are undecided")
    if result.extracted.gaps:
        reasons.append("the model has gaps")
    if result.found.more:
        reasons.append(f"{result.found.more} more traces were not tried")
    if not result.found.is_exhaustive:
        reasons.append(result.found.stopped or "not all traces were looked at")
    return f"there may be more: {'; '.join(reasons) or 'recursion was cut'}"


def rejection(item: Tried) -> str:
    where = f"trace of {len(item.witness)} steps"
    if isinstance(item.outcome, Dies):
        node = item.witness.node(item.outcome.position)
        return f"infeasible: {where}, dies at {node} (step {item.outcome.position}, {item.outcome.pc:#x})"
    if isinstance(item.outcome, NeverReached):
        error = item.witness.automaton_state(len(item.witness))
        return f"infeasible: {where}: no input reaches {error} at all (proved as verify does)"
    assert isinstance(item.outcome, Open)
    return f"undecided: {where}: {item.outcome.why}"


def machine_record(
    result: MachineFound, verdict: str, *, version: str, path: str, command: list[str]
) -> dict[str, Any]:
    confirmed = [item.witness for item in result.confirmed]
    feasible = replace(result.found, witnesses=tuple(confirmed))
    base = record(feasible, grouped(confirmed), refinements(feasible), version=version, model=path, command=command)
    for entry, item in zip(base["counterexamples"], result.confirmed, strict=True):
        assert isinstance(item.outcome, Confirmed)
        entry["inputs"] = [{"value": i.value, "bits": i.bits, "where": i.where} for i in item.outcome.inputs]
        entry["confirmed_by"] = ["emulator"]
        entry["means"] = result.errors[item.outcome.error][1]
        for state in entry["states"]:
            node = state["stack"][0] if state["stack"] else None
            state["address"] = result.extracted.addresses.get(node) if node is not None else None
    rejected = [item for item in result.tried if not isinstance(item.outcome, Confirmed)]
    return {
        **base,
        "verdict": verdict,
        "exhaustive": result.is_exhaustive,
        "tried": len(result.tried),
        "rejected": [_rejected_record(item) for item in rejected],
        "over_approximated": OVER_APPROXIMATED,
        "gaps": list(result.extracted.gaps),
    }


def _rejected_record(item: Tried) -> dict[str, Any]:
    outcome = item.outcome
    return {
        "feasible": None if isinstance(outcome, Open) else False,
        "length": len(item.witness),
        "nodes": [item.witness.node(number) for number in range(len(item.witness))],
        "dies_at_step": outcome.position if isinstance(outcome, Dies) else None,
        "address": outcome.pc if isinstance(outcome, Dies) else None,
        "reason": _reason(item),
    }


def _reason(item: Tried) -> str | None:
    if isinstance(item.outcome, Open):
        return item.outcome.why
    return "its error is proved to be never reached" if isinstance(item.outcome, NeverReached) else None
