"""Checks an overlay entry by one instruction: with it the outcome is as the manual says, without it it is not."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import Decoder, decoder_for
from mcveto.machine.memory import Memory, RegionSpec

DATA = 0x2000
READ_ONLY = 0x3000
PC = 0x8000


@dataclass(frozen=True)
class OverlayCase:
    """`expect` is a fault label, "unsupported", or values of registers, "pc", "transfer" and memory at (address, size).

    Byte i of every region holds i.
    """

    id: str
    isa: str
    code: str
    expect: str | Mapping[object, object]
    registers: Mapping[str, int] = field(default_factory=dict)
    thumb: bool = False


def outcome(decoder: Decoder, case: OverlayCase) -> str | dict[object, object]:
    row = decoder.row
    regions = [
        RegionSpec("code", PC, 1024, 5, bytes(range(256)) * 4),
        RegionSpec("data", DATA, 256, 6, bytes(range(256))),
        RegionSpec("constants", READ_ONLY, 256, 4, bytes(range(256))),
    ]
    memory = Memory(regions, row.address_bits, row.big_endian)
    domain = ConcreteDomain(memory)
    for name, value in case.registers.items():
        domain.registers[decoder.layout.by_name[name].number] = value
    try:
        instruction = decoder.decode(PC | case.thumb, bytes.fromhex(case.code))
        step = Interpreter[int](decoder).execute(instruction, domain)
    except Unsupported:
        return "unsupported"
    except Fault as fault:
        return fault.kind.label
    if isinstance(case.expect, str):
        return "runs"
    found: dict[object, object] = {}
    for key in case.expect:
        if isinstance(key, tuple):
            found[key] = memory.load(*key)
        elif key == "pc":
            found[key] = step.target
        elif key == "transfer":
            found[key] = step.transfer.name
        else:
            found[key] = domain.registers.get(decoder.layout.by_name[str(key)].number, 0)
    return found


def check(case: OverlayCase) -> None:
    decoder = decoder_for(case.isa)
    overlay = decoder.overlay
    entries = overlay.defects
    assert outcome(decoder, case) == case.expect
    try:
        overlay.defects = [entry for entry in entries if entry.id != case.id]
        decoder.forget()
        assert outcome(decoder, case) != case.expect, "the entry makes no difference"
    finally:
        overlay.defects = entries
        decoder.forget()


def ids(family: str) -> set[str]:
    raw = tomllib.loads(files("mcveto.machine.isa").joinpath(f"data/{family}.toml").read_text())
    return {entry["id"] for entry in raw["defect"]}


def names(cases: Iterable[OverlayCase]) -> list[str]:
    return [f"{case.id}-{case.isa}" for case in cases]
