"""The table of instruction sets: reads `data/table.toml` into typed rows."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from mcveto.late_methods import dataclass

# Not importlib.resources: importing that costs every start more than reading the data.
DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class IsaRow:
    name: str
    sleigh: str
    overlay: str
    address_bits: int
    stack_pointer: str
    frame_pointer: str
    program_counter: str
    return_address: str
    return_registers: tuple[str, ...]
    arguments: tuple[str, ...]
    general: tuple[str, ...]
    flags: tuple[str, ...]
    scratch: tuple[str, ...]
    max_instruction: int
    alignment: int
    big_endian: bool = False
    little_endian_code: bool = False
    one_bit: tuple[str, ...] = ()
    significant_bits: tuple[tuple[str, int], ...] = ()
    split: tuple[str, ...] = ()
    zero_register: str | None = None
    extra: tuple[tuple[str, int], ...] = ()
    refused: tuple[tuple[int, int, int], ...] = ()
    mode_register: str | None = None
    delay_marker: tuple[str, int] | None = None
    modes: tuple[tuple[tuple[str, int], ...], ...] = ((),)

    @property
    def address_bytes(self) -> int:
        return self.address_bits // 8

    @property
    def address_mask(self) -> int:
        return (1 << self.address_bits) - 1

    @property
    def registers_big_endian(self) -> bool:
        """The byte order of instructions, and of the register space of their SLEIGH description."""
        return self.big_endian and not self.little_endian_code

    @property
    def pushes_return_address(self) -> bool:
        return self.return_address == "pushed"

    @property
    def mode_mask(self) -> int:
        """The bit of a code address that is not part of the address (Thumb), or 0."""
        return 1 if self.mode_register else 0

    def longest_unit(self, pc: int) -> int:
        """How many bytes decoding at `pc` may need: in Thumb, an IT instruction and the four it governs."""
        return max(self.max_instruction, 18 if pc & self.mode_mask else 0)

    def code_address(self, pc: int) -> int:
        """The memory address of the instruction a program counter value designates."""
        return pc & ~self.mode_mask


def _freeze(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_freeze(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _freeze(item)) for key, item in value.items()))
    return value


@cache
def isa_rows() -> dict[str, IsaRow]:
    raw = tomllib.loads((DATA / "table.toml").read_text())
    known = {field.name for field in fields(IsaRow)}
    rows: dict[str, IsaRow] = {}
    for name, columns in raw.items():
        merged = {**raw.get(columns.get("inherit", ""), {}), **columns, "name": name}
        merged.pop("inherit", None)
        unknown = merged.keys() - known
        if unknown:
            raise ValueError(f"row {name} of the instruction-set table has unknown columns {sorted(unknown)}")
        rows[name] = IsaRow(**{key: _freeze(value) for key, value in merged.items()})
    return rows
