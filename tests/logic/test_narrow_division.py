"""Divisions in narrower words: every value of small operands, and the shapes that machines divide in."""

from __future__ import annotations

from itertools import product

import pytest

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.linear import divide_signed, remainder_signed

WIDE = 5
EXTENSIONS = {"zext": t.zext, "sext": t.sext}
MAKE = {"udiv": t.udiv, "urem": t.urem, "sdiv": t.sdiv, "srem": t.srem}


def defined(op: str, x: int, y: int) -> int:
    top = (1 << WIDE) - 1
    if op == "udiv":
        return x // y if y else top
    if op == "urem":
        return x % y if y else x
    return (divide_signed if op == "sdiv" else remainder_signed)(x, y, WIDE) & top


def extended(kind: str, value: int, width: int) -> int:
    negative = kind == "sext" and value >> width - 1
    return value | ((1 << WIDE) - (1 << width) if negative else 0)


@pytest.mark.parametrize("op", MAKE)
@pytest.mark.parametrize("kinds", list(product(EXTENSIONS, EXTENSIONS)))
@pytest.mark.parametrize("widths", list(product((2, 3), (1, 2, 3, 4))))
def test_every_value(op: str, kinds: tuple[str, str], widths: tuple[int, int]) -> None:
    x, y = t.var("x", widths[0]), t.var("y", widths[1])
    a, b = EXTENSIONS[kinds[0]](x, WIDE), EXTENSIONS[kinds[1]](y, WIDE)
    whole = MAKE[op](a, b)
    parts = [t.extract(whole, hi, 0) for hi in range(WIDE)]
    fits = [t.eq(whole, t.sext(t.extract(whole, hi, 0), WIDE)) for hi in range(1, WIDE - 1)]
    rest = t.sub(a, t.mul(MAKE["udiv" if op[0] == "u" else "sdiv"](a, b), b))
    for left, right in product(range(1 << widths[0]), range(1 << widths[1])):
        values = {x: left, y: right}
        evaluator = Evaluator(values.__getitem__, lambda memory, address: 0)
        one, other = extended(kinds[0], left, widths[0]), extended(kinds[1], right, widths[1])
        expected = defined(op, one, other)
        assert evaluator.value(whole) == expected
        assert [evaluator.value(part) for part in parts] == [expected % (2 << hi) for hi in range(WIDE)]
        for hi, condition in enumerate(fits, 1):
            low = expected % (2 << hi)
            back = low - (2 << hi) if low >> hi else low
            assert bool(evaluator.value(condition)) == (back % (1 << WIDE) == expected)
        assert evaluator.value(rest) == defined("urem" if op[0] == "u" else "srem", one, other)


def test_what_x86_divides_in_two_registers_is_a_division_of_one() -> None:
    x, y = t.var("x", 32), t.var("y", 32)
    dividend = t.concat(t.extract(t.sext(x, 64), 63, 32), x)
    quotient = t.sdiv(dividend, t.sext(y, 64))
    assert t.extract(quotient, 31, 0) is t.sdiv(x, y)
    assert t.extract(t.srem(dividend, t.sext(y, 64)), 31, 0) is t.srem(x, y)
    overflow = t.ne(quotient, t.sext(t.extract(quotient, 31, 0), 64))
    assert overflow is t.conj([t.eq(x, t.const(1 << 31, 32)), t.eq(y, t.const(-1, 32))])
    wide = t.zext(x, 64)
    assert t.extract(t.udiv(wide, t.zext(y, 64)), 31, 0) is t.udiv(x, y)
    assert t.extract(t.urem(wide, t.zext(y, 64)), 31, 0) is t.urem(x, y)


def test_bytes_are_divided_as_bytes() -> None:
    x, y = t.var("x", 8), t.var("y", 8)
    assert t.srem(t.sext(x, 32), t.sext(y, 32)) is t.sext(t.srem(x, y), 32)
    assert t.srem(t.zext(x, 32), t.const(10, 32)) is t.zext(t.urem(x, t.const(10, 8)), 32)
    assert t.udiv(t.zext(x, 32), t.const(10, 32)) is t.zext(t.udiv(x, t.const(10, 8)), 32)


def test_a_remainder_without_an_instruction_for_it() -> None:
    x, y = t.var("x", 32), t.var("y", 32)
    assert t.sub(x, t.mul(t.sdiv(x, y), y)) is t.srem(x, y)
    assert t.sub(x, t.mul(t.udiv(x, y), y)) is t.urem(x, y)
    assert t.sub(x, t.mul(t.sdiv(x, t.const(7, 32)), t.const(7, 32))) is t.srem(x, t.const(7, 32))
    assert t.sub(y, t.mul(t.sdiv(x, y), y)).op == "lin"


@pytest.mark.parametrize("op", ["udiv", "sdiv"])
def test_that_remainder_at_every_value(op: str) -> None:
    x, y = t.var("x", WIDE), t.var("y", WIDE)
    rest = t.sub(x, t.mul(y, MAKE[op](x, y)))
    by_constants = {c: t.sub(x, t.mul(t.const(c, WIDE), MAKE[op](x, t.const(c, WIDE)))) for c in range(1 << WIDE)}
    assert rest.op in ("urem", "srem")
    for left, right in product(range(1 << WIDE), repeat=2):
        evaluator = Evaluator({x: left, y: right}.__getitem__, lambda memory, address: 0)
        expected = defined("urem" if op == "udiv" else "srem", left, right)
        assert evaluator.value(rest) == evaluator.value(by_constants[right]) == expected
