"""What a forbidden access touches, in words and as data: the region, and how far the access is from where it may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcveto.machine.emulator import Outcome
from mcveto.machine.faults import Fault, FaultKind
from mcveto.program.program import Program

if TYPE_CHECKING:
    from mcveto.check.object_crossings import Crossing

Span = tuple[int, int]
_NULL_PAGE = 4096
_EXECUTION = (FaultKind.UNMAPPED_EXECUTE, FaultKind.EXECUTE_PERMISSION)


@dataclass
class Frame:
    """A pending call: where its return address is saved, if that is known, and where the call was made."""

    slot: int | None
    called_at: int | None
    top: int = 0
    """The stack pointer at the entry of the function; registers of the caller are saved from `low` up to there."""
    low: int = 0
    entry: int | None = None


@dataclass
class Block:
    """A block of the heap."""

    base: int
    size: int
    live: bool
    made_at: int | None


@dataclass(frozen=True, slots=True)
class Words:
    """The predicate of a sentence whose subject is the instruction, and the same as data."""

    reason: str
    facts: dict[str, object] = field(default_factory=dict)


class Surroundings:
    """The regions of a program, to say what an address is near to; `blocks` grows with the run."""

    def __init__(
        self, program: Program, stack: Span, heap: list[Span], hidden: list[Span], blocks: list[Block]
    ) -> None:
        self._program = program
        self._stack = stack
        self._heap = heap
        self._blocks = blocks
        self._regions = [r for r in program.space.regions if r.size and (r.start, r.end) not in hidden]

    def unmapped(self, address: int, size: int, is_write: bool, fault: Fault | None) -> Words:
        where = fault.address if fault is not None and fault.address is not None else address
        region = self._program.space.region_at(where)
        if region is not None and fault is not None:
            kind, lacking = "permission", "writable" if is_write else "readable"
            text = f"in {self._region_name(region.start)} {_span(region.start, region.end)}, which is not {lacking}"
            return self._words(address, size, is_write, kind, region.start, region.size, 0, text)
        if address < _NULL_PAGE:
            text = "a null pointer" if address == 0 else f"{_bytes(address)} from a null pointer"
            return self._words(address, size, is_write, "null", 0, 0, address, text)
        return self._beside(address, size, is_write)

    def _beside(self, address: int, size: int, is_write: bool) -> Words:
        """Where nothing is mapped: the nearest region."""
        nearest, distance, side = None, 0, ""
        for region in self._regions:
            past, before = address + size - region.end, region.start - address
            for gap, there in ((past, "past the end of"), (before, "before the start of")):
                if gap > 0 and (nearest is None or gap < distance):
                    nearest, distance, side = region, gap, there
        if nearest is None:
            return self._words(address, size, is_write, "unmapped", 0, 0, 0, "where nothing is mapped")
        name = f"{self._region_name(nearest.start)} {_span(nearest.start, nearest.end)}"
        text = f"where nothing is mapped, {_bytes(distance)} {side} {name}"
        return self._words(address, size, is_write, "unmapped", nearest.start, nearest.size, distance, text)

    def outside_blocks(self, address: int, size: int, is_write: bool) -> Words:
        for block in self._blocks:
            if not block.live and block.base <= address < block.base + block.size:
                text = (
                    f"{_bytes(address - block.base)} into the freed block {block.base:#x} of {_bytes(block.size)}: "
                    "use after free"
                )
                return self._words(
                    address, size, is_write, "freed heap block", block.base, block.size, address - block.base, text
                )
        best: tuple[int, str, Block] | None = None
        for block in self._blocks:
            if block.live:
                past, before = address + size - (block.base + block.size), block.base - address
                gap, side = (past, "past the end of") if past > 0 else (before, "before the start of")
                if best is None or gap < best[0]:
                    best = gap, side, block
        if best is None:
            return self._words(address, size, is_write, "heap", 0, 0, 0, "in the heap, where no block is live")
        gap, side, block = best
        text = f"{_bytes(gap)} {side} the heap block {block.base:#x} of {_bytes(block.size)}"
        return self._words(address, size, is_write, "heap block", block.base, block.size, gap, text)

    def bad_free(self, name: str, pointer: int) -> Words:
        dead = next((block for block in self._blocks if block.base == pointer), None)
        if dead is not None:
            text = f"gets {pointer:#x}, a block of {_bytes(dead.size)} that was freed before: double free"
            region = {"kind": "freed heap block", "start": dead.base, "size": dead.size}
            return Words(text, {"access": name, "address": pointer, "size": 0, "region": region, "distance": 0})
        inside = next((b for b in self._blocks if b.base <= pointer < b.base + b.size), None)
        distance = 0 if inside is None else pointer - inside.base
        text = f"gets {pointer:#x}, which is no block of the heap: invalid free"
        region = {"kind": "not a heap block", "start": None, "size": None}
        if inside is not None:
            region = {"kind": "heap block", "start": inside.base, "size": inside.size}
            text = f"gets {pointer:#x}, {_bytes(distance)} into the block {inside.base:#x}: invalid free"
        return Words(text, {"access": name, "address": pointer, "size": 0, "region": region, "distance": distance})

    def return_address(self, address: int, size: int, is_write: bool, frame: Frame, word: int) -> Words:
        assert frame.slot is not None
        whose = "of the entry" if frame.called_at is None else f"of the call at {frame.called_at:#x}"
        distance = address - frame.slot
        text = f"the return address {whose}, saved at {frame.slot:#x}"
        return self._words(address, size, is_write, "return address", frame.slot, word, distance, text)

    def saved_register(self, address: int, size: int, is_write: bool, frame: Frame, word: int) -> Words:
        whose = "of the entry" if frame.entry is None else f"of the function at {frame.entry:#x}"
        distance = max(address, frame.low) - frame.low
        count = (frame.top - frame.low) // word
        what = "the saved register" if count == 1 else f"the {count} saved registers"
        text = f"{what} {whose}, saved at {_span(frame.low, frame.top)}"
        extent = frame.top - frame.low
        return self._words(address, size, is_write, "saved registers", frame.low, extent, distance, text)

    def below(self, address: int, size: int, is_write: bool, lowest: int) -> Words:
        distance = lowest - address
        text = f"on the stack, {_bytes(distance)} below all that is in use ({lowest:#x})"
        return self._words(address, size, is_write, "below the stack pointer", lowest, 0, distance, text)

    def fault(self, outcome: Outcome, size: int) -> Words:
        assert outcome.fault is not None
        label, address = outcome.fault.label, outcome.address
        if outcome.fault in _EXECUTION:
            at = address if address is not None else outcome.pc
            words = self._beside(at, 1, False) if outcome.fault is FaultKind.UNMAPPED_EXECUTE else None
            where = "null" if at < _NULL_PAGE else words.facts["region"] if words is not None else None
            facts: dict[str, object] = {"fault": label, "address": at, "region": where}
            return Words(f"goes to {at:#x}, which cannot be executed ({label})", facts)
        if address is not None:
            is_write = outcome.fault in (FaultKind.UNMAPPED_WRITE, FaultKind.WRITE_PERMISSION)
            words = self.unmapped(address, max(size, 1), is_write, Fault(outcome.fault, address))
            return Words(words.reason, {"fault": label, **words.facts})
        return Words(f"faults: {label}", {"fault": label})

    def _region_name(self, start: int) -> str:
        if start == self._stack[0]:
            return "the stack"
        if any(start == low for low, _ in self._heap):
            return "the heap"
        region = self._program.space.region_at(start)
        return f"segment {region.name}" if region is not None and region.name != "image" else "the image"

    def _words(
        self, address: int, size: int, is_write: bool, kind: str, start: int, extent: int, distance: int, text: str
    ) -> Words:
        return _access_words(address, size, is_write, kind, start, extent, distance, text)


def crossing_words(item: Crossing) -> Words:
    """Of an access that leaves its object."""
    side = f"{_bytes(item.beyond)} past the end of" if item.beyond > 0 else f"{_bytes(-item.beyond)} before"
    whose = "" if item.function is None else f" of the function at {item.function:#x}"
    text = f"{side} the variable {_span(item.low, item.low + item.extent)}{whose}"
    distance = abs(item.beyond)
    words = _access_words(item.address, item.size, item.is_write, "variable", item.low, item.extent, distance, text)
    return words if item.function is None else Words(words.reason, {**words.facts, "function": item.function})


def _access_words(
    address: int, size: int, is_write: bool, kind: str, start: int, extent: int, distance: int, text: str
) -> Words:
    verb = "writes" if is_write else "reads"
    facts: dict[str, object] = {
        "access": "write" if is_write else "read",
        "address": address,
        "size": size,
        "region": {"kind": kind, "start": start, "size": extent},
        "distance": distance,
    }
    return Words(f"{verb} {_bytes(size)} at {address:#x}: {text}", facts)


def _bytes(count: int) -> str:
    return f"{count} byte{'' if count == 1 else 's'}"


def _span(start: int, end: int) -> str:
    return f"{start:#x}-{end:#x}"
