"""Flags in memory that decide whether a target is reached: what the last block before it reads.

`if (held) error();` is how most rules about locks are written. That a flag is one is only guessed: it is small at the
start, and at a fixed place. What is guessed decides which states are kept apart, never what is true of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcveto.engines.memory import PathMemory
from mcveto.engines.record import Accesses
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import WRITE

LARGEST = 15
SIZES = (1, 2, 4, 8)


def flags_read(accesses: Accesses, space: AddressSpace, first: PathMemory) -> Iterator[tuple[int, int]]:
    """Where the flags are that a block reads, and how many bytes they have; `first` is the memory at the start."""
    for start, size in words(accesses.loaded):
        region = space.region_at(start)
        if size in SIZES and region is not None and region.permissions & WRITE:
            value = first.load(start, size)
            if isinstance(value, int) and value <= LARGEST:
                yield start, size


def words(places: set[int]) -> Iterator[tuple[int, int]]:
    """Bytes that follow each other: where they start, and how many there are."""
    start = 0
    for place in sorted(places):
        if place - 1 not in places:
            start = place
        if place + 1 not in places:
            yield start, place + 1 - start
