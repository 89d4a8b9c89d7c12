"""What the checker refutes by comparing polynomials is refuted, and chains of products that solvers lose are."""

from __future__ import annotations

from typing import Any

import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.check.discharge import Effort, _is_equal_as_polynomials, refuted
from mcveto.check.obligations import Obligation

MEMORY = z3.Array("mem", z3.BitVecSort(32), z3.BitVecSort(8))


def word(at: int) -> Any:
    """The two bytes at an address."""
    return z3.Concat(MEMORY[at + 1], MEMORY[at])


def stored(memory: Any, at: int, value: Any) -> Any:
    return z3.Store(z3.Store(memory, at, z3.Extract(7, 0, value)), at + 1, z3.Extract(15, 8, value))


VALUES = [z3.BitVec(f"value{n}", 16) for n in range(3)]
TERMS = st.lists(st.tuples(st.integers(0, 0xFFFF), st.integers(0, 2)), min_size=1, max_size=3)


def polynomial(terms: list[tuple[int, int]], values: list[Any]) -> Any:
    return sum((factor * values[which] for factor, which in terms), z3.BitVecVal(0, 16))


@settings(max_examples=40)
@given(TERMS, TERMS, st.sampled_from((3, 5, 33, 0xFFFF)), st.integers(0, 1), st.integers(0, 15))
def test_right_polynomials_are_told_from_wrong_ones(one: Any, other: Any, change: int, wrong: int, shift: int) -> None:
    """The word is a polynomial; a step multiplies it and adds; claimed is a polynomial, maybe a wrong one."""
    before = polynomial(one, VALUES)
    step = word(0x100) * (1 << shift) + word(0x100) * change + polynomial(other, VALUES)
    after = z3.substitute(word(0x100), (MEMORY, stored(MEMORY, 0x100, step)))
    claimed = before * ((1 << shift) + change) + polynomial(other, VALUES) + wrong
    formulas = (word(0x100) == before, z3.Not(after == claimed))
    # A claim that is off by one is broken by every state.
    assert _is_equal_as_polynomials(formulas) == (not wrong)


def test_words_that_overlap_are_not_confused() -> None:
    """Bytes of a word are variables of their own: what depends on them is left to the solvers."""
    low = z3.ZeroExt(8, MEMORY[0x100])
    formulas = (word(0x100) == VALUES[0], low != (VALUES[0] & 0xFF))
    assert refuted(Obligation("low byte", formulas, []), Effort(timeout=5)) == "unsat"
    formulas = (word(0x100) == VALUES[0], word(0x101) != VALUES[0])
    assert refuted(Obligation("another word", formulas, []), Effort(timeout=5)) == "sat"


def test_a_hash_of_many_characters() -> None:
    """Seven rounds of h = 33 * h + c, of which the last is proved from the word that holds the sixth."""
    values = [z3.ZeroExt(24, z3.Extract(7, 0, z3.BitVec(f"c{n}", 32))) for n in range(7)]
    memory = z3.Array("mem", z3.BitVecSort(32), z3.BitVecSort(8))

    def load(at: Any) -> Any:
        return z3.Concat(*(at[0x100 + byte] for byte in (3, 2, 1, 0)))

    def expanded(count: int) -> Any:
        parts = [33 ** (count - 1 - n) % 2**32 * value for n, value in enumerate(values[:count])]
        return sum(parts, z3.BitVecVal(5381 * 33**count % 2**32, 32))

    new = load(memory) * 32 + load(memory) + z3.ZeroExt(24, memory[0x200])
    later = memory
    for byte in range(4):
        later = z3.Store(later, 0x100 + byte, z3.Extract(8 * byte + 7, 8 * byte, new))
    known = (load(memory) == expanded(6), memory[0x200] == z3.Extract(7, 0, z3.BitVec("c6", 32)))
    holds = (*known, z3.Not(load(later) == expanded(7)))
    assert refuted(Obligation("hash", holds, []), Effort(timeout=30)) == "unsat"
