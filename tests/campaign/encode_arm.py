"""32-bit ARM. Registers 0-3 are r0-r3; r4 and r5 are scratch; functions push and pop {r11, lr}."""

from __future__ import annotations

import random
from collections.abc import Mapping

from .items import DATA, Encoder, Item

_T0, _T1, _SP, _LR, _PC = 4, 5, 13, 14, 15
_OPS = {"and": 0, "xor": 1, "sub": 2, "add": 4, "or": 12}
_CONDITIONS = {"eq": 0, "ne": 1, "lt": 11, "ge": 10, "ltu": 3, "geu": 2}
_ALWAYS = 14 << 28
_SHIFTS = {"shl": 0, "shr": 1, "sar": 2}


def _word(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "little")


def _data(op: int, rd: int, rn: int, operand: int, *, flags: int = 0, immediate: int = 0, cond: int = _ALWAYS) -> bytes:
    return _word(cond | immediate << 25 | op << 21 | flags << 20 | rn << 16 | rd << 12 | operand)


def _constant(rd: int, value: int) -> bytes:
    low, high = value & 0xFFFF, value >> 16 & 0xFFFF
    return b"".join(
        _word(_ALWAYS | opcode << 20 | half >> 12 << 16 | rd << 12 | half & 0xFFF)
        for opcode, half in ((0x30, low), (0x34, high))
    )


def _transfer(load: bool, size: int, rd: int, rn: int, offset: int) -> bytes:
    if size == 16:
        bits = abs(offset)
        return _word(
            _ALWAYS
            | 1 << 24
            | (offset >= 0) << 23
            | 1 << 22
            | load << 20
            | rn << 16
            | rd << 12
            | bits >> 4 << 8
            | 0xB0
            | bits & 15
        )
    return _word(
        _ALWAYS | 0x05000000 | (offset >= 0) << 23 | (size == 8) << 22 | load << 20 | rn << 16 | rd << 12 | abs(offset)
    )


def _branch(distance: int, cond: int = _ALWAYS, link: int = 0) -> bytes:
    return _word(cond | 0x0A000000 | link << 24 | distance - 8 >> 2 & 0xFFFFFF)


def _encode(item: Item, at: int, labels: Mapping[str, int]) -> bytes:
    op, *rest = item
    a = [value if isinstance(value, int) else 0 for value in rest]
    r = [value & 3 for value in a]

    def distance(name: object, before: int = 0) -> int:
        return labels[str(name)] - at - before

    match op:
        case "set":
            return _constant(r[0], a[1])
        case "addr":
            return _constant(r[0], labels[str(rest[1])] + a[2])
        case "move":
            return _data(13, r[0], 0, r[1])
        case "add" | "sub" | "and" | "or" | "xor":
            return _data(_OPS[op], r[0], r[0], r[1])
        case "mul":
            return _word(_ALWAYS | r[0] << 16 | r[1] << 8 | 0x90 | r[0])
        case "addi":
            return _data(4 if a[1] >= 0 else 2, r[0], r[0], abs(a[1]) & 0xFF, immediate=1)
        case "andi" | "ori" | "xori":
            return _data(_OPS[op[:-1]], r[0], r[0], a[1] & 0xFF, immediate=1)
        case "shl" | "shr" | "sar":
            return _data(13, r[0], 0, (a[1] & 31) << 7 | _SHIFTS[op] << 5 | r[0])
        case "load8" | "load16" | "load32":
            return _transfer(True, int(op[4:]), r[0], r[1], a[2])
        case "store8" | "store16" | "store32":
            return _transfer(False, int(op[5:]), r[0], r[1], a[2])
        case "read":
            return _constant(_T0, DATA) + _transfer(True, 8, r[0], _T0, a[1])
        case "write":
            return _constant(_T0, DATA) + _transfer(False, 8, r[0], _T0, a[1])
        case "input":
            if a[0] == 0:
                return _branch(distance("input"), link=1)
            back = _data(13, r[0], 0, 0) + _data(13, 0, 0, _T1)
            return _data(13, _T1, 0, 0) + _branch(distance("input", 4), link=1) + back
        case "if":
            return _data(10, 0, r[1], r[2], flags=1) + _branch(distance(rest[3], 4), _CONDITIONS[str(rest[0])] << 28)
        case "ifi":
            compare = _constant(_T0, a[2]) + _data(10, 0, r[1], _T0, flags=1)
            return compare + _branch(distance(rest[3], 12), _CONDITIONS[str(rest[0])] << 28)
        case "flag":
            return _branch(distance(rest[1]), a[0] % 14 << 28)
        case "jump":
            return _branch(distance(rest[0]))
        case "slot":
            return _branch(distance(rest[0])) + _word(0xE1A00000)
        case "jumpr":
            return _word(_ALWAYS | 0x012FFF10 | r[0])
        case "call":
            return _branch(distance(rest[0]), link=1)
        case "callr":
            return _word(_ALWAYS | 0x012FFF30 | r[0])
        case "enter":
            return _word(0xE92D4800)
        case "leave":
            return _word(0xE8BD8800)
        case "smash":
            return _transfer(False, 32, r[0], _SP, 4 + 4 * a[1])
        case "native":
            return bytes.fromhex(str(rest[0]))
    raise ValueError(item)


ENCODERS = {"arm": Encoder("arm", _encode, bytes.fromhex("700020e1"))}
# cmp r0, r0: every flag of comparisons has a value.
SET_FLAGS = _data(10, 0, 0, 0, flags=1).hex()


def native(rng: random.Random, _: str) -> str:
    """Conditional execution, carries, shifted operands, long products, extensions."""
    a, b, c = (rng.randrange(4) for _ in range(3))
    cond = rng.choice((14, 14, rng.randrange(14))) << 28
    flags = rng.randrange(2)
    op = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15))
    test = rng.choice((8, 9, 10, 11))
    shifted = rng.randrange(1, 32) << 7 | rng.randrange(4) << 5 | c
    low = rng.randrange(4)
    high = (low + 1 + rng.randrange(3)) % 4
    if op in (13, 15):
        b = 0  # mov and mvn have one operand
    forms = [
        _data(op, a, b, c, flags=flags, cond=cond),
        _data(op, a, b, shifted, flags=flags, cond=cond),
        _data(op, a, b, rng.randrange(256), flags=flags, immediate=1, cond=cond),
        _data(op, a, b, rng.randrange(4) << 8 | rng.randrange(4) << 5 | 0x10 | c, flags=flags, cond=cond),
        _data(test, 0, b, shifted, flags=1, cond=cond),
        _data(test, 0, b, rng.randrange(256), flags=1, immediate=1, cond=cond),
        _word(cond | rng.choice((0x00800090, 0x00C00090)) | high << 16 | low << 12 | b << 8 | c),
        _word(cond | rng.choice((0x06EF0070, 0x06AF0070, 0x06FF0070, 0x06BF0070)) | a << 12 | c),
        _word(cond | 0x016F0F10 | a << 12 | c),
        _word(cond | 0x06BF0F30 | a << 12 | c),
    ]
    return rng.choice(forms).hex()
