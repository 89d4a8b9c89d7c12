"""Which words of memory are taken for flags that decide about a target."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcveto.engines.memory import PathMemory
from mcveto.engines.record import Accesses
from mcveto.engines.simulation.deciding_flags import flags_read, words
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec


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
    accesses = Accesses()
    for address, size in ((0x1000, 4), (0x2000, 4), (0x2008, 3), (0x2010, 1)):
        accesses.load(address, size)
    memory = PathMemory(space)
    assert list(flags_read(accesses, space, memory)) == [(0x2000, 4), (0x2010, 1)]
    accesses.load(0x2004, 4)
    assert list(flags_read(accesses, space, memory)) == [(0x2010, 1)]
