"""The memory of one path: bytes at constant addresses in a dictionary, the rest in an array term.

A byte is an integer, or one byte of a word term. What a store through a symbolic address may have hit is in `base`, an
array term; the ranges such stores fall into are *clouds*. Outside the clouds a byte nobody wrote is the image's, inside
it must be asked of the array. So a store into a table does not make the stack unknown, and forking copies one
dictionary.

`journal` holds what the current instruction overwrote: a fork in the middle of an instruction goes back to its start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, MutableMapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace

Value = int | Term


class ByteOf(NamedTuple):
    """Byte `significance` of a word, the least significant being 0."""

    word: Term
    significance: int


Cell = int | ByteOf


class PathMemory:
    __slots__ = ("_big_endian", "_mask", "_space", "_width", "base", "cells", "clouds", "dirty", "journal")

    def __init__(self, space: AddressSpace) -> None:
        self._space = space
        self._big_endian = space.big_endian
        self._mask = space.mask
        self._width = space.address_bits
        self.base = t.memory("mem", space.address_bits)
        self.cells: MutableMapping[int, Cell] = {}
        self.dirty: dict[int, None] = {}
        """Addresses whose cell is newer than `base`."""
        self.clouds: tuple[tuple[int, int], ...] = ()
        self.journal: list[tuple[int, Cell | None]] = []

    def copy(self) -> PathMemory:
        twin = PathMemory.__new__(PathMemory)
        twin._space, twin._big_endian = self._space, self._big_endian
        twin._mask, twin._width = self._mask, self._width
        twin.base, twin.clouds = self.base, self.clouds
        twin.cells, twin.dirty = dict(self.cells), dict(self.dirty)
        twin.journal = []
        return twin

    def begin(self) -> None:
        """An instruction begins that a fork may go back to."""
        self.journal.clear()

    def undone(self) -> PathMemory:
        """The memory before the current instruction; only where it made no store through a symbolic address."""
        twin = self.copy()
        for address, cell in reversed(self.journal):
            if cell is None:
                twin.cells.pop(address, None)
                twin.dirty.pop(address, None)
            else:
                twin.cells[address] = cell
        return twin

    def load(self, address: int, size: int) -> Value:
        cells, mask = self.cells, self._mask
        first = cells.get(address)
        if type(first) is ByteOf and first.word.width == 8 * size:
            word = first.word
            index, step = (size - 1, -1) if self._big_endian else (0, 1)
            for i in range(size):
                cell = cells.get((address + i) & mask)
                if type(cell) is not ByteOf or cell[0] is not word or cell[1] != index:
                    break
                index += step
            else:
                return word
        parts: list[Cell] = []
        for i in range(size):
            cell = cells.get((address + i) & mask)
            parts.append(self.byte((address + i) & mask) if cell is None else cell)
        if not self._big_endian:
            parts.reverse()
        value = 0
        for part in parts:
            if type(part) is not int:
                break
            value = value << 8 | part
        else:
            return value
        result: Term | None = None
        for part in parts:
            term = t.const(part, 8) if isinstance(part, int) else t.extract(part[0], 8 * part[1] + 7, 8 * part[1])
            result = term if result is None else t.concat(result, term)
        assert result is not None
        return int(result.data) if result.op == "const" else result

    def is_open(self, address: int) -> bool:
        """Whether nothing is said about a byte."""
        return False

    def byte(self, address: int) -> Cell:
        cell = self.cells.get(address)
        if cell is not None:
            return cell
        if not self.clouds or not is_within(address, address + 1, self.clouds):
            known = self._space.initial_byte(address)
            if known is not None:
                return known
        term = t.load(self.base, t.const(address, self._width), 1, self._big_endian)
        return int(term.data) if term.op == "const" else ByteOf(term, 0)

    def store(self, address: int, value: Value, size: int) -> None:
        cells, mask, dirty, journal = self.cells, self._mask, self.dirty, self.journal
        concrete = isinstance(value, int)
        for i in range(size):
            where = (address + i) & mask
            index = size - 1 - i if self._big_endian else i
            journal.append((where, cells.get(where)))
            cells[where] = value >> 8 * index & 0xFF if concrete else ByteOf(value, index)  # type: ignore
            dirty[where] = None

    def array(self) -> Term:
        """The whole memory as an array term."""
        for address in sorted(self.dirty):
            cell = self.cells[address]
            byte = t.const(cell, 8) if isinstance(cell, int) else t.extract(cell[0], 8 * cell[1] + 7, 8 * cell[1])
            self.base = t.store(self.base, t.const(address, self._width), byte, self._big_endian)
        self.dirty = {}
        return self.base

    def whole(self) -> Term:
        """As `array`, and leaves this memory as it is."""
        twin = self.copy()
        if not self.clouds and self.base.op == "memory":
            # Then the cells say everything that was ever written.
            twin.dirty = dict.fromkeys(self.cells)
        return twin.array()

    def frozen(self) -> PathMemory:
        """A copy to look at; what is newer than the array is left out where the cells say it all."""
        twin = self.copy()
        if not self.clouds and self.base.op == "memory":
            twin.dirty = {}
        return twin

    def load_anywhere(self, address: Term, size: int) -> Term:
        return t.load(self.array(), address, size, self._big_endian)

    def store_within(self, address: Term, value: Term, ranges: Sequence[tuple[int, int]]) -> None:
        """A store that touches only bytes of these ranges; it cannot be undone."""
        self.base = t.store(self.array(), address, value, self._big_endian)
        self.cells = {
            where: cell for where, cell in self.cells.items() if not any(low <= where < high for low, high in ranges)
        }
        self.clouds = united([*self.clouds, *ranges])
        self.journal.clear()


def is_within(low: int, high: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether what lies from `low` to before `high` is part of one of these ranges, which `united` has made."""
    at = bisect_right(ranges, low, key=itemgetter(0)) - 1
    return at >= 0 and high <= ranges[at][1]


def united(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The ranges in order, overlapping ones as one."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return tuple(result)
