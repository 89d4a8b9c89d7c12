"""Chained fix-ups of Mach-O files (LC_DYLD_CHAINED_FIXUPS): pointers that are threaded into a list per page.

Each cell holds a target and the distance to the next cell. A rebase is replaced by the address it stands for,
a bind is unspecified. The two formats of x86-64 and arm64 are known; those with signed pointers (arm64e) and
the 32-bit ones are refused, because a cell that is left in its encoded form would be a wrong value. Layout:
Apple's <mach-o/fixup-chains.h>.
"""

import struct

from mcveto.program.image.memory import Memory
from mcveto.program.image.request import LoadRequest

_POINTER_64, _POINTER_64_OFFSET = 2, 6
_NO_FIXUPS, _SEVERAL_STARTS = 0xFFFF, 0x8000
_IMPORT_SIZES = {1: 4, 2: 8, 3: 16}
MAX_SEGMENTS = 256
MAX_NAME = 4096


class ChainedFixups:
    def __init__(self, request: LoadRequest, table: bytes, memory: Memory, base: int, bias: int) -> None:
        self._request = request
        self._table = table
        self._memory = memory
        self._base = base
        self._bias = bias
        # Every link of a chain is a cell of the file, so there cannot be more of them than bytes.
        self._budget = len(request.data)
        self._cells: dict[int, str] = {}

    def apply(self) -> dict[int, str]:
        """Fix all cells; the result maps the bound ones to the names they are bound to."""
        version, starts, _, _, _, import_format, symbol_format = self._unpack("<7I", 0)
        if version != 0 or symbol_format != 0 or import_format not in _IMPORT_SIZES:
            raise self._request.broken("its chained fix-ups are of an unknown version")
        (count,) = self._unpack("<I", starts)
        if count > MAX_SEGMENTS:
            raise self._request.broken(f"its chained fix-ups declare {count} segments")
        for offset in self._unpack(f"<{count}I", starts + 4):
            if offset:
                self._segment(starts + offset)
        return self._cells

    def _segment(self, at: int) -> None:
        _, page_size, pointer_format, offset, _, page_count = self._unpack("<IHHQIH", at)
        if pointer_format not in (_POINTER_64, _POINTER_64_OFFSET):
            raise self._request.broken(f"chained fix-ups of format {pointer_format} are not supported")
        for page, start in enumerate(self._unpack(f"<{page_count}H", at + 22)):
            if start == _NO_FIXUPS:
                continue
            if start & _SEVERAL_STARTS:
                raise self._request.broken("chained fix-ups with several chains per page are not supported")
            self._chain(self._base + offset + page * page_size, start, page_size, pointer_format)

    def _chain(self, page: int, start: int, page_size: int, pointer_format: int) -> None:
        distance = start
        while True:
            self._budget -= 1
            raw = self._memory.read(page + distance, 8) if distance + 8 <= page_size else None
            if raw is None or self._budget < 0:
                raise self._request.broken(f"damaged: a chain of fix-ups leaves its page at {page + distance:#x}")
            link = int.from_bytes(raw, "little")
            self._cell(page + distance, link, pointer_format)
            step = (link >> 51 & 0xFFF) * 4
            if not step:
                return
            distance += step

    def _cell(self, address: int, link: int, pointer_format: int) -> None:
        if link >> 63:
            self._memory.forget(address, 8)
            self._cells[address] = self._import_name(link & 0xFFFFFF)
            return
        target, top_byte = link & (1 << 36) - 1, link >> 36 & 0xFF
        target += self._base if pointer_format == _POINTER_64_OFFSET else self._bias
        value = (target % (1 << 64)) | top_byte << 56
        if not self._memory.patch(address, value.to_bytes(8, "little")):
            raise self._request.broken(f"damaged: fix-up outside the file's bytes at {address:#x}")

    def _import_name(self, ordinal: int) -> str:
        _, _, imports, symbols, count, import_format, _ = self._unpack("<7I", 0)
        if ordinal >= count:
            raise self._request.broken(f"damaged: a fix-up binds to import {ordinal} of {count}")
        at = imports + ordinal * _IMPORT_SIZES[import_format]
        name_at = self._unpack("<Q", at)[0] >> 32 if import_format == 3 else self._unpack("<I", at)[0] >> 9
        name = self._table[symbols + name_at : symbols + name_at + MAX_NAME].split(b"\0", 1)[0]
        return name.decode("utf-8", "replace")

    def _unpack(self, layout: str, at: int) -> tuple[int, ...]:
        if at + struct.calcsize(layout) > len(self._table):
            raise self._request.broken("truncated or damaged: its chained fix-ups exceed their table")
        return struct.unpack_from(layout, self._table, at)
