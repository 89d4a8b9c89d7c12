"""What the interpreter asks of a value domain: values, operators, storage and branching.

One interpreter, many domains: Python integers give the emulator, terms give symbolic execution and `Pre`, source text
gives compiled execution, affine relations and strided intervals give the speculative analyses (TR1669 §4 derives the
same primitives from one TSL description). A domain never learns which instruction set it serves.

Widths are in bits and always given: an integer does not know its own. Truth values are bytes holding 0 or 1, as in
P-code.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from .pcode import FreshOrigin
from .registers import Cell

V = TypeVar("V")


class Domain(Protocol[V]):
    def constant(self, value: int, bits: int) -> V: ...

    def apply(self, opcode: str, arguments: tuple[V, ...], input_bits: int, output_bits: int) -> V:
        """The value of a P-code operator; `input_bits` is the width of the first argument."""
        ...

    def shift(self, opcode: str, value: V, amount: V, bits: int, amount_bits: int) -> V:
        """INT_LEFT, INT_RIGHT, INT_SRIGHT; amounts of any width, at or beyond `bits` shift everything out."""
        ...

    def extract(self, value: V, low: int, bits: int, total_bits: int) -> V:
        """Bits [low, low+bits) of a value of `total_bits`."""
        ...

    def insert(self, old: V, value: V, low: int, bits: int, total_bits: int) -> V:
        """`old` with bits [low, low+bits) replaced by `value`."""
        ...

    def concatenate(self, high: V, low: V, high_bits: int, low_bits: int) -> V: ...

    def read_register(self, cell: Cell) -> V: ...

    def write_register(self, cell: Cell, value: V) -> None: ...

    def load(self, address: V, size: int) -> V:
        """`size` bytes in the machine's byte order; may raise Fault."""
        ...

    def store(self, address: V, value: V, size: int) -> None:
        """Writes `size` bytes in the machine's byte order; may raise Fault."""
        ...

    def decide(self, condition: V) -> bool:
        """Which way to go: the branch on `condition` (a byte) that this execution follows."""
        ...

    def fresh(self, bits: int, origin: FreshOrigin, usual: V) -> V:
        """A value the program does not determine: an input, or something the architecture leaves undefined."""
        ...
