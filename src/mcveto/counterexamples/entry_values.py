"""All that a run depends on, and the run made from it once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mcveto.machine.emulator import Machine
from mcveto.machine.pcode import FreshOrigin
from mcveto.program.inputs import ConsumedInput
from mcveto.program.program import Program


@dataclass(frozen=True, slots=True)
class EntryValues:
    """Fresh values in the order consumed, registers and bytes of the entry state."""

    fresh: tuple[int, ...]
    registers: dict[str, int]
    memory: dict[int, int]

    def inputs(self, program: Program) -> list[ConsumedInput]:
        """The registers and bytes."""
        layout = program.decoder.layout
        found = []
        for name, value in sorted(self.registers.items()):
            bits = layout.significant_bits(layout.by_name[name])
            found.append(ConsumedInput(value & ((1 << bits) - 1), bits, f"register {name} at entry"))
        for address, byte in sorted(self.memory.items()):
            found.append(ConsumedInput(byte, 8, f"memory {address:#x} at entry"))
        return found


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The trace runs with these inputs, and ends at an error also in the emulator."""

    inputs: tuple[ConsumedInput, ...]
    error: int
    """The target address that stands for the error reached."""
    entry: EntryValues = field(default_factory=lambda: EntryValues((), {}, {}))
    """What the run is made from once more."""
    steps: int = 0


def consumed_input(program: Program, call: int, value: int) -> ConsumedInput:
    """What a call of an input function, by its number in the spec, returned."""
    where = program.spec.input_calls[call]
    shown = value & ((1 << where.bits) - 1)
    if where.signed and shown >> (where.bits - 1):
        shown -= 1 << where.bits
    name = where.at if isinstance(where.at, str) else f"{where.at:#x}"
    return ConsumedInput(shown, where.bits, f"call of {name}")


def machine_with(
    program: Program, values: EntryValues, fresh: Callable[[int, FreshOrigin, int], int] | None = None
) -> Machine:
    """The emulator before a run with these values; `fresh` takes the place of those of the values."""
    position = [0]

    def given(bits: int, origin: FreshOrigin, usual: int) -> int:
        number = position[0]
        position[0] += 1
        return values.fresh[number] if number < len(values.fresh) else usual

    return program.machine_from(fresh or given, values.registers, values.memory)
