"""Counterexamples as text and as a JSON record: one trace in full, the others by where they differ from it.

Steps carry the labels call, direct and exit; those that do not change the automaton can be folded (section 5 of the
paper). Text comes from files of others, so every line passes `one_line`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcveto.counterexamples.finder import Found
from mcveto.counterexamples.grouping import Group, Refinement, common_to_all
from mcveto.counterexamples.trace import Witness
from mcveto.errors import one_line
from mcveto.property.typestate import shown

SCHEMA = "mcveto-counterexamples-1"
MAX_STEPS_SHOWN = 60
MAX_STACK_SHOWN = 12
MAX_NODES_NAMED = 4


class Style:
    """`full_stack`: whole stacks rather than their tops; `unfold`: every step, also those without effect."""

    def __init__(self, full_stack: bool = True, unfold: bool = False) -> None:
        self.full_stack = full_stack
        self.unfold = unfold


def text_lines(
    found: Found, groups: list[Group], refinements: list[Refinement], style: Style | None = None
) -> Iterator[str]:
    style = style or Style()
    automaton = found.product.automaton
    if not found.is_violated:
        yield "PROVED"
        yield one_line(f"checked: {automaton.name}: no run of the model reaches an error state")
        return
    yield one_line(f"VIOLATED({automaton.name})")
    yield one_line(count_text(found))
    for note in found.notes:
        yield one_line(f"note: {note}")
    for number, witness in enumerate(found.witnesses):
        error = witness.automaton_state(len(witness))
        meaning = automaton.errors[error]
        yield ""
        yield one_line(
            f"counterexample {number + 1}: {len(witness)} steps to {error}" + (f", {meaning}" * bool(meaning))
        )
        if number == 0:
            yield from (one_line(line) for line in trace_lines(witness, style))
        else:
            yield from (one_line(line) for line in difference_lines(found.witnesses[0], witness, style))
    rest = more_text(found)
    if rest:
        yield ""
        yield one_line(rest)
    yield from (one_line(line) for line in group_lines(found, groups))
    yield from (one_line(line) for line in refinement_lines(refinements))


def count_text(found: Found) -> str:
    total = len(found.witnesses) + found.more
    plural = "counterexample" if total == 1 else "counterexamples"
    if found.is_exhaustive and not found.notes:
        return f"{total} {plural}, and that is all of them"
    return f"{total} {plural} or more ({found.stopped or 'not all are listed'})"


def more_text(found: Found) -> str:
    if not found.more:
        return ""
    return f"… and {'' if found.is_exhaustive else 'at least '}{found.more} more"


def trace_lines(witness: Witness, style: Style, first: int = 0, last: int | None = None) -> Iterator[str]:
    """The states from `first` to `last`, with how each was reached."""
    last = len(witness) if last is None else last
    unfold = style.unfold or last - first < MAX_STEPS_SHOWN
    folded = 0
    for number in range(first, last + 1):
        # The first state, the last one and both sides of every step that changes the automaton are always shown.
        matters = number in (first, last) or witness.is_interesting(number - 1)
        matters = matters or (number < len(witness) and witness.is_interesting(number))
        if not unfold and not matters:
            folded += 1
            continue
        if folded:
            yield f"    … {folded} steps"
            folded = 0
        yield state_line(witness, number, style)


def state_line(witness: Witness, number: int, style: Style) -> str:
    kind = "start" if number == 0 else witness.kind(number - 1).value
    stack = list(witness.stack(number))
    if len(stack) > MAX_STACK_SHOWN:
        stack[MAX_STACK_SHOWN - 2 : -1] = [f"… {len(stack) - MAX_STACK_SHOWN + 1} more …"]
    where = (" ".join(stack) if style.full_stack else witness.node(number)) or "(empty stack)"
    control = witness.control(number)
    if control != ".":
        where = f"{control}: {where}"
    state = witness.automaton_state(number)
    events = ", ".join(map(str, witness.labels(number))) if number < len(witness) else ""
    line = f"  {number:>4} {kind:<6} {where}"
    if number == 0 or witness.is_interesting(number - 1):
        values = ", ".join(f"{name} = {shown(value)}" for name, value in witness.values(number).items())
        line += f"   [{state}{f'; {values}' if values else ''}]"
    return line + (f"   {events}" if events else "")


def difference_lines(first: Witness, other: Witness, style: Style) -> Iterator[str]:
    start, end = common_ends(first, other)
    if start:
        yield f"    as counterexample 1 up to step {start - 1}, then"
    yield from trace_lines(other, style, start, len(other) - end)
    if end:
        yield f"    and on as counterexample 1 from step {len(first) - end + 1}"


def common_ends(first: Witness, other: Witness) -> tuple[int, int]:
    """How many states the two share at the beginning and, beyond those, at the end."""
    left, right = first.states, other.states
    limit = min(len(left), len(right))
    start = 0
    while start < limit and left[start] == right[start]:
        start += 1
    end = 0
    while end < limit - start and left[-1 - end] == right[-1 - end]:
        end += 1
    # At least one state of the difference is left to be shown.
    return (start, end) if start + end < len(right) else (start, max(0, len(right) - start - 1))


def group_lines(found: Found, groups: list[Group]) -> Iterator[str]:
    if len(found.witnesses) < 2:
        return
    yield ""
    for group in groups:
        numbers = ", ".join(_ranges([number + 1 for number in group.members]))
        plural = "s" if len(group.members) > 1 else ""
        yield f"group: {group.error} at {group.node}: counterexample{plural} {numbers}"
        if len(group.members) > 1:
            yield f"  common points: {_shortened([node or '(empty stack)' for node in group.nodes])}"
            if group.events:
                yield f"  common events: {_shortened([str(event) for event in group.events])}"
    if len(groups) > 1:
        nodes, events = common_to_all(found.witnesses)
        yield f"all {len(found.witnesses)} counterexamples"
        yield f"  common points: {_shortened([node or '(empty stack)' for node in nodes])}"
        if events:
            yield f"  common events: {_shortened([str(event) for event in events])}"


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Ascending numbers, three or more in a row as a range."""
    first = 0
    for last, number in enumerate(numbers):
        if last + 1 < len(numbers) and numbers[last + 1] == number + 1:
            continue
        row = numbers[first : last + 1]
        yield from [f"{row[0]}-{row[-1]}"] if len(row) > 2 else map(str, row)
        first = last + 1


def _shortened(items: list[str], limit: int = 16) -> str:
    if len(items) > limit:
        items = [*items[: limit // 2], f"… {len(items) - limit} more …", *items[-limit // 2 :]]
    return " → ".join(items)


def refinement_lines(refinements: list[Refinement]) -> Iterator[str]:
    if refinements:
        yield ""
    for item in refinements:
        if item.is_event:
            where = (
                " or ".join(item.nodes) if len(item.nodes) <= MAX_NODES_NAMED else f"one of {len(item.nodes)} points"
            )
            yield f"every violation passes {where}, where {item.what} happens"
        else:
            yield f"every violation passes {item.what}"
        if item.lines:
            yield "  if what follows is then allowed, refine the property; no violation of this model is left with:"
            yield from (f"    {line}" for line in item.lines)


def record(
    found: Found, groups: list[Group], refinements: list[Refinement], *, version: str, model: str, command: list[str]
) -> dict[str, Any]:
    automaton = found.product.automaton
    return {
        "schema": SCHEMA,
        "mcveto": version,
        "model": model,
        "property": automaton.name,
        "verdict": "violated" if found.is_violated else "proved",
        "exhaustive": found.is_exhaustive and not found.notes,
        "stopped": found.stopped or None,
        "notes": list(found.notes),
        "count": len(found.witnesses),
        "more": found.more,
        "counterexamples": [
            _witness_record(number, witness, found.witnesses[0]) for number, witness in enumerate(found.witnesses)
        ],
        "groups": [
            {
                "error": group.error,
                "node": group.node,
                "members": list(group.members),
                "common_nodes": list(group.nodes),
                "common_events": [str(event) for event in group.events],
            }
            for group in groups
        ],
        "common": dict(zip(("nodes", "events"), _common_record(found), strict=True)),
        "refinements": [
            {"what": item.what, "is_event": item.is_event, "nodes": list(item.nodes), "lines": list(item.lines)}
            for item in refinements
        ],
        "command": command,
    }


def _common_record(found: Found) -> tuple[list[str], list[str]]:
    nodes, events = common_to_all(found.witnesses)
    return nodes, [str(event) for event in events]


def _witness_record(number: int, witness: Witness, first: Witness) -> dict[str, Any]:
    """The first trace in full; of the others the states that differ, between `same_start` and `same_end` states that
    are those of the first."""
    start, end = (0, 0) if number == 0 else common_ends(first, witness)
    return {
        "number": number,
        "length": len(witness),
        "error": witness.automaton_state(len(witness)),
        "same_start": start,
        "same_end": end,
        "states": [_state_record(witness, at) for at in range(start, len(witness.states) - end)],
    }


def _state_record(witness: Witness, number: int) -> dict[str, Any]:
    return {
        "kind": "start" if number == 0 else witness.kind(number - 1).value,
        "control": witness.control(number),
        "stack": list(witness.stack(number)),
        "state": witness.automaton_state(number),
        "values": witness.values(number),
        "events": [str(label) for label in witness.labels(number)] if number < len(witness) else [],
        "changes": number > 0 and witness.is_interesting(number - 1),
    }
