"""Candidate invariants at a cut point, from the values the runs saw there (as Daikon does; Ernst et al., TSE 2001).

In stages from cheap to relational, so that the cost stays in proportion: `bounds` (with the numbers the program itself
compares with as limits), `relations` (order, differences and sums, affine relations, congruences, small sets) and
`by_mode` (the same under the condition that a place with few values has one of them). All of them hold in every sample;
whether they hold in every state is for Houdini to find out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from math import gcd

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.affine_hull import affine_relations
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

LIMITS_PER_SIDE = 2
LIMITS_OF_INDICES = 6
OWN_NUMBERS = 3
MAX_RELATED = 14
MAX_PLACES = 40
MAX_MODE_VALUES = 6
MAX_MODES = 4
MAX_SET = 4
# Values of a difference that have something in common by more than chance.
ENOUGH_APART = 3
LEAST_ADDRESS = 1 << 16
_COMPARISONS = frozenset(("eq", "ult", "ule", "slt", "sle"))


def thresholds(system: System) -> dict[int, list[int]]:
    """Per width the numbers that guards compare with, signed, and their neighbours."""
    found: dict[int, set[int]] = {}
    seen: set[Term] = set()
    stack = [term for step in system.all_steps() for term in step.guard]
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        if term.op in _COMPARISONS:
            for number in _compared_numbers(term):
                found.setdefault(term.args[0].width, set()).update((number - 1, number, number + 1))
        stack.extend(term.args)
    return {width: sorted(numbers) for width, numbers in found.items()}


def _compared_numbers(comparison: Term) -> Iterator[int]:
    """The numbers of a comparison, signed. Of x + c <u k, as compilers write that x is in a range, its ends, if they
    are no addresses: of those there are many, since every access is compared with where memory is, and the nearest of
    them would take the place of others."""
    for argument, other in (comparison.args, comparison.args[::-1]):
        width = argument.width
        if argument.op != "const" or width == 1:
            continue
        yield t.signed(argument.data, width)
        if comparison.op in ("ult", "ule") and other.op == "lin" and other.data[0] == (1,):
            added = other.data[1]
            ends = (t.signed(end % (1 << width), width) for end in (argument.data - added, -added))
            yield from (end for end in ends if abs(end) < LEAST_ADDRESS)


class Thresholds:
    """The numbers of the program, computed once per set of steps."""

    def __init__(self) -> None:
        self._known: dict[int, dict[int, list[int]]] = {}

    def bounds(self, system: System, cut: Location, places: Iterable[Term], related: bool) -> list[Term]:
        """Bounds of the places, and with `related` also the relations among them."""
        key = id(system.steps_from[None])
        numbers = self._known.get(key)
        if numbers is None:
            self._known.clear()
            numbers = self._known[key] = thresholds(system)
        found: list[Term] = []
        for place in _ordered(places):
            if place.width > 1:
                # An index that no run saw move has its bound among the program's numbers, not among the nearest.
                most = LIMITS_OF_INDICES if related else LIMITS_PER_SIDE
                found += _bounds(place, system.samples.values(cut, place), numbers.get(place.width, ()), most)
        if related:
            found += relations(system, cut, open_places(system, cut, places))
        return found


def bounds(system: System, cut: Location, places: Iterable[Term], most: int) -> list[Term]:
    """Bounds of the places, `most` on each side."""
    numbers = thresholds(system)
    found: list[Term] = []
    for place in _ordered(places):
        found += _bounds(place, system.samples.values(cut, place), numbers.get(place.width, ()), most)
    return found


def _bounds(place: Term, values: Sequence[int], numbers: Sequence[int], most: int = LIMITS_PER_SIDE) -> list[Term]:
    if not values:
        return []
    width = place.width
    half = 1 << (width - 1)
    signed = [t.signed(value, width) for value in values]
    low, high = min(signed), max(signed)
    power = (1 << max(high, 1).bit_length()) - 1  # of a masked value
    limits = sorted(
        {-1, 0, 1, low, high, min(power, half - 1), *(number for number in numbers if -half <= number < half)}
    )
    own = [number for number in numbers if -half <= number < half]
    above = _first(most, (x for x in limits if x >= high), (x for x in own if x >= high))
    below = _first(most, (x for x in limits[::-1] if x <= low), (x for x in own[::-1] if x <= low))
    found = [t.sle(place, t.const(number, width)) for number in above]
    found += [t.sle(t.const(number, width), place) for number in below]
    if low >= 0:
        found += [t.ule(place, t.const(number, width)) for number in above]
        found += [t.ule(t.const(number, width), place) for number in below if number > 0]
    return [candidate for candidate in found if candidate.op != "const"]


def _first(most: int, limits: Iterable[int], own: Iterable[int]) -> list[int]:
    """The nearest limits, and the nearest of the program's own numbers: a counter ends there, not where runs did."""
    return sorted({*islice(limits, most), *islice(own, OWN_NUMBERS)})


def open_places(system: System, cut: Location, relevant: Iterable[Term], most: int = MAX_RELATED) -> list[Term]:
    """The places worth relating: not constant, more than one bit, memory before registers."""
    constants = system.constants[cut]
    chosen = [place for place in _ordered(relevant) if place not in constants and place.width > 1]
    return sorted(chosen, key=lambda place: (place.op == "var", place.serial))[:most]


def relations(system: System, cut: Location, places: Sequence[Term]) -> list[Term]:
    found: list[Term] = []
    values = {place: system.samples.values(cut, place) for place in places}
    for place in places:
        found += congruences(place, values[place])
        distinct = sorted(set(values[place]))
        if 2 <= len(distinct) <= MAX_SET and len(values[place]) > len(distinct):
            found.append(t.disj(t.eq(place, t.const(value, place.width)) for value in distinct))
    for one, other in combinations(places, 2):
        if one.width == other.width:
            found += pair(one, other, values[one], values[other])
    by_width: dict[int, list[Term]] = {}
    for place in places:
        by_width.setdefault(place.width, []).append(place)
    for width, group in by_width.items():
        found += affine_relations(group, [values[place] for place in group], width)
    return [candidate for candidate in dict.fromkeys(found) if candidate.op != "const"]


def congruences(place: Term, values: Sequence[int]) -> Iterator[Term]:
    width = place.width
    if len(set(values)) < 2:
        return
    step = 0
    for value in values:
        step = gcd(step, abs(t.signed(value, width) - t.signed(values[0], width)))
    power = step & -step
    if power > 1:
        mask = t.const(power - 1, width)
        yield t.eq(t.band(place, mask), t.const(values[0] & (power - 1), width))
    if step > 2 and step != power and all(t.signed(value, width) >= 0 for value in values):
        yield t.eq(t.urem(place, t.const(step, width)), t.const(values[0] % step, width))


def pair(one: Term, other: Term, left: Sequence[int], right: Sequence[int]) -> Iterator[Term]:
    width = one.width
    mask = (1 << width) - 1
    pairs = list(zip(left, right, strict=True))
    differences = {(a - b) & mask for a, b in pairs}
    if len(differences) == 1:
        yield t.eq(t.sub(one, other), t.const(differences.pop(), width))
        return
    if len(differences) >= ENOUGH_APART:
        yield from congruences(t.sub(one, other), [(a - b) & mask for a, b in pairs])
    sums = {(a + b) & mask for a, b in pairs}
    if len(sums) == 1:
        yield t.eq(t.add(one, other), t.const(sums.pop(), width))
    signed = [(t.signed(a, width), t.signed(b, width)) for a, b in pairs]
    for x, y, ordered, plain in (
        (one, other, signed, pairs),
        (other, one, [(b, a) for a, b in signed], [(b, a) for a, b in pairs]),
    ):
        if all(a <= b for a, b in ordered):
            yield t.sle(x, y)
            if all(a < b for a, b in ordered):
                yield t.slt(x, y)
        if all(a <= b for a, b in plain):
            yield t.ule(x, y)
            if all(a < b for a, b in plain):
                yield t.ult(x, y)
        if all(a <= b + 1 for a, b in ordered):
            yield t.sle(x, t.add(y, t.const(1, width)))


def differences(system: System, cut: Location, places: Sequence[Term]) -> list[Term]:
    """Bounds of differences and sums, by the numbers the program compares with (octagons: Miné, HOSC 2006)."""
    numbers = thresholds(system)
    found: list[Term] = []
    for one, other in combinations(places, 2):
        if one.width != other.width:
            continue
        width = one.width
        half = 1 << (width - 1)
        total = t.add(one, other)
        for form in (t.sub(one, other), t.sub(other, one), total):
            seen = [t.signed(value, width) for value in system.samples.values(cut, form)]
            if not seen or form.op == "const" or len(set(seen)) == 1:
                continue
            limits = sorted({0, *(number for number in numbers.get(width, ()) if -half <= number < half)})
            above = [number for number in limits if number >= max(seen)][:LIMITS_PER_SIDE]
            found += [t.sle(form, t.const(number, width)) for number in above]
            if form is total:  # a difference is bounded below as the one the other way round
                below = [number for number in limits if number <= min(seen)][-LIMITS_PER_SIDE:]
                found += [t.sle(t.const(number, width), form) for number in below]
    return [candidate for candidate in dict.fromkeys(found) if candidate.op != "const"]


def by_mode(system: System, cut: Location, places: Sequence[Term], kept: Iterable[Term]) -> list[Term]:
    """Constants, bounds and relations of the samples in which a place with few values has one of them.

    For all but a few of such places only constants are proposed, so that their number stays quadratic."""
    values = {place: system.samples.values(cut, place) for place in places}
    known = set(kept)
    modes = [place for place in places if 2 <= len(set(values[place])) <= MAX_MODE_VALUES]
    modes.sort(key=lambda place: len(set(values[place])))
    found: list[Term] = []
    for rank, mode in enumerate(modes):
        related = set(places[:MAX_RELATED]) if rank < MAX_MODES else set()
        for number in sorted(set(values[mode])):
            condition = t.eq(mode, t.const(number, mode.width))
            chosen = [at for at, value in enumerate(values[mode]) if value == number]
            under = {place: [values[place][at] for at in chosen] for place in places if place is not mode}
            for candidate in _under(under, related):
                if candidate not in known:
                    found.append(t.implies(condition, candidate))
    return [candidate for candidate in dict.fromkeys(found) if candidate.op != "const"]


def _under(values: dict[Term, list[int]], related: set[Term]) -> Iterator[Term]:
    for place, mine in values.items():
        width = place.width
        if min(mine) == max(mine):
            yield t.eq(place, t.const(mine[0], width))
        elif place in related:
            signed = [t.signed(value, width) for value in mine]
            yield t.sle(place, t.const(max(signed), width))
            yield t.sle(t.const(min(signed), width), place)
    for one, other in combinations([place for place in values if place in related], 2):
        if one.width == other.width and len(set(values[one])) > 1 and len(set(values[other])) > 1:
            yield from pair(one, other, values[one], values[other])


def tightest(literals: Iterable[Term]) -> dict[Term, None]:
    """The literals without bounds that another bound of the same kind on the same term implies."""
    best: dict[tuple[str, Term, int], tuple[int, Term]] = {}
    found: dict[Term, None] = {}
    for literal in literals:
        side = next((at for at, x in enumerate(literal.args) if x.op == "const"), -1)
        if literal.op not in ("ult", "ule", "slt", "sle") or side < 0:
            found[literal] = None
            continue
        number = literal.args[side]
        value = t.signed(number.data, number.width) if literal.op in ("slt", "sle") else number.data
        key = (literal.op, literal.args[1 - side], side)
        known = best.get(key)
        if known is None or (value < known[0] if side == 1 else value > known[0]):
            best[key] = (value, literal)
    found.update((literal, None) for _, literal in best.values())
    return found


def _ordered(places: Iterable[Term]) -> list[Term]:
    return sorted(places, key=lambda place: place.serial)
