"""Evaluation of terms under an assignment.

`Evaluator` remembers every value it computed, so that following a symbolic run of thousands of instructions
costs one step per new term. Stores are kept as histories: per cell the list of (depth, byte) written so
far, so that a load from any point of a long chain of stores is a binary search and not a walk. Only the
branch that is taken of an if-then-else is looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping

from mcveto.logic.linear import divide_signed, remainder_signed
from mcveto.logic.node import Term, signed

MemoryValue = Callable[[int], int] | Mapping[int, int]


class _History:
    """A chain of stores on top of a memory variable or of a point in another chain."""

    __slots__ = ("base", "cells", "length", "origin", "start")

    def __init__(self, base: Term, origin: _History | None, start: int) -> None:
        self.base = base
        self.origin = origin
        self.start = start
        self.length = 0
        self.cells: dict[int, tuple[list[int], list[int]]] = {}

    def write(self, depth: int, address: int, byte: int) -> None:
        depths, values = self.cells.setdefault(address, ([], []))
        depths.append(depth)
        values.append(byte)


class Evaluator:
    """Values of terms under fixed values of the variables and bytes of the memories.

    `variables` gives the value of a variable, `memory` the byte of a memory variable at an address; each must
    keep giving the same answer, for it may be asked once only.
    """

    def __init__(self, variables: Callable[[Term], int], memory: Callable[[Term, int], int]) -> None:
        self._variables = variables
        self._memory = memory
        self._values: dict[Term, int] = {}
        self._points: dict[Term, tuple[_History, int]] = {}

    def value(self, term: Term) -> int:
        """The unsigned value of a bit-vector, 0 or 1 for a Boolean."""
        if term.width == 0:
            raise ValueError("a memory has no single value; read it with byte()")
        values = self._values
        found = values.get(term)
        if found is None:
            self._compute(term)
            found = values[term]
        return found

    def byte(self, memory: Term, address: int) -> int:
        """The byte of a memory term at an address."""
        if memory not in self._points:
            self._compute(memory)
        return self._read(self._points[memory], address & ((1 << memory.address_width) - 1))

    def _compute(self, root: Term) -> None:
        values, points = self._values, self._points
        stack = [root]
        while stack:
            t = stack[-1]
            if t in values or t in points:
                stack.pop()
                continue
            if t.op == "ite":
                condition = values.get(t.args[0])
                needed = t.args[:1] if condition is None else (t.args[1] if condition else t.args[2],)
            else:
                needed = t.args
            waiting = [x for x in needed if x not in values and x not in points]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if t.width:
                values[t] = self._apply(t)
            else:
                points[t] = self._point(t)

    def _point(self, t: Term) -> tuple[_History, int]:
        if t.op == "memory":
            return _History(t, None, 0), 0
        if t.op == "ite":
            return self._points[t.args[1] if self._values[t.args[0]] else t.args[2]]
        history, depth = self._points[t.args[0]]
        if history.length != depth:  # another chain already goes on from here
            history, depth = _History(history.base, history, depth), 0
        depth += 1
        history.length = depth
        address, value = self._values[t.args[1]], self._values[t.args[2]]
        size = 1 << t.address_width
        content = value.to_bytes(t.args[2].width >> 3, "big" if t.data else "little")
        for i, byte in enumerate(content):
            history.write(depth, (address + i) % size, byte)
        return history, depth

    def _read(self, point: tuple[_History, int], address: int) -> int:
        history, depth = point
        while True:
            written = history.cells.get(address)
            if written is not None:
                at = bisect_right(written[0], depth)
                if at:
                    return written[1][at - 1]
            if history.origin is None:
                return self._memory(history.base, address) & 0xFF
            history, depth = history.origin, history.start

    def _apply(self, t: Term) -> int:
        op, values, width = t.op, self._values, t.width
        if op == "const":
            return int(t.data)
        mask = (1 << width) - 1
        if op == "var":
            return self._variables(t) & mask
        if op == "lin":
            coefficients, total = t.data
            for c, x in zip(coefficients, t.args, strict=True):
                total += c * values[x]
            return int(total) & mask
        if op == "load":
            point = self._points[t.args[0]]
            address, size = values[t.args[1]], 1 << t.args[1].width
            content = bytes([self._read(point, (address + i) % size) for i in range(t.data[0])])
            return int.from_bytes(content, "big" if t.data[1] else "little")
        if op == "ite":
            return values[t.args[1] if values[t.args[0]] else t.args[2]]
        if op == "concat":
            total = 0
            for x in t.args:
                total = total << x.width | values[x]
            return total
        if op == "and" or op == "or":
            return self._junction(t)
        return OPERATIONS[op](t, *[values[x] for x in t.args]) & mask

    def _junction(self, t: Term) -> int:
        total = self._values[t.args[0]]
        for x in t.args[1:]:
            total = total & self._values[x] if t.op == "and" else total | self._values[x]
        return total


def _overflows(t: Term, exact: int) -> int:
    half = 1 << (t.args[0].width - 1)
    return int(not -half <= exact < half)


def _signed_pair(t: Term, x: int, y: int) -> tuple[int, int]:
    width = t.args[0].width
    return signed(x, width), signed(y, width)


def _signed_less(t: Term, x: int, y: int) -> int:
    a, b = _signed_pair(t, x, y)
    return int(a < b)


def _signed_at_most(t: Term, x: int, y: int) -> int:
    a, b = _signed_pair(t, x, y)
    return int(a <= b)


OPERATIONS: dict[str, Callable[..., int]] = {
    "mul": lambda t, x, y: x * y,
    "udiv": lambda t, x, y: x // y if y else -1,
    "urem": lambda t, x, y: x % y if y else x,
    "sdiv": lambda t, x, y: divide_signed(x, y, t.width),
    "srem": lambda t, x, y: remainder_signed(x, y, t.width),
    "shl": lambda t, x, y: x << y if y < t.width else 0,
    "lshr": lambda t, x, y: x >> y if y < t.width else 0,
    "ashr": lambda t, x, y: signed(x, t.width) >> min(y, t.width),
    "xor": lambda t, x, y: x ^ y,
    "not": lambda t, x: 1 - x,
    "eq": lambda t, x, y: int(x == y),
    "ult": lambda t, x, y: int(x < y),
    "ule": lambda t, x, y: int(x <= y),
    "slt": _signed_less,
    "sle": _signed_at_most,
    "carry": lambda t, x, y: int((x + y) >> t.args[0].width),
    "scarry": lambda t, x, y: _overflows(t, sum(_signed_pair(t, x, y))),
    "sborrow": lambda t, x, y: _overflows(t, signed(x, t.args[0].width) - signed(y, t.args[0].width)),
    "popcount": lambda t, x: x.bit_count(),
    "lzcount": lambda t, x: t.args[0].width - x.bit_length(),
    "extract": lambda t, x: x >> t.data[1],
    "zext": lambda t, x: x,
    "sext": lambda t, x: signed(x, t.args[0].width),
}


def evaluate(term: Term, environment: Mapping[Term, int | MemoryValue]) -> int:
    """The value of a term. The environment maps variables to ints and memories to functions or dictionaries
    of bytes (absent cells are 0). A variable that is needed and missing is a KeyError."""

    def variable(v: Term) -> int:
        value = environment[v]
        if not isinstance(value, int):
            raise TypeError(f"{v.data} is a bit-vector variable and needs an int")
        return value

    def byte(m: Term, address: int) -> int:
        content = environment[m]
        if isinstance(content, Mapping):
            return content.get(address, 0)
        if callable(content):
            return content(address)
        raise TypeError(f"{m.data[0]} is a memory and needs a function or a dictionary")

    return Evaluator(variable, byte).value(term)
