"""The map of regions a program runs in, before any run: what is mapped, with which permissions and initial bytes.

Concrete memory is made from it, symbolic memory asks it for bytes that are known and for the condition under which an
access through a symbolic address does not fault.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ..logic.terms import Term, conj, const, disj, ule
from .faults import Fault
from .memory import EXECUTE, READ, WRITE, Memory, RegionSpec, denied, missing


class AddressSpace:
    def __init__(self, regions: Iterable[RegionSpec], address_bits: int, big_endian: bool) -> None:
        self.regions = tuple(sorted(regions, key=lambda spec: spec.start))
        self.address_bits = address_bits
        self.big_endian = big_endian
        self.mask = (1 << address_bits) - 1
        self._starts = [spec.start for spec in self.regions]
        self._ranges = {needed: self._merged(needed) for needed in (READ, WRITE, EXECUTE)}

    def memory(self, enforce: bool = True) -> Memory:
        """A new concrete memory; unspecified bytes are zero until somebody pokes them."""
        return Memory(self.regions, self.address_bits, self.big_endian, enforce)

    def region_at(self, address: int) -> RegionSpec | None:
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self.regions[at].end:
            return self.regions[at]
        return None

    def initial_byte(self, address: int) -> int | None:
        """The byte at entry, or None where it is unmapped or nobody knows it."""
        region = self.region_at(address)
        if region is None:
            return None
        offset = address - region.start
        if any(start <= offset < end for start, end in region.unspecified):
            return None
        return region.content[offset] if offset < len(region.content) else 0

    def uniform_range(self, address: int) -> tuple[int, int] | None:
        """The largest range around an address whose bytes are all known and the same at entry; None if this is not."""
        value, region = self.initial_byte(address), self.region_at(address)
        if value is None or region is None:
            return None
        offset, content, same = address - region.start, region.content, bytes([value])
        low = high = offset
        if offset < len(content):
            low -= offset - len(content[:offset].rstrip(same))
            behind = content[offset:]
            high += len(behind) - len(behind.lstrip(same))
        if value == 0 and high >= len(content):
            high = region.end - region.start
            low = min(low, len(content.rstrip(same)))
        low = max([low, *(end for _, end in region.unspecified if end <= offset)])
        high = min([high, *(start for start, _ in region.unspecified if start > offset)])
        return region.start + low, region.start + high

    def fixed_bytes(self, address: int, size: int) -> bytes | None:
        """`size` bytes that no run can change, or None if they are not all known, of one region and unwritable."""
        region = self.region_at(address)
        if region is None or region.permissions & WRITE or address + size > region.start + len(region.content):
            return None
        offset = address - region.start
        if any(start < offset + size and offset < end for start, end in region.unspecified):
            return None
        return region.content[offset : offset + size]

    def writable(self, address: int) -> bool:
        region = self.region_at(address)
        return region is not None and bool(region.permissions & WRITE)

    def check(self, address: int, size: int, needed: int) -> None:
        """Raises the Fault an access at a constant address has, if any."""
        for offset in range(size):
            where = (address + offset) & self.mask
            region = self.region_at(where)
            if region is None:
                raise Fault(missing(needed), where, size)
            if not region.permissions & needed:
                raise Fault(denied(needed), where, size)

    def ranges(self, needed: int) -> list[tuple[int, int]]:
        """Where an access of a kind is permitted: start and end of each range."""
        return self._ranges[needed]

    def allowed(self, address: Term, size: int, needed: int) -> Term:
        """The condition under which an access of `size` bytes at `address` does not fault.

        Where regions reach both ends of the address space, an access may wrap around.
        """
        width, ranges = self.address_bits, self._ranges[needed]
        ways = [
            conj([ule(const(start, width), address), ule(address, const(end - size, width))])
            for start, end in ranges
            if end - start >= size
        ]
        if size > 1 and ranges and ranges[0][0] == 0 and ranges[-1][1] == self.mask + 1:
            ways.append(ule(const(self.mask - size + 2, width), address))
        return disj(ways)

    def _merged(self, needed: int) -> list[tuple[int, int]]:
        """Maximal address ranges with a permission; adjacent regions are one range."""
        ranges: list[tuple[int, int]] = []
        for spec in self.regions:
            if not spec.permissions & needed or not spec.size:
                continue
            if ranges and ranges[-1][1] == spec.start:
                ranges[-1] = (ranges[-1][0], spec.end)
            else:
                ranges.append((spec.start, spec.end))
        return ranges
