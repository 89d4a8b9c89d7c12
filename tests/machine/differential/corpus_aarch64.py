"""AArch64 encodings: the groups of the integer set, loads and stores, branches, and vector moves and logic."""

from __future__ import annotations

from random import Random

from .corpus_words import Patterns, words

PATTERNS: Patterns = (
    # logical, add/subtract and wide immediates, bit fields, extract
    *((0x12000000, 0x1F800000), (0x11000000, 0x1F000000), (0x12800000, 0x1F800000)),
    *((0x13000000, 0x1F800000), (0x13800000, 0x1F800000), (0x10000000, 0x1F000000)),
    # register forms: logical, add/subtract shifted and extended, with carry, conditional, 1, 2 and 3 sources
    *((0x0A000000, 0x1F000000), (0x0B000000, 0x1F200000), (0x0B200000, 0x1FE00000), (0x1A000000, 0x1FE0FC00)),
    *((0x1A400000, 0x1FE00410), (0x1A800000, 0x1FE00800), (0x1AC00000, 0x5FE0C000), (0x5AC00000, 0x5FFFC000)),
    *((0x1B000000, 0x1F000000),),
    # loads and stores: unscaled, post-, pre-indexed, unprivileged, register, scaled, pairs, literal, exclusive, atomic
    *((0x38000000, 0x3F200C00), (0x38000400, 0x3F200C00), (0x38000C00, 0x3F200C00), (0x38000800, 0x3F200C00)),
    *((0x38200800, 0x3F200C00), (0x39000000, 0x3F000000), (0x28000000, 0x3E000000), (0x18000000, 0x3F000000)),
    *((0x08000000, 0x3F000000), (0x38200000, 0x3F200C00)),
    # branches, exceptions, NZCV and TPIDR_EL0
    *((0x34000000, 0x7E000000), (0x36000000, 0x7E000000), (0x54000000, 0xFF000010), (0x14000000, 0x7C000000)),
    *((0xD61F0000, 0xFF9FFC1F), (0xD4000000, 0xFF000000), (0xD51B4200, 0xFFDFFFE0), (0xD51BD040, 0xFFDFFFE0)),
    # vectors: loads and stores, copies, immediates, three registers, shifts, permutations, narrowing
    *((0x3C000000, 0x3F000000), (0x3D000000, 0x3F000000), (0x2C000000, 0x3E000000), (0x0E000400, 0x9FE08400)),
    *((0x0F000400, 0x9FF80400), (0x0E200400, 0x9F200400), (0x0F000400, 0x9F800400), (0x0E000800, 0xBF208C00)),
    *((0x1E260000, 0x7F26FC00), (0x0E212800, 0xBF3FFC00), (0x0E200000, 0x9F200C00)),
    # vectors: one register, across lanes, by element, table look-up, extraction, structures in memory
    *((0x0E200800, 0x9F3E0C00), (0x0E300800, 0x9F3E0C00), (0x0F000000, 0x9F000400), (0x0E000000, 0xBFE08C00)),
    *((0x2E000000, 0xBFE08400), (0x0C000000, 0xBFBF0000), (0x0C800000, 0xBFA00000), (0x0D000000, 0xBF9F0000)),
    *((0x0D800000, 0xBF800000),),
    # one element: three registers, two registers, pairs, shifts, copies
    *((0x5E200400, 0xDF200400), (0x5E200800, 0xDF3E0C00), (0x5E300800, 0xDF3E0C00), (0x5F000400, 0xDF800400)),
    *((0x5E000400, 0xFFE0FC00),),
)


def rare(rng: Random, count: int) -> list[bytes]:
    found: list[bytes] = []
    for word in words(rng, PATTERNS, count):
        if rng.random() < 0.12:
            word |= 0x1F
        if rng.random() < 0.1:
            word |= 0x1F << 5
        if rng.random() < 0.08:
            word = word & ~0x1F | (word >> 5 & 0x1F)
        found.append(word.to_bytes(4, "little"))
    return found
