"""x = (x / c) * c + x rem c in sums, the bounds of quotients and remainders, and that cutting them can be undone."""

from __future__ import annotations

import itertools
import random

import pytest

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator

WIDTH = 6
X, Y = t.var("x", WIDTH), t.var("y", WIDTH)


def const(value: int) -> t.Term:
    return t.const(value, WIDTH)


def value(term: t.Term, **numbers: int) -> int:
    return Evaluator(lambda variable: numbers[variable.data], lambda *_: 0).value(term)


@pytest.mark.parametrize("divisor", [c for c in range(3, 1 << WIDTH) if c & (c - 1)])
def test_remainders_in_sums(divisor: int) -> None:
    by = const(divisor)
    for divide, rest in ((t.udiv, t.urem), (t.sdiv, t.srem)):
        quotient, remainder = divide(X, by), rest(X, by)
        if divide is t.sdiv and by is const(-1):
            continue
        for dividend in (X, t.add(X, const(5)), t.add(X, Y), t.sub(t.mul(X, const(3)), Y)):
            part = t.sub(dividend, t.mul(divide(dividend, by), by))
            assert part is rest(dividend, by)
            if 4 * divisor % (1 << WIDTH) == 0:
                continue
            place = t.add(t.sub(t.mul(dividend, const(4)), t.mul(divide(dividend, by), t.mul(by, const(4)))), Y)
            assert place is t.add(t.mul(rest(dividend, by), const(4)), Y)
        assert t.add(t.mul(quotient, by), remainder) is X
        assert t.add(t.mul(quotient, t.mul(by, const(-1))), t.neg(remainder)) is t.neg(X)
        assert t.sub(Y, t.mul(quotient, by)).op == "lin"  # of another number
        other = t.sub(X, t.mul(quotient, const(divisor + 1)))
        for x in range(1 << WIDTH):
            assert value(other, x=x) == (x - value(quotient, x=x) * (divisor + 1)) % (1 << WIDTH)


@pytest.mark.parametrize("divisor", range(2, 1 << WIDTH))
def test_bounds_and_parts_are_those_of_every_value(divisor: int) -> None:
    for make in (t.udiv, t.urem, t.sdiv, t.srem):
        term = make(X, const(divisor))
        values = [value(term, x=x) for x in range(1 << WIDTH)]
        for k in range(1 << WIDTH):
            conditions = (t.ult(term, const(k)), t.ult(const(k), term), t.eq(term, const(k)), t.slt(term, const(k)))
            for x, v in enumerate(values):
                signed = [n - (1 << WIDTH) if n >> WIDTH - 1 else n for n in (v, k)]
                wanted = [v < k, k < v, v == k, signed[0] < signed[1]]
                assert [value(condition, x=x) == 1 for condition in conditions] == wanted
        for hi in range(WIDTH):
            for lo in range(hi + 1):
                part = t.extract(term, hi, lo)
                wide = t.zext(part, WIDTH + 2)
                for x, v in enumerate(values):
                    assert value(part, x=x) == value(wide, x=x) == (v >> lo) % (2 << hi - lo)
        for k in range(WIDTH):
            shifted = t.lshr(term, const(k))
            assert [value(shifted, x=x) for x in range(1 << WIDTH)] == [v >> k for v in values]


def test_bounds_are_seen_without_a_solver() -> None:
    x = t.var("x", 32)

    def number(n: int) -> t.Term:
        return t.const(n, 32)

    rest, quotient = t.urem(x, number(7)), t.udiv(x, number(10))
    assert (
        t.ult(rest, number(7)) is t.TRUE and t.ult(number(6), rest) is t.FALSE and t.ult(rest, number(6)) is not t.TRUE
    )
    assert t.eq(rest, number(7)) is t.FALSE and t.eq(rest, number(6)) is not t.FALSE
    assert t.slt(rest, number(0)) is t.FALSE and t.slt(rest, number(7)) is t.TRUE and t.slt(number(6), rest) is t.FALSE
    assert t.ult(quotient, number(429496730)) is t.TRUE and t.ult(quotient, number(429496729)) is not t.TRUE
    signed = t.srem(x, number(7))
    assert t.slt(signed, number(7)) is t.TRUE and t.slt(number(-7), signed) is t.TRUE
    assert t.slt(signed, number(6)) is not t.TRUE and t.slt(number(-6), signed) is not t.TRUE
    assert t.eq(signed, number(7)) is t.FALSE and t.eq(signed, number(-7)) is t.FALSE
    assert t.eq(signed, number(-6)) is not t.FALSE
    assert t.conj([t.ne(rest, number(n)) for n in range(7)]) is t.FALSE


def test_what_is_cut_can_be_put_together_again() -> None:
    draw = random.Random(3)
    x = t.var("x", 32)
    for divisor in (3, 7, 10, 1000, 70000, 1 << 24 | 1):
        for term in (t.udiv(x, t.const(divisor, 32)), t.urem(x, t.const(divisor, 32))):
            for _ in range(20):
                cuts = sorted({0, 32, *(draw.randrange(1, 32) for _ in range(3))})
                parts = [t.extract(term, high - 1, low) for low, high in itertools.pairwise(cuts)]
                whole = parts[0]
                for part in parts[1:]:
                    whole = t.concat(part, whole)
                assert whole is term
        quotient = t.udiv(x, t.const(divisor, 32))
        above = t.extract(t.lshr(quotient, t.const(8, 32)), 7, 0)  # as a program takes it apart
        assert t.concat(above, t.extract(quotient, 7, 0)) is t.extract(quotient, 15, 0)
        assert t.lshr(quotient, t.const(3, 32)) is t.udiv(x, t.const(8 * divisor, 32))


def test_what_was_shifted_before_it_was_divided() -> None:
    for shift, divisor in ((1, 3), (2, 3), (1, 5), (1, 6), (3, 3)):
        upper = t.extract(X, WIDTH - 1, shift)
        quotient = t.udiv(X, const(divisor << shift))
        rest = t.sub(t.zext(upper, WIDTH), t.mul(quotient, const(divisor)))
        assert rest is t.zext(t.urem(upper, t.const(divisor, WIDTH - shift)), WIDTH)
        assert all(value(rest, x=x) == (x >> shift) % divisor for x in range(1 << WIDTH))
        assert t.sub(t.zext(upper, WIDTH), t.mul(quotient, const(divisor + 1))).op == "lin"
