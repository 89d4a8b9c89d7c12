"""Bounds by powers of two: what keeps sums from wrapping around, where no number of the program is the bound.

A sum that grows by what grows stays far from the ends of its word, and that is all a proof needs to know; its exact
least value is no number that the program compares with, nor one that a few runs have seen. So the powers of two are
limits for places, their differences and sums, and x + c*y with the program's numbers as factors: a sum that falls by at
most c a turn does not fall below -c*y. (Widening thresholds: Blanchet et al., PLDI 2003; templates as in
`tested_conditions`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.candidates import thresholds
from mcveto.dpg.strengthen.places import UNKNOWN
from mcveto.dpg.strengthen.system import System
from mcveto.dpg.strengthen.tested_conditions import MAX_SCALED_PLACES, factors_of
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

# Powers of two that are limits, as distances from the width of the word: of 32 bits 2^16, 2^20, 2^24, 2^28 and 2^30.
BELOW_WIDTH = (16, 12, 8, 4, 2)


def coarse_bounds(system: System, cut: Location, places: Sequence[Term]) -> list[Term]:
    """Candidates at a cut point that hold in all samples."""
    found: dict[Term, None] = {}
    for form in _forms(system, places[:MAX_SCALED_PLACES]):
        values = system.samples.values(cut, form)
        if not values or UNKNOWN in values or form.op == "const":
            continue
        width = form.width
        seen = [t.signed(value, width) for value in values]
        for limit in (1 << (width - less) for less in BELOW_WIDTH if less < width):
            if max(seen) <= limit:
                found[t.sle(form, t.const(limit, width))] = None
            if min(seen) >= -limit:
                found[t.sle(t.const(-limit, width), form)] = None
    return [candidate for candidate in found if candidate.op != "const"]


def _forms(system: System, places: Sequence[Term]) -> Iterator[Term]:
    factors = {width: factors_of(numbers) for width, numbers in thresholds(system).items()}
    yield from places
    for one, other in combinations(places, 2):
        if one.width == other.width:
            yield t.sub(one, other)
            yield t.add(one, other)
    for one, other in permutations(places, 2):
        if one.width == other.width:
            for factor in factors.get(one.width, ()):
                yield t.add(one, t.mul(t.const(factor, one.width), other))
                yield t.sub(one, t.mul(t.const(factor, one.width), other))
