"""Relations between the lower halves of registers: numbers of 32 bits on machines of 64.

Compilers keep an `int` in the lower half of a register and clear the upper one at every operation. A sum such as
a + b = 3*i then wraps around at 32 bits, and the same equation between whole registers, which all samples satisfy, is
not inductive: that no sum is so large would have to be known first. So the lower halves that steps compute with are
places of their own, and the candidates of other places (`candidates`) are made of them, and of the words of memory
that are as long. That arithmetic modulo 2^32 is a matter of the word, not of the register, is the point of Müller-Olm
and Seidl, "Analysis of modular arithmetic" (TOPLAS 2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.candidates import bounds, relations
from mcveto.dpg.strengthen.places import UNKNOWN
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

LIMITS_PER_SIDE = 2
WHOLE, HALF = 64, 32


def lower_halves(system: System, places: Sequence[Term]) -> list[Term]:
    """The lower halves of the places that steps read in guards and in what they leave in places."""
    wanted = {t.extract(place, HALF - 1, 0): None for place in places if place.op == "var" and place.width == WHOLE}
    if not wanted:
        return []
    read = set(t.postorder(_computed(system, places)))
    return [half for half in wanted if half in read]


def half_relations(system: System, cut: Location, places: Sequence[Term], halves: Sequence[Term]) -> list[Term]:
    """Candidates at a cut point that mention lower halves."""
    own = set(places)
    chosen = [half for half in halves if half.args[0] in own]
    if not chosen:
        return []
    together = [*chosen, *(place for place in places if place.width == HALF)]
    proposed = [*bounds(system, cut, chosen, LIMITS_PER_SIDE), *relations(system, cut, together)]
    return [candidate for candidate in dict.fromkeys(proposed) if not set(chosen).isdisjoint(t.postorder([candidate]))]


def as_numbers(system: System, cut: Location, places: Sequence[Term], halves: Sequence[Term]) -> list[Term]:
    """The places, but lower halves of registers instead of the whole if one of them was a negative number at the cut
    point: as one of 64 bits that is a large one, of which no relation to others holds."""
    half_of = {half.args[0]: half for half in halves if half.args[0] in places}
    seen = [value for half in half_of.values() for value in system.samples.values(cut, half) if value != UNKNOWN]
    is_negative = any(value >> HALF - 1 for value in seen)
    return [half_of.get(place, place) for place in places] if is_negative else list(places)


def _computed(system: System, places: Sequence[Term]) -> Iterable[Term]:
    for step in system.all_steps():
        yield from step.guard
        if step.target is not None:
            yield from (step.pre(place) for place in places)
