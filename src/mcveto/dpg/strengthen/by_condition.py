"""Candidates under a condition that the program itself tests: what holds in one phase of a loop.

`by_mode` splits the samples by the value of a cell with few values. A loop whose phases are told apart by a comparison,
`x < 50`, has no such cell; there the comparisons in the guards of the steps from a cut point split the samples, and
constants, bounds, orders, congruences and affine relations of either part are proposed under its condition (disjunctive
invariants from guards: Sharma, Dillig, Dillig, Aiken, "Simplifying loop invariant generation using splitter
predicates", CAV 2011; we do not split the loop, only the candidates).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.affine_hull import affine_relations
from mcveto.dpg.strengthen.candidates import congruences, pair
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term, free_variables

MAX_CONDITIONS = 8
MAX_PLACES = 8
_COMPARISONS = frozenset(("eq", "ult", "ule", "slt", "sle"))


def by_condition(system: System, cut: Location, places: Sequence[Term], kept: Iterable[Term]) -> list[Term]:
    chosen = list(places)[:MAX_PLACES]
    values = {place: system.samples.values(cut, place) for place in chosen}
    known = set(kept)
    found: dict[Term, None] = {}
    for condition in _conditions(system, cut)[:MAX_CONDITIONS]:
        truth = system.samples.values(cut, condition)
        for holds in (1, 0):
            at = [number for number, value in enumerate(truth) if value == holds]
            under = {place: [values[place][number] for number in at] for place in chosen}
            premise = condition if holds else t.bnot(condition)
            for candidate in _relations(under):
                if candidate not in known and candidate.op != "const":
                    found[t.implies(premise, candidate)] = None
    return [candidate for candidate in found if candidate.op != "const"]


def _conditions(system: System, cut: Location) -> list[Term]:
    """The comparisons of the guards from here that were true in some samples and false in others."""
    found: dict[Term, None] = {}
    for step in system.steps_from[cut]:
        hidden = set(step.fresh)
        for literal in step.guard:
            atom = literal.args[0] if literal.op == "not" else literal
            if atom.op in _COMPARISONS and hidden.isdisjoint(free_variables([atom])):
                found[atom] = None
    return [atom for atom in found if set(system.samples.values(cut, atom)) == {0, 1}]


def _relations(values: dict[Term, list[int]]) -> list[Term]:
    """What holds of a part of the samples."""
    found: list[Term] = []
    moving: list[Term] = []
    for place, mine in values.items():
        width = place.width
        if min(mine) == max(mine):
            found.append(t.eq(place, t.const(mine[0], width)))
            continue
        moving.append(place)
        signed = [t.signed(value, width) for value in mine]
        found += [t.sle(place, t.const(max(signed), width)), t.sle(t.const(min(signed), width), place)]
        found += congruences(place, mine)
    groups: dict[int, list[Term]] = {}
    for place in moving:
        groups.setdefault(place.width, []).append(place)
    for width, group in groups.items():
        for number, one in enumerate(group):
            for other in group[number + 1 :]:
                found += pair(one, other, values[one], values[other])
        found += affine_relations(group, [values[place] for place in group], width)
    return found
