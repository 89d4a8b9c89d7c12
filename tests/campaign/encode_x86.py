"""x86-32 and x86-64. Registers 0-3 are EAX, ECX, EDX, EBX (all have low bytes); ESI and EDI are scratch."""

from __future__ import annotations

import random
from collections.abc import Mapping

from .items import DATA, SLOT, Encoder, Item

_SCRATCH, _OTHER = 6, 7
_OPCODES = {"add": 0x01, "or": 0x09, "and": 0x21, "sub": 0x29, "xor": 0x31}
_GROUP = {"addi": 0, "ori": 1, "andi": 4, "xori": 6}
_SHIFTS = {"shl": 4, "shr": 5, "sar": 7}
_CONDITIONS = {"eq": 4, "ne": 5, "lt": 12, "ge": 13, "ltu": 2, "geu": 3}


class _X86:
    def __init__(self, wide: bool) -> None:
        self.wide = wide
        self.rex = b"\x48" if wide else b""

    def __call__(self, item: Item, at: int, labels: Mapping[str, int]) -> bytes:
        op, *rest = item
        a = [value if isinstance(value, int) else 0 for value in rest]
        rex = self.rex

        def jump(opcode: bytes, name: object, before: int = 0) -> bytes:
            distance = labels[str(name)] - (at + before + len(opcode) + 4)
            return opcode + (distance & 0xFFFFFFFF).to_bytes(4, "little")

        match op:
            case "set":
                return self._constant(a[0], a[1])
            case "addr":
                return self._constant(a[0], labels[str(rest[1])] + a[2])
            case "move":
                return rex + bytes([0x89, 0xC0 | a[1] << 3 | a[0]])
            case "add" | "or" | "and" | "sub" | "xor":
                return rex + bytes([_OPCODES[op], 0xC0 | a[1] << 3 | a[0]])
            case "mul":
                return rex + bytes([0x0F, 0xAF, 0xC0 | a[0] << 3 | a[1]])
            case "addi" | "ori" | "andi" | "xori":
                return rex + bytes([0x83, 0xC0 | _GROUP[op] << 3 | a[0], a[1] & 0xFF])
            case "shl" | "shr" | "sar":
                return rex + bytes([0xC1, 0xC0 | _SHIFTS[op] << 3 | a[0], a[1] & 0x1F])
            case "load8":
                return b"\x0f\xb6" + bytes([0x80 | a[0] << 3 | a[1]]) + _word(a[2])
            case "load16":
                return b"\x0f\xb7" + bytes([0x80 | a[0] << 3 | a[1]]) + _word(a[2])
            case "load32":
                return b"\x8b" + bytes([0x80 | a[0] << 3 | a[1]]) + _word(a[2])
            case "store8":
                return b"\x88" + bytes([0x80 | a[0] << 3 | a[1]]) + _word(a[2])
            case "store16":
                return b"\x66\x89" + bytes([0x80 | a[0] << 3 | a[1]]) + _word(a[2])
            case "store32":
                return b"\x89" + bytes([0x80 | a[0] << 3 | a[1]]) + _word(a[2])
            case "read":
                return self._constant(_SCRATCH, DATA) + self(("load8", a[0], _SCRATCH, a[1]), at, labels)
            case "write":
                return self._constant(_SCRATCH, DATA) + self(("store8", a[0], _SCRATCH, a[1]), at, labels)
            case "input":
                # The result comes in EAX: keep what is there unless it is asked for.
                if a[0] == 0:
                    return jump(b"\xe8", "input")
                save = bytes([0x89, 0xC0 | 0 << 3 | _OTHER])
                back = bytes([0x89, 0xC0 | 0 << 3 | a[0]]) + rex + bytes([0x89, 0xC0 | _OTHER << 3 | 0])
                return rex + save + jump(b"\xe8", "input", len(rex) + 2) + rex + back
            case "if":
                compare = rex + bytes([0x39, 0xC0 | a[2] << 3 | a[1]])
                return compare + jump(bytes([0x0F, 0x80 | _CONDITIONS[str(rest[0])]]), rest[3], len(compare))
            case "ifi":
                compare = rex + bytes([0x81, 0xC0 | 7 << 3 | a[1]]) + _word(a[2])
                return compare + jump(bytes([0x0F, 0x80 | _CONDITIONS[str(rest[0])]]), rest[3], len(compare))
            case "flag":
                return jump(bytes([0x0F, 0x80 | a[0] & 15]), rest[1])
            case "jump":
                return jump(b"\xe9", rest[0])
            case "slot":
                return jump(b"\xe9", rest[0]).ljust(SLOT, b"\x90")
            case "jumpr":
                return bytes([0xFF, 0xC0 | 4 << 3 | a[0]])
            case "call":
                return jump(b"\xe8", rest[0])
            case "callr":
                return bytes([0xFF, 0xC0 | 2 << 3 | a[0]])
            case "enter":
                return b"\x55" + rex + b"\x89\xe5"
            case "leave":
                return b"\x5d\xc3"
            case "smash":
                word = 8 if self.wide else 4
                return rex + bytes([0x89, 0x44 | a[0] << 3, 0x24, word * (1 + a[1]) & 0x7F])
            case "native":
                return bytes.fromhex(str(rest[0]))
        raise ValueError(item)

    def _constant(self, register: int, value: int) -> bytes:
        return bytes([0xB8 | register]) + _word(value)


def _word(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "little")


ENCODERS = {isa: Encoder(isa, _X86(isa == "x86-64"), b"\xcc") for isa in ("x86-32", "x86-64")}
# cmp eax, eax: every flag has a value.
SET_FLAGS = "39c0"


def native(rng: random.Random, isa: str) -> str:
    """Flags, sub-registers and what else is peculiar; never an access to memory."""
    a, b = rng.randrange(4), rng.randrange(4)
    rex = b"\x48" if isa == "x86-64" and rng.random() < 0.5 else b""
    both = 0xC0 | b << 3 | a
    cc = rng.choice((2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 0, 1, 10, 11))
    low = 0xC0 | rng.randrange(8) << 3 | rng.randrange(8)
    forms = [
        rex + bytes([rng.choice((0x11, 0x19)), both]),
        rex + bytes([0xF7, 0xC0 | rng.choice((2, 3)) << 3 | a]),
        rex + bytes([0xFF, 0xC0 | rng.choice((0, 1)) << 3 | a]),
        rex + bytes([0x87, both]),
        rex + bytes([rng.choice((0x85, 0x39, 0x3B)), both]),
        rex + bytes([0x83, 0xC0 | rng.choice((2, 3, 5, 7)) << 3 | a, rng.randrange(256)]),
        bytes([0x0F, 0x90 | cc, 0xC0 | a]),
        rex + bytes([0x0F, 0x40 | cc, both]),
        rex + bytes([0x0F, rng.choice((0xB6, 0xB7, 0xBE, 0xBF)), both]),
        bytes([rng.choice((0x88, 0x00, 0x28, 0x38, 0x20, 0x30, 0x10, 0x18)), low]),
        b"\x66" + bytes([rng.choice((0x01, 0x29, 0x31, 0x39, 0x89)), both]),
        rex + bytes([0x8D, 0x44 | b << 3, rng.choice((0x40, 0x80, 0x00)) | a << 3 | b, rng.randrange(256)]),
        rex + bytes([0xC1, 0xC0 | rng.choice((0, 1, 4, 5, 7)) << 3 | a, rng.randrange(1, 12)]),
        rex + bytes([0xD3, 0xC0 | rng.choice((4, 5, 7)) << 3 | a]),
        rex + bytes([0xF7, 0xC0 | rng.choice((4, 5)) << 3 | a]),
        rex + bytes([0x0F, 0xC8 | a]),
        b"\x99",
        bytes([0x50 | a, 0x58 | b]),
        bytes([rng.choice((0xF8, 0xF9, 0xF5))]),
        rex + bytes([0x0F, 0xC1, both]),
        rex + bytes([0x0F, 0xBA, 0xC0 | rng.choice((4, 5, 6, 7)) << 3 | a, rng.randrange(32)]),
        bytes([0xF6, 0xC0 | rng.choice((2, 3)) << 3 | rng.randrange(8)]),
        b"\x80" + bytes([0xC0 | rng.choice((0, 2, 3, 4, 5, 7)) << 3 | rng.randrange(8), rng.randrange(256)]),
        rex + bytes([0xF7, 0xC0 | 6 << 3 | a]),
        bytes([0x9F]) if rng.random() < 0.2 else bytes([0x98]),
    ]
    weights = [3] * len(forms)
    weights[-2] = 1  # division: often a fault
    return rng.choices(forms, weights)[0].hex()
