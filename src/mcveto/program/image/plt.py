"""Finding the stubs through which an executable calls imported functions (the procedure linkage table).

A stub loads one known cell and jumps to what it holds, in a sequence that is fixed per machine. The code is
searched for these sequences; a match counts only if the cell is that of an import, so data that looks like
code does no harm beyond a second name. Machines without a matcher name the cell itself.
"""

import struct
from collections.abc import Iterator

from mcveto.program.image.memory import Memory

MAX_CODE_BYTES = 64 << 20
_LANDING_PADS = (b"\xf3\x0f\x1e\xfa\xf2", b"\xf3\x0f\x1e\xfb\xf2", b"\xf3\x0f\x1e\xfa", b"\xf3\x0f\x1e\xfb")


def import_addresses(isa: str, memory: Memory, cells: dict[int, str], got: int | None) -> dict[str, int]:
    """Import name → address of its stub, or of its first cell where no stub is found."""
    stubs: dict[str, int] = {}
    if not cells:
        return stubs
    for start, code in memory.executable_content():
        for address, cell in _candidates(isa, start, code[:MAX_CODE_BYTES], got):
            if cell in cells:
                stubs.setdefault(cells[cell], address)
    for cell in sorted(cells):
        stubs.setdefault(cells[cell], cell)
    return {name: stubs[name] for name in sorted(stubs)}


def _candidates(isa: str, start: int, code: bytes, got: int | None) -> Iterator[tuple[int, int]]:
    match isa:
        case "x86-64":
            yield from _x86(start, code, b"\xff\x25", 64, None)
        case "x86-32":
            yield from _x86(start, code, b"\xff\x25", 32, None)
            if got is not None:
                yield from _x86(start, code, b"\xff\xa3", 32, got)
        case "aarch64":
            yield from _aarch64(start, code)
        case "riscv32" | "riscv64":
            yield from _riscv(start, code)
        case "arm":
            yield from _arm(start, code)
        case _:
            return


def _x86(start: int, code: bytes, opcode: bytes, bits: int, register: int | None) -> Iterator[tuple[int, int]]:
    """`jmp *cell`, relative to the next instruction (64-bit), absolute, or relative to EBX (32-bit)."""
    at = code.find(opcode)
    while 0 <= at <= len(code) - 6:
        displacement = struct.unpack_from("<i", code, at + 2)[0]
        origin = start + at + 6 if bits == 64 else register or 0
        # Callers go to the `endbr` in front of the jump, which may have a `bnd` prefix.
        begin = next((at - len(p) for p in _LANDING_PADS if code.endswith(p, 0, at)), at)
        yield start + begin, (origin + displacement) % (1 << bits)
        at = code.find(opcode, at + 1)


def _aarch64(start: int, code: bytes) -> Iterator[tuple[int, int]]:
    """`adrp x16, page; ldr x17, [x16, #offset]`."""
    words = _words(code)
    for index in range(len(words) - 1):
        page, load = words[index], words[index + 1]
        if page & 0x9F00001F == 0x90000010 and load & 0xFFC003FF == 0xF9400211:
            distance = (page >> 5 & 0x7FFFF) << 2 | page >> 29 & 3
            distance = (distance - (1 << 21) if distance >> 20 else distance) << 12
            address = start + 4 * index
            yield address, (address & ~0xFFF) + distance + (load >> 10 & 0xFFF) * 8


def _riscv(start: int, code: bytes) -> Iterator[tuple[int, int]]:
    """`auipc t3, hi; lw/ld t3, lo(t3); jalr t1, t3`."""
    words = _words(code)
    for index in range(len(words) - 2):
        upper, load, jump = words[index : index + 3]
        if upper & 0xFFF == 0xE17 and load & 0xFFFFF in (0xE2E03, 0xE3E03) and jump == 0x000E0367:
            low = load >> 20
            distance = (upper & 0xFFFFF000) + (low - 4096 if low >> 11 else low)
            distance = distance - (1 << 32) if distance >> 31 & 1 else distance
            yield start + 4 * index, start + 4 * index + distance


def _arm(start: int, code: bytes) -> Iterator[tuple[int, int]]:
    """`add ip, pc, #a; add ip, ip, #b; ldr pc, [ip, #c]!`."""
    words = _words(code)
    for index in range(len(words) - 2):
        first, second, load = words[index : index + 3]
        if first >> 12 == 0xE28FC and second >> 12 == 0xE28CC and load >> 12 == 0xE5BCF:
            distance = _arm_immediate(first) + _arm_immediate(second) + (load & 0xFFF)
            yield start + 4 * index, (start + 4 * index + 8 + distance) % (1 << 32)


def _arm_immediate(instruction: int) -> int:
    value, turn = instruction & 0xFF, (instruction >> 8 & 0xF) * 2
    return (value >> turn | value << (32 - turn)) & 0xFFFFFFFF


def _words(code: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4])
