"""Conditions along a progression: variables that grow by a constant each turn, from turn 0 to the last.

As long as nothing wraps around, a term made of sums is an integer a + b*i at turn i. It stays within its width for all
turns if it does at the first and the last; and a comparison of two such terms that holds at both ends holds in between,
because their difference is a line. Leading bits of a line go up or down like it, which is enough to compare them with a
constant. Whatever is not of this form is simply not known: every answer "holds" is certain,
"does not hold" is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcveto.logic.evaluate import Evaluator
from mcveto.logic.node import Term, signed

# a + b*i
Line = tuple[int, int]


class Progression:
    def __init__(self, start: Mapping[Term, int], stride: Mapping[Term, int], last: int) -> None:
        """Variables have their `start` at turn 0 and grow by `stride` (0 if it is not given) up to turn `last`."""
        self._start = start
        self._stride = stride
        self._last = last
        self._evaluator = Evaluator(lambda variable: start[variable], _no_memory)
        self._lines: dict[Term, Line | None] = {}
        self._varies: dict[Term, bool] = {}

    def holds(self, condition: Term) -> bool:
        """Whether the condition certainly holds at every turn."""
        return self._decided(condition) is True

    def line(self, term: Term) -> Line | None:
        """The term as a line that stays within its width, if it is one."""
        if term not in self._lines:
            self._lines[term] = self._line(term)
        return self._lines[term]

    def _line(self, term: Term) -> Line | None:
        if not self._is_varying(term):
            return self._evaluator.value(term), 0
        width = term.width
        if width == 1:
            known = self._decided(term)
            return None if known is None else (int(known), 0)
        if term.op == "var":
            return self._within(self._start[term], signed(self._stride[term] % (1 << width), width), width)
        if term.op == "ite":
            known = self._decided(term.args[0])
            return None if known is None else self.line(term.args[1] if known else term.args[2])
        if term.op not in ("lin", "zext", "sext", "extract", "concat"):
            return None
        parts = [self.line(part) for part in term.args]
        known_parts = [part for part in parts if part is not None]
        if len(known_parts) < len(parts):
            return None
        return self._sum(term, known_parts)

    def _sum(self, term: Term, parts: list[Line]) -> Line | None:
        width = term.width
        a, b = parts[0]
        if term.op == "lin":
            coefficients, constant = term.data
            signs = [signed(coefficient, width) for coefficient in coefficients]
            a = signed(constant, width) + sum(c * part[0] for c, part in zip(signs, parts, strict=True))
            b = sum(c * part[1] for c, part in zip(signs, parts, strict=True))
        elif term.op == "sext":
            line = self._signed(parts[0], term.args[0].width)
            if line is None:
                return None
            a, b = line
        elif term.op == "extract":
            low = term.data[1]
            if (a | b) & ((1 << low) - 1):
                return None
            a, b = a >> low, b >> low
        elif term.op == "concat":
            a = b = 0
            for part, (part_a, part_b) in zip(term.args, parts, strict=True):
                a, b = (a << part.width) + part_a, (b << part.width) + part_b
        return self._within(a, b, width)

    def _within(self, a: int, b: int, width: int) -> Line | None:
        """The line modulo 2^width, if it does not cross a multiple of it."""
        a &= (1 << width) - 1
        return (a, b) if 0 <= a + b * self._last < 1 << width else None

    def _signed(self, line: Line, width: int) -> Line | None:
        a, b = line
        half = 1 << width - 1
        if (a >= half) != (a + b * self._last >= half):
            return None
        return (a - 2 * half, b) if a >= half else line

    def _is_varying(self, root: Term) -> bool:
        """Whether the term mentions something that grows."""
        varies = self._varies
        stack = [root]
        while stack:
            term = stack[-1]
            if term in varies:
                stack.pop()
                continue
            waiting = [part for part in term.args if part not in varies]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            grows = term.op == "var" and bool(self._stride.get(term))
            varies[term] = grows or any(varies[part] for part in term.args)
        return varies[root]

    def _decided(self, term: Term) -> bool | None:
        """The value of a condition, if it has the same at every turn and that is certain."""
        if not self._is_varying(term):
            return bool(self._evaluator.value(term))
        if term.op == "not":
            known = self._decided(term.args[0])
            return None if known is None else not known
        if term.op in ("and", "or"):
            decisive = term.op == "or"
            parts = [self._decided(part) for part in term.args]
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        if term.op == "ite":
            chosen = self._decided(term.args[0])
            return None if chosen is None else self._decided(term.args[1] if chosen else term.args[2])
        return self._compared(term)

    def _compared(self, term: Term) -> bool | None:
        """A comparison, by the differences at both ends."""
        op = term.op
        if op not in ("eq", "ult", "ule", "slt", "sle", "carry"):
            return None
        width = term.args[0].width
        lines = [self.line(part) for part in term.args]
        ends = [self._ends(part) for part in term.args]
        if None in lines and all(line is None or line[1] for line in lines):
            return None  # neither is constant, and one is no line
        one, other = ends
        if op in ("slt", "sle"):
            one, other = _signed_ends(one, width), _signed_ends(other, width)
        if one is None or other is None:
            return None
        if op == "carry":
            top = (1 << width) - 1
            one, other, op = (top - other[0], top - other[1]), one, "ult"
        first, last = one[0] - other[0], one[1] - other[1]
        if op == "eq":
            return True if first == last == 0 else False if min(first, last) > 0 or max(first, last) < 0 else None
        limit = 0 if op in ("ult", "slt") else 1
        return True if max(first, last) < limit else False if min(first, last) >= limit else None

    def _ends(self, term: Term) -> tuple[int, int] | None:
        """The values at the first and the last turn of a term that goes one way in between."""
        line = self.line(term)
        if line is not None:
            return line[0], line[0] + line[1] * self._last
        if term.op == "zext":
            return self._ends(term.args[0])
        inner = self._ends(term.args[0]) if term.op == "extract" else None
        if inner is None:
            return None
        high, low = term.data
        if inner[0] >> high + 1 != inner[1] >> high + 1:
            return None
        mask = (1 << term.width) - 1
        return inner[0] >> low & mask, inner[1] >> low & mask


def _signed_ends(ends: tuple[int, int] | None, width: int) -> tuple[int, int] | None:
    if ends is None or ends[0] >> width - 1 != ends[1] >> width - 1:
        return None
    return (ends[0] - (1 << width), ends[1] - (1 << width)) if ends[0] >> width - 1 else ends


def _no_memory(memory: Term, address: int) -> int:
    raise ValueError(f"a progression has no memory, and {memory} is read at {address:#x}")
