"""A32, Thumb and IT-block encodings."""

from __future__ import annotations

from random import Random

from .corpus_words import Patterns, words

_FIELDS = (0, 8, 12, 16)

A32: Patterns = (
    # data processing: register, register-shifted, immediate; moves; multiplications; half-word multiplications
    *((0x00000000, 0x0E000010), (0x00000010, 0x0E000090), (0x02000000, 0x0E000000), (0x01A00000, 0x0FEF0000)),
    *((0x03000000, 0x0FB00000), (0x00000090, 0x0F0000F0), (0x01000080, 0x0F900090), (0x0000F000, 0x0E00F000)),
    # loads and stores: immediate, register, half-words and doubles, multiple, exclusive
    *((0x04000000, 0x0E000000), (0x06000000, 0x0E000010), (0x000000B0, 0x0E0000F0), (0x000000D0, 0x0E0000D0)),
    *((0x08000000, 0x0E400000), (0x01800F90, 0x0F800FF0)),
    # media: parallel, pack, saturate, extend, reverse, select, divide, bit fields
    *((0x06100F10, 0x0F100F10), (0x06800010, 0x0FF00030), (0x06A00010, 0x0FA00030), (0x06800070, 0x0F8003F0)),
    *((0x06BF0F30, 0x0FFF0F70), (0x06FF0F30, 0x0FFF0F70), (0x068000B0, 0x0FF000F0), (0x0710F010, 0x0FD0F0D0)),
    *((0x07000010, 0x0F900010), (0x07A00050, 0x0FA00070), (0x07C00010, 0x0FE00070), (0x016F0F10, 0x0FFF0FF0)),
    # branches and exceptions
    *((0x0A000000, 0x0E000000), (0x012FFF10, 0x0FFFFFD0), (0x0F000000, 0x0F000000), (0x01200070, 0x0FF000F0)),
)
THUMB32: Patterns = (
    # data processing: shifted register, modified and plain immediate, register, multiplications
    *((0xEA000000, 0xFE008000), (0xEA4F0000, 0xFFCF8000), (0xEA100F00, 0xFF708F00), (0xF0000000, 0xFA008000)),
    *((0xF2000000, 0xFA008000), (0xFA00F000, 0xFF80F0C0), (0xFA00F080, 0xFF80F080), (0xFA80F000, 0xFF80F080)),
    *((0xFB000000, 0xFF8000C0), (0xFB800000, 0xFF800000), (0xFB90F0F0, 0xFFD0F0F0), (0xF3600000, 0xFFE08020)),
    # loads and stores, multiple, double and exclusive, table branches; branches
    *((0xF8000000, 0xFE000000), (0xE8000000, 0xFE400000), (0xE8400000, 0xFE400000), (0xE8D0F000, 0xFFF0FFE0)),
    *((0xF0008000, 0xF8008000), (0xF000C000, 0xF800D001)),
)
# bx lr, b ., pop {pc}, bl, mov pc/r0, ldr pc, [sp], #4, b over the next one
_LAST_IN_BLOCK = ("7047", "fee7", "00bd", "00f001f8", "8746", "5df804fb", "00e0")


def a32(rng: Random, count: int) -> list[bytes]:
    found = []
    for word in words(rng, A32, count, awkward=(15,), fields=_FIELDS):
        condition = 14 if rng.random() < 0.6 else rng.randrange(16)
        found.append((word & 0x0FFFFFFF | condition << 28).to_bytes(4, "little"))
    return found


def thumb(rng: Random, count: int) -> list[bytes]:
    found: list[bytes] = []
    for number, word in enumerate(words(rng, THUMB32, count, awkward=(13, 15), fields=_FIELDS)):
        half = rng.randrange(0xE800)
        if number % 2 and not (half >> 8 == 0xBF and half & 15):
            found.append(half.to_bytes(2, "little"))
        else:
            found.append((word >> 16).to_bytes(2, "little") + (word & 0xFFFF).to_bytes(2, "little"))
    return found


def blocks(rng: Random, count: int) -> list[bytes]:
    """IT blocks of one to four instructions that do not branch, some with a branch as the last one."""
    pool = [code for code in thumb(rng, 12 * count) if not _branches(code)]
    found: list[bytes] = []
    for _ in range(count):
        mask = rng.randrange(1, 16)
        body = [rng.choice(pool) for _ in range(4 - ((mask & -mask).bit_length() - 1))]
        if rng.random() < 0.3:
            body[-1] = bytes.fromhex(rng.choice(_LAST_IN_BLOCK))
        found.append(bytes([rng.randrange(14) << 4 | mask, 0xBF]) + b"".join(body))
    return found


def _branches(code: bytes) -> bool:
    """Whether the instruction may write the pc or is not allowed in an IT block."""
    half = int.from_bytes(code[:2], "little")
    if len(code) == 2:
        high_register = half & 7 | half >> 4 & 8
        return (
            half >> 12 in (0xD, 0xE)
            or half >> 8 in (0x47, 0xBA, 0xBD, 0xBE, 0xBF, 0xB6)
            or half & 0xF500 == 0xB100
            or (half >> 8 in (0x44, 0x46) and high_register == 15)
        )
    second = int.from_bytes(code[2:], "little")
    if half >> 11 == 0x1E:
        return bool(second & 0x8000)
    loads_pc = half >> 9 == 0x7C and second >> 12 == 15
    return half >> 9 == 0x74 or loads_pc
