"""Equations between places and products of two of them that all samples satisfy.

The products are taken for further places, and the affine relations of all of these are polynomial equations of degree
two (Sharma, Gupta, Hariharan, Aiken, Nori: A Data Driven Approach for Algebraic Loop Invariants, ESOP 2013): a sum of
the first numbers is twice its counter times the next one. Terms distribute products over sums, so that the step of a
loop usually turns such an equation into itself and no solver has to multiply. Proposed only where the program itself
multiplies two values. Samples with a product that does not fit are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.affine_hull import affine_relations
from mcveto.dpg.strengthen.places import UNKNOWN
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term, postorder

MAX_FACTORS = 5
MAX_SAMPLES = 120


def multiplies(terms: Iterable[Term]) -> bool:
    """Whether two values are multiplied anywhere in the terms."""
    return any(term.op == "mul" for term in postorder(list(terms)))


def of_degree_two(places: Sequence[Term], samples: Sequence[Sequence[int]], width: int) -> list[Term]:
    """Equations with at least one product, for places of one width with their values in the same samples."""
    pairs = list(combinations_with_replacement(range(len(places)), 2))
    half = 1 << (width - 1)
    columns: list[list[int]] = [[] for _ in range(len(places) + len(pairs))]
    for row in dict.fromkeys(zip(*samples, strict=True)):
        values = [t.signed(value, width) for value in row]
        products = [values[i] * values[j] for i, j in pairs]
        if all(-half <= product < half for product in products):
            for column, value in zip(columns, (*values, *products), strict=True):
                column.append(value & (2 * half - 1))
        if len(columns[0]) >= MAX_SAMPLES:
            break
    if len(columns[0]) <= len(columns):
        return []  # then there are equations that say nothing
    terms = [*places, *(t.mul(places[i], places[j]) for i, j in pairs)]
    return [equation for equation in affine_relations(terms, columns, width) if multiplies([equation])]


def product_relations(system: System, cut: Location, places: Sequence[Term]) -> list[Term]:
    """Candidates at a cut point."""
    found: list[Term] = []
    by_width: dict[int, list[Term]] = {}
    for place in places:
        by_width.setdefault(place.width, []).append(place)
    for width, group in by_width.items():
        values = {place: system.samples.values(cut, place) for place in group}
        usable = [place for place in group if len(set(values[place])) > 1 and UNKNOWN not in values[place]]
        chosen = usable[:MAX_FACTORS]
        if chosen:
            found += of_degree_two(chosen, [values[place] for place in chosen], width)
    return [candidate for candidate in dict.fromkeys(found) if candidate.op != "const"]
