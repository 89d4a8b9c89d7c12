"""The memory of a path against plain bytes: every load has the value that the stores so far gave it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.memory import PathMemory, Value
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ, WRITE, RegionSpec

START, SIZE = 0x1000, 64
IMAGE = bytes(range(100, 132))


class Oracle:
    """Bytes under one assignment, beside the memory of terms."""

    def __init__(self, big_endian: bool, assignment: dict[str, int]) -> None:
        regions = [RegionSpec("data", START, SIZE, READ | WRITE, IMAGE, ((24, 40),))]
        self.memory = PathMemory(AddressSpace(regions, 32, big_endian))
        self.order: Any = "big" if big_endian else "little"
        self.bytes = bytearray(IMAGE.ljust(SIZE, b"\0"))
        self.bytes[24:40] = bytes(16)
        self.assignment = assignment

    def value(self, value: Value) -> int:
        if isinstance(value, int):
            return value
        evaluator = Evaluator(
            lambda variable: self.assignment.get(str(variable.data), 0),
            lambda _, address: IMAGE[address - START] if address - START < 24 else 0,
        )
        return evaluator.value(value)

    def store(self, offset: int, value: Value, size: int) -> None:
        self.memory.store(START + offset, value, size)
        self.bytes[offset : offset + size] = self.value(value).to_bytes(size, self.order)

    def store_within(self, index: t.Term, value: t.Term, size: int, low: int, high: int) -> None:
        address = t.add(t.const(START + low, 32), index)
        self.memory.store_within(address, value, [(START + low, START + high)])
        at = self.value(address) - START
        self.bytes[at : at + size] = self.value(value).to_bytes(size, self.order)

    def check(self, offset: int, size: int) -> None:
        expected = int.from_bytes(self.bytes[offset : offset + size], self.order)
        assert self.value(self.memory.load(START + offset, size)) == expected
        assert self.value(self.memory.copy().load_anywhere(t.const(START + offset, 32), size)) == expected


@st.composite
def histories(draw: st.DrawFn) -> tuple[bool, dict[str, int], list[tuple[Any, ...]]]:
    assignment = {f"v{i}": draw(st.integers(0, 2**32 - 1)) for i in range(3)}
    assignment |= {f"i{i}": draw(st.integers(0, 3)) for i in range(3)}
    operations: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(1, 14))):
        size = draw(st.sampled_from([1, 2, 4]))
        kind = draw(st.sampled_from(["constant", "word", "within", "load", "copy"]))
        operations.append((kind, draw(st.integers(0, SIZE - 12)), size, draw(st.integers(0, 2))))
    return draw(st.booleans()), assignment, operations


@settings(max_examples=150, deadline=None)
@given(histories())
def test_loads_see_the_last_stores(history: tuple[bool, dict[str, int], list[tuple[Any, ...]]]) -> None:
    big_endian, assignment, operations = history
    oracle = Oracle(big_endian, assignment)
    for kind, offset, size, which in operations:
        word = t.extract(t.var(f"v{which}", 32), 8 * size - 1, 0)
        if kind == "constant":
            oracle.store(offset, (offset * 0x01020304) & ((1 << 8 * size) - 1), size)
        elif kind == "word":
            oracle.store(offset, word, size)
        elif kind == "within":
            # The index is at most 3, so the store ends before offset + 3 + size.
            index = t.band(t.var(f"i{which}", 32), t.const(3, 32))
            oracle.store_within(index, word, size, offset, offset + 3 + size)
        elif kind == "copy":
            oracle.memory = oracle.memory.copy()
        oracle.check(offset, size)
    for offset in range(0, SIZE - 4, 3):
        oracle.check(offset, 4)


@pytest.mark.parametrize("big_endian", [False, True])
def test_undone_is_the_memory_before_the_instruction(big_endian: bool) -> None:
    oracle = Oracle(big_endian, {"v0": 0x11223344})
    oracle.store(4, t.var("v0", 32), 4)
    before = [oracle.memory.load(START + offset, 4) for offset in range(SIZE - 4)]
    oracle.memory.journal.clear()
    oracle.store(2, 0xFFFF, 2)
    oracle.store(6, t.var("v1", 32), 4)
    oracle.store(3, 0x42, 1)
    undone = oracle.memory.undone()
    assert [undone.load(START + offset, 4) for offset in range(SIZE - 4)] == before
    assert oracle.memory.load(START + 3, 1) == 0x42


def test_a_store_into_a_table_leaves_the_rest_known() -> None:
    oracle = Oracle(False, {})
    oracle.store(48, 7, 4)
    oracle.store_within(t.band(t.var("i0", 32), t.const(3, 32)), t.const(1, 8), 1, 8, 12)
    assert oracle.memory.load(START + 48, 4) == 7
    assert oracle.memory.load(START, 4) == int.from_bytes(IMAGE[:4], "little")
    assert not isinstance(oracle.memory.load(START + 8, 1), int)
