"""Memory as an abstract domain sees it: values for some disjoint cells at constant addresses, nothing about the rest.

Cells chosen beforehand are never forgotten, only set to "unknown"; a write elsewhere at a constant address makes a
cell of its own, so that what a block pushes it can pop. A write through an unknown address may change every cell that
lies in writable memory: elsewhere it would have faulted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from .address_space import AddressSpace

V = TypeVar("V")


class MemoryCell(NamedTuple):
    address: int
    size: int

    @property
    def bits(self) -> int:
        return 8 * self.size


class TrackedCells(Generic[V]):
    def __init__(self, space: AddressSpace, unknown: Callable[[int], V], chosen: dict[MemoryCell, V]) -> None:
        """`unknown` gives the value of so many bits that says nothing."""
        self._space = space
        self._unknown = unknown
        self._chosen = frozenset(chosen)
        self.values = dict(chosen)

    def load(self, address: int, size: int) -> V | None:
        """What is known of the bytes there; None if they are no cell."""
        return self.values.get(MemoryCell(address, size))

    def store(self, address: int, size: int, value: V) -> None:
        self.forget(self.overlapping(address, size))
        self.values[MemoryCell(address, size)] = value

    def overlapping(self, address: int, size: int) -> list[MemoryCell]:
        """The cells that share a byte with [address, address + size), addresses wrapping around."""
        mask = self._space.mask
        return [
            cell
            for cell in self.values
            if (address - cell.address) & mask < cell.size or (cell.address - address) & mask < size
        ]

    def writable(self) -> list[MemoryCell]:
        """The cells that some write can change."""
        mask = self._space.mask
        return [
            cell
            for cell in self.values
            if any(self._space.writable(cell.address + offset & mask) for offset in range(cell.size))
        ]

    def forget(self, cells: Iterable[MemoryCell]) -> None:
        for cell in cells:
            if cell in self._chosen:
                self.values[cell] = self._unknown(cell.bits)
            else:
                del self.values[cell]


def initial_value(space: AddressSpace, cell: MemoryCell) -> int | None:
    """The number in a cell at entry, or None where a byte of it is unspecified."""
    found = [space.initial_byte(cell.address + offset & space.mask) for offset in range(cell.size)]
    content = bytes(byte for byte in found if byte is not None)
    if len(content) < cell.size:
        return None
    return int.from_bytes(content, "big" if space.big_endian else "little")


def fixed_value(space: AddressSpace, address: int, size: int) -> int | None:
    """The number at an address if no run can change it."""
    content = space.fixed_bytes(address, size)
    return None if content is None else int.from_bytes(content, "big" if space.big_endian else "little")
