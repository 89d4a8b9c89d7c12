"""Where the values come from that a program does not determine: given, or drawn from a seed.

A run consumes inputs in a fixed order: listed registers, listed memory, then one value per call of an input function.
Given values are used first; when they are used up, the rest are drawn from the seed. What was consumed is recorded,
so that any run can be repeated exactly.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass


@dataclass(frozen=True, slots=True)
class ConsumedInput:
    """One input in the order consumed, as the JSON result lists it."""

    value: int
    bits: int
    where: str


class InputSource:
    def __init__(self, given: Sequence[int] = (), seed: int = 0) -> None:
        self._given = list(given)
        self._random = random.Random(seed)
        self.consumed: list[ConsumedInput] = []

    @property
    def unused(self) -> int:
        """How many of the given values no run asked for yet."""
        return max(len(self._given) - len(self.consumed), 0)

    def next(self, bits: int, where: str, signed: bool = False) -> int:
        """The next value as an unsigned number of `bits` bits."""
        number = len(self.consumed)
        if number < len(self._given):
            value = self._given[number]
            if not -(1 << (bits - 1)) <= value < 1 << bits:
                raise UsageError(f"input {number} is {value}, which does not fit {bits} bits", where)
            value &= (1 << bits) - 1
        else:
            value = self._draw(bits)
        shown = value - (1 << bits) if signed and value >> (bits - 1) else value
        self.consumed.append(ConsumedInput(shown, bits, where))
        return value

    def _draw(self, bits: int) -> int:
        """Boundary values and small numbers more often than chance: they are where programs branch."""
        top = (1 << bits) - 1
        choice = self._random.randrange(4)
        if choice == 0:
            return self._random.choice((0, 1, top, top >> 1, (top >> 1) + 1))
        if choice == 1:
            return self._random.randrange(256) & top
        return self._random.getrandbits(bits)


def parse_inputs(text: str) -> list[int]:
    """Input values as a user writes them: numbers separated by commas or blanks, decimal or 0x."""
    values = []
    for word in text.replace(",", " ").split():
        try:
            value = int(word, 0)
        except ValueError:
            raise UsageError(f"'{word[:40]}' is not an input value", "write numbers such as 3,0x10,-1") from None
        if not -(1 << 63) <= value < 1 << 64:
            raise UsageError(f"input value {word[:40]} does not fit 64 bits")
        values.append(value)
    return values
