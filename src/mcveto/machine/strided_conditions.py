"""What a condition says about the strided intervals of the variables in it.

`Environment` maps variables (registers at the start, loads from the initial memory) to intervals, evaluates terms in
them, and narrows them by a condition assumed to hold or not: comparisons move bounds, equations intersect, a
disjunction is the join of what its parts say.
"""

from __future__ import annotations

from ..logic.terms import Term
from . import strided
from .strided import StridedInterval

# Terms nested deeper than this are not looked into.
MAX_DEPTH = 24
# Rounds of narrowing by one conjunction, whose parts may help each other.
ROUNDS = 2

_COMPARISONS = {
    "eq": "INT_EQUAL",
    "ult": "INT_LESS",
    "ule": "INT_LESSEQUAL",
    "slt": "INT_SLESS",
    "sle": "INT_SLESSEQUAL",
}


class Contradiction(Exception):
    """What was assumed cannot be: no execution goes this way."""


class Environment:
    def __init__(self) -> None:
        self.intervals: dict[Term, StridedInterval] = {}

    def interval(self, term: Term, depth: int = MAX_DEPTH) -> StridedInterval:
        """An interval that contains the value of a term."""
        known = self.intervals.get(term)
        if known is not None:
            return known
        if term.op == "const":
            return strided.singleton(term.data, term.width)
        if depth:
            match term.op:
                case "lin":
                    coefficients, constant = term.data
                    total = strided.singleton(constant, term.width)
                    for coefficient, argument in zip(coefficients, term.args, strict=True):
                        factor = strided.singleton(coefficient, term.width)
                        total = strided.add(total, strided.multiply(factor, self.interval(argument, depth - 1)))
                    return total
                case "zext" | "sext":
                    return strided.extend(self.interval(term.args[0], depth - 1), term.width, term.op == "sext")
                case "extract":
                    high, low = term.data
                    return strided.extract(self.interval(term.args[0], depth - 1), low, high - low + 1)
                case "ite":
                    return strided.join(*(self.interval(argument, depth - 1) for argument in term.args[1:]))
        return strided.top(term.width)

    def truth(self, condition: Term, depth: int = MAX_DEPTH) -> bool | None:
        """Whether a condition holds, if the intervals decide it."""
        opcode = _COMPARISONS.get(condition.op)
        if opcode is not None:
            left, right = (self.interval(argument) for argument in condition.args)
            return strided.compare(opcode, left, right)
        if condition.op == "const":
            return bool(condition.data)
        if condition.width == 1 and depth:
            if condition.op == "not":
                inner = self.truth(condition.args[0], depth - 1)
                return None if inner is None else not inner
            if condition.op in ("and", "or"):
                decisive = condition.op == "or"
                parts = [self.truth(argument, depth - 1) for argument in condition.args]
                if decisive in parts:
                    return decisive
                return None if None in parts else not decisive
        known = self.intervals.get(condition)
        return None if known is None or known.constant is None else bool(known.constant)

    def assume(self, condition: Term, holds: bool, depth: int = MAX_DEPTH) -> None:
        """Narrows the intervals to states where the condition has this truth value; raises Contradiction."""
        if condition.op == "const":
            if bool(condition.data) != holds:
                raise Contradiction
        elif condition.op == "not":
            self.assume(condition.args[0], not holds, depth)
        elif condition.op in ("and", "or") and condition.width == 1:
            if not depth:
                return
            if (condition.op == "and") == holds:
                for _ in range(ROUNDS):
                    for argument in condition.args:
                        self.assume(argument, holds, depth - 1)
            else:
                self._assume_one_of(condition.args, holds, depth - 1)
        elif condition.op in _COMPARISONS:
            self._compare(condition.op, condition.args[0], condition.args[1], holds)
        elif condition in self.intervals:
            self._set(condition, strided.singleton(int(holds), 1))

    def _assume_one_of(self, parts: tuple[Term, ...], holds: bool, depth: int) -> None:
        before = self.intervals
        results: list[dict[Term, StridedInterval]] = []
        for part in parts:
            self.intervals = dict(before)
            try:
                self.assume(part, holds, depth)
                results.append(self.intervals)
            except Contradiction:
                continue
        self.intervals = before
        if not results:
            raise Contradiction
        for term in before:
            self.intervals[term] = strided.join_all(result[term] for result in results)

    def _compare(self, operator: str, left: Term, right: Term, holds: bool) -> None:
        if not holds and operator != "eq":
            # not (a < b) is b <= a, not (a <= b) is b < a
            self._compare({"ult": "ule", "ule": "ult", "slt": "sle", "sle": "slt"}[operator], right, left, True)
            return
        x, y = self.interval(left), self.interval(right)
        if operator == "eq" and holds:
            common = strided.meet(x, y)
            self._set(left, common)
            self._set(right, common)
        elif operator == "eq":
            self._set(left, _without(x, y))
            self._set(right, _without(y, x))
        elif operator in ("slt", "sle"):
            gap = int(operator == "slt")
            self._set(left, strided.clip(x, high=y.high - gap))
            self._set(right, strided.clip(y, low=x.low + gap))
        else:
            gap = int(operator == "ult")
            top = (1 << x.bits) - 1
            self._set(left, strided.clip_unsigned(x, 0, y.bounds()[1] - gap))
            self._set(right, strided.clip_unsigned(y, x.bounds()[0] + gap, top))

    def _set(self, term: Term, interval: StridedInterval | None, depth: int = MAX_DEPTH) -> None:
        """The value of `term` is in `interval`: narrows what the term is made of."""
        if interval is None:
            raise Contradiction
        known = self.intervals.get(term)
        if known is not None:
            narrowed = strided.meet(known, interval)
            if narrowed is None:
                raise Contradiction
            self.intervals[term] = narrowed
        elif not depth:
            return
        elif term.op == "lin" and len(term.args) == 1:
            (coefficient,), constant = term.data
            rest = strided.subtract(interval, strided.singleton(constant, term.width))
            if coefficient == 1:
                self._set(term.args[0], rest, depth - 1)
            elif coefficient == (1 << term.width) - 1:
                self._set(term.args[0], strided.negate(rest), depth - 1)
        elif term.op in ("zext", "sext"):
            argument = term.args[0]
            possible = strided.meet(interval, self.interval(term))
            if possible is None:
                raise Contradiction
            self._set(argument, strided.extract(possible, 0, argument.width), depth - 1)


def _without(x: StridedInterval, y: StridedInterval) -> StridedInterval | None:
    """The members of x other than the only member of y, as far as an interval can say it."""
    if y.constant is None:
        return x
    if y.low == x.low == x.high:
        return None
    if y.low == x.low:
        return strided.clip(x, low=x.low + 1)
    return strided.clip(x, high=x.high - 1) if y.low == x.high else x
