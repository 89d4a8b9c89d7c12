"""What grows by the same amount in every turn of a loop: start + step * turn, with one variable for the turn.

A loop that copies counts a register down and moves two pointers. If each got a variable of its own at the head of the
loop, its end, which the counter decides, would say nothing about the pointers, and a store through one could be
anywhere. So the values that differ by constants between two turns are told by the same variable (induction variables
in the sense of Allen, Cocke and Kennedy, "Reduction of operator strength", 1981, found in two states instead of in the
text of the loop).

What a turn was decided by suggests bounds: if it was compared with n, then perhaps turn < n; and what counts down from
n perhaps stays above 0. They are guesses that hold of the state at hand; those that do not hold of the next one are
dropped when the two are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import Value
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

MOST_LIMITS = 4
MOST_COUNTED = 6
MOST_FOLDED = 2
COMPARISONS = ("eq", "ult", "ule", "slt", "sle")


# A loop, and which of its runs: a loop around it has made another turn.
Run = tuple[object, ...]


class Turns:
    """The variables that stand for the number of a turn; they are never forgotten."""

    def __init__(self) -> None:
        self._known: dict[Term, Run | None] = {}
        self.ends: dict[Term, frozenset[int]] = {}
        """After how many turns something that counts down is 0: a bound that is closer may have to be given up."""

    def add(self, variable: Term, run: Run | None = None) -> None:
        """`run`: the run of a loop whose turns the variable counts."""
        self._known[variable] = run

    def run_of(self, variable: Term) -> Run | None:
        return self._known.get(variable)

    def __contains__(self, variable: object) -> bool:
        return variable in self._known

    def of(self, value: Value, run: Run | None = None) -> list[tuple[Term, int]]:
        """The turns that a value grows with, and by how much; several, if it went through loops one after the other, or
        within each other. `run`: only those of one run of a loop."""
        if isinstance(value, int):
            return []
        if value in self._known:
            found = [(value, 1)]
        else:
            atoms = zip(value.args, value.data[0], strict=True) if value.op == "lin" else ()
            found = [(atom, t.signed(step, value.width)) for atom, step in atoms if atom in self._known]
        return [item for item in found if run is None or self._known[item[0]] in (None, run)]

    def later(self, old: Value, new: Value, bits: int, run: Run | None = None) -> tuple[Term, Term] | None:
        """The turn of the old value, and which one it must be to make it the new one. `run`: the run of the loop whose
        head has been come to again. The turns of a loop around it are what they were: of what counts down from such a
        turn, this loop's own turns are to be told, and so of what counts with it."""
        narrow = narrowed(old, new)
        if narrow is not None:
            return self.later(*narrow, run)
        found = self.of(old, run)
        moved = step_between(old, new, bits) if found else None
        if moved is not None:
            whole = [(abs(moved // step), turn, moved // step) for turn, step in found if moved % step == 0]
            if not whole:
                return None
            _, turn, count = min(whole, key=lambda item: (item[0], -item[1].serial))
            now = t.add(turn, t.const(count, bits))
        else:
            other = next(self._others(found, old, new, bits), None) if found else None
            if other is None:
                return None
            turn, now = other
        # A turn that something else in the value depends on is not the only thing that would be another.
        return (turn, now) if renamed(old, turn, now) == as_value(as_term(new, bits)) else None

    def _others(
        self, found: Sequence[tuple[Term, int]], old: Value, new: Value, bits: int
    ) -> Iterator[tuple[Term, Term]]:
        """The same count, but in turns that are told by another variable: two ways have met since."""
        for turn, step in found:
            for other, its_step in self.of(new):
                if step == its_step:
                    size = t.const(step, bits)
                    moved = step_between(
                        t.sub(as_term(old, bits), t.mul(turn, size)),
                        t.sub(as_term(new, bits), t.mul(other, size)),
                        bits,
                    )
                    if moved is not None and moved % step == 0:
                        yield turn, t.add(other, t.const(moved // step, bits))

    def met(self, a: Value, b: Value) -> tuple[Term, Term, Term, int] | None:
        """Two values that count alike, each in turns of its own: what both begin with, the turns of the one and of the
        other, and the step."""
        mine, others = self.of(a), self.of(b)
        if len(mine) != 1 or len(others) != 1 or mine[0][1] != others[0][1] or mine[0][0].width != others[0][0].width:
            return None
        (turn, step), (other, _) = mine[0], others[0]
        size = t.const(step, turn.width)
        start = t.sub(as_term(a, turn.width), t.mul(turn, size))
        if turn is other or start is not t.sub(as_term(b, turn.width), t.mul(other, size)):
            return None
        return start, turn, other, step


def narrowed(old: Value, new: Value) -> tuple[Value, Value, int] | None:
    """Two values without the zeros in front of both, and how wide they are then: half of a register counts."""
    widths = {value.args[0].width for value in (old, new) if isinstance(value, Term) and value.op == "zext"}
    if len(widths) != 1:
        return None
    (bits,) = widths
    inner = [value.args[0] if isinstance(value, Term) and value.op == "zext" else value for value in (old, new)]
    if any(value >> bits if isinstance(value, int) else value.width != bits for value in inner):
        return None
    return inner[0], inner[1], bits


def step_between(old: Value, new: Value, bits: int) -> int | None:
    """By how much a value has grown, as a signed number, if that is constant."""
    difference = t.sub(as_term(new, bits), as_term(old, bits))
    return t.signed(difference.data, bits) if difference.op == "const" else None


def counted(old: Value, turn: Term, step: int, bits: int) -> Value:
    """The value before the loop, so many turns later."""
    return as_value(t.add(as_term(old, bits), t.mul(turn, t.const(step, bits))))


def renamed(old: Value, turn: Term, new: Term) -> Value:
    assert isinstance(old, Term)
    return as_value(Substitution({turn: new}).apply(old))


def starts(value: Term) -> list[Term]:
    """Where something counts down from, now and perhaps before it was first counted: bounds of the latter are known."""
    return [
        value,
        *([t.sub(value, t.const(value.data[1], value.width))] if value.op == "lin" and value.data[1] else ()),
    ]


def limits(recent: Iterable[Term], bits: int) -> list[Term]:
    """What the conditions of a turn compared something with, latest first."""
    found: dict[Term, None] = {}
    for condition in recent:
        inner = condition.args[0] if condition.op == "not" else condition
        if inner.op not in COMPARISONS:
            continue
        for side in (*inner.args, *_solved(inner)):
            if 1 < side.width <= bits and side.op != "const":
                found[t.zext(side, bits)] = None
    return [*found][:MOST_LIMITS]


def _solved(comparison: Term) -> Iterator[Term]:
    """What a part of one side is when both are equal: compilers test n ^ i = k where n ^ k = i was meant."""
    if comparison.op == "eq":
        for side, other in (comparison.args, comparison.args[::-1]):
            if side.op == "xor":
                yield from (t.bxor(other, part) for part in side.args)


def _folded(recent: Iterable[Term], now: Term, bits: int) -> Iterator[Term]:
    """What a counter may have been compared with whose value was certain, so that only "x != k" is left of it: what
    differs from x as the counter differs from k, in its bits or by a number."""
    tests = [condition.args[0] for condition in recent if condition.op == "not" and condition.args[0].op == "eq"]
    for test in tests[:MOST_FOLDED]:
        value, number = test.args if test.args[1].op == "const" else test.args[::-1]
        if (
            1 < value.width <= bits
            and number.op == "const"
            and now.data >> value.width == 0
            and now.data != number.data
        ):
            yield t.zext(t.bxor(value, t.const(number.data ^ now.data, value.width)), bits)
            yield t.zext(t.sub(value, t.const(number.data - now.data, value.width)), bits)


def compared_otherwise(counters: Iterable[tuple[Term, Term, int]], recent: Iterable[Term]) -> set[int]:
    """Numbers that something else than a counter was compared with in this turn, or that are beside them: the end of a
    text, the status of a device."""
    found: set[int] = set()
    values = [now for _, now, _ in counters]
    for condition in recent:
        inner = condition.args[0] if condition.op == "not" else condition
        if inner.op not in COMPARISONS:
            continue
        for side, number in (inner.args, inner.args[::-1]):
            counts = (t.sub(now, side).op == "const" for now in values if now.width == side.width)
            if number.op == "const" and side.op != "const" and not any(counts):
                found |= {number.data - 1, number.data, number.data + 1}
    return found


def _compared(recent: Iterable[Term], now: Term) -> Iterator[Term]:
    """What a counter itself was compared with, also where both sides of the comparison have lost a number that they had
    in common."""
    comparisons = (condition.args[0] if condition.op == "not" else condition for condition in recent)
    for comparison in islice((inner for inner in comparisons if inner.op in COMPARISONS), MOST_LIMITS):
        for side, other in (comparison.args, comparison.args[::-1]):
            distance = t.sub(now, side) if side.width == now.width and side.op != "const" else None
            if distance is not None and distance.op == "const":
                yield t.add(other, distance)


def guesses(values: Sequence[tuple[Term, Term, int]], recent: Sequence[Term], bits: int) -> Iterator[tuple[Term, Term]]:
    """Bounds of (what stands for a counter, its value now, its step): as said of the first, and of the second."""
    counters = [value for value in values if value[0].width == bits][:MOST_COUNTED]
    for limit in limits(recent, bits):
        for new, now, step in counters:
            yield (t.ult(new, limit), t.ult(now, limit)) if step > 0 else (t.ult(limit, new), t.ult(limit, now))
    for new, now, step in counters:
        for limit in _compared(recent, now):
            yield (t.ult(new, limit), t.ult(now, limit)) if step > 0 else (t.ult(limit, new), t.ult(limit, now))
        if step > 0 and now.op == "const":
            yield from ((t.ult(new, limit), t.ult(now, limit)) for limit in _folded(recent, now, bits))


def thresholds(values: Iterable[tuple[Term, Term, int]], numbers: Iterable[int]) -> Iterator[Term]:
    """Bounds of counters whose values were certain so far, by numbers in the text of the loop: the closest."""
    steps = _ladder(numbers)
    for new, now, step in values:
        if now.op != "const":
            continue
        if step > 0:
            limit = next((number for number in steps if now.data <= number), None)
        else:
            limit = next((number for number in reversed(steps) if number <= now.data), None)
        if limit is not None and limit >> new.width == 0:
            bound = t.const(limit, new.width)
            yield t.ule(new, bound) if step > 0 else t.ule(bound, new)


def wider_bounds(bound: Term, numbers: Iterable[int]) -> Iterator[Term]:
    """Bounds that say less, one after the other: thresholds of a widening."""
    found = _limit(bound)
    if found is None:
        return
    term, limit, is_upper = found
    for number in _ladder(numbers) if is_upper else reversed(_ladder(numbers)):
        if is_upper and limit <= number < (1 << term.width) - 1:
            yield t.ule(term, t.const(number, term.width))
        elif not is_upper and 0 < number <= limit:
            yield t.ule(t.const(number, term.width), term)


def _limit(bound: Term) -> tuple[Term, int, bool] | None:
    """What a comparison with a number says is less than it, or greater; that half of all numbers are negative is how
    terms say that something is at least as great as the first of them, or less."""
    if bound.op not in ("ult", "slt"):
        return None
    low, high = bound.args
    if bound.op == "ult":
        if high.op == "const":
            return low, high.data, True
        return (high, low.data, False) if low.op == "const" else None
    half = 1 << low.width - 1
    if high.op == "const" and not high.data:
        return low, half - 1, False
    return (high, half, True) if low.op == "const" and low.data == 2 * half - 1 else None


def _ladder(numbers: Iterable[int]) -> list[int]:
    """Nobody knows whether the number itself, or one beside it, is still met where the loop begins."""
    return sorted({near for number in numbers for near in (number - 1, number, number + 1) if near >= 0})
