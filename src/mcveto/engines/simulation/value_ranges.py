"""Bounds of a term, read off its operators and off comparisons in the path; no solver is asked."""

from __future__ import annotations

from functools import lru_cache

from mcveto.engines.path import Group, Path
from mcveto.engines.simulation.low_bits import aligned, low_bits
from mcveto.logic import terms as t
from mcveto.logic.linear import without_constant
from mcveto.logic.terms import Term

Range = tuple[int, int]
_DEPTH = 12


class Limits(dict[Term, Range]):
    """Bounds of terms that a path compares with numbers."""

    def __init__(self) -> None:
        self.parts: dict[Term, set[Term]] = {}
        """Of a word, which of its parts have some."""
        self.excluded: dict[Term, set[int]] = {}
        """What a term is said not to be."""
        self.has_sums = False
        """Whether some are of sums, without their constant."""


def bounds_of(term: Term, path: Path) -> Range:
    """Least and greatest value of an unsigned term, or bounds beyond them; sound whatever the term is."""
    groups = path.groups_about(term)
    return _bounds_within(term, groups[0]) if len(groups) == 1 else _bounds_among(term, _limits_of_all(groups))


@lru_cache(maxsize=1 << 12)
def _bounds_within(term: Term, group: Group) -> Range:
    return _bounds_among(term, _limits_of(group))


def _bounds_among(term: Term, limits: Limits) -> Range:
    return aligned(*_bounds(term, limits, _DEPTH), low_bits(term))


def _limits_of_all(groups: list[Group]) -> Limits:
    """Groups share no variables, so that what one says is no part of another."""
    limits = Limits()
    for group in groups:
        found = _limits_of(group)
        limits.update(found)
        limits.parts.update(found.parts)
        limits.has_sums |= found.has_sums
    return limits


@lru_cache(maxsize=1 << 11)
def _limits_of(group: Group) -> Limits:
    limits = Limits()
    for conjunct in group.terms:
        for condition, value in ((conjunct, 1), (t.bnot(conjunct), 0)):
            limits[condition] = (value, value)
            if condition.op == "extract":
                limits.parts.setdefault(condition.args[0], set()).add(condition)
        _read(conjunct, True, limits)
        if conjunct.op == "or":
            listed = listing(conjunct)
            if listed is not None:
                _limit(listed[0], min(listed[1]), max(listed[1]), limits)
    for other, numbers in limits.excluded.items():
        _exclude(other, numbers, limits)
    for conjunct in group.terms:
        _read_signed(conjunct, limits)
    compared = [conjunct for conjunct in group.terms if _compare(conjunct, limits)]
    for conjunct in compared:
        _compare(conjunct, limits)  # bounds of sums are of use where those of their variable are known
    return limits


def is_excluded(condition: Term, path: Path) -> bool:
    """Whether bounds say that a comparison with a number does not hold: the other way of a branch that counts."""
    inner, holds = (condition.args[0], False) if condition.op == "not" else (condition, True)
    if inner.op not in ("ult", "ule", "slt", "sle", "eq") or inner.args[0].width == 1:
        return False
    a, b = inner.args
    if a.op != "const" and b.op != "const":
        return False
    half, is_signed = 1 << a.width - 1, inner.op in ("slt", "sle")
    sides = [bounds_of(a, path), bounds_of(b, path)]
    if is_signed:
        if any(low < half <= high for low, high in sides):
            return False
        sides = [(low ^ half, high ^ half) for low, high in sides]
    (low_a, high_a), (low_b, high_b) = sides
    if inner.op == "eq":
        return holds and (high_a < low_b or high_b < low_a)
    strict = inner.op in ("ult", "slt")
    if holds:
        return low_a >= high_b + (not strict)
    return high_a < low_b + (not strict)


def places_of(term: Term, size: int, path: Path, most: int) -> list[Range]:
    """All bytes that an access of this size through an address can touch, and perhaps others, as ranges (the end is not
    part of one); none if there are more than `most` values."""
    ranges: list[Range] = []
    for start in values_of(term, path, most):
        if start + size > 1 << term.width:
            return []
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], start + size)
        else:
            ranges.append((start, start + size))
    return ranges


def values_of(term: Term, path: Path, most: int) -> list[int]:
    """All values of a term, and perhaps others, in order; none if they may be more than `most`."""
    found = _values(term, path, most, _DEPTH)
    return sorted(found) if found is not None else []


def _values(term: Term, path: Path, most: int, depth: int) -> set[int] | None:
    if term.op == "const":
        return {term.data}
    if term.op == "ite" and depth:
        for condition, chosen in ((term.args[0], term.args[1]), (t.bnot(term.args[0]), term.args[2])):
            if path.holds(condition):
                return _values(chosen, path, most, depth - 1)
        first = _values(term.args[1], path, most, depth - 1)
        second = _values(term.args[2], path, most, depth - 1) if first is not None else None
        both = first | second if first is not None and second is not None else None
        return both if both is not None and len(both) <= most else None
    if term.op == "lin" and depth:
        whole = 1 << term.width
        sums = {term.data[1]}
        for coefficient, atom in zip(term.data[0], term.args, strict=True):
            values = _values(atom, path, most, depth - 1)
            if values is None or len(values) * len(sums) > most:
                return None
            sums = {(known + coefficient * value) % whole for known in sums for value in values}
        return sums
    if term.op in ("zext", "extract") and depth:
        values = _values(term.args[0], path, most, depth - 1)
        if values is not None:
            shift = term.data[1] if term.op == "extract" else 0
            mask = (1 << term.width) - 1
            return {value >> shift & mask for value in values}
    if term.op == "concat" and depth:
        joined = {0}
        for part in term.args:
            values = _values(part, path, most, depth - 1)
            if values is None or len(values) * len(joined) > most:
                return None
            joined = {known << part.width | value for known in joined for value in values}
        return joined
    if term.op == "var":
        for conjunct in path.about([term]):
            listed = listing(conjunct) if conjunct.op == "or" else None
            if listed is not None and listed[0] is term:
                low, high = bounds_of(term, path)
                within = {value for value in listed[1] if low <= value <= high}
                return within if len(within) <= most else None
    low, high = bounds_of(term, path)
    step = 1 << low_bits(term)[0]  # the bounds end with the bits that are known
    return set(range(low, high + 1, step)) if high - low < most * step else None


@lru_cache(maxsize=1 << 12)
def listing(conjunct: Term) -> tuple[Term, frozenset[int]] | None:
    """The term and its values, if a conjunct of alternatives lists those that a term can have."""
    values: set[int] = set()
    term: Term | None = None
    pending = list(conjunct.args)
    while pending:
        way = pending.pop()
        if way.op == "or":
            pending.extend(way.args)
            continue
        if way.op != "eq":
            return None
        known, other = way.args if way.args[0].op == "const" else reversed(way.args)
        if known.op != "const" or (term is not None and term is not other):
            return None
        term = other
        values.add(known.data)
    return (term, frozenset(values)) if term is not None else None


def _read(conjunct: Term, holds: bool, limits: Limits) -> None:
    if conjunct.op == "not":
        _read(conjunct.args[0], not holds, limits)
        return
    if conjunct.op not in ("ult", "ule", "eq", "slt", "sle"):
        return
    a, b = conjunct.args
    top = (1 << a.width) - 1
    if conjunct.op == "eq":
        if a.op == "const" or b.op == "const":
            known, other = (a, b) if a.op == "const" else (b, a)
            if holds:
                _limit(other, known.data, known.data, limits)
            elif other.width > 1:
                limits.excluded.setdefault(other, set()).add(known.data)
        return
    strict = conjunct.op in ("ult", "slt")
    if not holds:
        a, b, strict = b, a, not strict
    if conjunct.op in ("slt", "sle"):
        if a.op == "const" and a.data + strict <= top >> 1:
            _limit(b, a.data + strict, top >> 1, limits)  # what is greater than a number that is not negative
    elif b.op == "const":
        _limit(a, 0, b.data - strict, limits)
    elif a.op == "const":
        _limit(b, a.data + strict, top, limits)


def _read_signed(conjunct: Term, limits: Limits) -> None:
    """What is less than a number, as signed numbers are, and is not negative, is so as any number."""
    holds = conjunct.op != "not"
    inner = conjunct if holds else conjunct.args[0]
    if inner.op not in ("slt", "sle"):
        return
    a, b = inner.args if holds else reversed(inner.args)
    half = 1 << a.width - 1
    if b.op != "const" or b.data >= half or a.op == "const":
        return
    high = b.data - ((inner.op == "slt") == holds)
    if high >= 0 and high < _bounds(a, limits, _DEPTH)[1] < half:
        _limit(a, 0, high, limits)


def _exclude(term: Term, numbers: set[int], limits: Limits) -> None:
    """Bounds without what a term is not, where that is at their ends."""
    low, high = limits.get(term, (0, (1 << term.width) - 1))
    while low in numbers and low < high:
        low += 1
    while high in numbers and low < high:
        high -= 1
    _limit(term, low, high, limits)


def _compare(conjunct: Term, limits: Limits) -> bool:
    """What is less than something with bounds has them, too. Says whether that is a sum."""
    holds = conjunct.op != "not"
    inner = conjunct if holds else conjunct.args[0]
    if inner.op not in ("ult", "ule"):
        return False
    a, b = inner.args if holds else reversed(inner.args)
    if a.op == "const" or b.op == "const":
        return False
    strict = (inner.op == "ult") == holds
    high = _bounds(b, limits, _DEPTH)[1]
    _limit(a, 0, max(high - strict, 0), limits)
    return a.op == "lin"


def _limit(term: Term, low: int, high: int, limits: Limits) -> None:
    old = limits.get(term, (0, (1 << term.width) - 1))
    limits[term] = (max(low, old[0]), min(high, old[1]))
    if term.op == "extract":
        limits.parts.setdefault(term.args[0], set()).add(term)
    size = 1 << term.width
    if term.op == "lin" and len(term.args) > 1 and low <= high:
        ends = ((low - term.data[1]) % size, (high - term.data[1]) % size)
        if ends[0] <= ends[1]:
            limits.has_sums = True
            if term.data[1]:
                _limit(without_constant(term), *ends, limits)
    if term.op == "lin" and len(term.args) == 1 and term.data[0][0] in (1, size - 1) and low <= high:
        # x + c or c - x within bounds: so is x, where nothing wraps around.
        ends = (low - term.data[1], high - term.data[1])
        if term.data[0][0] != 1:
            ends = (-ends[1], -ends[0])
        inner = (ends[0] % size, ends[1] % size)
        least, greatest = limits.get(term.args[0], (0, size - 1))
        if inner[0] <= inner[1]:
            _limit(term.args[0], *inner, limits)
        elif greatest < inner[0]:
            _limit(term.args[0], 0, inner[1], limits)  # the upper part of what wraps around is out of its bounds
        elif least > inner[1]:
            _limit(term.args[0], inner[0], size - 1, limits)
    elif term.op == "or" and term.width > 1 and high >= 0:
        # x | y is at least as great as both: compilers compare two indices with one limit in this way.
        for part in term.args:
            _limit(part, 0, high, limits)
    elif term.op == "zext" and low <= high:
        _limit(term.args[0], low, min(high, (1 << term.args[0].width) - 1), limits)


def _bounds(term: Term, limits: Limits, depth: int) -> Range:
    low, high = _plain(term, limits, depth)
    known = limits.get(term)
    if known is not None:
        low, high = max(low, known[0]), min(high, known[1])
    return (low, high) if low <= high else (high, low)


def _plain(term: Term, limits: Limits, depth: int) -> Range:
    top = (1 << term.width) - 1
    op = term.op
    if op == "const":
        return term.data, term.data
    if not depth:
        return 0, top
    below = depth - 1
    if op == "lin":
        return _linear(term, limits, below)
    if op == "zext":
        return _bounds(term.args[0], limits, below)
    if op == "and" and term.width > 1:
        return 0, min(_bounds(x, limits, below)[1] for x in term.args)
    if op in ("or", "xor") and term.width > 1:
        bits = max(_bounds(x, limits, below)[1] for x in term.args).bit_length()
        return 0, (1 << bits) - 1
    if op == "concat":
        low = high = 0
        for part in term.args:
            bottom, ceiling = _bounds(part, limits, below)
            low, high = low << part.width | bottom, high << part.width | ceiling
        return low, high
    if op == "extract":
        low, high = (bound >> term.data[1] for bound in _bounds(term.args[0], limits, below))
        if high > top:
            low, high = 0, top
        for part in limits.parts.get(term.args[0], ()):
            if part.data[0] == term.data[0] and part is not term:
                least, most = _resized(limits[part], part.data[1] - term.data[1])
                low, high = max(low, least), min(high, most)
        return low, high
    if op == "sext":
        low, high = _bounds(term.args[0], limits, below)
        return (low, high) if high < 1 << term.args[0].width - 1 else (0, top)
    if op == "udiv" and term.args[1].op == "const" and term.args[1].data:
        low, high = _bounds(term.args[0], limits, below)
        return low // term.args[1].data, high // term.args[1].data
    if op == "lshr" and term.args[1].op == "const":
        low, high = _bounds(term.args[0], limits, below)
        return low >> term.args[1].data, high >> term.args[1].data
    if op == "urem" and term.args[1].op == "const" and term.args[1].data:
        return 0, term.args[1].data - 1
    if op == "ite":
        decided = limits.get(term.args[0])
        if decided is not None and decided[0] == decided[1]:
            return _bounds(term.args[1] if decided[0] else term.args[2], limits, below)
        first = _bounds_if(term.args[0], True, term.args[1], limits, below)
        second = _bounds_if(term.args[0], False, term.args[2], limits, below)
        return min(first[0], second[0]), max(first[1], second[1])
    return 0, top


def _bounds_if(condition: Term, holds: bool, term: Term, limits: Limits, depth: int) -> Range:
    """The bounds of what a choice is in one case, with what the condition says of it there: n, but at most 32."""
    if condition.op == "not":
        condition, holds = condition.args[0], not holds
    if condition.op != "ult" or all(side.op != "const" for side in condition.args):
        return _bounds(term, limits, depth)
    less, greater = condition.args
    top = (1 << less.width) - 1
    if greater.op == "const":
        value, (low, high) = less, (0, greater.data - 1) if holds else (greater.data, top)
    else:
        value, (low, high) = greater, (less.data + 1, top) if holds else (0, less.data)
    before = limits.get(value)
    if before is not None:
        low, high = max(low, before[0]), min(high, before[1])
    if low > high:
        return _bounds(term, limits, depth)
    limits[value] = (low, high)
    try:
        return _bounds(term, limits, depth)
    finally:
        if before is None:
            del limits[value]
        else:
            limits[value] = before


def _resized(bounds: Range, bits: int) -> Range:
    """The bounds of a number with so many unknown bits behind it, or without its last bits."""
    if bits < 0:
        return bounds[0] >> -bits, bounds[1] >> -bits
    return bounds[0] << bits, (bounds[1] + 1 << bits) - 1


def _linear(term: Term, limits: Limits, depth: int) -> Range:
    """A sum; where it may wrap around in more than one way, nothing is known."""
    size = 1 << term.width
    low = high = term.data[1]
    for coefficient, atom in zip(term.data[0], term.args, strict=True):
        bottom, ceiling = _bounds(atom, limits, depth)
        if coefficient > size >> 1:
            coefficient -= size
        low += min(coefficient * bottom, coefficient * ceiling)
        high += max(coefficient * bottom, coefficient * ceiling)
    least, greatest = (low % size, high % size) if low // size == high // size else (0, size - 1)
    if limits.has_sums and len(term.args) > 1:
        known = limits.get(without_constant(term))
        if known is not None:
            first, last = ((end + term.data[1]) % size for end in known)
            if first <= last:
                least, greatest = max(least, first), min(greatest, last)
                # What is less than nothing, for all that the summands tell, would be greater than that.
                below, above = low - high // size * size, high % size
                if -size < below < 0 and last < size + below:
                    least, greatest = first, min(above, last)
    return least, greatest
