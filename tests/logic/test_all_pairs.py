"""Every operator on every pair of a few typical 3-bit operands, for all values of the variables.

Where random trees seldom put the same variable on both sides, this does nothing else: x <u x+k, the flags
of a-b next to a and b, masks over shifted and extended values.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import mcveto.logic.terms as tm
from mcveto.logic.evaluate import Evaluator

W, MASK = 3, 7
a, b, p = tm.var("a", W), tm.var("b", W), tm.var("p", 1)
VALUES = list(product(range(8), range(8), range(2)))
EVALUATORS = [Evaluator({a: i, b: j, p: n}.__getitem__, lambda _, address: 0) for i, j, n in VALUES]


def k(value: int) -> tm.Term:
    return tm.const(value, W)


def column(t: tm.Term) -> tuple[int, ...]:
    return tuple(e.value(t) for e in EVALUATORS)


def s(v: int) -> int:
    return v - 8 if v & 4 else v


OPERANDS = [
    *[k(i) for i in range(8)],
    a,
    b,
    *[tm.add(a, k(i)) for i in (1, 3, 4, 7)],
    tm.sub(a, b),
    tm.sub(b, a),
    tm.add(a, b),
    tm.neg(a),
    tm.bnot(b),
    tm.shl(a, k(1)),
    tm.shl(b, k(2)),
    tm.zext(tm.extract(a, 1, 0), W),
    tm.sext(tm.extract(a, 1, 0), W),
    tm.zext(tm.extract(b, 2, 1), W),
    tm.zext(p, W),
    tm.sext(p, W),
    tm.ite(p, k(2), k(5)),
    tm.ite(p, a, b),
    tm.concat(tm.extract(b, 0, 0), tm.extract(a, 1, 0)),
    tm.band(a, b),
    tm.bor(a, b),
    tm.bxor(a, k(3)),
]
OPERATORS: dict[Callable[[tm.Term, tm.Term], tm.Term], Callable[[int, int], int]] = {
    tm.add: lambda x, y: x + y & MASK,
    tm.sub: lambda x, y: x - y & MASK,
    tm.mul: lambda x, y: x * y & MASK,
    tm.udiv: lambda x, y: x // y if y else MASK,
    tm.urem: lambda x, y: x % y if y else x,
    tm.band: lambda x, y: x & y,
    tm.bor: lambda x, y: x | y,
    tm.bxor: lambda x, y: x ^ y,
    tm.shl: lambda x, y: x << y & MASK,
    tm.lshr: lambda x, y: x >> y,
    tm.ashr: lambda x, y: s(x) >> y & MASK,
    tm.concat: lambda x, y: x << W | y,
    tm.eq: lambda x, y: int(x == y),
    tm.ne: lambda x, y: int(x != y),
    tm.ult: lambda x, y: int(x < y),
    tm.ule: lambda x, y: int(x <= y),
    tm.slt: lambda x, y: int(s(x) < s(y)),
    tm.sle: lambda x, y: int(s(x) <= s(y)),
    tm.carry: lambda x, y: int(x + y > MASK),
    tm.scarry: lambda x, y: int(not -4 <= s(x) + s(y) < 4),
    tm.sborrow: lambda x, y: int(not -4 <= s(x) - s(y) < 4),
}


def test_every_operator_on_every_pair() -> None:
    columns = [column(t) for t in OPERANDS]
    for build, reference in OPERATORS.items():
        for x, left in zip(OPERANDS, columns, strict=True):
            for y, right in zip(OPERANDS, columns, strict=True):
                built = build(x, y)
                expected = tuple(map(reference, left, right))
                assert column(built) == expected, (build.__name__, x, y, built)


def test_pairs_of_comparisons_and_flags() -> None:
    tests = (tm.eq, tm.ne, tm.ult, tm.ule, tm.slt, tm.sle, tm.carry, tm.scarry, tm.sborrow)
    operands = [a, b, k(0), k(1), k(3), k(4), k(5), k(7), tm.add(a, k(3)), tm.sub(a, b)]
    conditions = list(dict.fromkeys(t(x, y) for t in tests for x in operands for y in operands))
    signs = [tm.slt(tm.sub(x, y), k(0)) for x in operands for y in operands]
    conditions = list(dict.fromkeys([*conditions, *signs, p]))
    columns = {t: column(t) for t in conditions}
    rng = random.Random(7)
    pairs = list(product(conditions, conditions))
    for x, y in rng.sample(pairs, min(len(pairs), 1_500)):
        left, right = columns[x], columns[y]
        assert column(tm.conj([x, y])) == tuple(i & j for i, j in zip(left, right, strict=True)), (x, y)
        assert column(tm.disj([x, y])) == tuple(i | j for i, j in zip(left, right, strict=True)), (x, y)
        assert column(tm.bxor(x, y)) == tuple(i ^ j for i, j in zip(left, right, strict=True)), (x, y)
        assert column(tm.bnot(tm.conj([x, y]))) == tuple(1 - (i & j) for i, j in zip(left, right, strict=True))
        chosen = column(tm.ite(x, a, tm.ite(y, b, a)))
        assert chosen == tuple(j if not t and u else i for t, u, (i, j, _) in zip(left, right, VALUES, strict=True))
