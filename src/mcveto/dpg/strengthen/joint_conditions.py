"""Conditions that never hold together although each of them may: what `explicit_values` tracks where single ones say
nothing of each other.

A compiler keeps a value in a register and a copy of it in memory, and tests one of them here and a byte of the other
there. Both conditions are open, and no combination of values tells that one excludes the other. Their conjunction does:
it is false from the entry on, or from the step that made the copy, which a solver sees; then nobody changes it. A path
whose guards contradict each other gives the conjunction: the guards of the contradiction, taken back to where the path
was before the first of them, and from there further back. (The Cartesian abstraction's remedy in Ball, Podelski,
Rajamani, "Boolean and Cartesian abstraction for model checking C programs", TACAS 2001: predicates that say it.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_PARTS = 6
MAX_TERMS = 60


def joint_conditions(path: Sequence[BigStep], conflict: Iterable[tuple[int, Term]]) -> list[Term]:
    """The conjunction of guards, given by the numbers of their steps, as it is before the first of them and, taken
    back, before the steps before that, as long as it is short."""
    places = sorted(conflict, key=lambda place: (place[0], place[1].serial))
    if not places:
        return []
    first = places[0][0]
    joint = t.conj(_taken_back(path[first:number], literal) for number, literal in places)
    found: list[Term] = []
    for step in reversed(path[:first]):
        if not is_joint(joint) or len(joint.args) > MAX_PARTS or sum(1 for _ in t.postorder([joint])) > MAX_TERMS:
            break
        found.append(joint)
        joint = step.pre(joint)
    return list(dict.fromkeys(found))


def is_joint(item: Term) -> bool:
    return item.op == "and"


def follows(joint: Term, holds: bool, simplified: Callable[[Term], Term]) -> list[Term] | None:
    """What a conjunction says of its parts that do not simplify to a value; None if their values contradict it."""
    parts = [simplified(part) for part in joint.args]
    if holds:
        return None if t.FALSE in parts else [part for part in parts if part is not t.TRUE]
    if t.FALSE in parts:
        return []
    is_open = [part for part in parts if part is not t.TRUE]
    if not is_open:
        return None
    return [t.bnot(is_open[0])] if len(is_open) == 1 else []


def _taken_back(steps: Sequence[BigStep], literal: Term) -> Term:
    for step in reversed(steps):
        literal = step.pre(literal)
    return literal
