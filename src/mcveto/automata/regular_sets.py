"""Union, intersection, difference and complement of regular sets of configurations.

Textbook product and subset constructions on P-automata, made on the fly from the entry states by one
builder, and trimmed to states from which a final state is reached. In a result no transition leads into
an entry state, which is the form that pre* and post* start from. The difference determinises only its
right operand, and only where the left one goes: this is how TR1669's "∩ ¬X" (section 3.3) is computed
without ever building the complement over the whole stack alphabet.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.semirings import BOOLEAN, Semiring

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
W = TypeVar("W")
X = TypeVar("X")


class Blueprint(Generic[P, G, K, W]):
    """An automaton given by the weighted start keys of each control, successors and final weights of keys."""

    def __init__(
        self,
        roots: Mapping[P, Sequence[tuple[K, W]]],
        successors: Callable[[K], Iterable[tuple[G, K, W]]],
        final: Callable[[K], W],
    ) -> None:
        self.roots = roots
        self.successors = successors
        self.final = final


def build(
    blueprint: Blueprint[P, G, K, W], semiring: Semiring[W], *, against_reading: bool = False
) -> PAutomaton[P, G, W]:
    """The P-automaton that the blueprint describes, without states from which nothing is accepted."""
    edges: dict[K, list[tuple[G, K, W]]] = {}
    worklist = [key for starts in blueprint.roots.values() for key, _ in starts]
    predecessors: dict[K, list[K]] = {}
    while worklist:
        key = worklist.pop()
        if key in edges:
            continue
        edges[key] = [edge for edge in blueprint.successors(key) if edge[2] != semiring.zero]
        for _, target, _ in edges[key]:
            predecessors.setdefault(target, []).append(key)
            worklist.append(target)
    useful: dict[K, None] = {}
    worklist = [key for key in edges if blueprint.final(key) != semiring.zero]
    while worklist:
        key = worklist.pop()
        if key not in useful:
            useful[key] = None
            worklist.extend(predecessors.get(key, ()))

    result: PAutomaton[P, G, W] = PAutomaton(semiring, against_reading=against_reading)
    states = {key: result.new_state() for key in edges if key in useful}
    for key, state in states.items():
        result.add_final(state, blueprint.final(key))
        for symbol, target, weight in edges[key]:
            if target in states:
                result.add(state, symbol, states[target], weight)
    for control, starts in blueprint.roots.items():
        entry = result.entry(control)
        for key, before in starts:
            if key in states:
                result.add_final(entry, result.sequence(before, blueprint.final(key)))
                for symbol, target, weight in edges[key]:
                    if target in states:
                        result.add(entry, symbol, states[target], result.sequence(before, weight))
    return result


def union(left: PAutomaton[P, G, W], right: PAutomaton[P, G, W]) -> PAutomaton[P, G, W]:
    """The set left ∪ right; the weight of a configuration is the combine of its weights in both."""
    _same_reading(left, right)
    sides = (left, right)
    one = left.semiring.one
    roots: dict[P, list[tuple[tuple[int, int], W]]] = {}
    for side, automaton in enumerate(sides):
        for control in automaton.controls:
            roots.setdefault(control, []).append(((side, automaton.entry(control)), one))

    def successors(key: tuple[int, int]) -> list[tuple[G, tuple[int, int], W]]:
        return [(symbol, (key[0], to), weight) for symbol, to, weight in sides[key[0]].transitions_from(key[1])]

    blueprint = Blueprint(roots, successors, lambda key: sides[key[0]].final_weight(key[1]))
    return build(blueprint, left.semiring, against_reading=left.against_reading)


def lifted(
    automaton: PAutomaton[P, G, bool], semiring: Semiring[W], *, against_reading: bool = False
) -> PAutomaton[P, G, W]:
    """The same set, each configuration with weight one; no transition leads into an entry state."""
    one = semiring.one
    roots = {control: [(automaton.entry(control), one)] for control in automaton.controls}

    def successors(state: int) -> list[tuple[G, int, W]]:
        return [(symbol, target, one) for symbol, target, _ in automaton.transitions_from(state)]

    def final(state: int) -> W:
        return one if automaton.is_final(state) else semiring.zero

    return build(Blueprint(roots, successors, final), semiring, against_reading=against_reading)


def intersect_weighted(
    left: PAutomaton[P, G, V],
    right: PAutomaton[P, G, W],
    pair: Callable[[V, W], X],
    semiring: Semiring[X],
    *,
    against_reading: bool = False,
) -> PAutomaton[P, G, X]:
    """The set left ∩ right. Where `pair` distributes over combine and extend on both sides, the weight of a
    configuration is pair(its weight in left, its weight in right)."""
    one = semiring.one
    roots = {
        control: [((left.entry(control), right.entry(control)), one)]
        for control in left.controls
        if right.find_entry(control) is not None
    }

    def successors(key: tuple[int, int]) -> list[tuple[G, tuple[int, int], X]]:
        return [
            (symbol, (to_left, to_right), pair(in_left, in_right))
            for symbol, to_left, in_left in left.transitions_from(key[0])
            for to_right, in_right in right.transitions_on(key[1], symbol)
        ]

    def final(key: tuple[int, int]) -> X:
        if not left.is_final(key[0]) or not right.is_final(key[1]):
            return semiring.zero
        return pair(left.final_weight(key[0]), right.final_weight(key[1]))

    return build(Blueprint(roots, successors, final), semiring, against_reading=against_reading)


def intersect(left: PAutomaton[P, G, bool], right: PAutomaton[P, G, bool]) -> PAutomaton[P, G, bool]:
    """The set left ∩ right."""
    return intersect_weighted(left, right, lambda one, other: one and other, BOOLEAN)


def restrict(left: PAutomaton[P, G, W], right: PAutomaton[P, G, V]) -> PAutomaton[P, G, W]:
    """The set left ∩ right, with the weights that configurations have in left."""
    return intersect_weighted(
        left, right, lambda weight, _: weight, left.semiring, against_reading=left.against_reading
    )


def difference(left: PAutomaton[P, G, W], right: PAutomaton[P, G, V]) -> PAutomaton[P, G, W]:
    """The set left ∖ right, with the weights that configurations have in left."""
    one = left.semiring.one
    roots: dict[P, list[tuple[tuple[int, tuple[int, ...]], W]]] = {}
    for control in left.controls:
        start = right.find_entry(control)
        roots[control] = [((left.entry(control), () if start is None else (start,)), one)]

    def successors(key: tuple[int, tuple[int, ...]]) -> Iterable[tuple[G, tuple[int, tuple[int, ...]], W]]:
        moved: dict[G, tuple[int, ...]] = {}
        for symbol, target, weight in left.transitions_from(key[0]):
            if symbol not in moved:
                moved[symbol] = tuple(sorted({to for state in key[1] for to, _ in right.transitions_on(state, symbol)}))
            yield symbol, (target, moved[symbol]), weight

    def final(key: tuple[int, tuple[int, ...]]) -> W:
        rejected = any(right.is_final(state) for state in key[1])
        return left.semiring.zero if rejected else left.final_weight(key[0])

    return build(Blueprint(roots, successors, final), left.semiring, against_reading=left.against_reading)


def universe(controls: Iterable[P], symbols: Iterable[G]) -> PAutomaton[P, G, bool]:
    """The set controls × symbols*."""
    alphabet = tuple(symbols)
    roots = {control: [(0, True)] for control in controls}
    return build(Blueprint(roots, lambda _: [(symbol, 0, True) for symbol in alphabet], lambda _: True), BOOLEAN)


def complement(automaton: PAutomaton[P, G, W], controls: Iterable[P], symbols: Iterable[G]) -> PAutomaton[P, G, bool]:
    """The set controls × symbols* ∖ automaton."""
    return difference(universe(controls, symbols), automaton)


def is_empty(automaton: PAutomaton[P, G, W]) -> bool:
    """Whether no configuration is accepted."""
    worklist = [automaton.entry(control) for control in automaton.controls]
    seen = dict.fromkeys(worklist)
    while worklist:
        state = worklist.pop()
        if automaton.is_final(state):
            return False
        for _, target, _ in automaton.transitions_from(state):
            if target not in seen:
                seen[target] = None
                worklist.append(target)
    return True


def _same_reading(left: PAutomaton[P, G, W], right: PAutomaton[P, G, W]) -> None:
    if left.against_reading != right.against_reading:
        raise ValueError("the operands extend weights in opposite orders")
