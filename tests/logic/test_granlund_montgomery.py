"""Divisions by constants that were made multiplications: recognised if and only if they are right for every number.

Small widths are tried completely: every factor, shift and number, so that no condition of the recogniser goes untested;
the widths of machines with the divisors of programs and random ones.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator

DIVISORS = [3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 19, 21, 25, 28, 60, 100, 125, 641, 1000, 3600, 65535, 1000003]


def value(term: t.Term, **numbers: int) -> int:
    return Evaluator(lambda variable: numbers[variable.data], lambda *_: 0).value(term)


def number(x: int, width: int) -> int:
    return x - (1 << width) if x >> width - 1 else x


def toward_zero(x: int, divisor: int) -> int:
    return abs(x) // abs(divisor) * (1 if (x < 0) == (divisor < 0) else -1)


def multiplied(x: t.Term, factor: int, low: int) -> t.Term:
    """(factor * x) >> low, without loss, in a word as wide as x."""
    width = 2 * x.width
    upper = t.extract(t.mul(t.zext(x, width), t.const(factor, width)), width - 1, x.width)
    return t.lshr(upper, t.const(low - x.width, x.width))


def averaged(x: t.Term, factor: int, low: int) -> t.Term:
    """The same for a factor of one bit more than a word."""
    width = x.width
    upper = multiplied(x, factor - (1 << width), width)
    half = t.lshr(t.sub(x, upper), t.const(1, width))
    return t.lshr(t.add(half, upper), t.const(low - width - 1, width))


def by_inverse(x: t.Term, divisor: int, unused: int = 0) -> t.Term:
    """x / divisor as compilers do it, with the smallest factor that will do if so many bits of x are 0."""
    width = x.width
    for low in itertools.count(width):
        factor = -(-(1 << low) // divisor)
        if (factor * divisor - (1 << low)) * ((1 << width - unused) - 1) < 1 << low:
            return multiplied(x, factor, low) if factor < 1 << width else averaged(x, factor, low)
    raise AssertionError


def signed_parts(x: t.Term, factor: int, low: int) -> tuple[t.Term, t.Term]:
    """(factor * x) >> low for signed x in a word as wide as x, and the product."""
    width = x.width
    product = t.mul(t.sext(x, 2 * width), t.const(factor, 2 * width))
    return t.ashr(t.extract(product, 2 * width - 1, width), t.const(low - width, width)), product


def signed_by_inverse(x: t.Term, divisor: int, by_sign_of_x: bool) -> t.Term:
    """x / divisor as compilers do it (a positive divisor that is no power of two)."""
    width = x.width
    low = width + (divisor - 1).bit_length() - 1
    factor = (1 << low) // divisor + 1
    if factor < 1 << width - 1:
        quotient, product = signed_parts(x, factor, low)
        sign = t.slt(product, t.const(0, 2 * width))
    else:
        upper, _ = signed_parts(x, factor - (1 << width), width)
        total = t.add(upper, x)
        quotient, sign = t.ashr(total, t.const(low - width, width)), t.slt(total, t.const(0, width))
    sign = t.slt(x, t.const(0, width)) if by_sign_of_x else sign
    return t.add(quotient, t.zext(sign, width))


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_every_product(width: int) -> None:
    """Recognised exactly where it is a division for all numbers, and the value is that of the product anyway."""
    x, wide = t.var("x", width), 2 * width + 2
    recognised = 0
    for factor, low in itertools.product(range(1, 1 << width + 1), range(1, wide - 1)):
        results = [factor * n >> low for n in range(1 << width)]
        part = t.extract(t.mul(t.zext(x, wide), t.const(factor, wide)), wide - 1, low)
        assert [value(part, x=n) for n in range(1 << width)] == [r % (1 << wide - low) for r in results]
        right = [d for d in range(1, 1 << width) if results == [n // d for n in range(1 << width)]]
        if right and results[-1] < 1 << wide - low:
            recognised += 1
            expected = t.zext(t.udiv(x, t.const(right[0], width)), wide)
            assert part is t.extract(expected, wide - low - 1, 0), (factor, low)
        elif any(results) and factor & (factor - 1):
            assert part.op == "extract" or part.args[0].op == "extract", (factor, low)
    assert recognised > 2 * width


@pytest.mark.parametrize("width", [4, 5])
def test_every_product_of_signed_numbers(width: int) -> None:
    x, wide = t.var("x", width), 2 * width + 1
    signs = [t.slt(x, t.const(0, width)), t.slt(t.mul(t.sext(x, wide), t.const(3, wide)), t.const(0, wide))]
    signs.append(t.slt(t.mul(t.sext(x, wide), t.const(-3, wide)), t.const(0, wide)))
    recognised = 0
    for factor, low in itertools.product(range(-(1 << width), 1 << width), range(1, wide - 1)):
        product = t.mul(t.sext(x, wide), t.const(factor, wide))
        quotient = t.sext(t.extract(product, wide - 1, low), wide)
        for sign in [*signs, t.slt(product, t.const(0, wide))]:
            total = t.add(quotient, t.zext(sign, wide))
            numbers = [(n, (factor * number(n, width) >> low) + value(sign, x=n)) for n in range(1 << width)]
            assert all(value(total, x=n) == q % (1 << wide) for n, q in numbers)
            right = [
                d
                for size in range(2, 1 << width - 1)
                for d in (size, -size)
                if size & (size - 1) and all(q == toward_zero(number(n, width), d) for n, q in numbers)
            ]
            if right and factor & (factor - 1) and -factor & (-factor - 1):
                recognised += 1
                expected = t.sext(t.sdiv(x, t.const(abs(right[0]), width)), wide)
                assert total is (expected if right[0] > 0 else t.neg(expected)), (factor, low)
    assert recognised > width


@pytest.mark.parametrize("divisor", [d for d in range(3, 256) if d & (d - 1)])
def test_every_divisor_of_bytes(divisor: int) -> None:
    x = t.var("x", 8)
    ways = [by_inverse(x, divisor)]
    twos = (divisor & -divisor).bit_length() - 1
    if twos:
        ways.append(by_inverse(t.lshr(x, t.const(twos, 8)), divisor >> twos, twos))
    for quotient in ways:
        assert all(value(quotient, x=n) == n // divisor for n in range(256))
        rest = t.sub(x, t.mul(quotient, t.const(divisor, 8)))
        assert all(value(rest, x=n) == n % divisor for n in range(256))
        if divisor < 128:  # a quotient of one bit is a comparison
            assert quotient is t.udiv(x, t.const(divisor, 8))
            assert rest is t.urem(x, t.const(divisor, 8))
    if divisor < 127:
        for by_sign_of_x in (False, True):
            quotient = signed_by_inverse(x, divisor, by_sign_of_x)
            assert quotient is t.sdiv(x, t.const(divisor, 8))
            assert all(value(quotient, x=n) == toward_zero(number(n, 8), divisor) % 256 for n in range(256))
            rest = t.sub(x, t.mul(quotient, t.const(divisor, 8)))
            assert rest is t.srem(x, t.const(divisor, 8))


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_words(width: int, divisor: int) -> None:
    if divisor >= (1 << width) - 1:
        return
    x, by = t.var("x", width), t.const(divisor, width)
    assert by_inverse(x, divisor) is t.udiv(x, by)
    total = t.add(t.sub(x, t.var("y", width)), t.const(87, width))
    assert by_inverse(total, divisor) is t.udiv(total, by)
    if divisor < 1 << width - 1:
        assert signed_by_inverse(x, divisor, True) is signed_by_inverse(x, divisor, False) is t.sdiv(x, by)


@given(st.sampled_from([16, 32, 64]), st.data())
def test_any_factor_and_shift_at_the_widths_of_machines(width: int, data: st.DataObject) -> None:
    """Near misses too: whatever is made of it has the value of the product."""
    divisor = data.draw(st.integers(3, (1 << width) - 1))
    low = width + data.draw(st.integers(0, width - 2))
    factor = -(-(1 << low) // divisor) + data.draw(st.integers(-1, 2))
    x = t.var("x", width)
    numbers = data.draw(st.lists(st.integers(0, (1 << width) - 1), min_size=5))
    top = (1 << width) // divisor * divisor
    edges = [n % (1 << width) for n in (*numbers, top, top - 1, divisor - 1, divisor, -1, 1 << width - 1)]
    if 0 < factor < 1 << width:
        term = multiplied(x, factor, low)
        assert [value(term, x=n) for n in edges] == [factor * n >> low for n in edges]
    elif 1 << width < factor < 2 << width and low > width:
        term = averaged(x, factor, low)
        assert [value(term, x=n) for n in edges] == [factor * n >> low for n in edges]
    half = 1 << width - 1
    if 0 < factor < half:
        quotient, product = signed_parts(x, factor, low)
        term = t.add(quotient, t.zext(t.slt(product, t.const(0, 2 * width)), width))
        expected = [(factor * number(n, width) >> low) + (number(n, width) < 0) for n in edges]
        assert [value(term, x=n) for n in edges] == [q % (1 << width) for q in expected]


def test_near_misses_are_not_divisions() -> None:
    x = t.var("x", 32)
    assert multiplied(x, 0xAAAAAAAB, 33) is t.udiv(x, t.const(3, 32))
    for factor, low in ((0xAAAAAAAA, 33), (0xAAAAAAAC, 33), (0xCCCCCCCC, 35), (0xCCCCCCCE, 35), (0x24924925, 32)):
        assert multiplied(x, factor, low).op in ("extract", "zext") and "udiv" not in {
            y.op for y in t.postorder([multiplied(x, factor, low)])
        }
    assert averaged(x, 0x124924925, 35) is t.udiv(x, t.const(7, 32))
    for factor in (0x124924924, 0x124924926):
        assert "udiv" not in {y.op for y in t.postorder([averaged(x, factor, 35)])}
    quotient, product = signed_parts(x, 0x66666667, 34)
    negative = t.slt(product, t.const(0, 64))
    assert t.add(quotient, t.zext(negative, 32)) is t.sdiv(x, t.const(10, 32))
    for factor in (0x66666666, 0x66666669):
        off, product = signed_parts(x, factor, 34)
        total = t.add(off, t.zext(t.slt(product, t.const(0, 64)), 32))
        assert "sdiv" not in {y.op for y in t.postorder([total])}
    # The sign of something else, or of the opposite, is not the sign of the product.
    y = t.var("y", 32)
    for other in (t.slt(y, t.const(0, 32)), t.slt(t.neg(x), t.const(0, 32)), t.slt(t.const(0, 32), x)):
        assert "sdiv" not in {z.op for z in t.postorder([t.add(quotient, t.zext(other, 32))])}
    # h of another number, and another minuend.
    upper = multiplied(y, 0x24924925, 32)
    mixed = t.lshr(t.add(t.lshr(t.sub(x, upper), t.const(1, 32)), upper), t.const(2, 32))
    assert "udiv" not in {z.op for z in t.postorder([mixed])}
    # A product that overflows: 32 bits of a factor times 32 bits in 48.
    cut = t.extract(t.mul(t.zext(x, 48), t.const(0xAAAAAAAB, 48)), 47, 33)
    assert "udiv" not in {z.op for z in t.postorder([cut])}


def test_the_two_instructions_that_multiply_into_a_sum() -> None:
    """ARM adds the dividend to the upper half while it multiplies."""
    x = t.var("x", 32)
    total = t.add(t.concat(x, t.const(0, 32)), t.mul(t.sext(x, 64), t.const(-0x6DB6DB6D, 64)))
    upper = t.extract(total, 63, 32)
    quotient = t.add(t.ashr(upper, t.const(2, 32)), t.lshr(upper, t.const(31, 32)))
    assert quotient is t.sdiv(x, t.const(7, 32))


@pytest.mark.parametrize("width", [3, 4])
def test_products_that_lose_bits_keep_their_value(width: int) -> None:
    """Words that are too narrow for the product, and parts of it with bits missing above."""
    x = t.var("x", width)
    for wide in range(width + 1, 2 * width + 1):
        for factor in range(1, 1 << wide):
            product = t.mul(t.zext(x, wide), t.const(factor, wide))
            signed = t.mul(t.sext(x, wide), t.const(factor, wide))
            sign = t.zext(t.slt(signed, t.const(0, wide)), wide)
            for lo in range(1, wide - 1):
                for hi in {lo + 1, wide - 1}:
                    part, upper = t.extract(product, hi, lo), t.sext(t.extract(signed, hi, lo), wide)
                    total, other = t.add(upper, sign), t.add(upper, t.zext(t.slt(x, t.const(0, width)), wide))
                    for n in range(1 << width):
                        exact = number(n, width) * factor % (1 << wide)
                        cut = number((exact >> lo) % (2 << hi - lo), hi - lo + 1)
                        assert value(part, x=n) == (n * factor % (1 << wide) >> lo) % (2 << hi - lo)
                        assert value(total, x=n) == (cut + (exact >> wide - 1)) % (1 << wide)
                        assert value(other, x=n) == (cut + (n >> width - 1)) % (1 << wide)


@pytest.mark.parametrize("width", [3, 4])
def test_halves_of_differences_keep_their_value(width: int) -> None:
    """h + (x - h) / 2 with parts of products that are too long, too short or cut off, and x + h for signed numbers."""
    x = t.var("x", width)
    for wide, factor in itertools.product((width + 1, 2 * width), range(1, 1 << width + 1)):
        product = t.mul(t.zext(x, wide), t.const(factor, wide))
        for lo in range(1, wide - width + 1):
            upper = t.extract(product, lo + width - 1, lo)
            half = t.zext(t.extract(t.sub(x, upper), width - 1, 1), width)
            short = t.zext(t.extract(t.sub(x, upper), width - 2, 1), width)
            for shift in range(width - 1):
                terms = [t.lshr(t.add(upper, part), t.const(shift, width)) for part in (half, short)]
                for n in range(1 << width):
                    h = (n * factor % (1 << wide) >> lo) % (1 << width)
                    difference = (n - h) % (1 << width)
                    for term, d in zip(terms, (difference, difference % (1 << width - 1)), strict=True):
                        assert value(term, x=n) == (h + (d >> 1)) % (1 << width) >> shift
        signed = t.mul(t.sext(x, wide), t.const(factor, wide))
        upper = t.extract(signed, wide - 1, wide - width)
        for whole, times in ((t.add(upper, x), 1), (t.sub(upper, x), -1)):
            sign = t.zext(t.slt(whole, t.const(0, width)), width)
            for shift in range(1, width - 1):
                term = t.add(t.ashr(whole, t.const(shift, width)), sign)
                for n in range(1 << width):
                    h = (number(n, width) * factor % (1 << wide)) >> wide - width
                    w = number((h + times * n) % (1 << width), width)
                    assert value(term, x=n) == ((w >> shift) + (w < 0)) % (1 << width)


@pytest.mark.parametrize("width", [3, 4])
def test_halves_of_differences_in_wider_words_keep_their_value(width: int) -> None:
    x, wide = t.var("x", width), 2 * width
    for factor, lo in itertools.product(range(1, 1 << wide), range(1, width + 1)):
        product = t.mul(t.zext(x, wide), t.const(factor, wide))
        for top in (wide - 1, lo + width - 2):
            upper = t.zext(t.extract(product, top, lo), wide)
            difference = t.sub(t.zext(x, wide), upper)
            for high in (width - 2, width - 1, wide - 1):
                total = t.add(upper, t.zext(t.extract(difference, high, 1), wide))
                terms = [t.extract(total, wide - 1, shift) for shift in (1, 2)]
                for n in range(1 << width):
                    h = (n * factor % (1 << wide) >> lo) % (2 << top - lo)
                    whole = (h + ((n - h) % (2 << high) >> 1)) % (1 << wide)
                    assert [value(term, x=n) for term in terms] == [whole >> 1, whole >> 2]
