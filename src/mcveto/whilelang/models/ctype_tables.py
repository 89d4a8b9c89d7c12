"""The tables of characters that glibc's macros (`isdigit`, `toupper`, ...) look into, in the C locale.

Each has an entry for every number from -128 to 255. A class is a bit of a 16-bit number; its bytes are the same on
machines of both byte orders. `toupper` and `tolower` have numbers of 32 bits.
"""

from __future__ import annotations

from typing import Literal

FIRST, LAST = -128, 255
_UPPER, _LOWER, _DIGITS = range(65, 91), range(97, 123), range(48, 58)
_LETTERS = {*_UPPER, *_LOWER}
_PRINTED = range(32, 127)
TABLES_BYTES = 8192
_STARTS = (1024, 3072, 5632)
# In the order of their bits.
_CLASSES: tuple[frozenset[int], ...] = (
    frozenset(_UPPER),
    frozenset(_LOWER),
    frozenset(_LETTERS),
    frozenset(_DIGITS),
    frozenset({*_DIGITS, *range(65, 71), *range(97, 103)}),
    frozenset({32, *range(9, 14)}),
    frozenset(_PRINTED),
    frozenset(range(33, 127)),
    frozenset({32, 9}),
    frozenset({*range(32), 127}),
    frozenset(range(33, 127)) - _LETTERS - set(_DIGITS),
    frozenset({*_DIGITS, *_LETTERS}),
)


def character_tables(at: int, word: int, order: Literal["little", "big"]) -> tuple[bytes, list[tuple[int, int]]]:
    """What is at `at`, and where nobody knows what is there: three cells with the addresses of the entries of 0
    (classes, upper case, lower case), then the tables, apart from each other."""
    characters = range(FIRST, LAST + 1)
    upper = [c - 32 if c in _LOWER else c for c in map(_plain, characters)]
    lower = [c + 32 if c in _UPPER else c for c in map(_plain, characters)]
    classes = b"".join(_class_bytes(character) for character in characters)
    tables = [classes, *(b"".join((c & 0xFFFFFFFF).to_bytes(4, order) for c in case) for case in (upper, lower))]
    content, gaps, cells = bytearray(), list[tuple[int, int]](), b""
    for start, table in zip(_STARTS, tables, strict=True):
        cells += (at + start - FIRST * len(table) // len(characters)).to_bytes(word, order)
        gaps.append((max(len(content), len(_STARTS) * word), start))
        content[len(content) :] = bytes(start - len(content)) + table
    content[: len(cells)] = cells
    return bytes(content), [*gaps, (len(content), TABLES_BYTES)]


def _class_bytes(character: int) -> bytes:
    bits = sum(1 << number for number, members in enumerate(_CLASSES) if character in members)
    return bytes((bits >> 8, bits & 0xFF))


def _plain(character: int) -> int:
    """Bytes of a signed type stand for those of an unsigned one, except the end of the input."""
    return character if character >= -1 else character + 256
