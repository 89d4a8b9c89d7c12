"""Loads that walk back over stores against loads from the array that the stores made, for all contents."""

from __future__ import annotations

from typing import Any

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.check.formulas import Formula, vector
from mcveto.check.stored_words import Behind, StoredWords, Stores
from mcveto.check.values import CheckerDomain, Vocabulary
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import READ, WRITE, RegionSpec

POINTER, OTHER = z3.BitVecs("pointer other", 32)
REGIONS = (RegionSpec("data", 0x2000, 0x1000, READ | WRITE, bytes(0x1000), ((0, 0x1000),)),)
# An access: at which base, how far from it, how many bytes; a store if there is a value.
ACCESSES = st.tuples(
    st.sampled_from([POINTER, POINTER, POINTER, OTHER, None]),
    st.integers(-6, 6),
    st.sampled_from([1, 2, 4]),
    st.none() | st.sampled_from(["constant", "pointer", "variable"]),
)


def domains(big_endian: bool, holds: Any) -> tuple[CheckerDomain, StoredWords]:
    space = AddressSpace(REGIONS, 32, big_endian)
    names = Vocabulary(decoder_for("x86-32").layout, 32)
    words = StoredWords(names, space, ())
    words.stores, words.calls = Stores(space, holds), ()
    return CheckerDomain(names, space, ()), words


def always(*formulas: Formula) -> bool:
    solver = z3.Solver()
    solver.add(z3.Not(z3.And(*formulas)))
    return bool(solver.check() == z3.unsat)


@pytest.mark.parametrize("big_endian", [False, True])
@settings(max_examples=60, deadline=None)
@given(accesses=st.lists(ACCESSES, min_size=2, max_size=8))
def test_loads_are_those_of_the_array(big_endian: bool, accesses: list[Any]) -> None:
    plain, words = domains(big_endian, always)
    for number, (base, distance, size, stored) in enumerate(accesses):
        address = 0x2100 + distance if base is None else base + distance
        if stored is not None:
            whole = {"constant": 0x11223344 + number, "pointer": POINTER + number}
            value = words.extract(whole.get(stored, z3.BitVec(f"value {number}", 32)), 0, 8 * size, 32)
            plain.store(address, value, size)
            words.store(address, value, size)
        else:
            assert always(vector(plain.load(address, size), 8 * size) == vector(words.load(address, size), 8 * size))
        assert z3.eq(plain.memory, words.memory)
        assert [formula.get_id() for formula in plain.guard] == [formula.get_id() for formula in words.guard]


@pytest.mark.parametrize("big_endian", [False, True])
def test_a_word_comes_back_whole(big_endian: bool) -> None:
    _, words = domains(big_endian, always)
    words.store(POINTER - 4, POINTER + 12, 4)
    words.store(POINTER - 8, 7, 4)
    assert z3.eq(vector(words.load(POINTER - 4, 4), 32), POINTER + 12)
    assert words.load(POINTER - 8, 4) == 7
    words.store(OTHER, 9, 4)
    assert not isinstance(words.load(POINTER - 8, 4), int), "it may have been overwritten"


@pytest.mark.parametrize("kept", [-4, -5, -3])
def test_what_an_activation_keeps(kept: int) -> None:
    """What was stored before it is passed on if all of it is kept."""
    near = z3.And(z3.ULT(0x2100, POINTER), z3.ULT(POINTER, 0x2200))
    _, words = domains(False, lambda formula: always(z3.Implies(near, formula)))
    words.store(POINTER - 4, 0x1234, 4)
    memory = z3.Array("behind", z3.BitVecSort(32), z3.BitVecSort(8))
    words.calls = [Behind(memory, words.memory, lambda address: z3.UGE(address, POINTER + kept))]
    words.memory = memory
    loaded = words.load(POINTER - 4, 4)
    assert (loaded == 0x1234) if kept <= -4 else not isinstance(loaded, int)
    words.store(POINTER - 2, 0, 1)
    assert not isinstance(words.load(POINTER - 4, 4), int), "a part was overwritten"
