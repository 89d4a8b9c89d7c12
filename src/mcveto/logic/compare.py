"""Comparisons and the flags of additions and subtractions.

Every comparison with a constant is strict (a <= k is a < k+1); between two terms both < and <= exist. The
sign of a term is `a <s 0`. Compare instructions leave their result in flags; the rules of `_same` turn the
combinations that conditional jumps test back into the comparison the programmer wrote (OF != SF is a <s b).
"""

from __future__ import annotations

import mcveto.logic.bitwise as bitwise
import mcveto.logic.choice as choice
import mcveto.logic.division_identity as division_identity
import mcveto.logic.linear as linear
import mcveto.logic.narrow_division as narrow_division
import mcveto.logic.pieces as pieces
from mcveto.logic.node import FALSE, TRUE, Term, const, intern, one_if, same_width, signed


def eq(a: Term, b: Term) -> Term:
    """a = b."""
    width = same_width(a, b)
    # Each round replaces the pair by a simpler one with the same answer; a loop, for operands may be
    # nested deeply.
    while True:
        if a is b:
            return TRUE
        if width == 1:
            return _same(a, b)
        if a.op == "const":
            if b.op == "const":
                return FALSE
            a, b = b, a
        if a.op == "lin" or b.op == "lin":
            moved = _balance(a, b, width)
            if isinstance(moved, Term):
                return moved
            a, b, width = moved
            if a.op == "lin" or b.op == "lin":
                return intern("eq", (a, b), 1)
            continue
        if a.op in ("zext", "sext") and (b.op == "const" or b.op == a.op):
            inner = a.args[0].width
            if b.op != "const":  # match zext(x) = zext(y), result x = y at the wider of the two widths
                inner = max(inner, b.args[0].width)
            narrow = pieces.extract(b, inner - 1, 0)
            extend = pieces.zext if a.op == "zext" else pieces.sext
            if b.op == "const" and extend(narrow, width) is not b:  # match zext(x) = k out of range, result false
                return FALSE
            a, b, width = pieces.extract(a, inner - 1, 0), narrow, inner
            continue
        if b.op == "const":
            if a.op == "xor" and a.args[1].op == "const":  # match x xor k = l, result x = k xor l
                a, b = a.args[0], const(a.args[1].data ^ b.data, width)
                continue
            return _equals_constant(a, b)
        if a.op == "concat" and b.op == "concat" and [x.width for x in a.args] == [x.width for x in b.args]:
            # match concat(a, b) = concat(c, d) with equal widths, result a = c and b = d
            return bitwise.conj([eq(x, y) for x, y in zip(a.args, b.args, strict=True)])
        if a.op == "sdiv" or b.op == "sdiv":
            known = narrow_division.fits(a, b) if a.op == "sdiv" else narrow_division.fits(b, a)
            if known is not None:
                return known
        if a.serial > b.serial:
            a, b = b, a
        return intern("eq", (a, b), 1)


def _balance(a: Term, b: Term, width: int) -> Term | tuple[Term, Term, int]:
    """Cancel common monomials; what has a positive coefficient goes left, the rest and the constant right."""
    difference = linear.sub(a, b)
    if difference.op == "const":
        return one_if(difference.data == 0)
    if difference.op != "lin":
        return difference, const(0, width), width
    coefficients, constant = difference.data
    mask = (1 << width) - 1
    if len(difference.args) == 1:
        x, c = difference.args[0], coefficients[0]
        k = -constant & mask
        zeros = (c & -c).bit_length() - 1
        if k & ((1 << zeros) - 1):  # match 2^z*c*x = k with k not divisible, result false
            return FALSE
        # match 2^z*c*x = 2^z*k with c odd, result x[w-1-z:0] = k/c
        left = width - zeros
        k = (k >> zeros) * pow(c >> zeros, -1, 1 << left)
        low = pieces.extract(x, left - 1, 0)
        return low, const(k, left), left
    common = 0
    for c in coefficients:
        common |= c
    if constant & ((common & -common) - 1):  # match 2*x + 2*y = odd, result false
        return FALSE
    half = 1 << (width - 1)
    sign = -1 if coefficients[0] > half else 1
    positive: list[tuple[int, Term]] = []
    negative: list[tuple[int, Term]] = []
    for c, x in zip(coefficients, difference.args, strict=True):
        c = sign * c & mask
        if c <= half:
            positive.append((c, x))
        else:
            negative.append((-c, x))
    return linear.combine(positive, 0, width), linear.combine(negative, -sign * constant, width), width


def _equals_constant(a: Term, b: Term) -> Term:
    width, k = a.width, b.data
    if a.op == "concat":  # match concat(a, b) = k, result a = k's high part and b = k's low part
        parts: list[Term] = []
        bottom = width
        for piece in a.args:
            bottom -= piece.width
            parts.append(eq(piece, const(k >> bottom, piece.width)))
        return bitwise.conj(parts)
    if a.op == "ite":
        c, x, y = a.args
        if (x.op == "const" and y.op != "ite") or (y.op == "const" and x.op != "ite"):
            # match ite(c, k, y) = l, result ite(c, k = l, y = l)
            return choice.ite(c, eq(x, b), eq(y, b))
    if a.op in ("udiv", "urem", "sdiv", "srem"):
        most, bounds = division_identity.largest(a), division_identity.range_of(a)
        # match x rem c = k out of its range, result false
        if (most is not None and k > most) or (bounds and not bounds[0] <= signed(k, width) <= bounds[1]):
            return FALSE
    if a.op == "xor" and k == 0:  # match x xor y = 0, result x = y
        return eq(a.args[0], a.args[1])
    if a.op == "or" and k == 0 and all(x.op != "or" for x in a.args):
        # match x or y = 0, result x = 0 and y = 0
        return bitwise.conj([eq(x, const(0, width)) for x in a.args])
    return intern("eq", (a, b), 1)


def _same(a: Term, b: Term) -> Term:
    """Equality of two Booleans."""
    if a.op == "const":
        a, b = b, a
    if b.op == "const":  # match a = true, result a; a = false, result not a
        return a if b is TRUE else bitwise.bnot(a)
    for sign, overflow in ((a, b), (b, a)):
        negated = overflow.op == "not"
        flag = overflow.args[0] if negated else overflow
        if flag.op == "sborrow":
            x, y = flag.args
            difference = linear.sub(x, y)
            negative = slt(difference, const(0, x.width))
            # match (x-y <s 0) = sborrow(x, y), result y <=s x; with either side negated, result x <s y
            if sign is negative:
                return slt(x, y) if negated else sle(y, x)
            if sign is bitwise.bnot(negative):
                return sle(y, x) if negated else slt(x, y)
    flip = False
    if a.op == "not":  # match not a = b, result not (a = b)
        a, flip = a.args[0], True
    if b.op == "not":
        b, flip = b.args[0], not flip
    if a is b:
        return one_if(not flip)
    if a.op in bitwise.COMPARISONS and bitwise.bnot(a) is b:  # match a = not a, result false
        return one_if(flip)
    if a.serial > b.serial:
        a, b = b, a
    same = intern("eq", (a, b), 1)
    return intern("not", (same,), 1) if flip else same


def ne(a: Term, b: Term) -> Term:
    """a != b."""
    return bitwise.bnot(eq(a, b))


def ult(a: Term, b: Term) -> Term:
    """a < b, unsigned."""
    width = same_width(a, b)
    if width == 1:  # match a <u b on one bit, result not a and b
        return bitwise.conj((bitwise.bnot(a), b))
    if a is b:
        return FALSE
    ones = (1 << width) - 1
    if b.op == "const":
        k = b.data
        if a.op == "const":
            return one_if(a.data < k)
        if k == 0:  # match a <u 0, result false
            return FALSE
        if k == 1:  # match a <u 1, result a = 0
            return eq(a, const(0, width))
        if k == ones:  # match a <u ones, result a != ones
            return ne(a, b)
        if a.op == "zext":  # match zext(x) <u k, result x <u k or true
            inner = a.args[0]
            return TRUE if k >> inner.width else ult(inner, const(k, inner.width))
        if k == 1 << (width - 1):  # match a <u sign bit, result -1 <s a
            return slt(const(-1, width), a)
        most = division_identity.largest(a)
        if most is not None and most < k:  # match x rem c <u k above c, result true
            return TRUE
        chosen = choice.constant_branches(a)
        if chosen is not None:  # match ite(c, k, l) <u m, result ite(c, k <u m, l <u m)
            return choice.ite(chosen[0], one_if(chosen[1] < k), one_if(chosen[2] < k))
    elif a.op == "const":
        k = a.data
        if k == ones:  # match ones <u b, result false
            return FALSE
        if k == 0:  # match 0 <u b, result b != 0
            return ne(b, a)
        if k == ones - 1:  # match ones-1 <u b, result b = ones
            return eq(b, const(ones, width))
        if b.op == "zext":  # match k <u zext(x), result k <u x or false
            inner = b.args[0]
            return FALSE if k >> inner.width else ult(const(k, inner.width), inner)
        if k == ones >> 1:  # match largest signed <u b, result b <s 0
            return slt(b, const(0, width))
        most = division_identity.largest(b)
        if most is not None and most <= k:  # match k <u x rem c above c, result false
            return FALSE
        chosen = choice.constant_branches(b)
        if chosen is not None:
            return choice.ite(chosen[0], one_if(k < chosen[1]), one_if(k < chosen[2]))
    elif a.op == b.op and a.op in ("zext", "sext"):
        # match zext(x) <u zext(y) or sext(x) <u sext(y), result x <u y at the wider of the two widths
        size = max(a.args[0].width, b.args[0].width)
        return ult(pieces.extract(a, size - 1, 0), pieces.extract(b, size - 1, 0))
    elif a.op == "lin" or b.op == "lin":
        gap = linear.distance(a, b)
        if gap is not None:
            if linear.constant_part(b) == 0:  # match x + k <u x, result 2^w - k <=u x
                return ule(const(-gap, width), b)
            if linear.constant_part(a) == 0:  # match x <u x + k, result x <u 2^w - k
                return ult(a, const(gap, width))
    return intern("ult", (a, b), 1)


def ule(a: Term, b: Term) -> Term:
    """a <= b, unsigned."""
    width = same_width(a, b)
    if width > 1:
        if a.op == "const":  # match k <=u b, result k-1 <u b
            return TRUE if a.data == 0 else ult(const(a.data - 1, width), b)
        if b.op == "const":  # match a <=u k, result a <u k+1
            return TRUE if b.data == (1 << width) - 1 else ult(a, const(b.data + 1, width))
    strict = ult(b, a)
    if strict.op == "ult" and strict.args[0] is b and strict.args[1] is a:
        return intern("ule", (a, b), 1)
    return bitwise.bnot(strict)


def slt(a: Term, b: Term) -> Term:
    """a < b, signed."""
    width = same_width(a, b)
    if width == 1:  # match a <s b on one bit (values 0, -1), result a and not b
        return bitwise.conj((a, bitwise.bnot(b)))
    if a is b:
        return FALSE
    least, most = -(1 << (width - 1)), (1 << (width - 1)) - 1
    if b.op == "const":
        k = signed(b.data, width)
        if a.op == "const":
            return one_if(signed(a.data, width) < k)
        if k == 0:  # match a <s 0, result the top bit of a
            return pieces.extract(a, width - 1, width - 1)
        if k == least:  # match a <s least, result false
            return FALSE
        if k == least + 1:  # match a <s least+1, result a = least
            return eq(a, const(least, width))
        if k == most:  # match a <s most, result a != most
            return ne(a, b)
        return _signed_below(a, k, b)
    if a.op == "const":
        k = signed(a.data, width)
        if k == -1:  # match -1 <s b, result not (b <s 0)
            sign = pieces.extract(b, width - 1, width - 1)
            if sign.op == "slt" and sign.args[0] is b:
                return intern("slt", (a, b), 1)
            return bitwise.bnot(sign)
        if k == most:  # match most <s b, result false
            return FALSE
        if k == most - 1:  # match most-1 <s b, result b = most
            return eq(b, const(most, width))
        if k == least:  # match least <s b, result b != least
            return ne(b, a)
        return _signed_above(k, b, a)
    if a.op == b.op and a.op in ("zext", "sext"):
        # match zext(x) <s zext(y), result x <u y; sext(x) <s sext(y), result x <s y, at the wider
        # of the two widths
        size = max(a.args[0].width, b.args[0].width)
        narrow = ult if a.op == "zext" else slt
        return narrow(pieces.extract(a, size - 1, 0), pieces.extract(b, size - 1, 0))
    return intern("slt", (a, b), 1)


def _signed_below(a: Term, k: int, bound: Term) -> Term:
    if a.op == "zext":  # match zext(x) <s k, result x <u k, or false below the range and true above it
        inner = a.args[0].width
        if k <= 0:
            return FALSE
        return TRUE if k >> inner else ult(a.args[0], const(k, inner))
    if a.op == "sext":  # match sext(x) <s k, result x <s k, or false below the range and true above it
        inner = a.args[0].width
        if not -(1 << (inner - 1)) <= k < 1 << (inner - 1):
            return one_if(k > 0)
        return slt(a.args[0], const(k, inner))
    bounds = division_identity.range_of(a)
    if bounds and not bounds[0] < k <= bounds[1]:  # match x rem c <s k out of its range, result true or false
        return one_if(k > bounds[1])
    chosen = choice.constant_branches(a)
    if chosen is not None:  # match ite(c, k, l) <s m, result ite(c, k <s m, l <s m)
        c, x, y = chosen
        return choice.ite(c, one_if(signed(x, a.width) < k), one_if(signed(y, a.width) < k))
    return intern("slt", (a, bound), 1)


def _signed_above(k: int, b: Term, bound: Term) -> Term:
    if b.op == "zext":  # match k <s zext(x), result k <u x, or true below the range and false above it
        inner = b.args[0].width
        if k < 0:
            return TRUE
        return FALSE if k >> inner else ult(const(k, inner), b.args[0])
    if b.op == "sext":  # match k <s sext(x), result k <s x, or true below the range and false above it
        inner = b.args[0].width
        if not -(1 << (inner - 1)) <= k < 1 << (inner - 1):
            return one_if(k < 0)
        return slt(const(k, inner), b.args[0])
    bounds = division_identity.range_of(b)
    if bounds and not bounds[0] <= k < bounds[1]:  # match k <s x rem c out of its range, result true or false
        return one_if(k < bounds[0])
    chosen = choice.constant_branches(b)
    if chosen is not None:  # match m <s ite(c, k, l), result ite(c, m <s k, m <s l)
        c, x, y = chosen
        return choice.ite(c, one_if(k < signed(x, b.width)), one_if(k < signed(y, b.width)))
    return intern("slt", (bound, b), 1)


def sle(a: Term, b: Term) -> Term:
    """a <= b, signed."""
    width = same_width(a, b)
    if width > 1:
        if a.op == "const":  # match k <=s b, result k-1 <s b
            return TRUE if a.data == 1 << (width - 1) else slt(const(a.data - 1, width), b)
        if b.op == "const":  # match a <=s k, result a <s k+1
            return TRUE if b.data == (1 << (width - 1)) - 1 else slt(a, const(b.data + 1, width))
    strict = slt(b, a)
    if strict.op == "slt" and strict.args[0] is b and strict.args[1] is a:
        return intern("sle", (a, b), 1)
    return bitwise.bnot(strict)


def carry(a: Term, b: Term) -> Term:
    """Does the unsigned a + b overflow?"""
    width = same_width(a, b)
    if width == 1:  # match carry(a, b) on one bit, result a and b
        return bitwise.conj((a, b))
    if a.op == "const":
        a, b = b, a
    if b.op == "const":  # match carry(a, k), result 2^w - k <=u a
        return FALSE if b.data == 0 else ule(const(-b.data, width), a)
    if a.serial > b.serial:
        a, b = b, a
    return intern("carry", (a, b), 1)


def scarry(a: Term, b: Term) -> Term:
    """Does the signed a + b overflow?"""
    width = same_width(a, b)
    if width == 1:  # match scarry(a, b) on one bit (values 0, -1), result a and b
        return bitwise.conj((a, b))
    if a.op == "const":
        a, b = b, a
    if b.op == "const":
        if b.data == 1 << (width - 1):  # match scarry(a, least), result a <s 0
            return slt(a, const(0, width))
        return sborrow(a, const(-b.data, width))  # match scarry(a, k), result sborrow(a, -k)
    if a.serial > b.serial:
        a, b = b, a
    return intern("scarry", (a, b), 1)


def sborrow(a: Term, b: Term) -> Term:
    """Does the signed a - b overflow?"""
    width = same_width(a, b)
    if width == 1:  # match sborrow(a, b) on one bit (values 0, -1), result not a and b
        return bitwise.conj((bitwise.bnot(a), b))
    if a is b or (b.op == "const" and b.data == 0):  # match sborrow(a, a) or sborrow(a, 0), result false
        return FALSE
    if a.op == "const" and b.op == "const":
        difference = signed(a.data, width) - signed(b.data, width)
        return one_if(not -(1 << (width - 1)) <= difference < 1 << (width - 1))
    return intern("sborrow", (a, b), 1)
