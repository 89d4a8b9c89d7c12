"""The register file as disjoint cells.

SLEIGH names overlapping slices of one byte-addressed register space (AL, AX, EAX, RAX). States hold one value per
*cell*, a maximal named register; every access is resolved once to pieces (cell, lowest bit, bits). Which side of a
cell a slice lies on follows the byte order of the register space. A name in `split` does not make a cell: PowerPC's
`crall` would otherwise glue the eight condition fields into one value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .faults import Unsupported


class Cell(NamedTuple):
    number: int
    name: str
    offset: int
    size: int

    @property
    def bits(self) -> int:
        return 8 * self.size


class Piece(NamedTuple):
    """Bits [low, low+bits) of a cell."""

    cell: Cell
    low: int
    bits: int


class RegisterLayout:
    def __init__(
        self,
        registers: Iterable[tuple[str, int, int]],
        big_endian: bool,
        split: frozenset[str] = frozenset(),
        significant_bits: Mapping[str, int] | None = None,
    ) -> None:
        self.big_endian = big_endian
        self.names: dict[str, tuple[int, int]] = {}
        chosen: list[tuple[int, int, str]] = []
        starts: list[int] = []
        for name, offset, size in sorted(registers, key=lambda r: (-r[2], r[1], r[0])):
            self.names[name] = (offset, size)
            if name in split:
                continue
            at = bisect_right(starts, offset)
            before_ends = chosen[at - 1][0] + chosen[at - 1][1] if at else 0
            after_starts = starts[at] if at < len(starts) else offset + size
            if before_ends <= offset and offset + size <= after_starts:
                starts.insert(at, offset)
                chosen.insert(at, (offset, size, name))
        self.cells = [Cell(i, name, offset, size) for i, (offset, size, name) in enumerate(chosen)]
        self.by_name = {cell.name: cell for cell in self.cells}
        self._starts = starts
        self._significant = dict(significant_bits or {})
        self._pieces: dict[tuple[int, int], tuple[Piece, ...]] = {}
        self._display: dict[tuple[int, int], str] = {}
        for name, where in sorted(self.names.items(), reverse=True):
            self._display[where] = name

    def significant_bits(self, cell: Cell) -> int:
        """How many low bits of the cell can ever be set (flags are bytes that hold 0 or 1)."""
        return self._significant.get(cell.name, cell.bits)

    def pieces(self, offset: int, size: int) -> tuple[Piece, ...]:
        """The slices of cells an access covers, most significant first."""
        key = (offset, size)
        found = self._pieces.get(key)
        if found is None:
            found = self._pieces[key] = self._resolve(offset, size)
        return found

    def named(self, name: str) -> tuple[Piece, ...]:
        offset, size = self.names[name]
        return self.pieces(offset, size)

    def display(self, offset: int, size: int) -> str:
        return self._display.get((offset, size), f"reg[{offset:#x}:{size}]")

    def _resolve(self, offset: int, size: int) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        position = offset
        while position < offset + size:
            at = bisect_right(self._starts, position) - 1
            cell = self.cells[at] if at >= 0 else None
            if cell is None or position >= cell.offset + cell.size:
                raise Unsupported(f"register storage {position:#x} that no register names")
            end = min(offset + size, cell.offset + cell.size)
            skipped = position - cell.offset
            length = end - position
            low_byte = cell.size - skipped - length if self.big_endian else skipped
            pieces.append(Piece(cell, 8 * low_byte, 8 * length))
            position = end
        return tuple(pieces) if self.big_endian else tuple(reversed(pieces))
