"""RV32 and RV64 with M and C. Registers 0-3 are a0-a3; t0 and t1 are scratch; frames are 16 bytes."""

from __future__ import annotations

import random
from collections.abc import Mapping

from .items import DATA, SLOT, Encoder, Item

_A0, _T0, _T1, _RA, _SP = 10, 5, 6, 1, 2
_REGISTER = {"add": (0, 0), "sub": (0x20, 0), "xor": (0, 4), "or": (0, 6), "and": (0, 7), "mul": (1, 0)}
_IMMEDIATE = {"addi": 0, "xori": 4, "ori": 6, "andi": 7}
_LOADS = {"load8": 4, "load16": 5, "load32": 2}
_STORES = {"store8": 0, "store16": 1, "store32": 2}
_BRANCHES = {"eq": 0, "ne": 1, "lt": 4, "ge": 5, "ltu": 6, "geu": 7}


def _word(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "little")


def _i(opcode: int, funct: int, rd: int, rs: int, imm: int) -> bytes:
    return _word((imm & 0xFFF) << 20 | rs << 15 | funct << 12 | rd << 7 | opcode)


def _r(funct7: int, funct3: int, rd: int, rs1: int, rs2: int) -> bytes:
    return _word(funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33)


def _store(funct: int, base: int, source: int, imm: int) -> bytes:
    return _word((imm >> 5 & 0x7F) << 25 | source << 20 | base << 15 | funct << 12 | (imm & 0x1F) << 7 | 0x23)


def _branch(funct: int, rs1: int, rs2: int, imm: int) -> bytes:
    bits = (imm >> 12 & 1) << 31 | (imm >> 5 & 0x3F) << 25 | (imm >> 1 & 15) << 8 | (imm >> 11 & 1) << 7
    return _word(bits | rs2 << 20 | rs1 << 15 | funct << 12 | 0x63)


def _jal(rd: int, imm: int) -> bytes:
    bits = (imm >> 20 & 1) << 31 | (imm >> 1 & 0x3FF) << 21 | (imm >> 11 & 1) << 20 | (imm >> 12 & 0xFF) << 12
    return _word(bits | rd << 7 | 0x6F)


def _constant(rd: int, value: int) -> bytes:
    upper = value + 0x800 >> 12 & 0xFFFFF
    return _word(upper << 12 | rd << 7 | 0x37) + _i(0x13, 0, rd, rd, value & 0xFFF)


class _Riscv:
    def __init__(self, wide: bool) -> None:
        self._word, self._funct = (8, 3) if wide else (4, 2)

    def __call__(self, item: Item, at: int, labels: Mapping[str, int]) -> bytes:
        op, *rest = item
        a = [value if isinstance(value, int) else 0 for value in rest]
        r = [_A0 + (value & 3) for value in a]

        def distance(name: object, before: int = 0) -> int:
            return labels[str(name)] - at - before

        match op:
            case "set":
                return _constant(r[0], a[1])
            case "addr":
                return _constant(r[0], labels[str(rest[1])] + a[2])
            case "move":
                return _i(0x13, 0, r[0], r[1], 0)
            case "add" | "sub" | "xor" | "or" | "and" | "mul":
                return _r(*_REGISTER[op], r[0], r[0], r[1])
            case "addi" | "xori" | "ori" | "andi":
                return _i(0x13, _IMMEDIATE[op], r[0], r[0], a[1])
            case "shl":
                return _i(0x13, 1, r[0], r[0], a[1] & 31)
            case "shr":
                return _i(0x13, 5, r[0], r[0], a[1] & 31)
            case "sar":
                return _i(0x13, 5, r[0], r[0], a[1] & 31 | 0x400)
            case "load8" | "load16" | "load32":
                return _i(0x03, _LOADS[op], r[0], r[1], a[2])
            case "store8" | "store16" | "store32":
                return _store(_STORES[op], r[1], r[0], a[2])
            case "read":
                return _constant(_T0, DATA) + _i(0x03, 4, r[0], _T0, a[1])
            case "write":
                return _constant(_T0, DATA) + _store(0, _T0, r[0], a[1])
            case "input":
                if a[0] == 0:
                    return _jal(_RA, distance("input"))
                keep, back = _i(0x13, 0, _T1, _A0, 0), _i(0x13, 0, r[0], _A0, 0) + _i(0x13, 0, _A0, _T1, 0)
                return keep + _jal(_RA, distance("input", 4)) + back
            case "if":
                return _branch(_BRANCHES[str(rest[0])], r[1], r[2], distance(rest[3]))
            case "ifi":
                branch = _branch(_BRANCHES[str(rest[0])], r[1], _T0, distance(rest[3], 8))
                return _constant(_T0, a[2]) + branch
            case "flag":
                return _branch(1, r[0], 0, distance(rest[1]))
            case "jump":
                return _jal(0, distance(rest[0]))
            case "slot":
                return (_jal(0, distance(rest[0])) + _word(0x13)).ljust(SLOT, b"\0")
            case "jumpr":
                return _i(0x67, 0, 0, r[0], 0)
            case "call":
                return _jal(_RA, distance(rest[0]))
            case "callr":
                return _i(0x67, 0, _RA, r[0], 0)
            case "enter":
                return _i(0x13, 0, _SP, _SP, -16) + _store(self._funct, _SP, _RA, 8)
            case "leave":
                restore = _i(0x03, self._funct, _RA, _SP, 8) + _i(0x13, 0, _SP, _SP, 16)
                return restore + _i(0x67, 0, 0, _RA, 0)
            case "smash":
                return _store(self._funct, _SP, r[0], 8 + self._word * a[1])
            case "native":
                return bytes.fromhex(str(rest[0]))
        raise ValueError(item)


ENCODERS = {isa: Encoder(isa, _Riscv(isa == "riscv64"), bytes.fromhex("73001000")) for isa in ("riscv32", "riscv64")}
SET_FLAGS = "13000000"


def native(rng: random.Random, isa: str) -> str:
    """Comparisons, high products, division, word forms of RV64, compressed instructions."""
    a, b, c = (_A0 + rng.randrange(4) for _ in range(3))
    forms = [
        _r(0, rng.choice((2, 3)), a, b, c),
        _i(0x13, rng.choice((2, 3)), a, b, rng.randrange(-64, 256)),
        _r(1, rng.choice((1, 2, 3)), a, b, c),
        _r(1, rng.choice((4, 5, 6, 7)), a, b, c),
        _r(rng.choice((0, 0x20)), rng.choice((0, 5)), a, b, c),
        _r(0, 1, a, b, c),
        (0x8002 | a << 7 | b << 2).to_bytes(2, "little") * 2,  # c.mv, twice to stay aligned
        (0x9002 | a << 7 | b << 2).to_bytes(2, "little") + (1).to_bytes(2, "little"),  # c.add; c.nop
    ]
    if isa == "riscv64":
        word = int.from_bytes(_r(rng.choice((0, 0x20)), 0, a, b, c), "little") | 8
        forms += [_word(word), _i(0x1B, 0, a, b, rng.randrange(-64, 256))]
    return rng.choice(forms).hex()
