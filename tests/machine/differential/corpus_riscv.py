"""RISC-V encodings: all opcodes with their interesting function codes, and every 16-bit encoding."""

from __future__ import annotations

from random import Random

_OPCODES = (0x33, 0x33, 0x3B, 0x3B, 0x13, 0x1B, 0x03, 0x23, 0x63, 0x67, 0x6F, 0x37, 0x17, 0x2F, 0x2F, 0x73, 0x0F)


def rare(rng: Random, count: int) -> list[bytes]:
    found: list[bytes] = []
    for number in range(count):
        if number % 3 == 0:
            code = rng.randrange(0x10000)
            found.append(code.to_bytes(2, "little") if code & 3 != 3 else rng.randbytes(4))
            continue
        opcode = rng.choice(_OPCODES)
        word = rng.getrandbits(32) & ~0x7F | opcode
        if opcode == 0x2F:
            word = word & ~0x7000 | rng.choice((2, 3)) << 12
        elif opcode in (0x33, 0x3B):
            word = word & ~(0x7F << 25) | rng.choice((0, 0x20, 1)) << 25
        elif opcode in (0x13, 0x1B) and word >> 12 & 3 == 1:
            word = word & ~(0x7F << 25) | rng.choice((0, 0x20, 1, 0x21)) << 25
        elif opcode == 0x73:
            word = rng.choice((0x00000073, 0x00100073, 0xC0001073, word))
        found.append(word.to_bytes(4, "little"))
    return found
