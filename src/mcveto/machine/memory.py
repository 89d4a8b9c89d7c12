"""Concrete byte-addressed memory: regions with permissions.

An access outside every region, or without the permission, is a fault; that is what the machine does, and it is what
makes things provable. Accesses that span two adjacent regions work byte by byte, as on hardware; addresses wrap
around at the top of the address space.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from mcveto.late_methods import dataclass

from .faults import Fault, FaultKind

READ, WRITE, EXECUTE = 4, 2, 1

_MISSING = {READ: FaultKind.UNMAPPED_READ, WRITE: FaultKind.UNMAPPED_WRITE, EXECUTE: FaultKind.UNMAPPED_EXECUTE}
_DENIED = {READ: FaultKind.READ_PERMISSION, WRITE: FaultKind.WRITE_PERMISSION, EXECUTE: FaultKind.EXECUTE_PERMISSION}


def missing(needed: int) -> FaultKind:
    """The fault of an access where nothing is mapped."""
    return _MISSING[needed]


def denied(needed: int) -> FaultKind:
    """The fault of an access without the permission it needs."""
    return _DENIED[needed]


@dataclass(frozen=True, slots=True)
class RegionSpec:
    """A region before it has contents: `content` is its initial prefix, the rest of `size` is zero.

    Ranges in `unspecified` (offsets) hold bytes nobody knows: a concrete run picks them, symbolic execution makes them
    variables.
    """

    name: str
    start: int
    size: int
    permissions: int
    content: bytes = b""
    unspecified: tuple[tuple[int, int], ...] = ()

    @property
    def end(self) -> int:
        return self.start + self.size


class Region:
    __slots__ = ("data", "end", "name", "permissions", "start")

    def __init__(self, spec: RegionSpec) -> None:
        self.name = spec.name
        self.start = spec.start
        self.end = spec.end
        self.permissions = spec.permissions
        self.data = bytearray(spec.content)
        self.data.extend(bytes(spec.size - len(spec.content)))

    def __repr__(self) -> str:
        bits = "".join(letter if self.permissions & bit else "-" for letter, bit in zip("rwx", (4, 2, 1), strict=True))
        return f"<{self.name} {self.start:#x}-{self.end:#x} {bits}>"


class Memory:
    """Regions in address order. `enforce=False` ignores permissions (not mappedness)."""

    def __init__(
        self, regions: Iterable[RegionSpec], address_bits: int, big_endian: bool, enforce: bool = True
    ) -> None:
        self.regions = [Region(spec) for spec in sorted(regions, key=lambda spec: spec.start)]
        for below, above in zip(self.regions, self.regions[1:], strict=False):
            if below.end > above.start:
                raise ValueError(f"regions {below} and {above} overlap")
        self._starts = [region.start for region in self.regions]
        self._mask = (1 << address_bits) - 1
        self._order: str = "big" if big_endian else "little"
        self.enforce = enforce

    def region_of(self, address: int) -> Region | None:
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self.regions[at].end:
            return self.regions[at]
        return None

    def load(self, address: int, size: int) -> int:
        region = self.region_of(address)
        if region is not None and address + size <= region.end and (region.permissions & READ or not self.enforce):
            at = address - region.start
            return int.from_bytes(region.data[at : at + size], self._order)  # type: ignore[arg-type]
        return int.from_bytes(self._read_bytes(address, size, READ), self._order)  # type: ignore[arg-type]

    def store(self, address: int, value: int, size: int) -> None:
        region = self.region_of(address)
        content = value.to_bytes(size, self._order)  # type: ignore[arg-type]
        if region is not None and address + size <= region.end and (region.permissions & WRITE or not self.enforce):
            at = address - region.start
            region.data[at : at + size] = content
            return
        # The whole access is checked before any byte changes.
        for (part, at), byte in zip(list(self._bytes(address, size, WRITE)), content, strict=True):
            part.data[at] = byte

    def fetch(self, address: int, size: int) -> bytes:
        """Up to `size` executable bytes at `address`; at least one, or a fault."""
        region = self.region_of(address)
        if region is not None and address + size <= region.end and (region.permissions & EXECUTE or not self.enforce):
            at = address - region.start
            return bytes(region.data[at : at + size])
        found = bytearray()
        try:
            for part, at in self._bytes(address, size, EXECUTE):
                found.append(part.data[at])
        except Fault:
            if not found:
                raise
        return bytes(found)

    def peek(self, address: int, size: int) -> bytes | None:
        """The bytes regardless of permissions, or None where something is unmapped."""
        found = bytearray()
        for offset in range(size):
            region = self.region_of((address + offset) & self._mask)
            if region is None:
                return None
            found.append(region.data[((address + offset) & self._mask) - region.start])
        return bytes(found)

    def poke(self, address: int, content: bytes) -> None:
        """Writes regardless of permissions; every byte must be mapped."""
        whole = self.region_of(address)
        if whole is not None and address + len(content) <= whole.end:
            whole.data[address - whole.start : address - whole.start + len(content)] = content
            return
        for offset, byte in enumerate(content):
            region = self.region_of((address + offset) & self._mask)
            if region is None:
                raise Fault(FaultKind.UNMAPPED_WRITE, address + offset, 1)
            region.data[((address + offset) & self._mask) - region.start] = byte

    def _read_bytes(self, address: int, size: int, needed: int) -> bytes:
        return bytes(region.data[at] for region, at in self._bytes(address, size, needed))

    def _bytes(self, address: int, size: int, needed: int) -> Iterator[tuple[Region, int]]:
        for offset in range(size):
            where = (address + offset) & self._mask
            region = self.region_of(where)
            if region is None:
                raise Fault(missing(needed), where, size)
            if self.enforce and not region.permissions & needed:
                raise Fault(denied(needed), where, size)
            yield region, where - region.start
