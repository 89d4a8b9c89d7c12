"""Encodings of x86 instructions to test: what compilers emit, every opcode systematically, and random bytes.

`corpus_x86_32.txt` and `corpus_x86_64.txt` hold instructions of integer code compiled with clang at -O0 to -O3 and -Os
(our test programs and parts of a C library): bytes, how often the form occurred, mnemonic. Absolute and rip-relative
displacements were redirected into the harness's data region.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

LENGTH = 16
_MAPS = (b"", b"\x0f", b"\x0f\x38", b"\x0f\x3a")
_LEGACY_PREFIXES = (0x66, 0x67, 0xF2, 0xF3, 0x2E, 0x36, 0x3E, 0x26, 0xF0)


def compiled(isa: str) -> list[bytes]:
    """Instructions compilers emit, padded with one-byte NOPs."""
    path = Path(__file__).with_name(f"corpus_{isa.replace('-', '_')}.txt")
    return [bytes.fromhex(line.split()[0]).ljust(LENGTH, b"\x90") for line in path.read_text().splitlines()]


def systematic(isa: str, rng: Random) -> Iterator[bytes]:
    """Every opcode of the four maps with common prefixes, register and memory operands; random bytes follow."""
    prefixes = [b"", b"\x66", b"\xf2", b"\xf3", b"\xf0"]
    if isa == "x86-64":
        prefixes += [b"\x48", bytes([0x40 | rng.randrange(16)])]
    for opcode_map in _MAPS:
        for opcode in range(256):
            for prefix in prefixes:
                registers = [0xC0 | field << 3 | rng.randrange(8) for field in range(8)]
                memory = [rng.choice((0x00, 0x40, 0x80)) | field << 3 | rng.randrange(8) for field in range(8)]
                for modrm in registers + memory:
                    code = prefix + opcode_map + bytes([opcode, modrm])
                    yield (code + rng.randbytes(LENGTH))[:LENGTH]


def random_bytes(isa: str, rng: Random) -> Iterator[bytes]:
    """Random prefixes, opcode maps (VEX included) and bytes, for ever."""
    while True:
        prefix = bytes(rng.choice(_LEGACY_PREFIXES) for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 3))))
        if isa == "x86-64" and rng.random() < 0.5:
            prefix += bytes([rng.randrange(0x40, 0x50)])
        if rng.random() < 0.05:
            prefix += bytes([rng.choice(_LEGACY_PREFIXES)])
        start = rng.choice((b"", b"", b"\x0f", b"\x0f", b"\x0f\x38", b"\x0f\x3a", b"\xc4", b"\xc5"))
        yield (prefix + start + rng.randbytes(LENGTH))[:LENGTH]
