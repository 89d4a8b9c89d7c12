"""The checker's own eye for divisions that compilers made multiplications: every factor, shift and number of few bits.

What it replaces has the same value for all numbers, whatever the factor; and it does see the quotients of compilers.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import z3

from mcveto.check.discharge import Effort, _rewritten, refuted
from mcveto.check.inverses import _facts, _signed_sum, _unsigned_quotient, divided, without_divisions
from mcveto.check.obligations import Obligation

DIVISORS = [3, 5, 6, 7, 10, 12, 14, 19, 28, 60, 100, 125, 641, 1000]


def simplified(term: Any) -> Any:
    return z3.simplify(term, elim_sign_ext=False)


def values(term: Any, x: Any) -> list[int]:
    numbers = range(1 << x.size())
    return [z3.simplify(z3.substitute(term, (x, z3.BitVecVal(n, x.size())))).as_long() for n in numbers]


def kinds(term: Any) -> set[str]:
    return {term.decl().name(), *(name for child in term.children() for name in kinds(child))}


@pytest.mark.parametrize("bits", [3, 4])
def test_what_is_called_a_quotient_is_one(bits: int) -> None:
    x, wide = z3.BitVec("x", bits), 2 * bits + 1
    seen = 0
    for factor, low in itertools.product(range(1, 2 << bits), range(1, wide)):
        product = z3.ZeroExt(wide - bits, x) * factor
        for high in (wide - 1, min(wide - 1, low + 1)):
            term = simplified(z3.Extract(high, low, product))
            if (new := _unsigned_quotient(term)) is not None:
                seen += 1
                assert values(new, x) == values(term, x), (factor, low, high)
        upper = z3.Extract(2 * bits - 1, bits, product)
        average = z3.LShR(x - upper, 1) + upper
        for shift in range(1, bits):
            term = simplified(z3.LShR(average, shift))
            if (new := _unsigned_quotient(term)) is not None:
                seen += 1
                assert values(new, x) == values(term, x), (factor, shift)
    assert seen > 10


@pytest.mark.parametrize("bits", [3, 4])
def test_what_is_called_a_signed_quotient_is_one(bits: int) -> None:
    x, wide = z3.BitVec("x", bits), 2 * bits
    seen = 0
    for factor, low in itertools.product(range(-(1 << bits), 1 << bits), range(bits)):
        upper = z3.Extract(wide - 1, bits, z3.SignExt(bits, x) * factor)
        for whole in (upper, upper + x, upper - x):
            signs = [z3.LShR(whole, bits - 1), z3.LShR(x, bits - 1), -(x >> bits - 1), x >> bits - 1]
            for sign, times in itertools.product(signs, (1, -3)):
                term = simplified(times * ((whole >> low) + sign) + x)
                if (new := _signed_sum(term)) is not None:
                    seen += 1
                    assert values(new, x) == values(term, x), (factor, low, sign, times)
    assert seen > 20


def test_products_that_lose_bits_are_no_quotients() -> None:
    """Words that are too narrow for the product, parts of it with bits missing above, and averages of such parts."""
    x = z3.BitVec("x", 3)
    for wide, factor in itertools.product((4, 5, 6), range(1, 32)):
        product, signed = z3.ZeroExt(wide - 3, x) * factor, z3.SignExt(wide - 3, x) * factor
        for low in range(1, wide):
            for high in range(low, wide):
                terms = [(_unsigned_quotient, z3.Extract(high, low, product))]
                if high - low == 2:
                    upper = z3.Extract(high, low, product)
                    average = [z3.LShR(z3.LShR(x - upper, 1) + upper, shift) for shift in (1, 2)]
                    terms += [(_unsigned_quotient, term) for term in average]
                # The same in wider words, where a factor can be too large for its place.
                upper = z3.ZeroExt(wide - high + low - 1, z3.Extract(high, low, product))
                for top in (1, 2, wide - 1):
                    half = z3.ZeroExt(wide - top, z3.Extract(top, 1, z3.ZeroExt(wide - 3, x) - upper))
                    terms += [(_unsigned_quotient, z3.LShR(half + upper, shift)) for shift in (1, 2)]
                cut = z3.SignExt(wide - high + low - 1, z3.Extract(high, low, signed))
                signs = [z3.LShR(signed, wide - 1), z3.ZeroExt(wide - 1, z3.Extract(2, 2, x))]
                terms += [(_signed_sum, cut + sign) for sign in signs]
                for see, raw in terms:
                    term = simplified(raw)
                    if (new := see(term)) is not None:
                        assert values(new, x) == values(term, x), (term, new)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_the_quotients_of_compilers_are_seen(bits: int, divisor: int) -> None:
    if divisor >= 1 << bits - 1:
        return
    x = z3.BitVec("x", bits)
    twos = (divisor & -divisor).bit_length() - 1
    for before in {0, twos}:
        y, by = z3.LShR(x, before), divisor >> before
        for low in itertools.count(bits):
            factor = -(-(1 << low) // by)
            if (factor * by - (1 << low)) * ((1 << bits - before) - 1) < 1 << low:
                break
        upper = z3.Extract(2 * bits - 1, bits, z3.ZeroExt(bits, y) * (factor % (1 << bits)))
        quotient = (
            z3.LShR(upper, low - bits) if factor < 1 << bits else z3.LShR(z3.LShR(y - upper, 1) + upper, low - bits - 1)
        )
        (claim,) = divided([quotient == x], _rewritten)
        assert "bvmul" not in kinds(claim) and any(name.startswith("bvudiv") for name in kinds(claim))
        assert holds(x - quotient * divisor == z3.URem(x, z3.BitVecVal(divisor, bits)))
        assert not holds(x - quotient * divisor == z3.URem(x, z3.BitVecVal(divisor + 1, bits)))
    if divisor & (divisor - 1):
        low = bits + (divisor - 1).bit_length() - 1
        factor = (1 << low) // divisor + 1
        upper = z3.Extract(2 * bits - 1, bits, z3.SignExt(bits, x) * (factor - (factor >> bits - 1 << bits)))
        upper = upper + x if factor >> bits - 1 else upper
        for sign in (z3.LShR(upper, bits - 1), z3.LShR(x, bits - 1), -(x >> bits - 1)):
            quotient = (upper >> low - bits) + sign
            (claim,) = divided([quotient == 77], _rewritten)
            assert "bvmul" not in kinds(claim) and any(name.startswith("bvsdiv") for name in kinds(claim))
            assert holds(x - quotient * divisor == z3.SRem(x, z3.BitVecVal(divisor, bits)))


def holds(claim: Any) -> bool:
    return refuted(Obligation("it", (z3.Not(claim),), ()), Effort(timeout=1)) == "unsat"


def test_near_misses_are_left_alone() -> None:
    x = z3.BitVec("x", 32)
    for factor, shift in ((0xAAAAAAAA, 1), (0xAAAAAAAC, 1), (0xCCCCCCCC, 3), (0xCCCCCCCE, 3)):
        term = z3.LShR(z3.Extract(63, 32, z3.ZeroExt(32, x) * factor), shift)
        assert not any(name.startswith("bvudiv") for name in kinds(divided([term == 5], _rewritten)[0]))
    for factor in (0x66666666, 0x66666669):
        upper = z3.Extract(63, 32, z3.SignExt(32, x) * factor)
        term = (upper >> 2) + z3.LShR(upper, 31)
        assert not any(name.startswith("bvsdiv") for name in kinds(divided([term == 5], _rewritten)[0]))
    upper = z3.Extract(63, 32, z3.SignExt(32, x) * 0x66666667)
    for sign in (z3.LShR(-x, 31), z3.LShR(z3.BitVec("y", 32), 31), z3.LShR(upper, 30), x >> 31):
        term = (upper >> 2) + sign
        assert not any(name.startswith("bvsdiv") for name in kinds(divided([term == 5], _rewritten)[0]))


@pytest.mark.parametrize("divisor", range(2, 16))
def test_what_is_known_of_quotients_and_remainders_is_true(divisor: int) -> None:
    x, by = z3.BitVec("x", 5), z3.BitVecVal(divisor, 5)
    for is_signed in (False, True):
        quotient, remainder = (x / by, z3.SRem(x, by)) if is_signed else (z3.UDiv(x, by), z3.URem(x, by))
        for fact in _facts(x, by, quotient, remainder, is_signed):
            numbers = [z3.substitute(fact, (x, z3.BitVecVal(n, 5))) for n in range(32)]
            assert all(z3.is_true(z3.simplify(number)) for number in numbers)


def test_a_weaker_formula_never_holds_where_the_formula_does_not() -> None:
    x, y = z3.BitVecs("x y", 8)
    seven = z3.BitVecVal(7, 8)
    for formula in (z3.URem(x, seven) == 6, z3.UDiv(x, seven) == 36, x / seven == -18, z3.SRem(x, seven) == -6):
        solver = z3.Solver()
        solver.add(*(without_divisions([formula]) or []))
        assert solver.check() == z3.sat
    assert without_divisions([z3.UDiv(x, y) == 3, x == 5]) is None
    nested = without_divisions([z3.URem(z3.UDiv(x, seven), seven) == y])
    assert nested is not None and not {"bvudiv", "bvurem"} & {name for formula in nested for name in kinds(formula)}
