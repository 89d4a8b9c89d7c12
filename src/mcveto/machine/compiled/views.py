"""How compiled code reaches memory: typed views of regions, and which bytes may be written without looking.

A view covers an interval of one region. Compiled stores go through views of intervals that hold no executed code, so
they need no self-modification check: when code turns up in such an interval later, the functions that rely on it are
dropped. Everything else goes through `load` and `store` here, which refuse (and so hand over to the reference
emulator) whatever may fault or touch compiled code.
"""

from __future__ import annotations

import struct
import sys
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from ..memory import EXECUTE, READ, WRITE, Memory, Region

_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
CODE_PAGE = 6


class View(NamedTuple):
    """Bytes [low, high) of a region; accesses are `name[index]` if `aligned`, else through struct functions."""

    low: int
    high: int
    size: int
    aligned: bool
    readable: bool
    writable: bool
    watched: bool
    name: str


class Views:
    def __init__(self, memory: Memory, big_endian: bool, enforce: bool) -> None:
        self._memory = memory
        self._native = big_endian == (sys.byteorder == "big")
        self._prefix = ">" if big_endian else "<"
        self._order = "big" if big_endian else "little"
        self._enforce = enforce
        self._views: dict[tuple[int, int, int, bool], View] = {}
        # Addresses (start, end) of executed instructions, in address order.
        self.code: list[tuple[int, int]] = []
        self.objects: dict[str, object] = {}
        self.code_pages: set[int] = set()
        for size, code in _FORMATS.items():
            packer = struct.Struct(self._prefix + code)
            self.objects[f"unpack{size}"] = packer.unpack_from
            self.objects[f"pack{size}"] = packer.pack_into
        for size in (1, 2, 4, 8, 16):
            self.objects[f"load{size}"] = self._loader(size)
            self.objects[f"store{size}"] = self._storer(size)

    def at(self, address: int, size: int, aligned: bool) -> View | None:
        """A view for accesses of `size` around `address`, or None if there is no fast way."""
        region = self._memory.region_of(address)
        if region is None or size not in _FORMATS:
            return None
        low, high, watched = region.start, region.end, False
        writable = bool(region.permissions & WRITE) or not self._enforce
        if writable and (region.permissions & EXECUTE or not self._enforce):
            low, high, writable = self._code_free(region, address)
            watched = writable
        low, high = (low + 7) & ~7, high & ~7
        if not low <= address <= high - size:
            return None
        aligned = aligned and (self._native or size == 1)
        key = (low, high, size, aligned)
        view = self._views.get(key)
        if view is None or view.watched != watched:
            name = f"v{len(self._views)}"
            window = memoryview(region.data)[low - region.start : high - region.start]
            self.objects[name] = window.cast(_FORMATS[size]) if aligned else window
            readable = bool(region.permissions & READ) or not self._enforce
            view = self._views[key] = View(low, high, size, aligned, readable, writable, watched, name)
        return view

    def _code_free(self, region: Region, address: int) -> tuple[int, int, bool]:
        """An interval around `address` without executed code and half-way clear of it; else all of it, unwritable."""
        at = bisect_right(self.code, (address, 1 << 128))
        low, high = region.start, region.end
        if at and self.code[at - 1][1] > low:
            end = self.code[at - 1][1]
            if end > address:
                return low, high, False
            low = (end + address + 1) // 2
        if at < len(self.code) and self.code[at][0] < high:
            high = (self.code[at][0] + address + 16) // 2
            if self.code[at][0] < high:
                high = self.code[at][0]
        return low, high, True

    def _loader(self, size: int) -> Callable[[int], int | None]:
        region_of, order, enforce = self._memory.region_of, self._order, self._enforce

        def load(address: int) -> int | None:
            region = region_of(address)
            if region is None or address + size > region.end or (enforce and not region.permissions & READ):
                return None
            at = address - region.start
            return int.from_bytes(region.data[at : at + size], order)  # type: ignore[arg-type]

        return load

    def _storer(self, size: int) -> Callable[[int, int], bool]:
        region_of, order, enforce, pages = self._memory.region_of, self._order, self._enforce, self.code_pages

        def store(address: int, value: int) -> bool:
            """True if it did not store."""
            region = region_of(address)
            if (
                region is None
                or address + size > region.end
                or (enforce and not region.permissions & WRITE)
                or address >> CODE_PAGE in pages
                or (address + size - 1) >> CODE_PAGE in pages
            ):
                return True
            at = address - region.start
            region.data[at : at + size] = value.to_bytes(size, order)  # type: ignore[arg-type]
            return False

        return store
