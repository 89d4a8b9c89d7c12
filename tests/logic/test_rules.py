"""Every simplification rule gives exactly the result its comment promises; terms are compared by identity."""

from __future__ import annotations

import pytest

from mcveto.logic.terms import (
    FALSE,
    TRUE,
    Term,
    WidthError,
    add,
    ashr,
    band,
    bnot,
    bor,
    bxor,
    carry,
    concat,
    conj,
    const,
    disj,
    eq,
    extract,
    free_variables,
    implies,
    ite,
    lshr,
    lzcount,
    memory,
    mul,
    ne,
    neg,
    popcount,
    sborrow,
    scarry,
    sdiv,
    sext,
    shl,
    sle,
    slt,
    srem,
    sub,
    udiv,
    ule,
    ult,
    urem,
    var,
    zext,
)

x, y, z = var("x", 32), var("y", 32), var("z", 32)
b8, c8 = var("b8", 8), var("c8", 8)
many = add(add(x, y), z)
for at in range(12):
    many = add(many, var(f"x{at}", 32))
p, q, r = var("p", 1), var("q", 1), var("r", 1)


def k(value: int, width: int = 32) -> Term:
    return const(value, width)


def test_terms_are_shared_and_widths_checked() -> None:
    assert add(x, y) is add(y, x)
    assert var("x", 32) is x
    assert const(-1, 8) is const(255, 8)
    with pytest.raises(WidthError):
        add(x, b8)
    with pytest.raises(WidthError):
        extract(x, 32, 0)
    with pytest.raises(WidthError):
        zext(x, 16)
    with pytest.raises(WidthError):
        const(0, 0)
    with pytest.raises(WidthError):
        conj([x])
    assert free_variables([add(x, y), p, memory("m", 32)]) == [memory("m", 32), p, x, y]


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        # linear sums
        (sub(add(x, k(4)), x), k(4)),
        (add(sub(x, y), y), x),
        (sub(add(x, add(y, z)), add(z, x)), y),
        (neg(neg(x)), x),
        (bnot(bnot(x)), x),
        (add(bnot(x), k(1)), neg(x)),
        (shl(x, k(3)), mul(x, k(8))),
        (mul(mul(x, k(2)), mul(y, k(4))), mul(k(8), mul(y, x))),
        (add(mul(x, k(3)), mul(x, k(-3))), k(0)),
        (mul(x, k(0)), k(0)),
        (shl(zext(extract(x, 27, 0), 32), k(4)), shl(x, k(4))),
        (shl(lshr(shl(add(x, y), k(4)), k(4)), k(4)), shl(add(x, y), k(4))),
        (mul(lshr(add(shl(x, k(4)), k(32)), k(4)), k(48)), add(mul(x, k(48)), k(96))),
        # division
        (udiv(x, k(8)), lshr(x, k(3))),
        (udiv(x, k(0)), k(-1)),
        (urem(x, k(8)), zext(extract(x, 2, 0), 32)),
        (sub(x, band(x, k(-4))), band(x, k(3))),
        (sub(add(x, y), band(add(x, y), k(-8))), band(add(x, y), k(7))),
        (sub(mul(k(12), x), mul(k(48), lshr(x, k(2)))), mul(k(12), band(x, k(3)))),
        (sub(zext(extract(x, 9, 2), 32), shl(zext(extract(x, 9, 5), 32), k(3))), zext(extract(x, 4, 2), 32)),
        (add(mul(k(-4), lshr(x, k(2))), add(x, y)), add(y, band(x, k(3)))),
        (add(band(x, k(-4)), band(x, k(3))), x),
        (
            add(shl(zext(extract(x, 9, 5), 32), k(4)), shl(zext(extract(x, 4, 2), 32), k(1))),
            shl(zext(extract(x, 9, 2), 32), k(1)),
        ),
        (urem(x, k(0)), x),
        (urem(x, k(1)), k(0)),
        (sdiv(x, k(1)), x),
        (sdiv(k(-7), k(2)), k(-3)),
        (sdiv(k(-7), k(0)), k(1)),
        (sdiv(k(1 << 31), k(-1)), k(1 << 31)),
        (srem(k(-7), k(2)), k(-1)),
        (srem(x, k(0)), x),
        (srem(x, k(1)), k(0)),
        # pieces
        (extract(extract(x, 23, 8), 7, 4), extract(x, 15, 12)),
        (concat(extract(x, 31, 16), extract(x, 15, 0)), x),
        (concat(concat(extract(x, 31, 24), extract(x, 23, 16)), extract(x, 15, 0)), x),
        (concat(k(0, 8), b8), zext(b8, 16)),
        (extract(concat(b8, c8), 7, 0), c8),
        (extract(concat(b8, c8), 15, 8), b8),
        (extract(concat(b8, c8), 11, 4), concat(extract(b8, 3, 0), extract(c8, 7, 4))),
        (extract(zext(b8, 32), 7, 0), b8),
        (extract(zext(b8, 32), 31, 8), k(0, 24)),
        (extract(sext(b8, 32), 7, 0), b8),
        (extract(sext(b8, 32), 15, 0), sext(b8, 16)),
        (zext(zext(b8, 16), 32), zext(b8, 32)),
        (sext(sext(b8, 16), 32), sext(b8, 32)),
        (sext(zext(b8, 16), 32), zext(b8, 32)),
        (concat(extract(sext(b8, 32), 31, 8), b8), sext(b8, 32)),
        (concat(extract(add(x, y), 31, 8), extract(add(x, y), 7, 0)), add(x, y)),
        (concat(extract(bxor(x, y), 31, 8), extract(bxor(x, y), 7, 0)), bxor(x, y)),
        (extract(add(zext(b8, 32), k(1)), 7, 0), add(b8, k(1, 8))),
        (extract(mul(sext(x, 64), sext(y, 64)), 31, 0), mul(x, y)),
        (concat(extract(x, 27, 0), k(0, 4)), shl(x, k(4))),
        (extract(shl(x, k(8)), 31, 8), extract(x, 23, 0)),
        (extract(shl(x, k(8)), 7, 0), k(0, 8)),
        (extract(add(shl(many, k(8)), k(5)), 7, 2), k(1, 6)),
        (extract(sub(shl(zext(b8, 32), k(1)), k(2)), 31, 1), sub(zext(b8, 31), k(1, 31))),
        (
            extract(add(shl(zext(b8, 32), k(2)), k(0xFFFFFFF7)), 20, 3),
            extract(add(zext(b8, 30), k(0x3FFFFFFD, 30)), 18, 1),
        ),
        (lshr(shl(x, k(8)), k(8)), zext(extract(x, 23, 0), 32)),
        (lshr(x, k(40)), k(0)),
        (shl(x, k(32)), k(0)),
        (lshr(x, k(31)), zext(slt(x, k(0)), 32)),
        (ashr(x, k(99)), sext(slt(x, k(0)), 32)),
        (ashr(x, k(0)), x),
        (lshr(x, k(24)), zext(extract(x, 31, 24), 32)),
        (ashr(x, k(24)), sext(extract(x, 31, 24), 32)),
        (extract(x, 31, 31), slt(x, k(0))),
        (concat(slt(x, k(0)), extract(x, 30, 0)), x),
        (popcount(zext(b8, 32), 8), popcount(b8, 8)),
        (popcount(k(0xFF), 8), k(8, 8)),
        (lzcount(k(1), 32), k(31)),
        (lzcount(k(0), 32), k(32)),
        (lshr(lzcount(x, 32), k(5)), zext(eq(x, k(0)), 32)),
        (extract(lzcount(b8, 32), 31, 4), k(0, 28)),
        (concat(sext(p, 8), sext(p, 8)), sext(p, 16)),
        # bitwise
        (band(x, k(0xFF)), zext(extract(x, 7, 0), 32)),
        (band(x, k(0)), k(0)),
        (band(x, k(-1)), x),
        (band(x, x), x),
        (band(x, bnot(x)), k(0)),
        (bor(x, bnot(x)), k(-1)),
        (bxor(x, bnot(x)), k(-1)),
        (bor(x, x), x),
        (bor(x, k(0)), x),
        (bor(x, k(-1)), k(-1)),
        (bxor(x, x), k(0)),
        (bxor(x, k(0)), x),
        (bxor(x, k(-1)), bnot(x)),
        (bxor(bxor(x, y), y), x),
        (bxor(bxor(x, k(5)), k(3)), bxor(x, k(6))),
        (bxor(x, k(1 << 31)), add(x, k(1 << 31))),
        (band(x, k(0xFF00)), shl(zext(extract(x, 15, 8), 32), k(8))),
        (bor(shl(zext(b8, 32), k(8)), zext(c8, 32)), zext(concat(b8, c8), 32)),
        (bor(shl(zext(x, 64), k(32, 64)), zext(y, 64)), concat(x, y)),
        (bxor(shl(zext(x, 64), k(32, 64)), zext(y, 64)), concat(x, y)),
        (bor(band(x, k(0xFFFF0000)), band(x, k(0x0000FFFF))), x),
        (band(zext(b8, 32), y), zext(band(b8, extract(y, 7, 0)), 32)),
        (band(sext(p, 32), x), ite(p, x, k(0))),
        (band(band(x, k(0x55555555)), k(0x33333333)), band(x, k(0x11111111))),
    ],
)
def test_bit_vector_rules(built: Term, expected: Term) -> None:
    assert built is expected


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        # comparisons
        (eq(sub(x, y), k(0)), eq(x, y)),
        (eq(add(x, k(4)), k(10)), eq(x, k(6))),
        (eq(add(x, y), add(y, z)), eq(x, z)),
        (eq(add(x, k(1)), x), FALSE),
        (eq(mul(x, k(3)), k(9)), eq(x, k(3))),
        (eq(mul(x, k(4)), k(6)), FALSE),
        (eq(mul(x, k(4)), k(8)), eq(extract(x, 29, 0), k(2, 30))),
        (eq(add(mul(x, k(2)), mul(y, k(2))), k(1)), FALSE),
        (eq(zext(b8, 32), k(256)), FALSE),
        (eq(zext(b8, 32), k(7)), eq(b8, k(7, 8))),
        (eq(zext(b8, 32), zext(c8, 32)), eq(b8, c8)),
        (eq(sext(b8, 32), k(-1)), eq(b8, k(-1, 8))),
        (eq(sext(b8, 32), k(255)), FALSE),
        (eq(concat(b8, c8), k(0x0102, 16)), conj([eq(b8, k(1, 8)), eq(c8, k(2, 8))])),
        (eq(concat(b8, c8), concat(c8, b8)), eq(b8, c8)),
        (eq(bxor(x, k(3)), k(5)), eq(x, k(6))),
        (eq(bxor(x, y), k(0)), eq(x, y)),
        (eq(bor(x, y), k(0)), conj([eq(x, k(0)), eq(y, k(0))])),
        (eq(ite(p, k(1), k(2)), k(2)), bnot(p)),
        (eq(ite(p, k(3), x), k(4)), conj([bnot(p), eq(x, k(4))])),
        (bnot(ult(x, y)), ule(y, x)),
        (bnot(ule(x, y)), ult(y, x)),
        (bnot(slt(x, y)), sle(y, x)),
        (bnot(sle(x, y)), slt(y, x)),
        (bnot(slt(x, k(0))), sle(k(0), x)),
        (bnot(bnot(eq(x, y))), eq(x, y)),
        (ule(x, k(4)), ult(x, k(5))),
        (ule(k(5), x), ult(k(4), x)),
        (ule(k(0), x), TRUE),
        (ule(x, k(-1)), TRUE),
        (sle(k(1 << 31), x), TRUE),
        (sle(x, k((1 << 31) - 1)), TRUE),
        (ult(x, k(0)), FALSE),
        (ult(x, k(1)), eq(x, k(0))),
        (ult(k(0), x), ne(x, k(0))),
        (ult(x, k(-1)), ne(x, k(-1))),
        (ult(k(-2), x), eq(x, k(-1))),
        (ult(k(-1), x), FALSE),
        (ult(x, k(1 << 31)), sle(k(0), x)),
        (ult(k((1 << 31) - 1), x), slt(x, k(0))),
        (ult(zext(b8, 32), k(256)), TRUE),
        (ult(zext(b8, 32), k(9)), ult(b8, k(9, 8))),
        (ult(k(9), zext(b8, 32)), ult(k(9, 8), b8)),
        (ult(k(300), zext(b8, 32)), FALSE),
        (ult(sext(b8, 32), sext(c8, 32)), ult(b8, c8)),
        (ult(add(x, k(4)), x), ult(k(-5), x)),
        (ult(x, add(x, k(4))), ult(x, k(-4))),
        (ult(ite(p, k(1), k(9)), k(5)), p),
        (ult(k(5), ite(p, k(1), k(9))), bnot(p)),
        (slt(zext(b8, 32), zext(c8, 32)), ult(b8, c8)),
        (slt(sext(b8, 32), sext(c8, 32)), slt(b8, c8)),
        (slt(zext(b8, 32), k(5)), ult(b8, k(5, 8))),
        (slt(zext(b8, 32), k(-5)), FALSE),
        (slt(zext(b8, 32), k(500)), TRUE),
        (slt(zext(b8, 32), k(0)), FALSE),
        (slt(k(-3), zext(b8, 32)), TRUE),
        (slt(k(500), zext(b8, 32)), FALSE),
        (slt(k(5), zext(b8, 32)), ult(k(5, 8), b8)),
        (slt(sext(b8, 32), k(500)), TRUE),
        (slt(sext(b8, 32), k(-500)), FALSE),
        (slt(sext(b8, 32), k(5)), slt(b8, k(5, 8))),
        (slt(k(500), sext(b8, 32)), FALSE),
        (slt(k(-500), sext(b8, 32)), TRUE),
        (slt(k(5), sext(b8, 32)), slt(k(5, 8), b8)),
        (slt(sext(b8, 32), k(0)), slt(b8, k(0, 8))),
        (slt(concat(b8, x), k(0, 40)), slt(b8, k(0, 8))),
        (slt(x, k(1 << 31)), FALSE),
        (slt(x, k((1 << 31) + 1)), eq(x, k(1 << 31))),
        (slt(x, k((1 << 31) - 1)), ne(x, k((1 << 31) - 1))),
        (slt(k((1 << 31) - 2), x), eq(x, k((1 << 31) - 1))),
        (slt(k(1 << 31), x), ne(x, k(1 << 31))),
        (slt(k((1 << 31) - 1), x), FALSE),
        (slt(ite(p, k(-1), k(1)), k(0)), p),
        (slt(ite(p, k(-5), k(1)), k(-2)), p),
        (slt(k(-2), ite(p, k(-5), k(1))), bnot(p)),
        # overflow flags
        (carry(x, k(1)), eq(x, k(-1))),
        (carry(x, k(0)), FALSE),
        (carry(x, k(16)), ule(k(-16), x)),
        (carry(x, y), carry(y, x)),
        (scarry(x, k(0)), FALSE),
        (scarry(x, k(5)), sborrow(x, k(-5))),
        (scarry(x, k(1 << 31)), slt(x, k(0))),
        (scarry(x, y), scarry(y, x)),
        (sborrow(x, k(0)), FALSE),
        (sborrow(x, x), FALSE),
        (sborrow(k(1 << 31), k(1)), TRUE),
        # Booleans
        (conj([]), TRUE),
        (disj([]), FALSE),
        (conj([p, TRUE]), p),
        (conj([p, FALSE]), FALSE),
        (conj([p, bnot(p)]), FALSE),
        (disj([p, bnot(p)]), TRUE),
        (conj([ult(x, y), ule(y, x)]), FALSE),
        (disj([slt(x, y), sle(y, x)]), TRUE),
        (conj([p, conj([q, r])]), conj([conj([p, q]), r])),
        (bnot(conj([p, q])), disj([bnot(p), bnot(q)])),
        (bxor(p, p), FALSE),
        (bxor(p, TRUE), bnot(p)),
        (eq(p, FALSE), bnot(p)),
        (eq(bnot(p), bnot(q)), eq(p, q)),
        (eq(bnot(p), q), bxor(p, q)),
        (eq(p, bnot(p)), FALSE),
        (eq(ult(x, y), ule(y, x)), FALSE),
        (implies(p, p), TRUE),
        (implies(FALSE, p), TRUE),
        (conj([ult(x, k(7)), ne(x, k(6))]), ult(x, k(6))),
        (conj([ult(k(7), x), ne(x, k(8))]), ult(k(8), x)),
        (disj([ult(x, k(7)), eq(x, k(7))]), ult(x, k(8))),
        # one-bit operands
        (ult(p, q), conj([bnot(p), q])),
        (slt(p, q), conj([p, bnot(q)])),
        (ule(p, q), disj([bnot(p), q])),
        (sle(p, q), disj([p, bnot(q)])),
        (add(p, q), bxor(p, q)),
        (sub(p, q), bxor(p, q)),
        (mul(p, q), conj([p, q])),
        (carry(p, q), conj([p, q])),
        (scarry(p, q), conj([p, q])),
        (sborrow(p, q), conj([bnot(p), q])),
        (shl(p, q), conj([p, bnot(q)])),
        (ashr(p, q), p),
        (udiv(p, q), disj([p, bnot(q)])),
        (urem(p, q), conj([p, bnot(q)])),
        (sdiv(p, q), disj([p, bnot(q)])),
        (srem(p, q), conj([p, bnot(q)])),
        (neg(p), p),
    ],
)
def test_boolean_rules(built: Term, expected: Term) -> None:
    assert built is expected


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (ite(TRUE, x, y), x),
        (ite(FALSE, x, y), y),
        (ite(p, x, x), x),
        (ite(bnot(p), x, y), ite(p, y, x)),
        (ite(ule(x, y), x, y), ite(ult(y, x), y, x)),
        (ite(p, ite(p, x, y), z), ite(p, x, z)),
        (ite(p, x, ite(p, y, z)), ite(p, x, z)),
        (ite(p, k(1), k(0)), zext(p, 32)),
        (ite(p, k(0), k(1)), zext(bnot(p), 32)),
        (ite(p, k(-1), k(0)), sext(p, 32)),
        (ite(p, k(0), k(-1)), sext(bnot(p), 32)),
        (ite(p, zext(b8, 32), k(3)), zext(ite(p, b8, k(3, 8)), 32)),
        (ite(p, zext(q, 8), k(0, 8)), zext(conj([p, q]), 8)),
        (ite(p, TRUE, q), disj([p, q])),
        (ite(conj([p, q]), q, r), disj([conj([p, q]), r])),
        (ite(conj([p, bnot(q)]), q, r), conj([disj([bnot(p), q]), r])),
        (ite(disj([p, q]), r, q), conj([disj([p, q]), r])),
        (ite(disj([p, bnot(q)]), r, q), disj([conj([bnot(p), q]), r])),
        (conj([p, disj([bnot(p), q])]), conj([p, q])),
        (conj([p, disj([p, q])]), p),
        (disj([p, conj([bnot(p), q])]), disj([p, q])),
        (disj([p, conj([p, q])]), p),
        (conj([ult(x, k(9)), ult(k(4), y), disj([ult(y, k(5)), ult(k(8), x)])]), FALSE),
        (extract(ite(p, concat(q, r), concat(r, q)), 0, 0), ite(p, r, q)),
        (extract(ite(p, zext(concat(q, r), 8), zext(concat(r, q), 8)), 1, 1), ite(p, q, r)),
        (ite(p, FALSE, q), conj([bnot(p), q])),
        (ite(p, q, TRUE), disj([bnot(p), q])),
        (ite(p, q, FALSE), conj([p, q])),
        (ite(p, q, bnot(q)), eq(p, q)),
        (ite(p, p, q), disj([p, q])),
        (extract(ite(p, k(0x1234), k(0x5678)), 7, 0), ite(p, k(0x34, 8), k(0x78, 8))),
    ],
)
def test_choice_rules(built: Term, expected: Term) -> None:
    assert built is expected


BOUNDS = [y, k(1), k(5), k(-1), k(-5), k((1 << 31) - 1), k(0x1000), add(y, k(3))]


@pytest.mark.parametrize("b", BOUNDS)
def test_flags_of_a_compare_become_the_comparison(b: Term) -> None:
    zero, difference = k(0), sub(x, b)
    sf, of, cf, zf = slt(difference, zero), sborrow(x, b), ult(x, b), eq(difference, zero)
    assert bxor(sf, of) is slt(x, b)  # jl
    assert ne(sf, of) is slt(x, b)
    assert eq(sf, of) is sle(b, x)  # jge
    assert eq(of, sf) is sle(b, x)
    assert bnot(bxor(sf, of)) is sle(b, x)
    assert eq(bnot(sf), of) is slt(x, b)
    assert bor(zf, ne(sf, of)) is sle(x, b)  # jle
    assert band(bnot(zf), eq(sf, of)) is slt(b, x)  # jg
    assert bor(cf, zf) is ule(x, b)  # jbe
    assert band(bnot(cf), bnot(zf)) is ult(b, x)  # ja
    assert bnot(bor(cf, zf)) is ult(b, x)


def test_flags_of_test_instructions() -> None:
    masked = band(x, x)
    sf, zf = slt(masked, k(0)), eq(masked, k(0))
    assert ne(sf, FALSE) is slt(x, k(0))
    assert bor(zf, bxor(sf, FALSE)) is sle(x, k(0))
    assert band(bnot(zf), eq(sf, FALSE)) is slt(k(0), x)


def test_pcode_booleans_collapse_to_the_bit() -> None:
    one, zero = const(1, 8), const(0, 8)
    byte, other = zext(p, 8), zext(q, 8)
    assert ne(byte, zero) is p
    assert eq(byte, zero) is bnot(p)
    assert eq(byte, one) is p
    assert extract(byte, 0, 0) is p
    assert band(byte, one) is byte
    assert bxor(byte, one) is zext(bnot(p), 8)
    assert ne(bxor(byte, one), zero) is bnot(p)
    assert ne(band(byte, other), zero) is conj([p, q])
    assert ne(bor(byte, other), zero) is disj([p, q])
    assert ne(bxor(byte, other), zero) is bxor(p, q)
    assert ult(zero, byte) is p
    assert zext(byte, 32) is zext(p, 32)


def test_powerpc_condition_fields_give_their_bits_back() -> None:
    lt, gt, equal, so = slt(x, y), slt(y, x), eq(x, y), var("so", 1)
    field = bor(
        bor(shl(zext(lt, 8), k(3, 8)), shl(zext(gt, 8), k(2, 8))),
        bor(shl(zext(equal, 8), k(1, 8)), zext(so, 8)),
    )
    for bit, expected in ((3, lt), (2, gt), (1, equal), (0, so)):
        assert extract(field, bit, bit) is expected
        assert ne(band(lshr(field, k(bit, 8)), k(1, 8)), k(0, 8)) is expected
    # the field inserted into a register that held something else
    register = bor(band(z, k(0x0FFFFFFF)), shl(zext(field, 32), k(28)))
    assert extract(register, 31, 31) is lt
    assert extract(register, 29, 29) is equal
    assert extract(register, 27, 0) is extract(z, 27, 0)


def test_a_single_bit_is_found_through_bitwise_operators() -> None:
    t = bxor(bor(x, y), z)
    assert extract(t, 5, 5) is bxor(bor(extract(x, 5, 5), extract(y, 5, 5)), extract(z, 5, 5))


def test_products_of_single_values_are_distributed() -> None:
    assert mul(add(x, k(1)), add(x, k(1))) is add(add(mul(x, x), mul(k(2), x)), k(1))
    assert mul(sub(mul(k(3), x), k(2)), y) is sub(mul(k(3), mul(x, y)), mul(k(2), y))
    assert mul(y, add(x, k(5))) is mul(add(x, k(5)), y)
    assert mul(add(x, y), add(z, k(1))).op == "mul"


def test_the_last_bit_of_a_shifted_sum_is_no_sum() -> None:
    """A sum of one bit would be a Boolean to some and a number to others."""
    top = shl(zext(var("b", 1), 32), k(31))
    for constant in (1 << 31, (1 << 31) + 5):
        assert extract(add(top, k(constant)), 31, 31) is bnot(var("b", 1))
    assert extract(add(top, k(5)), 31, 31) is var("b", 1)
