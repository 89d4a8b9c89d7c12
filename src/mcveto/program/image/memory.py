"""The memory under construction: loaders map segments, relocations patch them, `freeze` checks and sorts.

Sizes come from hostile headers, so nothing is allocated because a header says so: `content` is a slice of the
file, the rest of a segment is a number. Two segments that claim the same byte are refused; there is no rule
by which one wins.
"""

from bisect import bisect_right
from dataclasses import field

from mcveto.errors import InputFileError, one_line
from mcveto.late_methods import dataclass
from mcveto.program.image.model import Permission, Segment

MAX_MAPPED_BYTES = 1 << 30
MAX_ZERO_FILL_PATCH = 1 << 20
MAX_SEGMENTS = 70_000
MAX_NOTES_OF_A_KIND = 8


@dataclass(slots=True)
class _Region:
    address: int
    size: int
    content: bytearray
    permissions: Permission
    name: str


@dataclass(slots=True)
class Notes:
    """What the user must know; more than a few of one kind are counted instead of listed."""

    _by_kind: dict[str, list[str]] = field(default_factory=dict)

    def add(self, text: str, kind: str | None = None) -> None:
        text = one_line(text)
        listed = self._by_kind.setdefault(kind or text, [])
        if kind or not listed:
            listed.append(text)

    def freeze(self) -> tuple[str, ...]:
        lines: list[str] = []
        for kind, listed in self._by_kind.items():
            lines += listed[:MAX_NOTES_OF_A_KIND]
            if len(listed) > MAX_NOTES_OF_A_KIND:
                lines.append(f"{kind}: {len(listed) - MAX_NOTES_OF_A_KIND} more like this")
        return tuple(lines)


class Memory:
    """Regions by address, with the ranges whose bytes are not known."""

    def __init__(self, path: str, bits: int, file_size: int) -> None:
        self._path = path
        self._bits = bits
        # Headers can name the same bytes of the file again and again; a few times is legitimate.
        self._content_budget = 4 * file_size + (1 << 20)
        self._regions: list[_Region] = []
        self._mapped = 0
        self._unspecified: list[tuple[int, int]] = []

    def map(self, address: int, size: int, content: bytes, permissions: Permission, name: str) -> None:
        """Add a segment; empty ones are dropped."""
        if size == 0:
            return
        if len(content) > size:
            raise InputFileError(f"{self._path}: segment {name} has more bytes in the file than in memory")
        if address < 0 or address + size > 1 << self._bits:
            raise InputFileError(
                f"{self._path}: segment {name} ({address:#x}, {size:#x} bytes) exceeds {self._bits} bits"
            )
        self._mapped += size
        if self._mapped > MAX_MAPPED_BYTES:
            raise InputFileError(f"{self._path}: declares {self._mapped} bytes of memory", "the limit is 1 GiB")
        self._content_budget -= len(content)
        if self._content_budget < 0:
            raise InputFileError(f"{self._path}: its segments use the same bytes of the file too often")
        if len(self._regions) >= MAX_SEGMENTS:
            raise InputFileError(f"{self._path}: declares more than {MAX_SEGMENTS} segments")
        self._regions.append(_Region(address, size, bytearray(content), permissions, name))

    def seal(self) -> None:
        """Sort the regions and refuse overlaps; afterwards reads and patches work."""
        self._regions.sort(key=lambda region: (region.address, region.size))
        for first, second in zip(self._regions, self._regions[1:], strict=False):
            if first.address + first.size > second.address:
                raise InputFileError(
                    f"{self._path}: segments {first.name} and {second.name} overlap at {second.address:#x}"
                )

    def read(self, address: int, size: int) -> bytes | None:
        """`size` bytes of one region, or None when they are not mapped."""
        region = self._region_of(address, size)
        if region is None:
            return None
        offset = address - region.address
        return bytes(region.content[offset : offset + size]).ljust(size, b"\0")

    def patch(self, address: int, data: bytes) -> bool:
        """Overwrite bytes; False when they are not mapped (or lie absurdly far into zero-filled memory)."""
        region = self._region_of(address, len(data))
        if region is None:
            return False
        offset = address - region.address
        missing = offset + len(data) - len(region.content)
        if missing > MAX_ZERO_FILL_PATCH:
            return False
        if missing > 0:
            region.content.extend(bytes(missing))
        region.content[offset : offset + len(data)] = data
        return True

    def forget(self, address: int, size: int) -> None:
        """Declare bytes unspecified; the part of the range that is not mapped is ignored."""
        for region in self._regions_touching(address, size):
            start, end = max(address, region.address), min(address + size, region.address + region.size)
            if start < end:
                self._unspecified.append((start, end))

    def content_end(self, address: int) -> int | None:
        """Where the bytes from the file end in the segment of `address`."""
        region = self._region_of(address, 1)
        return None if region is None else region.address + len(region.content)

    def executable_content(self) -> list[tuple[int, bytes]]:
        return [(r.address, bytes(r.content)) for r in self._regions if r.permissions & Permission.EXECUTE]

    @property
    def lowest(self) -> int:
        return min((region.address for region in self._regions), default=0)

    @property
    def end(self) -> int:
        return max((region.address + region.size for region in self._regions), default=0)

    def freeze(self) -> tuple[Segment, ...]:
        return tuple(
            Segment(region.address, region.size, bytes(region.content), region.permissions, region.name)
            for region in self._regions
        )

    def unspecified(self) -> tuple[tuple[int, int], ...]:
        merged: list[tuple[int, int]] = []
        for start, end in sorted(self._unspecified):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return tuple(merged)

    def _region_of(self, address: int, size: int) -> _Region | None:
        index = bisect_right(self._regions, address, key=lambda region: region.address) - 1
        if index < 0 or address + size > self._regions[index].address + self._regions[index].size:
            return None
        return self._regions[index]

    def _regions_touching(self, address: int, size: int) -> list[_Region]:
        index = max(bisect_right(self._regions, address, key=lambda region: region.address) - 1, 0)
        touching = []
        while index < len(self._regions) and self._regions[index].address < address + size:
            touching.append(self._regions[index])
            index += 1
        return touching
