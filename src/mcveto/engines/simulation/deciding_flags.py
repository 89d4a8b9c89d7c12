"""Flags in memory that decide whether a target is reached: what the branch before it depends on.

`if (held) error();` is how most rules about locks are written. That a flag is one is only guessed: it is small at the
start, at a fixed place, and read by the last block before the target for its branch (what else the block computes, such
as a count of requests, is no flag). What is guessed decides which states are kept apart, never what is true of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcveto.engines.memory import PathMemory
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import WRITE
from mcveto.machine.pcode import Instruction, Space, Varnode

LARGEST = 15
SIZES = (1, 2, 4, 8)


def deciding(block: Iterable[Instruction]) -> frozenset[int]:
    """The instructions of a block whose loads its branch depends on, by a pass backwards (addresses do not count)."""
    needed: set[tuple[Space, int]] = set()
    found: set[int] = set()
    for instruction in reversed(list(block)):
        for op in reversed(instruction.ops):
            if op.opcode == "CBRANCH":
                needed |= _bytes(op.inputs[1])
            output = _bytes(op.output) if op.output is not None else set()
            if needed.isdisjoint(output):
                continue
            needed -= output
            if op.opcode == "LOAD" or any(read.space is Space.RAM for read in op.inputs):
                found.add(instruction.pc)
            if op.opcode != "LOAD":
                needed = needed.union(*map(_bytes, op.inputs))
        needed = {byte for byte in needed if byte[0] is Space.REGISTER}
    return frozenset(found)


def _bytes(place: Varnode) -> set[tuple[Space, int]]:
    if place.space not in (Space.REGISTER, Space.UNIQUE):
        return set()
    return {(place.space, place.offset + i) for i in range(place.size)}


def flags_among(loaded: set[int], space: AddressSpace, first: PathMemory) -> Iterator[tuple[int, int]]:
    """Where the flags are among bytes that were read, and how many bytes they have; `first`: memory at the start."""
    for start, size in words(loaded):
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
