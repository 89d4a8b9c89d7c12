"""What counterexamples have in common: groups that fail in the same way, and what every violation passes.

The point of having all counterexamples at once (Basu et al., section 1 and Fig. 1; section 8 proposes the longest
common subsequence of actions as future work). Traces are grouped by their last step: its node and the error state.
Within a group the longest common subsequence of nodes and of events is taken, pair after pair (for more than two
sequences that gives a common one, though not always the longest).

What every violation passes is then *checked on the model*, not only on the traces listed: with all nodes of that kind
blocked, no error may be reachable any more. Such an event or node is where a policy can be refined.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mcveto.counterexamples.finder import Found
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.reachable import Reachable
from mcveto.counterexamples.trace import Witness
from mcveto.property.typestate import ANY, Label, shown

X = TypeVar("X")
MAX_COMPARED = 2_000
MAX_CHECKS = 12
MAX_NODES = 3
SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """Counterexamples (by number) that end at the same node in the same error state."""

    error: str
    node: str
    members: tuple[int, ...]
    nodes: tuple[str, ...]
    events: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Refinement:
    """An event or a node that every violation passes; without it none is left."""

    what: str
    is_event: bool
    nodes: tuple[str, ...]
    lines: tuple[str, ...] = ()
    """What to add to the automaton if the event makes what follows harmless."""


def grouped(witnesses: Sequence[Witness]) -> list[Group]:
    by_end: dict[tuple[str, str], list[int]] = {}
    for number, witness in enumerate(witnesses):
        last = len(witness)
        by_end.setdefault((witness.automaton_state(last), witness.node(last - 1)), []).append(number)
    return [
        Group(
            error,
            node,
            tuple(members),
            tuple(_common([_nodes(witnesses[number]) for number in members])),
            tuple(_common([_events(witnesses[number]) for number in members])),
        )
        for (error, node), members in by_end.items()
    ]


def common_to_all(witnesses: Sequence[Witness]) -> tuple[list[str], list[Label]]:
    """What the counterexamples share, however they fail: nodes and events; nothing if there is only one."""
    if len(witnesses) < 2:
        return [], []
    return _common([_nodes(item) for item in witnesses]), _common([_events(item) for item in witnesses])


def refinements(found: Found) -> list[Refinement]:
    """What every violation of the model passes: events first, the nearest to the error first.

    Every candidate is checked on the model; what does not fit into SECONDS is not claimed. Of a single trace nothing is
    told: it passes everything that it passes.
    """
    if len(found.witnesses) < 2:
        return []
    deadline = time.monotonic() + SECONDS
    first = found.witnesses[0]
    events = [e for e in reversed(_events(first)) if all(e in _events(other) for other in found.witnesses[1:])]
    shared = [_nodes(other)[:-1] for other in found.witnesses]
    nodes = [n for n in reversed(shared[0][1:]) if all(n in other for other in shared[1:])]
    result: list[Refinement] = []
    checks = 0
    for event in dict.fromkeys(events):
        if checks < MAX_CHECKS and time.monotonic() < deadline:
            checks += 1
            where = [node for node in found.product.model.labelled() if event in found.product.model.labels(*node)]
            if _is_cut(found.product, where):
                names = dict.fromkeys(found.product.model.symbols[symbol] for _, symbol in where)
                result.append(Refinement(str(event), True, tuple(names), tuple(_lines(found.product, event))))
    labelled = {name for refinement in result for name in refinement.nodes}
    for name in dict.fromkeys(nodes):
        if checks < MAX_CHECKS and time.monotonic() < deadline and name not in labelled and len(result) < MAX_NODES:
            checks += 1
            symbol = found.product.model.symbol_numbers[name]
            if _is_cut(found.product, [(place, symbol) for place in range(len(found.product.model.controls))]):
                result.append(Refinement(name, False, (name,)))
    return result


def _is_cut(product: Product, nodes: Sequence[tuple[int, int]]) -> bool:
    return not Reachable(Product(product.model, product.automaton, frozenset(nodes))).errors


def _lines(product: Product, event: Label) -> list[str]:
    """The refinement as lines of the automaton: after the event nothing is an error any more.

    Only for events that the automaton does not look at yet, and automata without `any`, which could ignore it.
    """
    automaton = product.automaton
    watched = {transition.pattern.event for transition in automaton.transitions}
    if event.name in watched or ANY in watched:
        return []
    name = "allowed"
    while name in automaton.states:
        name += "_"
    pattern = f"{event.name}({', '.join(map(shown, event.arguments))})" if event.arguments else event.name
    lines = [] if event.name in automaton.events or " " in event.name else [f"event {event.name}"]
    lines.append(f"states {name}")
    lines += [f"{state} -> {name} on {pattern}" for state in automaton.states if state not in automaton.errors]
    return lines


def _nodes(witness: Witness) -> list[str]:
    return [witness.node(number) for number in range(len(witness.states))]


def _events(witness: Witness) -> list[Label]:
    return [label for step in range(len(witness)) for label in witness.labels(step)]


def _common(sequences: Sequence[Sequence[X]]) -> list[X]:
    common = list(sequences[0])
    for other in sequences[1:]:
        common = longest_common_subsequence(common, other)
    return common


def longest_common_subsequence(left: Sequence[X], right: Sequence[X]) -> list[X]:
    """By dynamic programming (Wagner and Fischer, 1974), after common ends are set aside. Of very long sequences only
    the ends are compared."""
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    tail = list(left[len(left) - end :])
    head, left, right = list(left[:start]), left[start : len(left) - end], right[start : len(right) - end]
    if not left or not right or len(left) > MAX_COMPARED or len(right) > MAX_COMPARED:
        return head + tail
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        row, below = table[i], table[i + 1]
        for j in range(len(right) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if left[i] == right[j] else max(below[j], row[j + 1])
    middle: list[X] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            middle.append(left[i])
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return head + middle + tail
