"""The concrete domain: values are Python integers, and the state they live in.

This is the reference emulator's domain; `compiled/` runs the same templates pasted into whole blocks.
"""

from __future__ import annotations

from collections.abc import Callable

from .memory import Memory
from .operators import FUNCTIONS
from .pcode import FreshOrigin
from .registers import Cell

FreshSource = Callable[[int, FreshOrigin, int], int]


def usual_value(bits: int, origin: FreshOrigin, usual: int) -> int:
    """The fresh source that always takes the usual value."""
    return usual


class ConcreteDomain:
    """Registers (one integer per cell, 0 where never written) and memory."""

    def __init__(self, memory: Memory, fresh: FreshSource = usual_value) -> None:
        self.memory = memory
        self.registers: dict[int, int] = {}
        self._fresh = fresh

    def constant(self, value: int, bits: int) -> int:
        return value & ((1 << bits) - 1)

    def apply(self, opcode: str, arguments: tuple[int, ...], input_bits: int, output_bits: int) -> int:
        return FUNCTIONS[opcode](
            arguments, (1 << output_bits) - 1, (1 << input_bits) - 1, 1 << (input_bits - 1), input_bits
        )

    def shift(self, opcode: str, value: int, amount: int, bits: int, amount_bits: int) -> int:
        return FUNCTIONS[opcode]((value, amount), (1 << bits) - 1, (1 << bits) - 1, 1 << (bits - 1), bits)

    def extract(self, value: int, low: int, bits: int, total_bits: int) -> int:
        return (value >> low) & ((1 << bits) - 1)

    def insert(self, old: int, value: int, low: int, bits: int, total_bits: int) -> int:
        return (old & ~(((1 << bits) - 1) << low)) | (value << low)

    def concatenate(self, high: int, low: int, high_bits: int, low_bits: int) -> int:
        return (high << low_bits) | low

    def read_register(self, cell: Cell) -> int:
        return self.registers.get(cell.number, 0)

    def write_register(self, cell: Cell, value: int) -> None:
        self.registers[cell.number] = value

    def load(self, address: int, size: int) -> int:
        return self.memory.load(address, size)

    def store(self, address: int, value: int, size: int) -> None:
        self.memory.store(address, value, size)

    def decide(self, condition: int) -> bool:
        return condition != 0

    def fresh(self, bits: int, origin: FreshOrigin, usual: int) -> int:
        return self._fresh(bits, origin, usual)
