"""Addresses that meet: two elements of one array are some element of it, start + distance * index.

Handlers of several devices meet with a pointer to the one or to the other. A variable that stands for any address would
make every later store through it a store to anywhere. So an index gets a variable instead, with a bound; what is stored
through it stays among the elements and leaves the other fields of all of them alone. Two places within one element that
is not certain itself keep what they have in common (`elements`). Where the distances are not equal, the addresses are
listed, as long as they are few.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import Value
from mcveto.engines.path import Path
from mcveto.engines.simulation.elements import common_summands, element_of, index_of, trailing_zeros
from mcveto.engines.simulation.joined_bounds import NARROW
from mcveto.engines.simulation.meeting import Meeting, Where
from mcveto.engines.simulation.value_ranges import bounds_of, values_of
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace

MOST_PLACES = 512
MOST_LISTED = 1024
# Of distances, at the end: elements of less than a word are told apart by nobody.
FEWEST_ZEROS = 2
Join = Callable[[Value, Value, int, Where], Value]


def may_be_place(value: Value, space: AddressSpace) -> bool:
    """Whether it is worth looking at what a value can be."""
    if isinstance(value, int):
        return value > 0xFFF and space.region_at(value) is not None
    return value.op in ("var", "ite", "zext") or (value.op == "lin" and len(value.args) <= 2)


def _from(element: tuple[int, int] | None, a: Value, b: Value) -> tuple[int, int] | None:
    """The same elements, counted from one of the values if that is a number and comes before."""
    if element is None:
        return None
    distance, start = element
    before = [
        value
        for value in (a, b)
        if isinstance(value, int) and 0 < start - value <= distance * MOST_PLACES and not (start - value) % distance
    ]
    return distance, min([start, *before])


class JoinedPlaces:
    """`join` is handed to every call instead of being kept: nobody looks for cycles of objects during a simulation, and
    each would keep two states."""

    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self._space = meeting.setting.space
        self._elements: dict[tuple[Value, Value], Term] = {}

    def joined(self, a: Value, b: Value, bits: int, where: Where, join: Join) -> Value | None:
        """What stands for two places, or for two distances from one."""
        found = self._strided(a, b, bits, where, join)
        return self._multiple(a, b, bits, where, join) if found is None and not self._meeting.is_loop else found

    def _strided(self, a: Value, b: Value, bits: int, where: Where, join: Join) -> Value | None:
        """Two of a few places at equal distances, start + distance * index: so is what stands for both."""
        meeting = self._meeting
        if bits != meeting.setting.address_bits:
            return None
        element = _from(element_of(a) or element_of(b), a, b)
        if element is not None:
            first, second = index_of(a, *element, bits), index_of(b, *element, bits)
            if first is not None and second is not None:
                index = as_term(join(first, second, bits, where), bits)
                if meeting.is_loop and isinstance(first, int) and isinstance(second, Term) and index.op == "var":
                    # A pointer that has run through an array, in a loop within this one: there is where the array ends.
                    high = max(first, bounds_of(second, meeting.second.path)[1])
                    if high <= MOST_PLACES:
                        meeting.bounds.append(t.ule(index, t.const(high, bits)))
                found = t.add(t.mul(index, t.const(element[0], bits)), t.const(element[1], bits))
                self.note_most(found, a, b)
                return as_value(found)
        if meeting.is_loop:
            return None
        within = self._within_element(a, b, bits, where, join)
        if within is not None:
            return within
        if not (may_be_place(a, self._space) and may_be_place(b, self._space)):
            return None
        known = self._elements.get((a, b))
        if known is not None:
            return known
        places = [self._places(a, meeting.first.path), self._places(b, meeting.second.path)]
        if not places[0] or not places[1]:
            return None
        together = sorted({*places[0], *places[1]})
        distance = gcd(*(place - together[0] for place in together))
        count = (together[-1] - together[0]) // max(distance, 1)
        if distance < 2 or count > MOST_PLACES:
            if len(together) <= MOST_LISTED:
                found = meeting.pairs[bits, a, b] = meeting.fresh(bits, where)
                meeting.bounds.append(t.disj([t.eq(found, t.const(place, bits)) for place in together]))
                return found
            return None
        index = meeting.fresh(bits, where)
        start, step = t.const(together[0], bits), t.const(distance, bits)
        first, second = (as_value(t.udiv(t.sub(as_term(value, bits), start), step)) for value in (a, b))
        meeting.indices.append((index, first, second))
        meeting.bounds.append(t.ule(index, t.const(count, bits)))
        new = self._elements[a, b] = t.add(t.mul(index, t.const(distance, bits)), t.const(together[0], bits))
        return new

    def note_most(self, element: Term, a: Value, b: Value) -> None:
        """A small number is at most what both were, although its index may have wrapped around, and has no bounds."""
        meeting = self._meeting
        if meeting.is_loop or element.op in ("const", "var"):
            return
        sides = (a, meeting.first.path), (b, meeting.second.path)
        most = max(value if isinstance(value, int) else bounds_of(value, path)[1] for value, path in sides)
        if most <= NARROW[-1]:
            meeting.bounds.append(t.ule(element, t.const(most, element.width)))

    def _multiple(self, a: Value, b: Value, bits: int, where: Where, join: Join) -> Value | None:
        """Two small multiples of a power of two: distances from the start of an array to one of its elements."""
        if bits != self._meeting.setting.address_bits or (isinstance(a, int) and isinstance(b, int)):
            return None
        sides = as_term(a, bits), as_term(b, bits)
        zeros = trailing_zeros(*sides)
        paths = (self._meeting.first.path, self._meeting.second.path)
        if zeros < FEWEST_ZEROS or any(
            bounds_of(side, path)[1] > NARROW[-1] for side, path in zip(sides, paths, strict=True)
        ):
            return None
        first, second = (as_value(t.lshr(side, t.const(zeros, bits))) for side in sides)
        return as_value(t.shl(as_term(join(first, second, bits, where), bits), t.const(zeros, bits)))

    def _within_element(self, a: Value, b: Value, bits: int, where: Where, join: Join) -> Value | None:
        """Two places of the same element of an array that is not certain: that element, and what stands for both."""
        found = common_summands(a, b, bits)
        if found is None:
            return None
        common, *rests = found
        paths = (self._meeting.first.path, self._meeting.second.path)
        if any(bounds_of(rest, path)[1] > NARROW[-1] for rest, path in zip(rests, paths, strict=True)):
            return None
        zeros = trailing_zeros(*rests)
        first, second = (as_value(t.lshr(rest, t.const(zeros, bits))) for rest in rests)
        index = as_term(join(first, second, bits, where), bits)
        return as_value(t.add(common, t.shl(index, t.const(zeros, bits))))

    def _places(self, value: Value, path: Path) -> list[int]:
        """The few addresses within one region that a value can be."""
        places = [value] if isinstance(value, int) else values_of(value, path, MOST_LISTED)
        region = self._space.region_at(places[0]) if places else None
        if region is None or places[-1] >= region.end:
            return []
        # What calls leave behind, unlike pointers to functions, is nothing to go to: such lists grow with every call.
        return [] if self._meeting.setting.executor.are_behind_calls(places) else places
