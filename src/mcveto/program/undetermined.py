"""What the file does not determine: undefined symbols, cells the system's loader fills in, missing code bytes.

None of it may end a run as a fault, because nobody knows what is there; such a run is *unsupported*.

- A relocatable object's undefined symbols have addresses in the image's import area, where nothing is mapped.
- Unspecified bytes of the image (import cells, relocations that cannot be applied) hold *markers* in a concrete run:
  word k holds an address of an unmapped area of ours. Following it, as code or as data, is recognised, whatever the
  name of the import; names are only for the message.
- An instruction that has an unspecified byte is replaced by one that stops the run. Which addresses that concerns is
  found by decoding the known bytes in front of the unknown ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from mcveto.machine.emulator import Outcome
from mcveto.machine.faults import FaultKind, Unsupported
from mcveto.machine.isa import Decoder
from mcveto.machine.pcode import Instruction, Op, Space
from mcveto.program.entry_state import GUARD, Span, free_area
from mcveto.program.image import Image, Permission

MARKER_STRIDE = 16
MAX_MARKERS = 1 << 16
# Data of an imported object may reach this far behind the address that stands for it.
_REACH = 1 << 20
_LONGEST_STUB = 32
_MAX_STUBS = 5000
_FAULTS = {
    FaultKind.UNMAPPED_READ: "read of",
    FaultKind.UNMAPPED_WRITE: "write to",
    FaultKind.UNMAPPED_EXECUTE: "jump to",
}


class Undetermined:
    def __init__(self, image: Image, decoder: Decoder, stack: Span) -> None:
        self._image = image
        self._decoder = decoder
        self._row = decoder.row
        self._stack = stack
        word = decoder.row.address_bytes
        self._first_word: list[int] = []
        words = 0
        for start, end in image.unspecified:
            self._first_word.append(words)
            words += -(-(end - start) // word)
        self.bytes = sum(end - start for start, end in image.unspecified)
        self._names = {address: name for name, address in sorted(image.imports.items(), reverse=True)}
        self._named = sorted(self._names)
        occupied = [(segment.address, segment.end) for segment in image.segments] + [stack]
        if image.import_area is not None:
            occupied.append(image.import_area)
        self.marker_area: Span | None = None
        if words:
            size = min(words, MAX_MARKERS) * MARKER_STRIDE + _REACH
            low = free_area(occupied, size, decoder.row.address_bits)
            self.marker_area = (low, low + size)
        self.occupied = [*occupied, self.marker_area] if self.marker_area else occupied
        self.word_bytes, self.is_big_endian = word, decoder.row.big_endian
        self._closed: list[Span] = []

    def close(self, spans: Sequence[Span]) -> None:
        """Nothing is mapped at these addresses of the image any more, because nobody knows what is there."""
        self._closed = list(spans)

    def byte(self, address: int) -> int | None:
        """The byte a concrete run finds at an unspecified address of the image; None elsewhere."""
        marker = self.marker_of(address)
        if marker is None:
            return None
        at = self._range_of(address)
        assert at is not None
        word = self._row.address_bytes
        offset = (address - self._image.unspecified[at][0]) % word
        return marker.to_bytes(word, "big" if self._row.big_endian else "little")[offset]

    def marker_of(self, address: int) -> int | None:
        """The made-up value of the unspecified word that holds `address`."""
        at = self._range_of(address)
        if at is None or self.marker_area is None:
            return None
        number = self._first_word[at] + (address - self._image.unspecified[at][0]) // self._row.address_bytes
        return self.marker_area[0] + number % MAX_MARKERS * MARKER_STRIDE

    def _range_of(self, address: int) -> int | None:
        at = bisect_right(self._image.unspecified, address, key=lambda span: span[0]) - 1
        return at if at >= 0 and address < self._image.unspecified[at][1] else None

    def explain(self, outcome: Outcome, came_from: int | None) -> Outcome:
        """`outcome`, or unsupported if it is a fault only because another module is missing."""
        action = _FAULTS.get(outcome.fault) if outcome.fault is not None else None
        address = outcome.address if outcome.address is not None else outcome.pc
        if outcome.kind != "fault" or action is None or not self.is_foreign(address):
            return outcome
        where = f" at {outcome.pc:#x}" if outcome.fault is not FaultKind.UNMAPPED_EXECUTE else ""
        detail = f"{action} {self.describe(address, came_from)}{where}"
        return Outcome("unsupported", outcome.pc, None, address, detail, outcome.steps)

    def is_foreign(self, address: int) -> bool:
        """Whether an access to an unmapped address may belong to another module."""
        return any(start <= address < end for start, end in self.foreign_ranges())

    def foreign_ranges(self) -> list[Span]:
        """Where what is not mapped may belong to another module."""
        ranges = [self.marker_area] if self.marker_area is not None else []
        ranges += self._closed
        if self._image.import_area is not None:
            start = self._image.import_area[0]
            end = self._stack[0] - GUARD if self._stack[0] > start else self._row.address_mask + 1
            ranges.append((start - 4096, end))
        return ranges

    def describe(self, address: int, came_from: int | None) -> str:
        name: str | None = None
        area = self._image.import_area
        if area is not None and area[0] <= address < area[1]:
            name = self._nearest(address, MARKER_STRIDE)
        elif self.marker_area is not None and self.marker_area[0] <= address < self.marker_area[1]:
            name = self._import_with_marker(address - (address - self.marker_area[0]) % MARKER_STRIDE)
            if name is None and came_from is not None:
                name = self._nearest(came_from, _LONGEST_STUB)
        elif (marker := self.marker_of(address)) is not None:
            name = self._import_with_marker(marker)
        return f"import {name}" if name else f"something outside the file ({address:#x})"

    def import_address(self, name: str) -> int:
        """Where calls of an import end up: the marker in its cell if the cell is known, else its stub or stand-in."""
        address = self._image.imports[name]
        marker = self._marker_behind(address)
        return address if marker is None else marker

    def _nearest(self, address: int, reach: int) -> str | None:
        at = bisect_right(self._named, address) - 1
        return self._names[self._named[at]] if at >= 0 and address < self._named[at] + reach else None

    def _import_with_marker(self, marker: int) -> str | None:
        named = self._named[:_MAX_STUBS]
        return next((self._names[address] for address in named if self._marker_behind(address) == marker), None)

    def _marker_behind(self, address: int) -> int | None:
        """The marker of a cell, or of the cell that the one-instruction stub at `address` (x86) jumps through."""
        marker = self.marker_of(address)
        segment = self._image.segment_at(address)
        if marker is not None or segment is None or not segment.permissions & Permission.EXECUTE:
            return marker
        code = self._image.read(address, min(self._row.longest_unit(address), segment.end - address))
        try:
            ops = self._decoder.decode(address, code).ops if code else ()
        except Unsupported:
            return None
        if not ops or ops[-1].opcode != "BRANCHIND":
            return None
        operands = [v.offset for op in ops for v in op.inputs if v.space in (Space.RAM, Space.CONST)]
        return next((found for found in map(self.marker_of, operands) if found is not None), None)

    def code_hooks(self) -> dict[int, Instruction]:
        """For every program counter whose instruction needs an unspecified byte: one that stops the run."""
        hooks: dict[int, Instruction] = {}
        for start, end in self._image.unspecified:
            segment = self._image.segment_at(start)
            if segment is None or not segment.permissions & Permission.EXECUTE:
                continue
            longest = 18 if self._row.mode_mask else self._row.max_instruction
            for address in range(max(segment.address, start - longest + 1), min(end, segment.end)):
                for pc in self._pointers(address):
                    if address >= start or not self._fits(pc, address, start):
                        hooks[pc] = _stop(pc)
        return hooks

    def _pointers(self, address: int) -> Iterator[int]:
        if address % self._row.alignment == 0:
            yield address
            if self._row.mode_mask:
                yield address | 1

    def _fits(self, pc: int, address: int, end: int) -> bool:
        """Whether the instruction at `pc` ends before the unspecified byte at `end`."""
        known = self._image.read(address, end - address)
        if known is None:
            return False
        try:
            self._decoder.decode(pc, known)
        except Unsupported:
            # Too short, or not an instruction at all: with the following bytes made up it is one or the other.
            return False
        return True


def _stop(pc: int) -> Instruction:
    return Instruction(pc, b"", (Op("on code that the file does not determine", None, ()),), "unknown", "code")
