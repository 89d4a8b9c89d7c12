"""The memory of terms against a plain byte array: random stores and loads at constant and symbolic addresses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec
from mcveto.machine.symbolic_memory import SymbolicMemory

BASE = 0x1000
KNOWN = bytes(range(16))

operations = st.lists(
    st.tuples(
        st.sampled_from(["load", "store"]),
        st.sampled_from([None, "p", "q"]),
        st.integers(0, 40),
        st.sampled_from([1, 2, 4, 8]),
        st.integers(0, 2**64 - 1),
        st.booleans(),
    ),
    max_size=14,
)


@given(operations, st.integers(0, 20), st.integers(0, 20), st.booleans())
@settings(max_examples=400, deadline=None)
def test_agrees_with_bytes(
    steps: list[tuple[str, str | None, int, int, int, bool]], p: int, q: int, big_endian: bool
) -> None:
    space = AddressSpace(
        [
            RegionSpec("fixed", BASE, 16, READ | EXECUTE, KNOWN),
            RegionSpec("open", BASE + 16, 64, READ | WRITE, KNOWN, ((16, 64),)),
        ],
        32,
        big_endian,
    )
    values = {"p": BASE + 16 + p, "q": BASE + 16 + q}
    background = {address: (7 * address) & 0xFF for address in range(BASE + 32, BASE + 80)}
    plain = {BASE + i: KNOWN[i] for i in range(16)} | {BASE + 16 + i: KNOWN[i] for i in range(16)} | background
    initial = dict(plain)
    order = "big" if big_endian else "little"
    counter = 0

    def variable(term: t.Term) -> int:
        return values[str(term.data)]

    evaluator = Evaluator(variable, lambda _, address: initial[address])
    memory = SymbolicMemory(space)
    for kind, base, offset, size, value, as_variable in steps:
        if base is None:
            address = BASE + offset + (16 if kind == "store" else 0)
            where = t.const(address, 32)
        else:
            offset %= 20
            address = values[base] + offset
            where = t.add(t.var(base, 32), t.const(offset, 32))
        if kind == "store":
            value &= (1 << 8 * size) - 1
            if as_variable:
                name = f"v{counter}"
                counter += 1
                values[name] = value
                word = t.var(name, 8 * size)
            else:
                word = t.const(value, 8 * size)
            snapshot = memory.copy()
            memory.store(where, word)
            if as_variable:
                # Going on with the copy must be the same as going on with the original.
                snapshot.store(where, word)
                memory = snapshot
            for i, byte in enumerate(value.to_bytes(size, order)):  # type: ignore[arg-type]
                plain[address + i] = byte
        else:
            expected = int.from_bytes(bytes(plain[address + i] for i in range(size)), order)  # type: ignore[arg-type]
            assert evaluator.value(memory.load(where, size)) == expected
    for address, byte in sorted(plain.items()):
        assert evaluator.byte(memory.term, address) == byte
        assert evaluator.value(memory.copy().load(t.const(address, 32), 1)) == byte


def test_read_only_bytes_stay_known_after_a_write_through_an_unknown_pointer() -> None:
    space = AddressSpace(
        [RegionSpec("fixed", 0, 16, READ, KNOWN), RegionSpec("data", 16, 16, READ | WRITE, KNOWN)], 32, False
    )
    memory = SymbolicMemory(space)
    memory.store(t.var("p", 32), t.const(0, 8))
    assert memory.load(t.const(4, 32), 4) is t.const(0x07060504, 32)
    assert memory.load(t.const(20, 32), 1).op != "const"


@pytest.mark.parametrize("pointer", [t.const(0x8000, 32), t.var("sp", 32)])
def test_a_cell_is_found_however_many_writes_lie_between(pointer: t.Term) -> None:
    space = AddressSpace([RegionSpec("stack", 0, 0x10000, READ | WRITE, b"", ((0, 0x10000),))], 32, False)
    memory = SymbolicMemory(space)
    first = t.var("x", 32)
    memory.store(pointer, first)
    for number in range(1, 1000):
        memory.store(t.add(pointer, t.const(4 * number, 32)), t.var(f"v{number}", 32))
    assert memory.load(pointer, 4) is first
