"""The two number theories: the integers ℤ, and the machine integers ℤ_M of a chosen width, signed or unsigned.

A theory says what the operators mean on concrete values; the verification conditions do not depend on it. Division
rounds towards zero and the remainder has the sign of the dividend, as in C, in both theories. Machine integers wrap
around; shifting by the width or more leaves 0 (or the sign). Dividing by zero has no value in either theory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcveto.errors import UsageError

BITWISE = frozenset({"&", "|", "^", "<<", ">>", "~"})
MAX_BITS = 64


@dataclass(frozen=True, slots=True)
class Theory:
    """`bits` is None for ℤ."""

    bits: int | None = None
    signed: bool = True

    @property
    def name(self) -> str:
        return "Z" if self.bits is None else f"{'s' if self.signed else 'u'}{self.bits}"

    @property
    def symbol(self) -> str:
        """The rule that closes a goal by arithmetic."""
        return "ℤ" if self.bits is None else "ℤ_M"

    @property
    def smallest(self) -> int | None:
        if self.bits is None:
            return None
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def largest(self) -> int | None:
        if self.bits is None:
            return None
        return (1 << (self.bits - (1 if self.signed else 0))) - 1

    def wrap(self, value: int) -> int:
        """The value of the theory congruent to `value`."""
        if self.bits is None:
            return value
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.signed and value >> (self.bits - 1) else value

    def pattern(self, value: int) -> int:
        """The value as an unsigned bit pattern."""
        assert self.bits is not None
        return value & ((1 << self.bits) - 1)

    def unary(self, op: str, value: int) -> int:
        return self.wrap(-value if op == "-" else ~value)

    def binary(self, op: str, left: int, right: int) -> int:
        """The value of `left op right`; ZeroDivisionError where there is none."""
        match op:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case "/":
                result = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            case "%":
                result = abs(left) % abs(right) * (-1 if left < 0 else 1)
            case "&":
                result = left & right
            case "|":
                result = left | right
            case "^":
                result = left ^ right
            case _:
                result = self._shift(op, left, right)
        return self.wrap(result)

    def _shift(self, op: str, left: int, right: int) -> int:
        assert self.bits is not None
        amount = min(self.pattern(right), self.bits)
        return left << amount if op == "<<" else left >> amount


def theory_named(name: str) -> Theory:
    if name in ("Z", "ℤ"):
        return Theory()
    match = re.fullmatch(r"([us])([0-9]{1,3})", name)
    if match is None or not 1 <= int(match[2]) <= MAX_BITS:
        raise UsageError(
            f"there is no number theory '{name[:40]}'", f"Z, or u1 to u{MAX_BITS} and s1 to s{MAX_BITS}, e.g. u32"
        )
    return Theory(int(match[2]), match[1] == "s")
