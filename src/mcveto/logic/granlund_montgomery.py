"""Quotients by constants that compilers made multiplications of, turned back into divisions.

Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994: x / d is the upper part of
m * x, m being 2^s / d rounded up (§4, unsigned; with m of one bit more than a word, h + (x - h) / 2 is shifted, h being
the upper half of what fits), and for signed numbers that plus one if the product is negative (§5). Solvers decide
questions about a division by a constant in hundredths of a second that they do not decide in minutes about this
multiplication, and a remainder has bounds that can be read off it.

Deviation: the paper gives conditions under which a compiler may choose m and s; we are given them, and ask whether
there is a divisor with which they are right for *all* x of the width. Only one is possible: the first x whose quotient
is 1. With m * d = 2^s + e, m * x / 2^s is x / d + x * e / (d * 2^s): the floors are equal if and only if the second
part does not reach the next integer where x / d is closest to it, at the largest x with x = -1 modulo d. Everything
else (a product that could overflow, a quotient of which bits are cut off, any other operand) is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import mcveto.logic.linear as linear
import mcveto.logic.pieces as pieces
from mcveto.logic.node import Term, const, signed

Scaled = tuple[int, Term, int]
"""(m, x, s): the number m * x / 2^s, rounded down."""


def _is_exact(factor: int, divisor: int, shift: int, largest: int, less: int = 0) -> bool:
    """Whether (factor*x - less) >> shift is x / divisor for all x from `less` (0 or 1) to `largest` >= divisor."""
    excess = factor * divisor - (1 << shift)
    closest = (largest + 1) // divisor * divisor - 1
    return excess >= less and excess * closest < (1 << shift) + less


def quotient(a: Term, hi: int, lo: int) -> Term | None:
    """match (m * zext(x))[hi:lo], or that of (x - h) / 2 + h, being x / d for all x, result x udiv d"""
    if hi == lo:
        return None
    found = _product(a) if len(a.args) == 1 else _average(a)
    if found is None:
        return None
    factor, x, shift = found
    shift += lo
    largest = (1 << x.width) - 1
    divisor = -(-(1 << shift) // factor)
    width = hi - lo + 1
    if factor * largest >> shift + width:
        return None
    if divisor > largest:
        return const(0, width)
    if not _is_exact(factor, divisor, shift, largest):
        return None
    if x.op == "extract" and x.data[1]:
        # match x[h:k] udiv d, result x[h:0] udiv 2^k*d: compilers halve the dividend first if the divisor is even
        divisor <<= x.data[1]
        x = pieces.extract(x.args[0], x.data[0], 0)
    return _resized(linear.udiv(x, const(divisor, x.width)), width, pieces.zext)


def _product(a: Term) -> Scaled | None:
    """match m * zext(x); what part of it nothing is missing above, no bit of it was lost either"""
    if a.op != "lin" or len(a.args) != 1 or a.data[1] or a.args[0].op != "zext":
        return None
    x = a.args[0].args[0]
    return (a.data[0][0], x, 0) if x.width > 1 else None


def _upper(a: Term) -> Scaled | None:
    """match the upper bits of m * zext(x), all of them"""
    part = _unextended(a)
    found = _product(part.args[0]) if part.op == "extract" else None
    if found is None:
        return None
    factor, x, _ = found
    hi, lo = part.data
    return (factor, x, lo) if factor * ((1 << x.width) - 1) >> hi + 1 == 0 else None


def _average(a: Term) -> Scaled | None:
    """match h + (x - h)[..:1] with h = (m * x) >> s, m <= 2^s, which is ((2^s + m) * x) >> s + 1"""
    if len(a.args) != 2 or a.data != ((1, 1), 0):
        return None
    for upper, half in (a.args, a.args[::-1]):
        if half.op != "zext" or half.args[0].op != "extract":
            continue
        found = _upper(upper)
        if found is None:
            continue
        factor, x, shift = found
        (hi, lo), difference = half.args[0].data, half.args[0].args[0]
        if lo == 1 and hi >= x.width - 1 and factor <= 1 << shift and a.width >= x.width:
            minuend = _minuend(difference, found)
            if minuend is not None and _unextended(minuend) is x:
                return (1 << shift) + factor, x, shift + 1
    return None


def _minuend(difference: Term, subtrahend: Scaled) -> Term | None:
    """x, perhaps a sum, if a term is x minus that number"""
    if difference.op != "lin":
        return None
    minus_one = (1 << difference.width) - 1
    for atom, factor in zip(difference.args, difference.data[0], strict=True):
        if factor == minus_one and _upper(atom) == subtrahend:
            return linear.add(difference, atom)
    return None


def _unextended(a: Term) -> Term:
    return a.args[0] if a.op == "zext" else a


def _resized(a: Term, width: int, extend: Callable[[Term, int], Term]) -> Term:
    return pieces.extract(a, width - 1, 0) if width < a.width else extend(a, width)


def is_sign(a: Term) -> bool:
    """Whether a summand may be the one that is added to negative quotients."""
    return a.op == "zext" and a.args[0].width == 1 and a.args[0].op in ("slt", "extract")


def signed_quotient(a: Term, sign: Term) -> Term | None:
    """match (m * sext(x)) >> s plus 1 if m * x < 0, being x / d for all x, result x sdiv d (at that width)"""
    found = _scaled(a)
    if found is None:
        return None
    factor, x, shift = found
    if not _is_negative(sign.args[0], factor, x):
        return None
    size, half = abs(factor), 1 << x.width - 1
    divisor = (1 << shift) // size + 1
    below, above = (half, half - 1) if factor > 0 else (half - 1, half)
    if not 1 < divisor < half or not _is_exact(size, divisor, shift, above):
        return None
    if not _is_exact(size, divisor, shift, below, less=1):
        return None
    found_quotient = _resized(linear.sdiv(x, const(divisor, x.width)), a.width, pieces.sext)
    # match x sdiv -d, result -(x sdiv d)
    return found_quotient if factor > 0 else linear.neg(found_quotient)


def _is_negative(condition: Term, factor: int, x: Term) -> bool:
    """Whether a condition is factor * x < 0, as the sign of x, of a multiple of x, or of its upper part."""
    if factor > 0 and condition is pieces.extract(x, x.width - 1, x.width - 1):
        return True
    if condition.op == "extract":  # match y[i], result y[i:0] <s 0
        number = pieces.extract(condition.args[0], condition.data[0], 0)
    elif condition.args[1].op == "const" and not condition.args[1].data:
        number = condition.args[0]
    else:
        return False
    found = _signed_product(number) or _scaled(number)
    if found is None or found[1] is not x or not _fits(found, number.width):
        return False
    return (found[0] > 0) == (factor > 0)


def _signed_product(a: Term) -> Scaled | None:
    """match m * sext(x) in so many bits that nothing is lost; k * zext(x) is a part of it if k*2^n is 0"""
    if a.op != "lin" or len(a.args) > 2 or a.data[1] or "sext" not in (a.args[0].op, a.args[-1].op):
        return None
    (factor, extended), *more = sorted(zip(a.data[0], a.args, strict=True), key=lambda part: part[1].op)
    x = extended.args[0]
    for k, other in more:
        if other.op != "zext" or other.args[0] is not x or (k << x.width) & ((1 << a.width) - 1):
            return None
        factor += k
    found = signed(factor & ((1 << a.width) - 1), a.width), x, 0
    return found if found[0] and _fits(found, a.width) else None


def _fits(number: Scaled, width: int) -> bool:
    """Whether a number is the same if so many bits of it are read as a signed one."""
    factor, x, shift = number
    return abs(factor) << x.width - 1 < 1 << shift + width - 1


def _scaled(a: Term) -> Scaled | None:
    """(m, x, s) if a term is m * x >> s, for signed x, modulo 2 to its width."""
    if a.op == "sext":
        found = _scaled(a.args[0]) if a.args[0].op == "extract" else None
        return found if found is not None and _fits(found, a.args[0].width) else None
    if a.op == "extract":
        part = a.args[0].args[0] if a.args[0].op == "sext" else a.args[0]
        found = _signed_product(part) or _with_dividend(part)
        if found is None or not _fits(found, part.width):
            return None
        return found[0], found[1], found[2] + a.data[1]
    return _with_dividend(a)


def _with_dividend(a: Term) -> Scaled | None:
    """match x + (m * sext(x))[2n-1:n] with x of n bits, which is (m + 2^n) * x >> n; or minus x"""
    if a.op != "lin" or len(a.args) != 2 or a.data[1]:
        return None
    for (x, upper), (k, one) in ((a.args, a.data[0]), (a.args[::-1], a.data[0][::-1])):
        if one != 1 or k not in (1, (1 << a.width) - 1) or upper.op != "extract" or upper.data[1] != a.width:
            continue
        product = _signed_product(upper.args[0])
        if product is not None and product[1] is x:
            return product[0] + (signed(k, a.width) << a.width), x, a.width
    return None
