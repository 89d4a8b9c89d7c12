"""The configurations of a regular set in order of cost.

Best-first search in the determinised automaton: a node is a stack read so far, with the weights of the
states it leads to, so every configuration is met once however many runs accept it. The estimate of what
remains is exact (computed backwards by Dijkstra's algorithm), so nothing is visited that does not lead
to an answer; k answers of length n need O(k·n) nodes, as in Hart, Nilsson and Raphael's A* with a
perfect heuristic. Order: cost, then stack height, then order of insertion. With Boolean weights all
costs are 0: shortest stack first.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from itertools import count, islice
from typing import Generic, TypeVar

from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.pds import Configuration
from mcveto.automata.semirings import SelectiveSemiring
from mcveto.late_methods import dataclass

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)
W = TypeVar("W")

Measure = tuple[int, int]
"""Cost, then number of symbols."""


@dataclass(frozen=True)
class Weighted(Generic[P, G, W]):
    configuration: Configuration[P, G]
    weight: W


@dataclass(frozen=True)
class _Prefix(Generic[P, G, W]):
    control: P
    stack: tuple[G, ...]
    states: dict[int, W]


def in_order(automaton: PAutomaton[P, G, W], semiring: SelectiveSemiring[W]) -> Iterator[Weighted[P, G, W]]:
    """Exactly the accepted configurations with their weights, each once, in order of (cost, stack height).

    `semiring` is the automaton's own, whose extend must be commutative here, as min-plus and Boolean are.
    """
    remaining = _remaining(automaton, semiring)
    queue: list[tuple[Measure, int, _Prefix[P, G, W] | Weighted[P, G, W]]] = []
    pushed = count()

    def push(control: P, stack: tuple[G, ...], states: dict[int, W]) -> None:
        measures = [
            (semiring.cost(weight) + remaining[state][0], remaining[state][1])
            for state, weight in states.items()
            if state in remaining
        ]
        if measures:
            cost, height = min(measures)
            prefix = _Prefix(control, stack, states)
            heapq.heappush(queue, ((cost, len(stack) + height), next(pushed), prefix))

    for control in automaton.controls:
        push(control, (), {automaton.entry(control): semiring.one})
    while queue:
        _, _, node = heapq.heappop(queue)
        if isinstance(node, Weighted):
            yield node
            continue
        total = semiring.zero
        following: dict[G, dict[int, W]] = {}
        for state, weight in node.states.items():
            if automaton.is_final(state):
                total = semiring.combine(total, semiring.extend(weight, automaton.final_weight(state)))
            for symbol, target, step in automaton.transitions_from(state):
                targets = following.setdefault(symbol, {})
                reached = semiring.extend(weight, step)
                targets[target] = semiring.combine(targets.get(target, semiring.zero), reached)
        if total != semiring.zero:
            measure = (semiring.cost(total), len(node.stack))
            heapq.heappush(queue, (measure, next(pushed), Weighted((node.control, node.stack), total)))
        for symbol, targets in following.items():
            push(node.control, (*node.stack, symbol), targets)


def lightest(automaton: PAutomaton[P, G, W], semiring: SelectiveSemiring[W], limit: int) -> list[Weighted[P, G, W]]:
    """The first `limit` configurations of `in_order`; fewer if the set is smaller."""
    return list(islice(in_order(automaton, semiring), limit))


def shortest(automaton: PAutomaton[P, G, W], semiring: SelectiveSemiring[W]) -> Configuration[P, G] | None:
    """An accepted configuration of least (cost, stack height); None if the set is empty."""
    found = lightest(automaton, semiring, 1)
    return found[0].configuration if found else None


def _remaining(automaton: PAutomaton[P, G, W], semiring: SelectiveSemiring[W]) -> dict[int, Measure]:
    """For each state that leads to a final one: least cost, then fewest symbols, from it to acceptance."""
    incoming: dict[int, list[tuple[int, int]]] = {}
    queue: list[tuple[Measure, int]] = []
    for state in range(automaton.state_count):
        for _, target, weight in automaton.transitions_from(state):
            incoming.setdefault(target, []).append((state, semiring.cost(weight)))
        if automaton.is_final(state):
            queue.append(((semiring.cost(automaton.final_weight(state)), 0), state))
    heapq.heapify(queue)
    result: dict[int, Measure] = {}
    while queue:
        measure, state = heapq.heappop(queue)
        if state in result:
            continue
        result[state] = measure
        for source, cost in incoming.get(state, ()):
            if source not in result:
                heapq.heappush(queue, ((measure[0] + cost, measure[1] + 1), source))
    return result
