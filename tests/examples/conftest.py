"""Runs the example binaries in Unicorn, an emulator that shares no code with the project.

`emulate(spec_path, inputs, memory)` loads the stripped binary a spec names, runs it from the entry and says
how it ended. Input functions are intercepted: each call returns the next value of `inputs` (zero when they run
out) in the calling convention's result register. `memory` gives the first bytes of the spec's input areas.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import unicorn
import yaml
from elftools.elf.elffile import ELFFile
from unicorn import arm64_const, arm_const, mips_const, ppc_const, riscv_const, x86_const

ROOT = Path(__file__).resolve().parent.parent.parent / "examples"
PAGE = 0x1000
STACK_TOP = 0x7FF00000
STACK_SIZE = 0x10000


@dataclasses.dataclass(frozen=True)
class Isa:
    arch: int
    mode: int
    stack: int
    result: int
    link: int | None


X86 = unicorn.UC_ARCH_X86
ISAS: dict[tuple[str, bool], Isa] = {
    ("EM_386", True): Isa(X86, unicorn.UC_MODE_32, x86_const.UC_X86_REG_ESP, x86_const.UC_X86_REG_EAX, None),
    ("EM_X86_64", True): Isa(
        X86, unicorn.UC_MODE_64, x86_const.UC_X86_REG_RSP, x86_const.UC_X86_REG_RAX, None
    ),
    ("EM_PPC", False): Isa(
        unicorn.UC_ARCH_PPC,
        unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN,
        ppc_const.UC_PPC_REG_1,
        ppc_const.UC_PPC_REG_3,
        ppc_const.UC_PPC_REG_LR,
    ),
    ("EM_ARM", True): Isa(
        unicorn.UC_ARCH_ARM,
        unicorn.UC_MODE_ARM,
        arm_const.UC_ARM_REG_SP,
        arm_const.UC_ARM_REG_R0,
        arm_const.UC_ARM_REG_LR,
    ),
    ("EM_AARCH64", True): Isa(
        unicorn.UC_ARCH_ARM64,
        unicorn.UC_MODE_ARM,
        arm64_const.UC_ARM64_REG_SP,
        arm64_const.UC_ARM64_REG_X0,
        arm64_const.UC_ARM64_REG_LR,
    ),
    ("EM_RISCV", True): Isa(
        unicorn.UC_ARCH_RISCV,
        unicorn.UC_MODE_RISCV32,
        riscv_const.UC_RISCV_REG_SP,
        riscv_const.UC_RISCV_REG_A0,
        riscv_const.UC_RISCV_REG_RA,
    ),
    ("EM_MIPS", True): Isa(
        unicorn.UC_ARCH_MIPS,
        unicorn.UC_MODE_MIPS32 | unicorn.UC_MODE_LITTLE_ENDIAN,
        mips_const.UC_MIPS_REG_SP,
        mips_const.UC_MIPS_REG_V0,
        mips_const.UC_MIPS_REG_RA,
    ),
}
ISAS["EM_MIPS", False] = dataclasses.replace(
    ISAS["EM_MIPS", True], mode=unicorn.UC_MODE_MIPS32 | unicorn.UC_MODE_BIG_ENDIAN
)


@dataclasses.dataclass
class Outcome:
    """How a run ended: `halt`, `reach` (a target address), `fault` or `limit`, with the last pc."""

    how: str
    pc: int
    steps: int
    used: int
    memory: Callable[[int, int], bytes]
    big_endian: bool

    def word(self, address: int) -> int:
        return int.from_bytes(self.memory(address, 4), "big" if self.big_endian else "little")


def supported(path: Path) -> bool:
    with path.open("rb") as file:
        elf = ELFFile(file)
        return (elf["e_machine"], elf.little_endian) in ISAS


def emulate(
    spec_path: Path,
    inputs: Iterable[int] = (),
    memory: Sequence[Sequence[int]] = (),
    limit: int = 3_000_000,
) -> Outcome:
    spec: dict[str, Any] = yaml.safe_load(spec_path.read_text())
    with (spec_path.parent / spec["binary"]).open("rb") as file:
        elf = ELFFile(file)
        isa = ISAS[elf["e_machine"], elf.little_endian]
        mode = isa.mode
        if elf["e_machine"] == "EM_RISCV" and elf.elfclass == 64:
            mode = unicorn.UC_MODE_RISCV64
        machine = unicorn.Uc(isa.arch, mode)
        for segment in elf.iter_segments():
            if segment["p_type"] == "PT_LOAD":
                load(machine, segment["p_vaddr"], segment["p_memsz"], segment["p_flags"], segment.data())
        big_endian, pointer = not elf.little_endian, elf.elfclass // 8
    machine.mem_map(STACK_TOP - STACK_SIZE, STACK_SIZE)
    machine.reg_write(isa.stack, STACK_TOP - 0x100)
    calls = spec.get("inputs", {}).get("calls", {})
    for area, content in zip(spec.get("inputs", {}).get("memory", []), memory, strict=False):
        assert len(content) <= area["size"]
        machine.mem_write(area["at"], bytes(content))
    halts = set(spec.get("halt", []))
    targets = {a for p in spec.get("properties", []) if isinstance(p, dict) for a in p.get("reach", [])}
    outcome = Outcome("limit", 0, 0, 0, lambda a, n: bytes(machine.mem_read(a, n)), big_endian)
    values = iter(inputs)

    def step(engine: unicorn.Uc, address: int, size: int, data: object) -> None:
        outcome.pc = address
        outcome.steps += 1
        if address in targets or address in halts:
            outcome.how = "reach" if address in targets else "halt"
            engine.emu_stop()
        elif address in calls:
            bits = calls[address].get("bits", 32)
            value = next(values, 0) & ((1 << bits) - 1)
            if calls[address].get("signed") and value >> (bits - 1):
                value |= (1 << 8 * pointer) - (1 << bits)
            outcome.used += 1
            engine.reg_write(isa.result, value)
            if isa.link is None:
                stack = engine.reg_read(isa.stack)
                back = int.from_bytes(engine.mem_read(stack, pointer), "little")
                engine.reg_write(isa.stack, stack + pointer)
            else:
                back = engine.reg_read(isa.link)
            engine.reg_write(program_counter(isa.arch), back)

    machine.hook_add(unicorn.UC_HOOK_CODE, step)
    try:
        machine.emu_start(spec["entry"], 0xFFFFFFF0, count=limit)
    except unicorn.UcError:
        if outcome.how == "limit":
            outcome.how = "fault"
    return outcome


def program_counter(arch: int) -> int:
    return int(
        {
            X86: x86_const.UC_X86_REG_EIP,
            unicorn.UC_ARCH_PPC: ppc_const.UC_PPC_REG_PC,
            unicorn.UC_ARCH_ARM: arm_const.UC_ARM_REG_PC,
            unicorn.UC_ARCH_ARM64: arm64_const.UC_ARM64_REG_PC,
            unicorn.UC_ARCH_RISCV: riscv_const.UC_RISCV_REG_PC,
            unicorn.UC_ARCH_MIPS: mips_const.UC_MIPS_REG_PC,
        }[arch]
    )


def load(machine: unicorn.Uc, address: int, size: int, flags: int, content: bytes) -> None:
    start, end = address // PAGE * PAGE, -(-(address + size) // PAGE) * PAGE
    permissions = (
        (unicorn.UC_PROT_READ if flags & 4 else 0)
        | (unicorn.UC_PROT_WRITE if flags & 2 else 0)
        | (unicorn.UC_PROT_EXEC if flags & 1 else 0)
    )
    machine.mem_map(start, end - start, permissions)
    machine.mem_write(address, content)


@pytest.fixture(name="emulate")
def emulate_fixture() -> Callable[..., Outcome]:
    return emulate
