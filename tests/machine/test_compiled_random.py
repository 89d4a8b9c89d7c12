"""Random programs on random states: the compiled machine against the reference emulator, bit for bit.

Every program is a loop of random instructions, so it gets hot; among them are forward branches, calls, stores into the
loop itself where the code is writable, jumps into the middle of instructions, divisions, and whatever random bytes
decode to. Final state, outcome and full trace must agree, with the run cut into pieces at random places.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.compiled import machine as compiled_machine
from mcveto.machine.emulator import Machine
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory, RegionSpec

CODE, DATA, STACK, FIXED = 0x10000, 0x20000, 0x7FFF0000, 0x40000
PROGRAMS = int(os.environ.get("MCVETO_RANDOM_PROGRAMS", "25"))


def x86_instruction(rng: random.Random, wide: bool) -> bytes:
    def reg() -> int:
        return rng.choice((0, 1, 2, 5, 6, 7) if rng.random() < 0.9 else (3, 4))

    def modrm(field: int) -> bytes:
        if rng.random() < 0.55:
            return bytes([0xC0 | field << 3 | reg()])
        if rng.random() < 0.8:  # [ebx + disp8]
            return bytes([0x43 | field << 3, rng.choice((0, 4, 8, 12, 3, 0xFC, 0x40))])
        if rng.random() < 0.5:  # [ebx + index*scale + disp8]
            return bytes([0x44 | field << 3, rng.choice((0x0B, 0x8B, 0x53)), rng.choice((0, 8))])
        return bytes([0x04 | field << 3, 0x24])  # [esp]

    prefix = bytes([rng.choice((0x48, 0x40, 0x48, 0x44, 0x41))]) if wide and rng.random() < 0.5 else b""
    if not prefix and rng.random() < 0.06:
        prefix = b"\x66"
    kind = rng.randrange(24)
    if kind < 6:
        return prefix + bytes([rng.choice((0, 1, 2, 3)) | rng.randrange(8) << 3]) + modrm(reg())
    if kind == 6:
        return prefix + b"\x83" + modrm(rng.randrange(8)) + bytes([rng.randrange(256)])
    if kind < 10:
        return prefix + bytes([rng.choice((0x88, 0x89, 0x8A, 0x8B))]) + modrm(reg())
    if kind == 10:
        return bytes([0xB8 | reg()]) + rng.choice((0, 1, 7, 0x80000000, 0xFFFFFFFF, DATA)).to_bytes(4, "little")
    if kind == 11:
        return bytes([rng.choice((0x50, 0x58)) | reg()])
    if kind == 12:
        return prefix + rng.choice((b"\xc1", b"\xc0")) + modrm(rng.randrange(8)) + bytes([rng.randrange(40)])
    if kind == 13:
        return prefix + rng.choice((b"\xd1", b"\xd3")) + modrm(rng.choice((0, 1, 4, 5, 7)))
    if kind == 14:
        return prefix + b"\x0f" + bytes([0x40 | rng.randrange(16)]) + modrm(reg())
    if kind == 15:
        return b"\x0f" + bytes([0x90 | rng.randrange(16)]) + modrm(0)
    if kind == 16:
        return prefix + b"\x0f" + rng.choice((b"\xaf", b"\xb6", b"\xb7", b"\xbe", b"\xbf", b"\xa3")) + modrm(reg())
    if kind == 17:
        return prefix + rng.choice((b"\xf7", b"\xf6")) + modrm(rng.choice((2, 3, 4, 5, 6, 7)))
    if kind < 21:
        return bytes([0x70 | rng.randrange(16), rng.choice((0, 1, 2, 3, 4, 6))])
    if kind == 21:
        return prefix + b"\xff" + modrm(rng.randrange(2))
    if kind == 22:
        return rng.choice((b"\x99", b"\xf3\xa4", b"\xac", b"\xab", b"\x98", b"\xe8\0\0\0\0\x58", b"\xa4"))
    return rng.randbytes(rng.randrange(1, 4)) if rng.random() < 0.3 else prefix + b"\x87" + modrm(reg())


def ppc_instruction(rng: random.Random) -> bytes:
    def reg() -> int:
        return rng.randrange(3, 9)

    a, b, d, dot = reg(), reg(), reg(), rng.randrange(2)
    kind = rng.randrange(14)
    if kind < 4:
        extended = rng.choice((266, 40, 235, 28, 444, 316, 24, 536, 792, 10, 138, 491, 459, 26, 104, 136))
        word = 31 << 26 | d << 21 | a << 16 | b << 11 | extended << 1 | dot
    elif kind == 4:
        word = rng.choice((14, 15, 12, 13, 8, 7)) << 26 | d << 21 | a << 16 | rng.randrange(1 << 16)
    elif kind < 8:
        offset = rng.choice((0, 4, 8, 3, 0xFFFC))
        word = rng.choice((32, 36, 34, 38, 40, 44, 37, 33)) << 26 | d << 21 | 9 << 16 | offset
    elif kind == 8:
        word = rng.choice((11, 10)) << 26 | rng.randrange(2) << 23 | a << 16 | rng.randrange(1 << 16)
    elif kind == 9:
        word = 31 << 26 | rng.randrange(2) << 23 | a << 16 | b << 11 | rng.choice((0, 32)) << 1
    elif kind < 12:
        bit = rng.randrange(8)
        word = 16 << 26 | rng.choice((4, 12, 16)) << 21 | bit << 16 | rng.choice((4, 8, 12))
    elif kind == 12:
        word = 21 << 26 | a << 21 | d << 16 | rng.randrange(1 << 15) << 1 | dot
    else:
        word = rng.choice((0x7C0903A6 | a << 21, 0x7C0802A6 | a << 21, rng.randrange(1 << 32), 0x48000005))
    return word.to_bytes(4, "big")


def arm_instruction(rng: random.Random) -> bytes:
    cond = rng.choice((14, 14, 14, rng.randrange(15))) << 28
    a, b, d = rng.randrange(7), rng.randrange(7), rng.randrange(7)
    kind = rng.randrange(9)
    if kind < 4:
        word = cond | rng.randrange(16) << 21 | rng.randrange(2) << 20 | a << 16 | d << 12 | rng.randrange(32) << 7
        word |= rng.randrange(4) << 5 | b
    elif kind == 4:
        word = cond | 1 << 25 | rng.randrange(32) << 20 | a << 16 | d << 12 | rng.randrange(1 << 12)
    elif kind < 7:
        word = (
            cond | 0x05000000 | rng.choice((0x80, 0x90, 0xC0, 0xD0)) << 16 | 8 << 16 | d << 12 | rng.choice((0, 4, 8))
        )
    elif kind == 7:
        word = cond | 0x0A000000 | rng.choice((0, 1, 2))
    else:
        word = rng.choice((cond | 0x08880007, cond | 0x08980007, cond | d << 16 | a << 8 | 0x90 | b, 0xE92D0007))
    return word.to_bytes(4, "little")


def thumb_instruction(rng: random.Random) -> bytes:
    kind = rng.randrange(6)
    if kind < 2:
        half = rng.randrange(0x4400)
    elif kind == 2:
        half = 0x6000 | rng.randrange(2) << 11 | rng.randrange(3) << 6 | 7 << 3 | rng.randrange(6)
    elif kind == 3:
        half = 0xD000 | rng.randrange(14) << 8 | rng.randrange(3)
    elif kind == 4:
        half = rng.choice((0xB403, 0xBC03, 0xB412))
    else:
        half = 0xBF00 | rng.randrange(14) << 4 | rng.choice((8, 4, 12))
    return half.to_bytes(2, "little")


def riscv_instruction(rng: random.Random) -> bytes:
    a, b, d = rng.randrange(10, 16), rng.randrange(10, 16), rng.randrange(10, 16)
    kind = rng.randrange(7)
    if kind < 2:
        high, low = rng.choice(((0, rng.randrange(8)), (1, rng.randrange(8)), (32, rng.choice((0, 5)))))
        word = high << 25 | b << 20 | a << 15 | low << 12 | d << 7 | 0x33
    elif kind == 2:
        word = rng.randrange(1 << 12) << 20 | a << 15 | rng.choice((0, 2, 3, 4, 6, 7)) << 12 | d << 7 | 0x13
    elif kind == 3:
        word = rng.choice((0, 4, 3)) << 20 | 8 << 15 | rng.choice((0, 1, 2, 4, 5)) << 12 | d << 7 | 3
    elif kind == 4:
        word = b << 20 | 8 << 15 | rng.randrange(3) << 12 | rng.choice((0, 4, 8)) << 7 | 0x23
    elif kind == 5:
        word = b << 20 | a << 15 | rng.choice((0, 1, 4, 5, 6, 7)) << 12 | rng.choice((4, 6)) << 8 | 0x63
    else:
        word = rng.randrange(1 << 20) << 12 | d << 7 | rng.choice((0x37, 0x17))
    return word.to_bytes(4, "little")


def mips_instruction(rng: random.Random) -> bytes:
    a, b, d = rng.randrange(2, 9), rng.randrange(2, 9), rng.randrange(2, 9)
    kind = rng.randrange(6)
    if kind < 2:
        amount, function = rng.choice(
            ((rng.randrange(32), rng.choice((0, 2, 3))), (0, rng.choice((33, 35, 36, 42, 43))))
        )
        word = (a << 21 if amount == 0 else 0) | b << 16 | d << 11 | amount << 6 | function
    elif kind == 2:
        word = rng.choice((9, 10, 12, 13, 14, 15)) << 26 | a << 21 | d << 16 | rng.randrange(1 << 16)
    elif kind < 5:
        word = rng.choice((35, 43, 36, 40, 33)) << 26 | 16 << 21 | d << 16 | rng.choice((0, 4, 8))
    else:
        word = rng.choice((4, 5)) << 26 | a << 21 | b << 16 | rng.choice((1, 2, 3))
    return word.to_bytes(4, "big")


def x86_back(distance: int) -> bytes:
    return b"\xe9" + (-(distance + 5) & 0xFFFFFFFF).to_bytes(4, "little")


def riscv_back(distance: int) -> bytes:
    offset = -distance & 0x1FFFFF
    word = (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3FF) << 21 | (offset >> 11 & 1) << 20 | offset & 0xFF000
    return (word | 0x6F).to_bytes(4, "little")


ISAS: dict[str, tuple[str, int, Callable[[random.Random], bytes], Callable[[int], bytes], str]] = {
    "x86-32": ("x86-32", 0, lambda rng: x86_instruction(rng, False), x86_back, "EBX"),
    "x86-64": ("x86-64", 0, lambda rng: x86_instruction(rng, True), x86_back, "RBX"),
    "ppc32-be": (
        "ppc32-be",
        0,
        ppc_instruction,
        lambda distance: (0x48000000 | -distance & 0x3FFFFFC).to_bytes(4, "big"),
        "r9",
    ),
    "arm": (
        "arm",
        0,
        arm_instruction,
        lambda distance: (0xEA000000 | (-(distance + 8) >> 2) & 0xFFFFFF).to_bytes(4, "little"),
        "r8",
    ),
    "thumb": (
        "arm",
        1,
        thumb_instruction,
        lambda distance: (0xE000 | (-(distance + 4) >> 1) & 0x7FF).to_bytes(2, "little"),
        "r7",
    ),
    "riscv32": ("riscv32", 0, riscv_instruction, riscv_back, "s0"),
    "mips32-be": (
        "mips32-be",
        0,
        mips_instruction,
        lambda distance: (0x10000000 | (-(distance + 4) >> 2) & 0xFFFF).to_bytes(4, "big") + bytes(4),
        "s0",
    ),
}


def state_of(machine: Machine) -> tuple[dict[int, int], list[bytes], int]:
    registers = {number: value for number, value in machine.registers.items() if value}
    return registers, [bytes(region.data) for region in machine.memory.regions], machine.pc


def program(rng: random.Random, instruction: Callable[[random.Random], bytes], back: Callable[[int], bytes]) -> bytes:
    body = b"".join(instruction(rng) for _ in range(rng.randrange(3, 14)))
    return body + back(len(body))


@pytest.mark.parametrize("name", ISAS)
@pytest.mark.parametrize("batch", range(4))
def test_agrees_with_the_reference_emulator(name: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    isa, mode, instruction, back, base = ISAS[name]
    decoder = decoder_for(isa)
    row = decoder.row
    monkeypatch.setattr(compiled_machine, "HOT", 2)
    entered = 0
    for number in range(PROGRAMS):
        rng = random.Random(f"{name}/{batch}/{number}")
        code = program(rng, instruction, back)
        writable = rng.random() < 0.4
        # Where the code is writable, the data pointer may aim right into the loop.
        pointer = rng.choice((CODE + rng.randrange(32), DATA + 64)) if writable and rng.random() < 0.6 else DATA + 64
        if rng.random() < 0.1:
            pointer = FIXED + 64
        if rng.random() < 0.9:
            pointer &= ~7
        registers = {
            cell.number: rng.choice((0, 1, 3, rng.getrandbits(8), rng.getrandbits(32), rng.getrandbits(cell.bits)))
            & ((1 << decoder.layout.significant_bits(cell)) - 1)
            for cell in decoder.layout.cells
            if cell.name in row.general or cell.name in row.flags
        }
        for register, value in ((base, pointer), (row.stack_pointer, STACK + 0x800)):
            registers[decoder.layout.named(register)[0].cell.number] = value
        contents = rng.randbytes(256)
        pieces = [rng.randrange(1, 300) for _ in range(3)]

        def memory(code: bytes = code, writable: bool = writable, contents: bytes = contents) -> Memory:
            return Memory(
                [
                    RegionSpec("code", CODE, 0x100, 7 if writable else 5, code),
                    RegionSpec("data", DATA, 0x100, 6, contents),
                    RegionSpec("fixed", FIXED, 0x100, 4, contents),
                    RegionSpec("stack", STACK, 0x1000, 6),
                ],
                row.address_bits,
                row.big_endian,
            )

        reference = Machine(decoder, memory(), registers, CODE | mode, halts=[CODE + 0xF0])
        compiled = CompiledMachine(decoder, memory(), registers, CODE | mode, halts=[CODE + 0xF0])
        for piece in pieces:
            expected, actual = reference.run(piece), compiled.run(piece)
            assert actual == expected, (number, code.hex())
            assert state_of(compiled) == state_of(reference), (number, code.hex())
        assert list(compiled.trace) == list(reference.trace), (number, code.hex())
        assert len(compiled.trace) == len(reference.trace)
        entered += compiled.paths_compiled > 0
    assert entered > PROGRAMS // 10, "hardly any program got compiled"
