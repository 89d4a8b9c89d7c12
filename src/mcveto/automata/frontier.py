"""Frontiers: the edges from executed configurations into the unexecuted part of the chop.

TR1669 section 3.3: InChopButNotExecuted = post*(start) ∩ pre*(target) ∩ ¬X, and Frontiers = ID[X] ∘
post ∘ ID[InChopButNotExecuted]. The paper composes transducers. Since `post` changes a prefix of at
most two stack symbols and copies the rest, the composition splits by rule: for r = ⟨p,γ⟩ ↪ ⟨p',w⟩ it is
the regular set of tails v with ⟨p,γv⟩ ∈ X and ⟨p',wv⟩ ∈ InChopButNotExecuted. We build exactly these
sets, as one P-automaton whose control locations are the rules; the tests compare it with the
composition in OpenFst. Weights are distances, from start or to target, of the edge's unexecuted end, as
in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum
from typing import Generic, TypeVar

from mcveto.automata.lightest_configurations import lightest
from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.pds import PDS, Configuration, Rule
from mcveto.automata.post_star import post_star, weighted_post_star
from mcveto.automata.pre_star import pre_star, weighted_pre_star
from mcveto.automata.regular_sets import Blueprint, build, difference, intersect_weighted, lifted, restrict
from mcveto.automata.semirings import MIN_PLUS
from mcveto.late_methods import dataclass

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)

Distances = PAutomaton[P, G, int | None]


class Near(Enum):
    """What frontiers are measured against; ANY leaves all weights 0."""

    ANY = "any"
    START = "start"
    TARGET = "target"


@dataclass(frozen=True)
class Frontier(Generic[P, G]):
    """An edge (source, target) by `rule`, with the distance by which it was chosen."""

    rule: Rule[P, G]
    source: Configuration[P, G]
    target: Configuration[P, G]
    distance: int


def in_chop_but_not_executed(
    pds: PDS[P, G],
    start: PAutomaton[P, G, bool],
    target: PAutomaton[P, G, bool],
    executed: PAutomaton[P, G, bool],
    near: Near = Near.ANY,
    weight: Callable[[Rule[P, G]], int] = lambda _: 1,
) -> Distances[P, G]:
    """The set post*(start) ∩ pre*(target) ∖ executed, weighted by the distance from start or to target."""
    chop: Distances[P, G]
    if near is Near.START:
        chop = restrict(weighted_post_star(pds, start, MIN_PLUS, weight).configurations, pre_star(pds, target))
    elif near is Near.TARGET:
        chop = restrict(weighted_pre_star(pds, target, MIN_PLUS, weight).configurations, post_star(pds, start))
    else:
        forward = lifted(post_star(pds, start), MIN_PLUS)
        chop = intersect_weighted(forward, pre_star(pds, target), lambda one, _: one, MIN_PLUS)
    return difference(chop, executed)


def frontiers(
    pds: PDS[P, G], executed: PAutomaton[P, G, bool], unexecuted: Distances[P, G]
) -> PAutomaton[Rule[P, G], G, int | None]:
    """The set of (r, v) with r = ⟨p,γ⟩ ↪ ⟨p',w⟩, ⟨p,γv⟩ ∈ executed and ⟨p',wv⟩ ∈ unexecuted; the weight of
    (r, v) is that of ⟨p',wv⟩ in unexecuted."""
    roots: dict[Rule[P, G], list[tuple[tuple[int, int], int | None]]] = {}
    for rule in pds.rules:
        before = executed.read(rule.control, (rule.symbol,))
        after = unexecuted.read(rule.target, rule.pushed)
        if before and after:
            roots[rule] = [((x, y), distance) for x in before for y, distance in after.items()]

    def successors(key: tuple[int, int]) -> list[tuple[G, tuple[int, int], int | None]]:
        return [
            (symbol, (x, y), distance)
            for symbol, y, distance in unexecuted.transitions_from(key[1])
            for x, _ in executed.transitions_on(key[0], symbol)
        ]

    def final(key: tuple[int, int]) -> int | None:
        return unexecuted.final_weight(key[1]) if executed.is_final(key[0]) else None

    return build(Blueprint(roots, successors, final), MIN_PLUS)


def closest(found: PAutomaton[Rule[P, G], G, int | None], limit: int) -> list[Frontier[P, G]]:
    """The `limit` frontiers of least distance, nearest first, then by stack height."""
    result = []
    for answer in lightest(found, MIN_PLUS, limit):
        rule, tail = answer.configuration
        source = (rule.control, (rule.symbol, *tail))
        result.append(Frontier(rule, source, rule.apply(source), MIN_PLUS.cost(answer.weight)))
    return result


def closest_frontiers(
    pds: PDS[P, G],
    start: PAutomaton[P, G, bool],
    target: PAutomaton[P, G, bool],
    executed: PAutomaton[P, G, bool],
    limit: int,
    near: Near = Near.ANY,
    weight: Callable[[Rule[P, G]], int] = lambda _: 1,
) -> list[Frontier[P, G]]:
    """The `limit` edges from `executed` into the unexecuted chop that are nearest to start or target."""
    unexecuted = in_chop_but_not_executed(pds, start, target, executed, near, weight)
    return closest(frontiers(pds, executed, unexecuted), limit)
