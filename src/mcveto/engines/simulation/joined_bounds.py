"""Bounds of a variable that stands for two values: what lies between them, and in a loop what may come to rest.

Where two ways meet, a variable is between the bounds of the two values, if that says something: addresses in one
region, small numbers, or numbers of errors. In a loop the next turn may go further, so that bounds are guesses: from
where it began in the direction in which it moves, up to numbers in the text of the loop, or up to the mask of what was
masked (`masks`). What does not hold of the next turn is dropped when that is joined.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcveto.engines.memory import Value
from mcveto.engines.simulation.exit_tests import LAST_ERROR
from mcveto.engines.simulation.masks import WIDE
from mcveto.engines.simulation.meeting import Meeting, Where
from mcveto.engines.simulation.turns import thresholds
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

SLOW = 64
# Turns of a loop in which bounds are moved to the next number that something is compared with.
MOST_TESTED = 8
NARROW = (0xFF, 0xFFFF)
# Conditions of a path.
LATELY = 4
# Terms in what a path says of a value: counts are short; of anything longer the solver mostly says that it may be 0.
SHORT = 24


def counts_slowly(a: Value, b: Value) -> bool:
    """Whether two values are close together, as those of a counter are."""
    return isinstance(a, int) and isinstance(b, int) and abs(a - b) <= SLOW


def enclose(
    meeting: Meeting, new: Term, a: Value, b: Value, bits: int, may_guess: bool, most: int | None = None
) -> None:
    """Two addresses in one region: the variable is between them. In a loop, at least not below both, or no wider; if
    nothing may be guessed, only if it did not become wider just now. `most`: what such a place is masked with."""
    setting = meeting.setting
    if bits != setting.address_bits:
        return
    low_a, high_a = (a, a) if isinstance(a, int) else bounds_of(a, meeting.first.path)
    low_b, high_b = (b, b) if isinstance(b, int) else bounds_of(b, meeting.second.path)
    low, high = min(low_a, low_b), max(high_a, high_b)
    if meeting.is_loop:
        if most is not None and high <= most:
            meeting.bounds.append(t.ule(new, t.const(most, bits)))
            return
        is_wide = isinstance(a, int) and not isinstance(b, int) and WIDE <= high_b <= NARROW[-1]
        if not (may_guess or is_wide) and high_b > high_a:
            return
        if isinstance(a, int) and isinstance(b, int):
            if not may_guess:
                return
            start = t.const(a, bits)
            meeting.bounds.append(t.ule(start, new) if a < b else t.ule(new, start))
            grows = t.signed(a, bits) < t.signed(b, bits)
            meeting.bounds.append(t.sle(start, new) if grows else t.sle(new, start))
            meeting.bounds += thresholds([(new, t.const(b, bits), 1 if a < b else -1)], meeting.numbers)
        elif high <= NARROW[-1]:
            # An index that is masked stays below the same number. What has grown, other than from a constant, is
            # masked, or at least a byte or half a word that was widened: in such steps, bounds come to rest.
            is_at_rest = high_b <= high_a or isinstance(a, int)
            if not is_at_rest and _counts(a, b, high_a, high_b):
                return
            masks = setting.executor.masks
            masked = masks.at_most(a, b)
            if masked is None and isinstance(b, Term):  # masked for the first time in this turn
                last = masks.at_most(b)
                masked = last if last is not None and high_a <= last else None
            limits = NARROW if masked is None else (masked, *NARROW)
            limit = high if is_at_rest else min(limit for limit in limits if high <= limit)
            meeting.bounds.append(t.ule(new, t.const(limit, bits)))
            # The states of a machine: whatever it was in, it is in none before these; or at least not in the first.
            least = low_a if low_a <= low_b else min(low_b, 1)
            if least:
                meeting.bounds.append(t.ule(t.const(least, bits), new))
        return
    if low + LAST_ERROR >= 1 << bits:
        pass  # results that say how a call failed
    elif low > 0xFFF:
        region = setting.space.region_at(low)
        if region is None or high >= region.end:
            return
    elif high - low > 0xFFFF:
        return
    elif not low:
        sides = ((a, low_a, meeting.first), (b, low_b, meeting.second))
        low = int(all(least or _is_positive(meeting, value, state) for value, least, state in sides))
    meeting.bounds.append(t.ule(new, t.const(high, bits)))
    if low:
        meeting.bounds.append(t.ule(t.const(low, bits), new))
    if high <= NARROW[-1]:
        meeting.bounds += _common_bits(meeting, new, a, b)


def say_ends(meeting: Meeting, found: Term, a: Value, b: Value, where: Where) -> None:
    """Of a sum that stands for two small numbers, one of which has been counted: that it is at most the greater one's
    bound. Each summand has bounds, but that it was not counted where it had reached its end would be lost."""
    if all(atom.op == "var" for atom in found.args) and (where[0] != "memory" or len(found.args) == 1):
        return
    high = 0
    for value, path in ((a, meeting.first.path), (b, meeting.second.path)):
        high = max(high, value if isinstance(value, int) else bounds_of(value, path)[1])
        if high > NARROW[-1]:
            return
    meeting.bounds.append(t.ule(found, t.const(high, found.width)))


def between_tests(meeting: Meeting, a: Value, b: Value) -> tuple[int, int] | None:
    """Bounds for what counts in memory and is compared with numbers of its own before it does, as the bytes in a
    buffer are with its size: up to these numbers. They say all that is needed of it, while the turns in which it counts
    are some of those of the loop; what is told by the number of the turn would have no bounds as soon as that has none.
    """
    place = meeting.second.place
    turn = place.loops[-1][1] if place is not None and place.loops else 0
    if not isinstance(a, Term) or not isinstance(b, Term):
        return None
    ends = _tests(meeting, b)
    if ends is None:
        return None
    half = 1 << b.width - 1
    low_a, high_a = bounds_of(a, meeting.first.path)
    low, high = bounds_of(b, meeting.second.path)
    if high >= half or (turn > MOST_TESTED and (high > high_a or low < low_a)):
        return None
    if high > high_a:
        high = min((end for end in ends if end >= high), default=half)
    elif high_a < half:
        high = high_a
    if low < low_a:
        low = max((end for end in ends if end <= low), default=0)
    else:
        low = low_a
    return (low, high) if high < half else None


def _tests(meeting: Meeting, value: Term) -> list[int] | None:
    """The bounds that comparisons of a value with numbers say, in this turn; None if there are none."""
    before = {*meeting.first.path.terms}
    found: list[int] = []
    for conjunct in meeting.second.path.about([value]):
        inner = conjunct.args[0] if conjunct.op == "not" else conjunct
        if conjunct in before or inner.op not in ("ult", "ule", "slt", "sle"):
            continue
        for side, other in (inner.args, inner.args[::-1]):
            distance = t.sub(value, side) if other.op == "const" and side.width == value.width else None
            if distance is not None and distance.op == "const":
                middle = other.data + distance.data
                found += [end & (1 << value.width) - 1 for end in (middle - 1, middle, middle + 1)]
    return sorted(found) or None


def _counts(a: Value, b: Value, high_a: int, high_b: int) -> bool:
    """Whether what has grown from one turn to the next will not come to rest: a sum with what it was before, or what
    went beyond a byte other than to the end of a mask."""
    if isinstance(b, Term) and b.op == "lin" and any(atom is a for atom in b.args):
        return True
    return high_a >= NARROW[0] and high_b & (high_b + 1) != 0


def _common_bits(meeting: Meeting, new: Term, a: Value, b: Value) -> Iterator[Term]:
    """Bits that both sides have set, one of them as in `mode | 8`; the other's path may say so."""
    for value, other, path in ((a, b, meeting.second.path), (b, a, meeting.first.path)):
        for index in _bits_set(value):
            bit = t.const(other >> index & 1, 1) if isinstance(other, int) else t.extract(other, index, index)
            if bit is t.TRUE or path.holds(bit):
                yield t.extract(new, index, index)


def _bits_set(value: Value) -> Iterator[int]:
    """The bits that a row of pieces has set, whatever the others are."""
    row = value.args[0] if isinstance(value, Term) and value.op == "zext" else value
    if isinstance(row, int) or row.op != "concat":
        return
    top = row.width
    for piece in row.args:
        top -= piece.width
        if piece.op == "const":
            yield from (top + index for index in range(piece.width) if piece.data >> index & 1)


def _is_positive(meeting: Meeting, value: Value, state: PathState) -> bool:
    """Whether a branch that was taken lately says that a value is not 0."""
    if isinstance(value, int):
        return value > 0
    table = meeting.setting.table
    keys = table.of(value)
    if len(keys) != 1 or all(table.of(term).isdisjoint(keys) for term in state.path.terms[-LATELY:]):
        return False
    if not t.are_short([value, *state.path.about([value])], SHORT):
        return False
    return meeting.setting.covering.implied(state, t.bnot(t.eq(value, t.const(0, value.width))))
