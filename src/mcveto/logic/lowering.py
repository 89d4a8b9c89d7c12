"""Translation of terms into SMT-LIB's QF_ABV, for any target that can apply its operators.

Booleans (width 1) become Bool; where a bit-vector of one bit is needed they go through `ite`. A word access
becomes byte accesses. The machine's flags, population and leading-zero counts are spelled out with standard
operators, so that every solver sees the same formula. Iterative, and each term is translated once per
`Lowering`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from mcveto.logic.node import Term

T = TypeVar("T")


class Target(Protocol[T]):
    """What a solver (or printer) has to offer; operators have their SMT-LIB names."""

    def constant(self, value: int, width: int) -> T: ...
    def boolean(self, value: bool) -> T: ...
    def variable(self, name: str, width: int) -> T: ...
    def array(self, name: str, address_width: int) -> T: ...
    def apply(self, op: str, args: Sequence[T], indices: tuple[int, ...] = ()) -> T: ...


_DIRECT = {
    "mul": "bvmul",
    "udiv": "bvudiv",
    "urem": "bvurem",
    "sdiv": "bvsdiv",
    "srem": "bvsrem",
    "shl": "bvshl",
    "lshr": "bvlshr",
    "ashr": "bvashr",
    "xor": "bvxor",
    "not": "not",
    "eq": "=",
    "ult": "bvult",
    "ule": "bvule",
    "slt": "bvslt",
    "sle": "bvsle",
    "ite": "ite",
}


class Lowering(Generic[T]):
    """Terms of one target, remembered."""

    def __init__(self, target: Target[T]) -> None:
        self.target = target
        self.done: dict[Term, T] = {}

    def lower(self, term: Term) -> T:
        """The target's expression for a term."""
        done = self.done
        found = done.get(term)
        if found is not None:
            return found
        stack = [term]
        while stack:
            t = stack[-1]
            if t in done:
                stack.pop()
                continue
            waiting = [x for x in t.args if x not in done]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            done[t] = self._translate(t, [done[x] for x in t.args])
        return done[term]

    def _translate(self, t: Term, args: list[T]) -> T:
        op, target = t.op, self.target
        direct = _DIRECT.get(op)
        if direct is not None:
            return target.apply(direct, args)
        if op == "const":
            return target.boolean(bool(t.data)) if t.width == 1 else target.constant(t.data, t.width)
        if op == "var":
            return target.variable(t.data, t.width)
        if op == "memory":
            return target.array(*t.data)
        if op == "lin":
            return self._sum(t, args)
        if op == "and" or op == "or":
            return target.apply(op if t.width == 1 else "bv" + op, args)
        if op == "load":
            return self._load(t, args)
        if op == "store":
            return self._store(t, args)
        if op == "zext" and t.args[0].width == 1:
            one, zero = target.constant(1, t.width), target.constant(0, t.width)
            return target.apply("ite", [args[0], one, zero])
        vectors = [self._vector(x, y) for x, y in zip(t.args, args, strict=True)]
        if op == "concat":
            return target.apply("concat", vectors)
        if op == "zext" or op == "sext":
            name = "zero_extend" if op == "zext" else "sign_extend"
            return target.apply(name, vectors, (t.width - t.args[0].width,))
        if op == "extract":
            return self._boolean(target.apply("extract", vectors, t.data), t.width)
        if op == "carry":
            total = target.apply("bvadd", vectors)
            return target.apply("bvult", [total, vectors[0]])
        if op == "scarry" or op == "sborrow":
            return self._signed_overflow(op, vectors, t.args[0].width)
        if op == "popcount" or op == "lzcount":
            return self._count(t, vectors[0])
        raise ValueError(f"unknown operator {op}")

    def _vector(self, t: Term, value: T) -> T:
        """A Boolean as a vector of one bit; anything else as it is."""
        if t.width != 1:
            return value
        one, zero = self.target.constant(1, 1), self.target.constant(0, 1)
        return self.target.apply("ite", [value, one, zero])

    def _boolean(self, vector: T, width: int) -> T:
        """A vector of one bit as a Boolean; anything else as it is."""
        return vector if width != 1 else self.target.apply("=", [vector, self.target.constant(1, 1)])

    def _sum(self, t: Term, args: list[T]) -> T:
        coefficients, constant = t.data
        target, width = self.target, t.width
        ones = (1 << width) - 1
        total: T | None = None
        for c, x in sorted(zip(coefficients, args, strict=True), key=lambda m: m[0] == ones):
            if c == ones:
                total = target.apply("bvneg", [x]) if total is None else target.apply("bvsub", [total, x])
                continue
            if c & (c - 1) == 0 and c > 1:
                x = target.apply("bvshl", [x, target.constant(c.bit_length() - 1, width)])
            elif c != 1:
                x = target.apply("bvmul", [target.constant(c, width), x])
            total = x if total is None else target.apply("bvadd", [total, x])
        assert total is not None
        return target.apply("bvadd", [total, target.constant(constant, width)]) if constant else total

    def _signed_overflow(self, op: str, args: list[T], width: int) -> T:
        # a + b overflows iff the sum's sign differs from both; a - b iff a's differs from b's and
        # the difference's
        target = self.target
        a, b = args
        if op == "scarry":
            total = target.apply("bvadd", args)
            left, right = target.apply("bvxor", [total, a]), target.apply("bvxor", [total, b])
        else:
            total = target.apply("bvsub", args)
            left, right = target.apply("bvxor", [a, b]), target.apply("bvxor", [a, total])
        both = target.apply("bvand", [left, right])
        return target.apply("bvslt", [both, target.constant(0, width)])

    def _count(self, t: Term, x: T) -> T:
        target, width, size = self.target, t.width, t.args[0].width
        one = target.constant(1, 1)

        def bit(i: int) -> T:
            return target.apply("=", [target.apply("extract", [x], (i, i)), one])

        if t.op == "lzcount":
            total = target.constant(size & ((1 << width) - 1), width)
            for i in range(size):
                zeros = target.constant((size - 1 - i) & ((1 << width) - 1), width)
                total = target.apply("ite", [bit(i), zeros, total])
        else:
            total = target.constant(0, width)
            for i in range(size):
                addend = target.apply("ite", [bit(i), target.constant(1, width), target.constant(0, width)])
                total = target.apply("bvadd", [total, addend])
        return self._boolean(total, width)

    def _addresses(self, t: Term, value: T, count: int) -> list[T]:
        address, width = self._vector(t.args[1], value), t.args[1].width
        if t.args[1].op == "const":
            mask = (1 << width) - 1
            return [address, *[self.target.constant(t.args[1].data + i & mask, width) for i in range(1, count)]]
        offsets = [self.target.constant(i, width) for i in range(1, count)]
        return [address, *[self.target.apply("bvadd", [address, i]) for i in offsets]]

    def _load(self, t: Term, args: list[T]) -> T:
        count, big_endian = t.data
        cells = [self.target.apply("select", [args[0], p]) for p in self._addresses(t, args[1], count)]
        if not big_endian:
            cells.reverse()
        return self.target.apply("concat", cells) if count > 1 else cells[0]

    def _store(self, t: Term, args: list[T]) -> T:
        memory, value = args[0], args[2]
        count = t.args[2].width // 8
        for i, p in enumerate(self._addresses(t, args[1], count)):
            at = 8 * (count - 1 - i if t.data else i)
            byte = self.target.apply("extract", [value], (at + 7, at)) if count > 1 else value
            memory = self.target.apply("store", [memory, p, byte])
        return memory
