"""Which bytes are code: everything that is executable, one way or the other.

Recursive traversal from the entry, symbols, unwind tables and constants that look like code addresses (in data, and in
the operands of instructions found so far); then a linear sweep over what it left. An executable byte is in the end part
of a translated instruction, or listed in `lost` with a reason. Where a jump ends that goes through a register is not
analysed: `targets` holds the addresses a dispatch should know.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcveto.machine.faults import Unsupported
from mcveto.machine.isa import Decoder
from mcveto.machine.memory import EXECUTE, RegionSpec
from mcveto.machine.pcode import Instruction, Space, Transfer
from mcveto.program.program import Program

from .c_instruction import InstructionPrinter, Translated
from .constants import after, table_behind

# So many zero bytes, or zeros up to the end, are padding and no code, whatever they decode to.
_PADDING = 16
_MAX_SCANNED = 64 << 20
# Smaller constants are hardly ever addresses.
_LOWEST = 0x1000
# The decoder remembers what it has decoded; a large program would fill the memory.
_FORGET_EVERY = 1 << 14


@dataclass(slots=True)
class Code:
    """Translated instructions by program counter, and what is known about them."""

    instructions: dict[int, Translated] = field(default_factory=dict)
    starts: set[int] = field(default_factory=set)
    """Where procedures start (program counters)."""
    targets: set[int] = field(default_factory=set)
    """Where a jump through a register may lead."""
    lost: list[tuple[int, int, str]] = field(default_factory=list)
    """Executable bytes without a translation: start, end, why."""
    swept: int = 0
    """Instructions that only the linear sweep found."""


class Discovery:
    def __init__(self, program: Program, decoder: Decoder, printer: InstructionPrinter) -> None:
        self._program = program
        self._image = program.image
        self._decoder = decoder
        self._row = decoder.row
        self._printer = printer
        self._regions = [region for region in program.space.regions if region.permissions & EXECUTE]
        self._region_starts = [region.start for region in self._regions]
        self._covered = {region.start: bytearray(region.size) for region in self._regions}
        self._complaints: dict[int, str] = {}
        self._hooks = program.hooks
        self._doubtful: set[int] = set()
        self.code = Code()

    def run(self) -> Code:
        """Finds all code; may be called once."""
        for pc in self._roots():
            self._add_target(pc)
        for pc in sorted(self._program.hooks):
            self.code.starts.add(pc)
            self._follow(pc)
        for pc in sorted(self.code.starts | self.code.targets):
            self._follow(pc)
        for pc in self._constants_in_data():
            if self._is_doubtful(pc, 0):
                self._doubtful.add(pc)
            else:
                self._follow(pc)
        self._sweep()
        for pc in sorted(self._doubtful):
            self._follow(pc)
        self.code.targets &= self.code.instructions.keys()
        self.code.starts &= self.code.instructions.keys()
        return self.code

    def _add_target(self, pc: int, start: bool = True) -> None:
        self.code.targets.add(pc)
        if start:
            self.code.starts.add(pc)

    def _roots(self) -> Iterator[int]:
        yield self._program.entry
        image = self._image
        for name, address in sorted(image.symbols.items()):
            if self._region(address) is not None and address % self._row.alignment == 0:
                pc = address | (self._row.mode_mask if name in image.thumb_symbols else 0)
                if name.startswith((".", "L")) or "@" in name:
                    self.code.targets.add(pc)
                else:
                    yield pc
        for address in sorted({*image.function_starts, *image.code_starts}):
            pc = address | self._mode_near(address)
            place = self._row.code_address(pc)
            if self._region(place) is not None and place % self._row.alignment == 0:
                yield pc

    def _mode_near(self, address: int) -> int:
        """The decoding mode at an address nobody named one for: the entry's."""
        return (address | self._program.entry) & self._row.mode_mask

    def _region(self, address: int) -> RegionSpec | None:
        at = bisect_right(self._region_starts, address) - 1
        return self._regions[at] if at >= 0 and address < self._regions[at].end else None

    def _code_at(self, pc: int) -> bytes:
        """The executable bytes decoding at `pc` may look at."""
        address = self._row.code_address(pc)
        wanted = self._row.longest_unit(pc)
        found = b""
        while wanted > 0:
            region = self._region(address)
            if region is None:
                break
            offset = address - region.start
            length = min(wanted, region.size - offset)
            found += region.content[offset : offset + length].ljust(length, b"\0")
            address, wanted = address + length, wanted - length
        return found

    def _decode(self, pc: int) -> tuple[Instruction, str] | None:
        """The instruction at `pc`, and why it cannot be translated if it cannot."""
        hook = self._hooks.get(pc)
        if hook is not None:
            # A copy: operands are resolved to the cells of our own decoder.
            return Instruction(hook.pc, hook.bytes, hook.ops, hook.mnemonic, hook.operands), ""
        code = self._code_at(pc)
        if not code:
            return None
        if not any(code) and self._is_padding(self._row.code_address(pc)):
            return None
        try:
            return self._decoder.decode(pc, code), ""
        except Unsupported as error:
            outline = self._decoder.outline(pc, code)
            if outline is not None:
                return outline, error.what
            # Encodings are left out so that neighbours can share a line.
            self._complaints[self._row.code_address(pc)] = re.sub(r"\b(0x)?[0-9a-f]{4,}\b", "…", error.what)
            return None

    def _is_padding(self, address: int) -> bool:
        region = self._region(address)
        assert region is not None
        offset = address - region.start
        return not any(region.content[offset : offset + _PADDING])

    def _follow(self, start: int) -> None:
        """Translates everything that direct control flow reaches from `start`."""
        pending: list[tuple[int, dict[int, int]]] = [(start, {})]
        instructions = self.code.instructions
        while pending:
            pc, known = pending.pop()
            if pc in instructions:
                continue
            decoded = self._decode(pc)
            if decoded is None:
                continue
            instruction, refusal = decoded
            if refusal:
                translated = self._printer.trap(instruction, refusal)
            else:
                translated = self._printer.translate(instruction)
            instructions[pc] = translated
            self._cover(pc, instruction)
            if len(instructions) % _FORGET_EVERY == 0:
                self._decoder.forget()
            way = self._printer.way if not refusal else None
            known, made = after(way, known) if way is not None else ({}, set())
            following = pc + instruction.size & self._row.address_mask
            if translated.problem and instruction.size:
                pending.append((following, {}))  # what is behind it is code as well, most likely
            for end in translated.ends():
                if end.transfer is Transfer.CALL:
                    if end.target is not None and end.target != following:
                        self._add_target(end.target)
                        pending.append((end.target, {}))
                    self.code.targets.add(following)
                    pending.append((following, {}))
                elif end.target is not None:
                    pending.append((end.target, known))
            for target in table_behind(way, self._row.code_address(following), self._number_at):
                self.code.targets.add(target)
                pending.append((target, {}))
            direct = {end.target for end in translated.ends()}
            for constant in sorted({*self._constants(instruction), *made} - direct - {following}):
                if constant >= _LOWEST and self._region(self._row.code_address(constant)) is not None:
                    self.code.targets.add(constant)
                    if self._is_doubtful(constant, pc):
                        self._doubtful.add(constant)
                    else:
                        pending.append((constant, {}))

    def _is_doubtful(self, constant: int, mentioned_by: int) -> bool:
        """Whether a constant is more likely the address of data between Thumb code than that of ARM code.

        Followed at once, it would hide the code that is there: its bytes would count as translated.
        """
        mode = self._row.mode_mask
        return bool(mode and not constant & mode and (self._program.entry | mentioned_by) & mode)

    def _number_at(self, address: int, size: int) -> int | None:
        region = self._region(address)
        if region is None:
            return None
        content = region.content[address - region.start : address - region.start + size]
        return int.from_bytes(content, "big" if self._row.big_endian else "little") if len(content) == size else None

    def _constants(self, instruction: Instruction) -> Iterator[int]:
        """Constants among the operands that could be code addresses."""
        for op in instruction.ops:
            if op.opcode in ("BRANCH", "CBRANCH", "CALL", "TRAP"):
                continue
            for varnode in op.inputs:
                fits = varnode.space is Space.CONST and varnode.size == self._row.address_bytes
                if fits and self._row.code_address(varnode.offset) % self._row.alignment == 0:
                    yield varnode.offset

    def _constants_in_data(self) -> Iterator[int]:
        """Aligned words in memory that are addresses of executable bytes: jump tables, function pointers."""
        word = self._row.address_bytes
        order = "big" if self._row.big_endian else "little"
        if not self._regions:
            return
        low, high = self._regions[0].start, max(region.end for region in self._regions)
        scanned = 0
        for region in self._program.space.regions:
            content = region.content
            first = -region.start % word
            if not content or scanned > _MAX_SCANNED:
                continue
            scanned += len(content)
            usable = (len(content) - first) // word * word
            if usable <= 0:
                continue
            view = memoryview(content[first : first + usable]).cast("I" if word == 4 else "Q")
            for value in view:
                if order == "big":
                    value = int.from_bytes(value.to_bytes(word, "little"), "big")
                if not low <= value < high:
                    continue
                address = self._row.code_address(value)
                if self._region(address) is not None and address % self._row.alignment == 0 and address >= _LOWEST:
                    self.code.targets.add(value)
                    yield value

    def _cover(self, pc: int, instruction: Instruction) -> None:
        address = self._row.code_address(pc)
        size = instruction.size
        region = self._region(address)
        if region is None:
            return
        offset = address - region.start
        self._covered[region.start][offset : offset + size] = b"\1" * min(size, region.size - offset)

    def _sweep(self) -> None:
        """Translates what is left in the order of addresses, and lists the rest."""
        for region in self._regions:
            covered = self._covered[region.start]
            position = 0
            while True:
                position = covered.find(0, position)
                if position < 0:
                    break
                position = self._sweep_gap(region, covered, position)

    def _sweep_gap(self, region: RegionSpec, covered: bytearray, start: int) -> int:
        """Sweeps from an uncovered byte to the next covered one; returns where that is."""
        end = covered.find(1, start)
        end = len(covered) if end < 0 else end
        position = start
        fresh = True
        while position < end:
            if covered[position]:
                position += 1
                continue
            zeros = _zeros(region.content, position, end)
            if zeros >= _PADDING or (zeros and position + zeros == region.size):
                self._lose(region.start + position, zeros, "zero bytes")
                position += zeros
                fresh = True
                continue
            address = region.start + position
            pc = address | self._mode_before(address)
            unit = 4 if len(self._row.modes) > 1 and not pc & 1 else self._row.alignment
            before = len(self.code.instructions)
            if fresh:
                self.code.targets.add(pc)
            if address % unit == 0 and pc not in self.code.instructions:
                self._follow(pc)
            translated = self.code.instructions.get(pc)
            self.code.swept += len(self.code.instructions) - before
            if translated is None or translated.instruction.size == 0:
                reason = self._complaints.get(address, "no instruction")
                if translated is not None:
                    reason = "replaced by the spec"
                size = min(unit - address % unit, end - position)
                self._lose(address, size, reason)
                position += size
                fresh = True
            else:
                position += translated.instruction.size
                fresh = all(item.transfer in (Transfer.JUMP, Transfer.RETURN) for item in translated.ends())
        return max(position, start + 1)

    def _mode_before(self, address: int) -> int:
        """Thumb where the nearest instruction before is Thumb."""
        if not self._row.mode_mask:
            return 0
        for distance in (2, 4):
            if address - distance | 1 in self.code.instructions:
                return 1
            if address - distance in self.code.instructions:
                return 0
        return 1 if address % 4 else self._program.entry & 1

    def _lose(self, address: int, size: int, reason: str) -> None:
        lost = self.code.lost
        if lost and lost[-1][1] == address and lost[-1][2] == reason:
            lost[-1] = (lost[-1][0], address + size, reason)
        else:
            lost.append((address, address + size, reason))


def _zeros(content: bytes, start: int, end: int) -> int:
    """How many zero bytes follow from `start`; bytes behind the content are zero."""
    position = start
    stop = min(end, len(content))
    while position < stop and content[position] == 0:
        position += 1
    return (end if position >= stop else position) - start
