"""Instruction encodings to test: compiler-emitted ones from data files, rare ones from bit patterns.

A pattern is (value, mask): bits in the mask are fixed, the others random. Every family lists the patterns of its
encoding groups, so that each group gets its share however few encodings it has.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

_DATA = Path(__file__).parent / "data"
Patterns = tuple[tuple[int, int], ...]


def compiled(name: str) -> dict[str, list[bytes]]:
    """Mnemonic -> encodings of `data/compiled_<name>.txt`."""
    found: dict[str, list[bytes]] = {}
    for line in (_DATA / f"compiled_{name}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            mnemonic, *codes = line.split()
            found[mnemonic] = [bytes.fromhex(code) for code in codes]
    return found


def words(
    rng: Random, patterns: Patterns, count: int, awkward: tuple[int, ...] = (), fields: tuple[int, ...] = ()
) -> list[int]:
    """Random 32-bit words of the patterns; register fields (4 bits at `fields`) mostly avoid `awkward` numbers."""
    found: list[int] = []
    for _ in range(count):
        value, mask = rng.choice(patterns)
        word = rng.getrandbits(32) & ~mask | value
        if rng.random() < 0.7:
            for at in fields:
                if word >> at & 15 in awkward and not mask >> at & 15:
                    word ^= 8 << at
        found.append(word)
    return found
