"""Numbers that a program computes only to compare with: half of n, a remainder, something shifted.

A loop that counts to n/2 keeps relations with n/2, not with n, and no cell holds n/2 for long. So quotients, remainders
and numbers shifted to the right that steps test or leave behind are taken for further places, and the same relations
are proposed of them as of others, also under the conditions that the program tests: where n is negative, the loop is
not even entered. (Terms of the program as ghost variables of the templates; as in the products of Sharma et al., see
`products`.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.by_condition import by_condition
from mcveto.dpg.strengthen.candidates import relations
from mcveto.dpg.strengthen.places import UNKNOWN
from mcveto.dpg.strengthen.system import System
from mcveto.logic.terms import Term, free_variables, postorder

MAX_QUANTITIES = 3
MAX_WITH = 6
_DIVISIONS = frozenset(("udiv", "sdiv", "urem", "srem"))


def quantities(system: System, places: Mapping[Location, Sequence[Term]]) -> list[Term]:
    """The quotients, remainders and shifted numbers, of a state alone, in guards and in what steps leave in places."""
    found: dict[Term, None] = {}
    for step in system.all_steps():
        hidden = set(step.fresh)
        left = [step.pre(place) for place in places.get(step.target, ())] if step.target is not None else []
        for term in postorder([*step.guard, *left]):
            if _is_quantity(term) and hidden.isdisjoint(free_variables([term])) and system.places.of(term):
                found[term] = None
    return list(found)


def quantity_relations(system: System, cut: Location, places: Sequence[Term], computed: Sequence[Term]) -> list[Term]:
    """Candidates at a cut point that mention such a number."""
    chosen = [
        term
        for term in computed
        if UNKNOWN not in (values := system.samples.values(cut, term)) and len(set(values)) > 1
    ][:MAX_QUANTITIES]
    if not chosen:
        return []
    together = [*chosen, *places[:MAX_WITH]]
    proposed = [
        *relations(system, cut, together),
        *by_condition(system, cut, together, system.invariants[cut]),
    ]
    return [candidate for candidate in dict.fromkeys(proposed) if not set(chosen).isdisjoint(postorder([candidate]))]


def _is_quantity(term: Term) -> bool:
    if term.op in _DIVISIONS:
        return True
    # x >> k is the upper part of x, extended
    return term.op in ("zext", "sext") and term.args[0].op == "extract" and term.args[0].data[1] > 0
