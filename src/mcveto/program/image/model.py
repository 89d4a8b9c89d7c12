"""The loaded program: segments of bytes with permissions, and what is known about addresses in them.

An `Image` is the memory of the program at its entry, as far as the file determines it. Bytes in `unspecified`
are mapped but not known (an import's address, a relocation that was not applied): whoever reads the image
must treat them as arbitrary. Symbols and function starts only help humans to name addresses; no verdict may
depend on them.
"""

import enum
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass

ISAS = (
    "x86-32",
    "x86-64",
    "ppc32-be",
    "ppc32-le",
    "arm",
    "arm-be",
    "arm-be8",
    "aarch64",
    "riscv32",
    "riscv64",
    "mips32-be",
    "mips32-le",
)
_BIG_ENDIAN = frozenset({"ppc32-be", "arm-be", "arm-be8", "mips32-be"})
ARM = ("arm", "arm-be", "arm-be8")
_WIDE = frozenset({"x86-64", "aarch64", "riscv64"})
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+", re.ASCII)


def address_bits(isa: str) -> int:
    return 64 if isa in _WIDE else 32


def is_big_endian(isa: str) -> bool:
    return isa in _BIG_ENDIAN


class Permission(enum.IntFlag):
    """What the program may do with a segment; the bits are those of ELF's p_flags."""

    READ = 4
    WRITE = 2
    EXECUTE = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """`size` bytes from `address`: first `content`, then zeros."""

    address: int
    size: int
    content: bytes = field(repr=False)
    permissions: Permission
    name: str

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class Image:
    """A loaded binary. `segments` are sorted and disjoint; `unspecified` holds half-open address ranges."""

    path: str
    sha256: str
    format: str
    isa: str
    entry: int | None
    base: int
    segments: tuple[Segment, ...]
    symbols: Mapping[str, int] = field(default_factory=dict, repr=False)
    imports: Mapping[str, int] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    unspecified: tuple[tuple[int, int], ...] = ()
    thumb_entry: bool = False
    thumb_symbols: frozenset[str] = frozenset()
    import_area: tuple[int, int] | None = None
    """Addresses that stand for the undefined symbols of a relocatable object. Nothing is mapped there, and
    yet no access is a fault: code and data exist in another module and are simply not known."""
    frame_table: tuple[int, int] | None = None
    """Address range of the `.eh_frame` data, when there is one."""
    code_starts: tuple[int, ...] = ()
    """Where code begins according to section headers and the dynamic table, as far as the file has them; a hint. An odd
    address of an ARM file is Thumb."""
    text: str = field(default="", repr=False)
    """The source of which this is the translation, where there is one (While programs)."""
    objects: Mapping[int, int] = field(default_factory=dict, repr=False)
    """Where data objects begin and how large they are, as far as a symbol table says."""
    _cache: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def function_starts(self) -> tuple[int, ...]:
        """Starts of functions according to the unwind tables (stripped files have them too). Display only."""
        if "function_starts" not in self._cache:
            from mcveto.program.image.function_starts import function_starts

            self._cache["function_starts"] = function_starts(self)
        return self._cache["function_starts"]

    def segment_at(self, address: int) -> Segment | None:
        index = bisect_right(self.segments, address, key=lambda segment: segment.address) - 1
        if index < 0 or address >= self.segments[index].end:
            return None
        return self.segments[index]

    def is_specified(self, address: int, size: int = 1) -> bool:
        """Whether no byte of the range is in `unspecified`."""
        index = bisect_right(self.unspecified, address, key=lambda span: span[1])
        return index == len(self.unspecified) or self.unspecified[index][0] >= address + size

    def read(self, address: int, size: int) -> bytes | None:
        """The initial bytes of a range, or None unless all of them are mapped and specified."""
        if not self.is_specified(address, size):
            return None
        result = b""
        while size > 0:
            segment = self.segment_at(address)
            if segment is None:
                return None
            offset = address - segment.address
            length = min(size, segment.size - offset)
            result += segment.content[offset : offset + length].ljust(length, b"\0")
            address, size = address + length, size - length
        return result

    def resolve(self, text: str) -> int:
        """The address a user wrote: `0x…`, decimal, `symbol`, `symbol+off` or `module+off`.

        `module` is "image" or the file's name with or without its suffix; `module+off` counts from `base`. A
        symbol of that name comes first.
        """
        text = text.strip()
        if _NUMBER.fullmatch(text):
            return self._within_address_space(_number(text), text)
        if text in self.symbols:
            return self.symbols[text]
        name, plus, offset_text = text.rpartition("+")
        name, offset_text = name.strip(), offset_text.strip()
        if plus and _NUMBER.fullmatch(offset_text):
            offset = _number(offset_text)
            if name in self.symbols:
                return self._within_address_space(self.symbols[name] + offset, text)
            if name in self._module_names():
                return self._within_address_space(self.base + offset, text)
        else:
            name = text
            if name in self._module_names():
                return self.base
        raise self._unknown_symbol(name)

    def require_address(self, address: int, what: str) -> None:
        """Fail unless `address` lies in a segment."""
        if self.segment_at(address) is None:
            ranges = ", ".join(f"{s.address:#x}-{s.end:#x}" for s in self.segments[:6])
            more = ", …" if len(self.segments) > 6 else ""
            raise UsageError(f"{what} {address:#x} is outside the image", f"mapped: {ranges or 'nothing'}{more}")

    def _module_names(self) -> frozenset[str]:
        path = Path(self.path)
        return frozenset({"image", path.stem, path.name})

    def _within_address_space(self, address: int, text: str) -> int:
        bits = address_bits(self.isa)
        if address >= 1 << bits:
            raise UsageError(f"address {text} does not fit into the {bits} bits of {self.isa}")
        return address

    def _unknown_symbol(self, name: str) -> UsageError:
        message = f"unknown symbol '{name[:200]}' in {self.path}"
        if not self.symbols:
            return UsageError(message, "the file has no symbols: give an address such as 0x1234 or image+0x10")
        import difflib

        # Comparing with every name of a huge table would take minutes.
        candidates = sorted(self.symbols)[:20_000]
        nearest = difflib.get_close_matches(name[:200], candidates, n=3, cutoff=0.5)
        return UsageError(message, f"nearest: {', '.join(nearest)}" if nearest else "no similar symbol")


def _number(text: str) -> int:
    if len(text) > 40:
        raise UsageError(f"address {text[:40]}… is too long")
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text, 10)
