"""32-bit PowerPC, big-endian. Registers 0-3 are r3-r6; r11 and r12 are scratch; frames are 16 bytes."""

from __future__ import annotations

import random
from collections.abc import Mapping

from .items import DATA, Encoder, Item

_R3, _T0, _T1, _SP = 3, 11, 12, 1
_EXTENDED = {"add": 266, "mul": 235}
_LOGICAL = {"and": 28, "or": 444, "xor": 316}
_LOADS = {"load8": 34, "load16": 40, "load32": 32}
_STORES = {"store8": 38, "store16": 44, "store32": 36}
# (is the comparison unsigned, BO, bit of cr0)
_BRANCHES = {
    "eq": (False, 12, 2),
    "ne": (False, 4, 2),
    "lt": (False, 12, 0),
    "ge": (False, 4, 0),
    "ltu": (True, 12, 0),
    "geu": (True, 4, 0),
}


def _word(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "big")


def _d(opcode: int, rd: int, ra: int, imm: int) -> bytes:
    return _word(opcode << 26 | rd << 21 | ra << 16 | imm & 0xFFFF)


def _x(rd: int, ra: int, rb: int, extended: int, record: int = 0) -> bytes:
    return _word(31 << 26 | rd << 21 | ra << 16 | rb << 11 | extended << 1 | record)


def _rlwinm(rs: int, ra: int, shift: int, begin: int, end: int, record: int = 0) -> bytes:
    return _word(21 << 26 | rs << 21 | ra << 16 | shift << 11 | begin << 6 | end << 1 | record)


def _branch(distance: int, link: int = 0) -> bytes:
    return _word(18 << 26 | distance & 0x3FFFFFC | link)


def _conditional(bo: int, bit: int, distance: int) -> bytes:
    return _word(16 << 26 | bo << 21 | bit << 16 | distance & 0xFFFC)


def _constant(rd: int, value: int) -> bytes:
    return _d(15, rd, 0, value >> 16) + _d(24, rd, rd, value)


def _move(rd: int, rs: int) -> bytes:
    return _x(rs, rd, rs, 444)


_MTCTR, _MTLR, _MFLR = 0x7C0903A6, 0x7C0803A6, 0x7C0802A6


def _encode(item: Item, at: int, labels: Mapping[str, int]) -> bytes:
    op, *rest = item
    a = [value if isinstance(value, int) else 0 for value in rest]
    r = [_R3 + (value & 3) for value in a]

    def distance(name: object, before: int = 0) -> int:
        return labels[str(name)] - at - before

    match op:
        case "set":
            return _constant(r[0], a[1] & 0xFFFFFFFF)
        case "addr":
            return _constant(r[0], labels[str(rest[1])] + a[2])
        case "move":
            return _move(r[0], r[1])
        case "add" | "mul":
            return _x(r[0], r[0], r[1], _EXTENDED[op])
        case "sub":
            return _x(r[0], r[1], r[0], 40)
        case "and" | "or" | "xor":
            return _x(r[0], r[0], r[1], _LOGICAL[op])
        case "addi":
            return _d(14, r[0], r[0], a[1])
        case "andi":
            return _d(28, r[0], r[0], a[1] & 0xFF)
        case "ori":
            return _d(24, r[0], r[0], a[1] & 0xFF)
        case "xori":
            return _d(26, r[0], r[0], a[1] & 0xFF)
        case "shl":
            return _rlwinm(r[0], r[0], a[1] & 31, 0, 31 - (a[1] & 31))
        case "shr":
            return _rlwinm(r[0], r[0], 32 - (a[1] & 31) & 31, a[1] & 31, 31)
        case "sar":
            return _x(r[0], r[0], a[1] & 31, 824)
        case "load8" | "load16" | "load32":
            return _d(_LOADS[op], r[0], r[1], a[2])
        case "store8" | "store16" | "store32":
            return _d(_STORES[op], r[0], r[1], a[2])
        case "read":
            return _constant(_T0, DATA) + _d(34, r[0], _T0, a[1])
        case "write":
            return _constant(_T0, DATA) + _d(38, r[0], _T0, a[1])
        case "input":
            if a[0] == 0:
                return _branch(distance("input"), 1)
            return _move(_T1, _R3) + _branch(distance("input", 4), 1) + _move(r[0], _R3) + _move(_R3, _T1)
        case "if":
            unsigned, bo, bit = _BRANCHES[str(rest[0])]
            return _x(0, r[1], r[2], 32 if unsigned else 0) + _conditional(bo, bit, distance(rest[3], 4))
        case "ifi":
            unsigned, bo, bit = _BRANCHES[str(rest[0])]
            compare = _constant(_T0, a[2] & 0xFFFFFFFF) + _x(0, r[1], _T0, 32 if unsigned else 0)
            return compare + _conditional(bo, bit, distance(rest[3], 12))
        case "flag":
            return _conditional(12 if a[0] & 1 else 4, (a[0] >> 1) % 3, distance(rest[1]))
        case "jump":
            return _branch(distance(rest[0]))
        case "slot":
            return _branch(distance(rest[0])) + _word(0x60000000)
        case "jumpr":
            return _word(_MTCTR | r[0] << 21) + _word(0x4E800420)
        case "call":
            return _branch(distance(rest[0]), 1)
        case "callr":
            return _word(_MTCTR | r[0] << 21) + _word(0x4E800421)
        case "enter":
            return _word(_MFLR | _T0 << 21) + _d(14, _SP, _SP, -16) + _d(36, _T0, _SP, 8)
        case "leave":
            return _d(32, _T0, _SP, 8) + _d(14, _SP, _SP, 16) + _word(_MTLR | _T0 << 21) + _word(0x4E800020)
        case "smash":
            return _d(36, r[0], _SP, 8 + 4 * a[1])
        case "native":
            return bytes.fromhex(str(rest[0]))
    raise ValueError(item)


ENCODERS = {"ppc32-be": Encoder("ppc32-be", _encode, bytes.fromhex("7fe00008"))}
# li r11, 0; mtxer r11; cmpw r11, r11: carry, overflow and cr0 have values.
SET_FLAGS = (_d(14, _T0, 0, 0) + _word(0x7C0103A6 | _T0 << 21) + _x(0, _T0, _T0, 0)).hex()


def native(rng: random.Random, _: str) -> str:
    """Record forms, carries, condition registers, rotates."""
    a, b, c = (_R3 + rng.randrange(4) for _ in range(3))
    record = rng.randrange(2)
    forms = [
        _x(a, b, c, rng.choice((266, 40, 235)), record),
        _x(a, b, c, rng.choice((10, 8)), record),
        _x(a, b, c, rng.choice((138, 136)), record),
        _x(a, b, 0, rng.choice((202, 200, 234, 232, 104)), record),
        _x(a, b, c, rng.choice((28, 60, 124, 412, 476, 284, 444, 316)), record),
        _x(a, b, 0, rng.choice((26, 922, 954)), record),
        _x(a, b, c, rng.choice((24, 536, 792)), record),
        _rlwinm(a, b, rng.randrange(32), rng.randrange(32), rng.randrange(32), record),
        _d(rng.choice((12, 13)), a, b, rng.randrange(-64, 256)),
        _d(8, a, b, rng.randrange(-64, 256)),
        _d(rng.choice((10, 11)), 0, a, rng.randrange(128)),
        _x(0, a, b, rng.choice((0, 32))),
        _x(a, b, c, rng.choice((75, 11)), record),
        _word(19 << 26 | rng.randrange(3) << 21 | rng.randrange(3) << 16 | rng.randrange(3) << 11 | 257 << 1),
        _x(a, b, c, 459),
    ]
    return rng.choice(forms).hex()
