"""Encodings of fixed 32-bit instruction words: bits that must match, named fields, a condition on the fields."""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple

from ..pcode import Space, Varnode


class Encoding(NamedTuple):
    """The 32-bit words w with w & mask == value whose fields satisfy the condition."""

    name: str
    mask: int
    value: int
    fields: tuple[tuple[str, int, int], ...]
    condition: CodeType | None

    def matches(self, word: int) -> bool:
        if word & self.mask != self.value:
            return False
        return self.condition is None or bool(eval(self.condition, {"__builtins__": {}}, self.values(word)))

    def values(self, word: int) -> dict[str, int]:
        return {letter: word >> low & (1 << bits) - 1 for letter, low, bits in self.fields}

    def constants(self, word: int) -> dict[str, Varnode]:
        """The fields as constants of the smallest of 1, 2 or 4 bytes."""
        values = self.values(word)
        sizes = {letter: next(size for size in (1, 2, 4) if bits <= 8 * size) for letter, _, bits in self.fields}
        return {letter: Varnode(Space.CONST, values[letter], size) for letter, size in sizes.items()}


def read_encoding(line: str) -> Encoding:
    """An encoding from its name, its 32 bits (0, 1 or the letter of a field) and its condition."""
    pattern, _, condition = line.partition(" if ")
    name, *parts = pattern.split()
    bits = "".join(parts)
    if len(bits) != 32:
        raise ValueError(f"encoding {name} has {len(bits)} bits")
    fields = tuple(
        (letter, 31 - bits.rindex(letter), bits.count(letter)) for letter in sorted(set(bits)) if letter.isalpha()
    )
    mask = int("".join("1" if bit in "01" else "0" for bit in bits), 2)
    value = int("".join(bit if bit in "01" else "0" for bit in bits), 2)
    return Encoding(name, mask, value, fields, compile(condition.strip(), name, "eval") if condition else None)
