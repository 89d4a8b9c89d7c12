"""ARM's BLX (immediate), the call that changes the decoding mode, without SLEIGH.

SLEIGH's constructors for it commit the other mode for the target *and everything above it* inside the translator
(`globalset` of a flowing context variable), and nothing but a new translator, a fifth of a second, takes that back. The
instruction is simple enough to be written down here (Arm Architecture Reference Manual, BL and BLX (immediate)).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..pcode import Instruction, Op, Space, Varnode


def interworking_call(pc: int, word: int) -> int | None:
    """The target of a BLX (immediate) at `pc` whose (first) word is `word`; None for any other instruction."""
    address = pc & ~1
    if pc & 1:
        if word & 0xF800D001 != 0xF000C000:
            return None
        sign, j1, j2 = word >> 26 & 1, word >> 13 & 1, word >> 11 & 1
        high, low = word >> 16 & 0x3FF, word >> 1 & 0x3FF
        i1, i2 = 1 ^ j1 ^ sign, 1 ^ j2 ^ sign
        offset = (i1 << 23 | i2 << 22 | high << 12 | low << 2) - (sign << 24)
        return (address + 4 & ~3) + offset & 0xFFFFFFFF
    if word >> 25 != 0x7D:
        return None
    offset = ((word & 0xFFFFFF ^ 0x800000) - 0x800000) << 2 | (word >> 24 & 1) << 1
    return address + 8 + offset & 0xFFFFFFFF


def call_instruction(pc: int, code: bytes, target: int, registers: Mapping[str, Varnode]) -> Instruction:
    """The call of `target` in the other mode."""
    link = (pc & ~1) + 4 & 0xFFFFFFFF | pc & 1
    mode = registers["ISAModeSwitch"]
    ops = (
        Op("COPY", registers["lr"], (Varnode(Space.CONST, link, 4),)),
        Op("COPY", mode, (Varnode(Space.CONST, 1 - (pc & 1), mode.size),)),
        Op("CALL", None, (Varnode(Space.RAM, target, 4),)),
    )
    return Instruction(pc, code, ops, "blx", f"{target:#x}")
