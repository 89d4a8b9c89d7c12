"""Which words of memory are taken for flags that decide about a target."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.location import Blocks
from mcveto.engines.memory import PathMemory
from mcveto.engines.simulation.deciding_flags import deciding, flags_among, words
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec

from .random_programs import CODE, RandomProgram


@given(st.sets(st.integers(0, 40)))
def test_words_are_the_longest_runs(places: set[int]) -> None:
    found = list(words(places))
    assert {start + i for start, size in found for i in range(size)} == places
    assert all(start - 1 not in places and start + size not in places for start, size in found)
    assert len(found) == sum(place - 1 not in places for place in places)


def test_flags_are_small_and_can_be_written() -> None:
    regions = [
        RegionSpec("code", 0x1000, 16, READ | EXECUTE, bytes(16)),
        RegionSpec("data", 0x2000, 32, READ | WRITE, bytes([0, 0, 0, 1, 9, 9, 9, 9, 0, 0, 0])),
    ]
    space = AddressSpace(regions, 32, True)
    memory = PathMemory(space)
    loaded = {*range(0x1000, 0x1004), *range(0x2000, 0x2004), *range(0x2008, 0x200B), 0x2010}
    assert list(flags_among(loaded, space, memory)) == [(0x2000, 4), (0x2010, 1)]
    loaded |= {*range(0x2004, 0x2008)}
    assert list(flags_among(loaded, space, memory)) == [(0x2010, 1)]


def test_only_loads_that_the_branch_depends_on_decide() -> None:
    # incl [0x20000]; mov eax, [0x20004]; mov ebx, [0x20008]; mov ecx, [ebx]; test eax, eax; mov edx, [0x2000c]; jne
    code = bytes.fromhex("ff0500000200 a104000200 8b1d08000200 8b0b 85c0 8b150c000200 7500")
    program = RandomProgram(code, b"\xc3", bytes(64), False).load()
    block = Blocks(program).fixed_block(CODE)
    assert block is not None and deciding(block) == {CODE + 6}
    # cmp eax, [0x20000]; mov ebx, [0x20008]; mov eax, 0; lea edx, [ebx + 4]; jne: the flags, and not what comes after
    code = bytes.fromhex("3b0500000200 8b1d08000200 b800000000 8d5304 7500")
    block = Blocks(RandomProgram(code, b"\xc3", bytes(64), False).load()).fixed_block(CODE)
    assert block is not None and deciding(block) == {CODE}
    # mov eax, [0x20000]; mov eax, [eax]; test eax, eax; jne: where a flag is decides nothing
    code = bytes.fromhex("a100000200 8b00 85c0 7500")
    block = Blocks(RandomProgram(code, b"\xc3", bytes(64), False).load()).fixed_block(CODE)
    assert block is not None and deciding(block) == {CODE + 5}
