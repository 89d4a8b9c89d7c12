"""Divisions by constants in the checker's formulas: as compilers write them, and what is known of them.

Compilers divide by multiplying with a rounded inverse (Granlund and Montgomery, PLDI 1994). A claim that such a number
is x / d is true of all x or not at all, but no solver finds that out in time. So it is decided here, by comparing
numbers: a term is read as "m * x / 2^s, rounded down", exactly, and is x / d for all |x| <= b if, with m*d = 2^s + e,
e * b < 2^s (then m*x / 2^s = x/d + x*e / (d*2^s), and the last part is less than 1/d). It is written as that division;
the formula is equivalent. Nothing of this is shared with `mcveto.logic`, which does the same for the engines.

A solver then need not divide, mostly: `without_divisions` has names for quotient and remainder and only tells that x is
their sum and what bounds they have. That is weaker, so only a refutation counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import z3

from mcveto.check.formulas import Formula, parts

Scaled = tuple[int, Any, int]
"""(m, x, s): m * x / 2^s, rounded down."""
_FACTOR = re.compile(r"\(bvmul #([xb][0-9a-f]+)")
_DIVISION = re.compile(r"\(bv[us](?:div|rem)")
_UNSIGNED = {z3.Z3_OP_BUDIV, z3.Z3_OP_BUDIV_I}, {z3.Z3_OP_BUREM, z3.Z3_OP_BUREM_I}
_SIGNED = {z3.Z3_OP_BSDIV, z3.Z3_OP_BSDIV_I}, {z3.Z3_OP_BSREM, z3.Z3_OP_BSREM_I}


def divided(formulas: Sequence[Formula], rewrite: Callable[[Sequence[Formula]], Sequence[Formula]]) -> Any:
    """What Z3 rewrites formulas to, with divisions where quotients are made by multiplication."""
    plain = rewrite(formulas)
    # Z3 writes a formula faster than Python walks over it.
    if not any(_may_be_inverse(digits) for formula in plain for digits in _FACTOR.findall(formula.sexpr())):
        return plain
    # Sign extensions stay what they are, or they could not be told.
    rest = [z3.simplify(formula, elim_sign_ext=False) for formula in formulas]
    for quotient in (_signed_sum, _unsigned_quotient):
        pairs = [(term, new) for term in parts([*rest]) if (new := quotient(term)) is not None]
        rest = [z3.substitute(formula, *pairs) for formula in rest] if pairs else rest
    return rewrite(rest)


def _may_be_inverse(digits: str) -> bool:
    """Most factors are the size of something, or -1."""
    factor, bits = int(f"0{digits}", 0), (len(digits) - 1) * (4 if digits[0] == "x" else 1)
    return factor.bit_count() > 1 and (-factor & ((1 << bits) - 1)).bit_count() > 1


def is_refuted(formulas: Sequence[Formula], seconds: float) -> bool:
    """Whether formulas contradict each other at sight, or by what is known of divisions without dividing."""
    if any(map(z3.is_false, formulas)):
        return True
    if (weaker := without_divisions(formulas)) is None:
        return False
    solver = z3.Then("simplify", "propagate-values", "solve-eqs", "simplify", "smt").solver()
    solver.set("timeout", max(1, int(1000 * seconds)))
    solver.add(*weaker)
    return bool(solver.check() == z3.unsat)


def _resized(term: Any, bits: int, extend: Any) -> Any:
    return z3.Extract(bits - 1, 0, term) if bits < term.size() else extend(bits - term.size(), term)


def _is(term: Any, kind: int, children: int) -> bool:
    return bool(term.decl().kind() == kind) and term.num_args() == children


def _factored(term: Any) -> tuple[int, Any]:
    """(c, t) if a term is c * t."""
    is_product = _is(term, z3.Z3_OP_BMUL, 2) and z3.is_bv_value(term.arg(0))
    return (term.arg(0).as_signed_long(), term.arg(1)) if is_product else (1, term)


def _below_zeros(term: Any) -> Any:
    """What has zeros in front of it; itself if there are none."""
    if not (_is(term, z3.Z3_OP_CONCAT, term.num_args()) and z3.is_bv_value(term.arg(0)) and not term.arg(0).as_long()):
        return term.arg(0) if _is(term, z3.Z3_OP_ZERO_EXT, 1) else term
    return z3.Concat(*term.children()[1:]) if term.num_args() > 2 else term.arg(1)


def _bits(term: Any) -> tuple[int, int]:
    high, low = term.params()
    return high, low


# Unsigned numbers.


def _unsigned(term: Any) -> Scaled | None:
    """m * x / 2^s, if a term is that for unsigned x and no bit of it is lost."""
    if not z3.is_bv(term) or not _is(inner := _below_zeros(term), z3.Z3_OP_EXTRACT, 1):
        return None
    (high, low), source = _bits(inner), inner.arg(0)
    found = _average(source) if _is(source, z3.Z3_OP_BADD, 2) else _product(source)
    if found is None or found[0] * ((1 << found[1].size()) - 1) >> found[2] + high + 1:
        return None
    return found[0], found[1], found[2] + low


def _product(term: Any) -> Scaled | None:
    """m * x, but for what is lost above, which `_unsigned` excludes."""
    if not (_is(term, z3.Z3_OP_BMUL, 2) and z3.is_bv_value(term.arg(0))):
        return None
    return term.arg(0).as_long(), _below_zeros(term.arg(1)), 0


def _average(term: Any) -> Scaled | None:
    """h + (x - h) / 2 with h = m * x / 2^s <= x: that is (x + h) / 2."""
    for upper, half in (term.children(), term.children()[::-1]):
        found, part = _unsigned(upper), _below_zeros(half)
        if found is None or part.eq(half) or not _is(part, z3.Z3_OP_EXTRACT, 1):
            continue
        factor, x, shift = found
        (high, low), difference = _bits(part), part.arg(0)
        if low != 1 or high < x.size() - 1 or factor > 1 << shift or not _is(difference, z3.Z3_OP_BADD, 2):
            continue
        for minuend, negative in (difference.children(), difference.children()[::-1]):
            sign, subtrahend = _factored(negative)
            if sign == -1 and _below_zeros(minuend).eq(x) and _same(_unsigned(subtrahend), found):
                return (1 << shift) + factor, x, shift + 1
    return None


def _same(one: Scaled | None, other: Scaled) -> bool:
    return one is not None and (one[0], one[2]) == (other[0], other[2]) and bool(one[1].eq(other[1]))


def _unsigned_quotient(term: Any) -> Any:
    """The division that a term is, or None."""
    found = _unsigned(term)
    if found is None or not found[2]:
        return None
    factor, x, shift = found
    divisor, largest = -(-(1 << shift) // max(1, factor)), (1 << x.size()) - 1
    if not 1 < divisor <= largest or (factor * divisor - (1 << shift)) * largest >= 1 << shift:
        return None
    if _is(x, z3.Z3_OP_EXTRACT, 1) and (low := _bits(x)[1]):
        # (y >> k) / d = y / (d << k)
        divisor, x = divisor << low, z3.simplify(z3.Extract(_bits(x)[0], 0, x.arg(0)))
    return _resized(z3.UDiv(x, z3.BitVecVal(divisor, x.size())), term.size(), z3.ZeroExt)


# Signed numbers.


def _fits(number: Scaled, bits: int) -> bool:
    """Whether it is a signed number of so many bits for all x."""
    return bool(abs(number[0]) << number[1].size() - 1 < 1 << number[2] + bits - 1)


def _signed(term: Any) -> Scaled | None:
    """m * x / 2^s, if a term, as a signed number, is that for signed x."""
    found: Scaled | None = None
    factor, inner = _factored(term)
    if _is(inner, z3.Z3_OP_SIGN_EXT, 1) and factor:
        found = factor, inner.arg(0), 0
    elif _is(term, z3.Z3_OP_BASHR, 2) and z3.is_bv_value(term.arg(1)) and (whole := _signed(term.arg(0))):
        found = whole[0], whole[1], whole[2] + min(term.arg(1).as_long(), term.size() - 1)
    elif _is(term, z3.Z3_OP_EXTRACT, 1) and (whole := _signed(term.arg(0))):
        found = whole[0], whole[1], whole[2] + _bits(term)[1]
    elif _is(term, z3.Z3_OP_BADD, 2):
        # x + m * x / 2^n with x of n bits; or minus x
        for one, upper in (term.children(), term.children()[::-1]):
            (sign, x), whole = _factored(one), _signed(upper)
            if whole and sign in (1, -1) and whole[1].eq(x) and whole[2] == x.size():
                found = whole[0] + (sign << x.size()), x, x.size()
    return found if found is not None and _fits(found, term.size()) else None


def _negative(term: Any) -> tuple[int, Any] | None:
    """(m, x) if a term is 1 where m * x < 0 and else 0."""
    inner = _below_zeros(term)
    if inner.eq(term) or not _is(inner, z3.Z3_OP_EXTRACT, 1) or _bits(inner) != (inner.arg(0).size() - 1,) * 2:
        return None
    found = _signed(inner.arg(0))
    return (found[0], found[1]) if found else (1, inner.arg(0))


def _addends(term: Any) -> list[tuple[int, Any]]:
    """(c, t) for each c * t in a sum."""
    return [_factored(child) for child in (term.children() if term.decl().kind() == z3.Z3_OP_BADD else [term])]


def _signed_sum(term: Any) -> Any:
    """A sum (or an equation of two) with a division for a quotient rounded down and one more where it is negative."""
    if z3.is_eq(term) and z3.is_bv(term.arg(0)):
        # Z3 distributes summands over both sides.
        whole = _with_division([*_addends(term.arg(0)), *((-c, t) for c, t in _addends(term.arg(1)))])
        return None if whole is None else whole == 0
    return _with_division(_addends(term)) if term.decl().kind() == z3.Z3_OP_BADD else None


def _with_division(addends: Sequence[tuple[int, Any]]) -> Any:
    for i, (factor, number) in enumerate(addends):
        found = _signed(number)
        if found is None or not found[2]:
            continue
        for j, (other, one) in enumerate(addends):
            sign = _negative(one) if other == factor else None
            if sign is None and other == -factor and _is_sign_of(one, found[1]):
                sign = 1, found[1]
            if sign is None or not sign[1].eq(found[1]) or (sign[0] > 0) != (found[0] > 0):
                continue
            if (quotient := _signed_quotient(found, number.size())) is not None:
                rest = [c * t for k, (c, t) in enumerate(addends) if k not in (i, j)]
                return sum(rest, factor * quotient)
    return None


def _is_sign_of(term: Any, x: Any) -> bool:
    """Whether a term is -1 where x < 0 and else 0."""
    is_shift = _is(term, z3.Z3_OP_BASHR, 2) and z3.is_bv_value(term.arg(1)) and term.arg(0).eq(x)
    return is_shift and term.arg(1).as_long() >= x.size() - 1


def _signed_quotient(number: Scaled, bits: int) -> Any:
    """x / d, rounded towards zero, if that is the number rounded down and one more where it is negative.

    The latter is (|m * x| - 1) / 2^s, rounded down, without its sign: a multiple of d must exceed by something."""
    factor, x, shift = number
    size, most = abs(factor), 1 << x.size() - 1
    divisor = (1 << shift) // size + 1
    excess = size * divisor - (1 << shift)
    if not 1 < divisor < most or excess * most >= (1 << shift) + (factor > 0):
        return None
    return _resized(x / z3.BitVecVal(divisor if factor > 0 else -divisor, x.size()), bits, z3.SignExt)


# What is known of divisions.


def without_divisions(formulas: Sequence[Formula]) -> list[Formula] | None:
    """Weaker formulas without the divisions by constants; None if there are none."""
    names: dict[tuple[int, int, bool], tuple[Any, Any]] = {}
    pairs: list[tuple[Any, Any]] = []
    facts: list[Any] = []
    plain: list[Formula] = []
    dividing: list[Formula] = []
    for formula in formulas:
        (dividing if _DIVISION.search(formula.sexpr()) else plain).append(formula)
    for term in parts([*dividing]):
        kind = term.decl().kind()
        for is_signed, (quotients, remainders) in enumerate((_UNSIGNED, _SIGNED)):
            if kind in quotients | remainders and z3.is_bv_value(term.arg(1)) and term.arg(1).as_signed_long() > 1:
                x, by = term.children()
                key = x.get_id(), by.as_long(), bool(is_signed)
                if key not in names:
                    names[key] = z3.FreshConst(x.sort(), "quotient"), z3.FreshConst(x.sort(), "remainder")
                    facts += _facts(x, by, *names[key], bool(is_signed))
                pairs.append((term, names[key][kind in remainders]))
    return [*plain, *(z3.substitute(formula, *pairs) for formula in (*dividing, *facts))] if pairs else None


def _facts(x: Any, by: Any, quotient: Any, remainder: Any, is_signed: bool) -> Iterable[Any]:
    divisor, bits = by.as_long(), x.size()
    yield x == by * quotient + remainder
    if not is_signed:
        yield from (z3.ULT(remainder, by), z3.ULE(quotient, ((1 << bits) - 1) // divisor), z3.ULE(by * quotient, x))
        return
    most = (1 << bits - 1) // divisor
    yield from (remainder < by, remainder > -by, quotient <= most, quotient >= -most)
    yield from (z3.Implies(x >= 0, remainder >= 0), z3.Implies(x <= 0, remainder <= 0))
