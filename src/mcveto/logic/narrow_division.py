"""Divisions of small numbers in wide words, done in words as narrow as they are.

x86 divides twice the width of a register, and C the promoted values of bytes: solvers then see circuits of 64 or 128
bits for what is a division of 32 or 8. With operands that are extended from n bits, every quotient and remainder is
that of n bits extended, but for two cases: a zero divisor of an unsigned division (all ones, of the wide word) and the
least number divided by -1, whose quotient needs one bit more. So signed quotients are made with one bit more, unsigned
ones only where the divisor is certainly not zero, and both lose what is too much where only low bits of a quotient are
read: modulo 2^n nothing is different. Machines without a remainder compute x - x/y*y (with constants for y: see
`division_identity`).
"""

from __future__ import annotations

import mcveto.logic.bitwise as bitwise
import mcveto.logic.compare as compare
import mcveto.logic.linear as linear
import mcveto.logic.pieces as pieces
from mcveto.logic.node import Term, const, signed

_REMAINDERS = {"sdiv": "srem", "udiv": "urem"}


def _bits_unsigned(a: Term) -> int:
    """So many low bits are the number, the others are zeros."""
    if a.op == "const":
        return max(int(a.data).bit_length(), 1)
    return a.args[0].width if a.op == "zext" else a.width


def _bits_signed(a: Term) -> int:
    """So many low bits are the number, the others are copies of its sign."""
    if a.op == "const":
        value = signed(a.data, a.width)
        return (value if value >= 0 else ~value).bit_length() + 1
    if a.op == "zext":
        return a.args[0].width + 1
    return a.args[0].width if a.op == "sext" else a.width


def _low(a: Term, bits: int) -> Term:
    return pieces.extract(a, bits - 1, 0)


def unsigned(op: str, a: Term, b: Term) -> Term | None:
    """match zext(x) op zext(y), result zext(x op y), for remainders, and quotients of a divisor that is not 0"""
    bits = max(_bits_unsigned(a), _bits_unsigned(b))
    if bits >= a.width or (op == "udiv" and not (b.op == "const" and b.data)):
        return None
    return pieces.zext(_made(op, _low(a, bits), _low(b, bits)), a.width)


def signed_operands(op: str, a: Term, b: Term) -> Term | None:
    """match sext(x) op sext(y), result sext(x op y), with one bit more for quotients"""
    if op == "srem" and a.op in ("zext", "const") and b.op in ("zext", "const"):
        bits = max(_bits_unsigned(a), _bits_unsigned(b))
        if bits < a.width and not any(part.op == "const" and signed(part.data, a.width) < 0 for part in (a, b)):
            # match zext(x) srem zext(y), result zext(x urem y)
            return pieces.zext(linear.urem(_low(a, bits), _low(b, bits)), a.width)
    bits = max(_bits_signed(a), _bits_signed(b)) + (op == "sdiv")
    if bits >= a.width:
        return None
    return pieces.sext(_made(op, _low(a, bits), _low(b, bits)), a.width)


def low_bits(a: Term, hi: int) -> Term | None:
    """match (ext(x) op ext(y))[hi:0] with x and y of at most hi+1 bits, result ext(x)[hi:0] op ext(y)[hi:0]"""
    x, y = a.args
    bits = _bits_unsigned if a.op in ("udiv", "urem") else _bits_signed
    if max(bits(x), bits(y)) > hi + 1:
        return None
    return _made(a.op, _low(x, hi + 1), _low(y, hi + 1))


def fits(quotient: Term, other: Term) -> Term | None:
    """match sext(x) sdiv sext(y), one bit wider, = sext(x sdiv y), result not (x = least and y = -1)"""
    if quotient.op != "sdiv" or other.op != "sext" or other.args[0].op != "sdiv":
        return None
    x, y = other.args[0].args
    width = x.width
    if quotient.width != width + 1:
        return None
    if quotient.args[0] is not pieces.sext(x, width + 1) or quotient.args[1] is not pieces.sext(y, width + 1):
        return None
    least, minus_one = const(1 << width - 1, width), const(-1, width)
    return bitwise.bnot(bitwise.band(compare.eq(x, least), compare.eq(y, minus_one)))


def remainder(a: Term, product: Term) -> Term | None:
    """match x - (x div y) * y, result x rem y"""
    for quotient, divisor in (product.args, product.args[::-1]):
        if quotient.op in _REMAINDERS and quotient.args[0] is a and quotient.args[1] is divisor:
            return _made(_REMAINDERS[quotient.op], a, divisor)
    return None


def _made(op: str, a: Term, b: Term) -> Term:
    if op == "udiv":
        return linear.udiv(a, b)
    if op == "urem":
        return linear.urem(a, b)
    return linear.sdiv(a, b) if op == "sdiv" else linear.srem(a, b)
