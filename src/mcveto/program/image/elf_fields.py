"""Where a relocation puts its value: the bits of an instruction or a data word, described as data.

A field is a container of some bytes and a list of parts `(value bit, width, container bit)`. Reading an
implicit addend and writing the value follow from the same description. A value that does not fit raises
`DoesNotFit`: the caller declares the bytes unspecified instead of truncating.
"""

from dataclasses import dataclass
from typing import Literal


class DoesNotFit(ValueError):
    """The value of a relocation is out of the field's range or not aligned."""


@dataclass(frozen=True, slots=True)
class Field:
    """`check`: "s" signed, "u" unsigned, "e" either, "" truncate; `top` is the number of bits to fit into."""

    size: int
    parts: tuple[tuple[int, int, int], ...]
    check: str = ""
    top: int = 0
    align: int = 1
    rounding: int = 0
    halves: bool = False
    """The container is two 16-bit units, the first one being the upper half (32-bit Thumb instructions)."""

    def load(self, raw: bytes, little: bool) -> int:
        order = _order(little)
        if self.halves:
            return int.from_bytes(raw[:2], order) << 16 | int.from_bytes(raw[2:], order)
        return int.from_bytes(raw, order)

    def store(self, container: int, little: bool) -> bytes:
        order = _order(little)
        if self.halves:
            return (container >> 16).to_bytes(2, order) + (container & 0xFFFF).to_bytes(2, order)
        return container.to_bytes(self.size, order)

    def extract(self, container: int) -> int:
        """The signed value that the field holds now."""
        value, bits = 0, 0
        for value_bit, width, container_bit in self.parts:
            value |= (container >> container_bit & (1 << width) - 1) << value_bit
            bits = max(bits, value_bit + width)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def insert(self, container: int, value: int, bits: int) -> int:
        """`container` with `value`, a number modulo 2**bits, put in."""
        modulus = 1 << bits
        value %= modulus
        signed = value - modulus if value >> (bits - 1) else value
        if value % self.align:
            raise DoesNotFit(f"{value:#x} is not a multiple of {self.align}")
        half, full = 1 << max(self.top - 1, 0), 1 << self.top
        fits_signed, fits_unsigned = -half <= signed + self.rounding < half, value + self.rounding < full
        fits = {"": True, "s": fits_signed, "u": fits_unsigned, "e": fits_signed or fits_unsigned}[self.check]
        if not fits:
            raise DoesNotFit(f"{signed:#x} exceeds {self.top} bits")
        value = (value + self.rounding) % modulus
        for value_bit, width, container_bit in self.parts:
            mask = (1 << width) - 1
            container = container & ~(mask << container_bit) | (value >> value_bit & mask) << container_bit
        return container


def word(size: int, check: str = "") -> Field:
    """A whole data word of `size` bytes."""
    return Field(size, ((0, 8 * size, 0),), check, 8 * size)


def _order(little: bool) -> Literal["little", "big"]:
    return "little" if little else "big"
