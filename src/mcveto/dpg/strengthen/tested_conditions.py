"""Candidates from the program's own text: comparisons in its guards, and linear forms with its numbers as factors.

What an outer loop tests holds in the inner one as long as nothing it speaks of changes, and what a program checks at
the end is often what it keeps (the predicates of Graf and Saïdi, CAV 1997, as candidates for Houdini instead of an
abstraction). Order among cells is proposed elsewhere; here are the comparisons as they stand, `j < 3*i`, also where
they are tested at another cut point, either way round and without strictness.

Sums that grow faster than their counter stay below a multiple of it: if a step adds at most c to x when y grows by one,
x - c*y has a bound. The factors tried are the numbers the program compares with (template polyhedra: Sankaranarayanan,
Sipma, Manna, VMCAI 2005).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.candidates import thresholds
from mcveto.dpg.strengthen.places import UNKNOWN
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term, free_variables

MAX_CONDITIONS = 60
MAX_FACTORS = 3
MAX_SCALED_PLACES = 4
LIMITS = 2
LARGEST_FACTOR = 1 << 16
_COMPARISONS = frozenset(("eq", "ult", "ule", "slt", "sle"))
_WEAKER = {"ult": t.ule, "slt": t.sle}


def comparisons(system: System) -> list[Term]:
    """The comparisons in guards that speak of a state alone, both ways and weakened."""
    found: dict[Term, None] = {}
    for step in system.all_steps():
        hidden = set(step.fresh)
        for literal in step.guard:
            atom = literal.args[0] if literal.op == "not" else literal
            if atom.op not in _COMPARISONS or atom in found or not hidden.isdisjoint(free_variables([atom])):
                continue
            if len(system.places.of(atom)) < 2:
                continue  # bounds of single cells have their own stage
            found[atom] = None
            found[t.bnot(atom)] = None
            for strict in (atom, t.bnot(atom)):
                weaker = _WEAKER.get(strict.op)
                if weaker is not None:
                    found[weaker(*strict.args)] = None
    return list(found)[:MAX_CONDITIONS]


def holding(system: System, cut: Location, conditions: Iterable[Term], known: Iterable[Term]) -> list[Term]:
    """The conditions that are true in all samples at a cut point."""
    old = set(known)
    return [
        condition
        for condition in conditions
        if condition not in old and set(system.samples.values(cut, condition)) == {1}
    ]


def factors_of(numbers: Iterable[int]) -> list[int]:
    """The smallest of the program's numbers, given with the neighbours of each, that are worth multiplying with."""
    near = set(numbers)
    found = sorted({abs(n) for n in near if {n - 1, n + 1} <= near and 2 <= abs(n) <= LARGEST_FACTOR})
    return found[:MAX_FACTORS]


def scaled(system: System, cut: Location, places: Sequence[Term]) -> list[Term]:
    """Bounds of x - c*y and x + c*y for the factors and limits that the program's numbers suggest."""
    numbers = thresholds(system)
    found: dict[Term, None] = {}
    for one, other in permutations(places[:MAX_SCALED_PLACES], 2):
        width = one.width
        if width != other.width or not numbers.get(width):
            continue
        half = 1 << (width - 1)
        near = set(numbers[width])
        for factor in factors_of(near):
            for signed_factor in (factor, -factor):
                form = t.sub(one, t.mul(t.const(signed_factor, width), other))
                values = system.samples.values(cut, form)
                if not values or UNKNOWN in values:
                    continue
                seen = [t.signed(value, width) for value in values]
                limits = {0, min(seen), max(seen), *near, *(factor * number for number in near)}
                usable = sorted(limit for limit in limits if -half <= limit < half)
                above = [limit for limit in usable if limit >= max(seen)][:LIMITS]
                below = [limit for limit in usable if limit <= min(seen)][-LIMITS:]
                found.update((t.sle(form, t.const(limit, width)), None) for limit in above)
                found.update((t.sle(t.const(limit, width), form), None) for limit in below)
    return [candidate for candidate in found if candidate.op != "const"]
