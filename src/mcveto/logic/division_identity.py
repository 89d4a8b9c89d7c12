"""x = (x / c) * c + x rem c, and 0 <= x rem c < c, for constants c: what sums and comparisons know of division.

Machines without a remainder, and compilers where they have no quotient but one made by multiplication
(`granlund_montgomery`), compute x - c * (x / c), with shifts and additions for c * (x / c), often as a part of a longer
sum (the address of an element). In a sum, m * x - m*c * (x / c) becomes m * (x rem c); and with the remainder in place
of x, the product goes away again. Each replaces at least two summands by one. The same holds of powers of two, where
quotient and remainder are the upper and the lower bits: the turns that an unrolled loop leaves over are n - (n & ~3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import mcveto.logic.granlund_montgomery as granlund_montgomery
import mcveto.logic.linear as linear
import mcveto.logic.pieces as pieces
from mcveto.logic.node import Term, const, signed

_EXTENSIONS = {"zext": "udiv", "sext": "sdiv"}
_REMAINDERS = {"udiv": "urem", "sdiv": "srem"}
Monomials = list[tuple[int, Term]]


def shorter(atoms: tuple[Term, ...], coefficients: tuple[int, ...], width: int) -> Monomials | None:
    """Fewer summands with the same sum, if one of the rules applies."""
    for at, atom in enumerate(atoms):
        if atom.op == "zext" and granlund_montgomery.is_sign(atom):
            found = _with_sign(atoms, coefficients, at, width)
        elif (quotient := _quotient(atom)) is not None:
            found = _with_quotient(atoms, coefficients, at, quotient, width)
        elif (upper := _part(atom)).data[1]:
            found = _with_upper_bits(atoms, coefficients, at, upper, width)
        else:
            continue
        if found is not None:
            return found
    return None


def _with_sign(atoms: tuple[Term, ...], coefficients: tuple[int, ...], at: int, width: int) -> Monomials | None:
    # match k * a + k * sign with a + sign a signed quotient, result k * that
    factor, sign = coefficients[at], atoms[at]
    for c, atom in zip(coefficients, atoms, strict=True):
        if c != factor or atom is sign or atom.op not in ("sext", "extract", "zext"):
            continue
        part = atom
        if atom.op == "zext":
            # match 2^k * zext(x) with x of all but k bits, the same as 2^k * sext(x)
            if (c << atom.args[0].width) & ((1 << width) - 1):
                continue
            part = pieces.sext(atom.args[0], width)
        quotient = granlund_montgomery.signed_quotient(part, sign)
        if quotient is not None:
            rest = [(k, x) for k, x in zip(coefficients, atoms, strict=True) if x is not atom and x is not sign]
            return [*rest, (factor, quotient)]
    return None


def _quotient(atom: Term) -> Term | None:
    """The quotient by a constant that an atom is, perhaps extended as its operands are."""
    inner = atom.args[0] if atom.op in _EXTENSIONS else atom
    if inner.op not in _REMAINDERS or inner.args[1].op != "const":
        return None
    return inner if inner is atom or inner.op == _EXTENSIONS[atom.op] else None


def _with_quotient(
    atoms: tuple[Term, ...], coefficients: tuple[int, ...], at: int, quotient: Term, width: int
) -> Monomials | None:
    have, mask = dict(zip(atoms, coefficients, strict=True)), (1 << width) - 1
    is_unsigned = quotient.op == "udiv"
    extend = pieces.zext if is_unsigned else pieces.sext
    for rest, factor in have.items():
        inner = rest.args[0] if rest.op in _EXTENSIONS else rest
        is_rest = inner.op == _REMAINDERS[quotient.op] and inner.args == quotient.args
        if is_rest and factor * _number(quotient) & mask == coefficients[at] and rest is extend(inner, width):
            # match m * (x rem c) + m*c * (x div c), result m * x
            return _replaced(have, (rest, atoms[at]), [(factor, extend(quotient.args[0], width))])
    for x, divisor in _dividends(quotient, atoms):
        parts, factors, constant = linear.monomials(extend(x, width))
        found = _factor(have, parts, factors, -signed(coefficients[at], width), divisor, mask)
        if found is None or any(have.get(part) != found * c & mask for part, c in zip(parts, factors, strict=True)):
            continue
        # match m * x - m*c * (x div c), result m * (x rem c)
        by = const(divisor, x.width)
        remainder = extend(linear.urem(x, by) if is_unsigned else linear.srem(x, by), width)
        return _replaced(have, (*parts, atoms[at]), [(found, remainder), (-found, const(constant, width))])
    return None


class _Part(NamedTuple):
    """Bits hi to lo of a term."""

    source: Term
    data: tuple[int, int]


def _part(atom: Term) -> _Part:
    """Which bits of what an atom is, perhaps with zeros above them."""
    inner = atom.args[0] if atom.op == "zext" else atom
    return _Part(inner.args[0], inner.data) if inner.op == "extract" else _Part(inner, (inner.width - 1, 0))


def _with_upper_bits(
    atoms: tuple[Term, ...], coefficients: tuple[int, ...], at: int, upper: _Part, width: int
) -> Monomials | None:
    have, mask = dict(zip(atoms, coefficients, strict=True)), (1 << width) - 1
    source, (hi, lo) = upper
    lowest = {0}
    for atom, factor in have.items():
        other = _part(atom)
        if other.source is not source:
            continue
        lowest.add(other.data[1])
        if other.data[0] == lo - 1 and factor << lo - other.data[1] & mask == coefficients[at]:
            # match m * x[k-1:l] + m*2^(k-l) * x[h:k], result m * x[h:l]
            whole = pieces.zext(pieces.extract(source, hi, other.data[1]), width)
            return _replaced(have, (atom, atoms[at]), [(factor, whole)])
    for first in sorted(lowest):
        if first >= lo or hi - first >= width:
            continue
        whole = pieces.zext(pieces.extract(source, hi, first), width)
        parts, factors, constant = linear.monomials(whole)
        found = _factor(have, parts, factors, -signed(coefficients[at], width), 1 << lo - first, mask)
        if found is None or any(have.get(part) != found * c & mask for part, c in zip(parts, factors, strict=True)):
            continue
        # match m * x[h:l] - m*2^(k-l) * x[h:k], result m * x[k-1:l]
        rest = pieces.zext(pieces.extract(source, lo - 1, first), width)
        return _replaced(have, (*parts, atoms[at]), [(found, rest), (-found, const(constant, width))])
    return None


def _number(quotient: Term) -> int:
    """What it is divided by."""
    by = quotient.args[1]
    return int(by.data) if quotient.op == "udiv" else signed(by.data, by.width)


def _dividends(quotient: Term, atoms: tuple[Term, ...]) -> Iterator[tuple[Term, int]]:
    """Of what, by what a term is the quotient."""
    x, divisor = quotient.args[0], _number(quotient)
    if divisor in (0, -1):
        return
    yield x, divisor
    if quotient.op == "udiv" and not divisor & 1:
        # match x udiv 2^k*c, the same as x[..:k] udiv c
        for atom in atoms:
            upper = atom.args[0] if atom.op == "zext" else atom
            if upper.op == "extract" and upper.data[1] and not divisor % (1 << upper.data[1]):
                (hi, lo), source = upper.data, upper.args[0]
                if hi == x.width - 1 and pieces.extract(source, hi, 0) is x:
                    yield upper, divisor >> lo


def _factor(
    have: dict[Term, int], parts: tuple[Term, ...], factors: tuple[int, ...], product: int, divisor: int, mask: int
) -> int | None:
    """How often the sum of `parts` could be in a sum, if so often `divisor` is `product`."""
    for part, c in zip(parts, factors, strict=True):
        if c & 1:
            factor = have.get(part, 0) * pow(c, -1, mask + 1)
            return None if (factor * divisor - product) & mask else factor & mask
    return None if product % divisor else product // divisor


def _replaced(have: dict[Term, int], gone: tuple[Term, ...], come: Monomials) -> Monomials:
    return [*((c, atom) for atom, c in have.items() if atom not in gone), *come]


def largest(a: Term) -> int | None:
    """The most that a quotient or remainder by a constant can be, of unsigned numbers."""
    if a.op not in ("udiv", "urem") or a.args[1].op != "const" or not a.args[1].data:
        return None
    divisor = int(a.args[1].data)
    return divisor - 1 if a.op == "urem" else ((1 << a.width) - 1) // divisor


def range_of(a: Term) -> tuple[int, int] | None:
    """The least and the most that a quotient or remainder by a constant can be, read as a signed number."""
    if a.op in ("udiv", "urem"):
        most = largest(a)
        return None if most is None or most >> a.width - 1 else (0, most)
    if a.op not in ("sdiv", "srem") or a.args[1].op != "const":
        return None
    size = abs(signed(a.args[1].data, a.width))
    if size < 2:
        return None
    most = size - 1 if a.op == "srem" else (1 << a.width - 1) // size
    return -most, most
