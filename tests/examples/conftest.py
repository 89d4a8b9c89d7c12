"""Runs the example binaries in Unicorn, an emulator that shares no code with the project.

`Machine(spec_path)` loads the stripped binary a spec names. `run` executes it from the entry, `resume` from
where an input function was called. Input functions are intercepted: each call returns the next input in the
calling convention's result register. On x86 and PowerPC a shadow stack of return addresses tells whether
every return matched its call.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import unicorn
import yaml
from elftools.elf.elffile import ELFFile
from unicorn import arm64_const, arm_const, mips_const, ppc_const, riscv_const, x86_const

PAGE = 0x1000
STACK_TOP = 0x7FF00000
STACK_SIZE = 0x10000
NOWHERE = 0xFFFFFFF0


@dataclasses.dataclass(frozen=True)
class Isa:
    arch: int
    mode: int
    pc: int
    stack: int
    result: int
    link: int | None


def _x86(mode: int) -> Isa:
    c = x86_const
    if mode == unicorn.UC_MODE_32:
        return Isa(unicorn.UC_ARCH_X86, mode, c.UC_X86_REG_EIP, c.UC_X86_REG_ESP, c.UC_X86_REG_EAX, None)
    return Isa(unicorn.UC_ARCH_X86, mode, c.UC_X86_REG_RIP, c.UC_X86_REG_RSP, c.UC_X86_REG_RAX, None)


def _ppc() -> Isa:
    c, mode = ppc_const, unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN
    return Isa(unicorn.UC_ARCH_PPC, mode, c.UC_PPC_REG_PC, c.UC_PPC_REG_1, c.UC_PPC_REG_3, c.UC_PPC_REG_LR)


def _arm() -> Isa:
    c, mode = arm_const, unicorn.UC_MODE_ARM
    return Isa(unicorn.UC_ARCH_ARM, mode, c.UC_ARM_REG_PC, c.UC_ARM_REG_SP, c.UC_ARM_REG_R0, c.UC_ARM_REG_LR)


def _aarch64() -> Isa:
    c, mode = arm64_const, unicorn.UC_MODE_ARM
    return Isa(
        unicorn.UC_ARCH_ARM64,
        mode,
        c.UC_ARM64_REG_PC,
        c.UC_ARM64_REG_SP,
        c.UC_ARM64_REG_X0,
        c.UC_ARM64_REG_LR,
    )


def _riscv(mode: int) -> Isa:
    c = riscv_const
    return Isa(
        unicorn.UC_ARCH_RISCV,
        mode,
        c.UC_RISCV_REG_PC,
        c.UC_RISCV_REG_SP,
        c.UC_RISCV_REG_A0,
        c.UC_RISCV_REG_RA,
    )


def _mips(order: int) -> Isa:
    c, mode = mips_const, unicorn.UC_MODE_MIPS32 | order
    return Isa(unicorn.UC_ARCH_MIPS, mode, c.UC_MIPS_REG_PC, c.UC_MIPS_REG_SP, c.UC_MIPS_REG_V0, c.UC_MIPS_REG_RA)


ISAS: dict[tuple[str, int, bool], Isa] = {
    ("EM_386", 32, True): _x86(unicorn.UC_MODE_32),
    ("EM_X86_64", 64, True): _x86(unicorn.UC_MODE_64),
    ("EM_PPC", 32, False): _ppc(),
    ("EM_ARM", 32, True): _arm(),
    ("EM_AARCH64", 64, True): _aarch64(),
    ("EM_RISCV", 32, True): _riscv(unicorn.UC_MODE_RISCV32),
    ("EM_RISCV", 64, True): _riscv(unicorn.UC_MODE_RISCV64),
    ("EM_MIPS", 32, True): _mips(unicorn.UC_MODE_LITTLE_ENDIAN),
    ("EM_MIPS", 32, False): _mips(unicorn.UC_MODE_BIG_ENDIAN),
}


Segments = list[tuple[int, int, int, bytes]]


@functools.cache
def read_example(spec_path: Path) -> tuple[dict[str, Any], Isa, int, bool, Segments]:
    """The spec; instruction set, bytes of a pointer, byte order and loadable segments of its binary."""
    spec: dict[str, Any] = yaml.safe_load(spec_path.read_text())
    with (spec_path.parent / spec["binary"]).open("rb") as file:
        elf = ELFFile(file)
        isa = ISAS[elf["e_machine"], elf.elfclass, elf.little_endian]
        segments = [
            (segment["p_vaddr"], segment["p_memsz"], segment["p_flags"], segment.data())
            for segment in elf.iter_segments()
            if segment["p_type"] == "PT_LOAD"
        ]
        return spec, isa, elf.elfclass // 8, elf.little_endian, segments


class Machine:
    """One loaded example; after a run, how it ended.

    `how` is `halt`, `reach` (a target address), `fault`, `limit`, or `input` when an input function was
    called and no value was left; `wrong_return` says that some return did not go to behind its call.
    """

    def __init__(self, spec_path: Path) -> None:
        self.spec, self.isa, self.pointer, self.little_endian, segments = read_example(spec_path)
        self.areas: list[tuple[int, int]] = []
        self.engine = unicorn.Uc(self.isa.arch, self.isa.mode)
        for address, size, flags, content in segments:
            self._load(address, size, flags, content)
        self.engine.mem_map(STACK_TOP - STACK_SIZE, STACK_SIZE)
        self.engine.reg_write(self.isa.stack, STACK_TOP - 0x400)
        self.inputs: dict[str, Any] = self.spec.get("inputs", {})
        self.calls: dict[int, dict[str, Any]] = self.inputs.get("calls", {})
        self.halts = set(self.spec.get("halt", []))
        properties = [p for p in self.spec.get("properties", []) if isinstance(p, dict)]
        self.targets = {address for p in properties for address in p.get("reach", [])}
        self.how, self.pc, self.steps = "limit", 0, 0
        self.shadow: list[int] = []
        self.wrong_return = False
        self._values: list[int] = []
        self._pad = False
        self.engine.hook_add(unicorn.UC_HOOK_CODE, self._step)

    def _load(self, address: int, size: int, flags: int, content: bytes) -> None:
        start, end = address // PAGE * PAGE, -(-(address + size) // PAGE) * PAGE
        bits = {4: unicorn.UC_PROT_READ, 2: unicorn.UC_PROT_WRITE, 1: unicorn.UC_PROT_EXEC}
        self.engine.mem_map(start, end - start, sum(p for bit, p in bits.items() if flags & bit))
        self.engine.mem_write(address, content)
        if flags & 2:
            self.areas.append((address, size))

    def run(self, inputs: Iterable[int] = (), memory: Sequence[Sequence[int]] = (), pad: bool = True) -> str:
        """Runs from the entry. With `pad`, zeros follow when the inputs are used up."""
        for area, content in zip(self.inputs.get("memory", []), memory, strict=False):
            assert len(content) <= area["size"]
            self.engine.mem_write(area["at"], bytes(content))
        self._pad = pad
        self._values = list(inputs)[::-1]
        return self._go(self.spec["entry"])

    def resume(self, value: int) -> str:
        """Goes on after `input` with this value as the result of the call."""
        self._values = [value]
        return self._go(self.pc)

    def word(self, address: int, size: int = 4) -> int:
        content = bytes(self.engine.mem_read(address, size))
        return int.from_bytes(content, "little" if self.little_endian else "big")

    def _go(self, start: int, limit: int = 5_000_000) -> str:
        self.how = "limit"
        try:
            self.engine.emu_start(start, NOWHERE, count=limit)
        except unicorn.UcError:
            if self.how == "limit":
                self.how = "fault"
        return self.how

    def _step(self, engine: unicorn.Uc, address: int, size: int, data: object) -> None:
        self.pc = address
        self.steps += 1
        if address in self.targets or address in self.halts:
            self.how = "reach" if address in self.targets else "halt"
            engine.emu_stop()
        elif address in self.calls:
            if not self._values and not self._pad:
                self.how = "input"
                engine.emu_stop()
                return
            self._answer(self.calls[address], self._values.pop() if self._values else 0)
        elif self.isa.arch == unicorn.UC_ARCH_X86:
            self._watch_x86(address, size)
        elif self.isa.arch == unicorn.UC_ARCH_PPC:
            self._watch_ppc(address)

    def _answer(self, declared: dict[str, Any], value: int) -> None:
        """Returns `value` from the input function that was just entered."""
        bits = declared.get("bits", 32)
        value &= (1 << bits) - 1
        if declared.get("signed") and value >> (bits - 1):
            value |= (1 << 8 * self.pointer) - (1 << bits)
        self.engine.reg_write(self.isa.result, value)
        if self.isa.link is None:
            back = self._pop()
            self.engine.reg_write(self.isa.stack, self.engine.reg_read(self.isa.stack) + self.pointer)
            self._check_return(back)
        else:
            back = self.engine.reg_read(self.isa.link)
            self._check_return(back)
        self.engine.reg_write(self.isa.pc, back)

    def _pop(self) -> int:
        stack = self.engine.reg_read(self.isa.stack)
        return int.from_bytes(self.engine.mem_read(stack, self.pointer), "little")

    def _watch_ppc(self, address: int) -> None:
        code = self.word(address)
        if code >> 26 == 18 and code & 1:  # bl
            self.shadow.append(address + 4)
        elif code == 0x4E800020:  # blr
            self._check_return(self.engine.reg_read(ppc_const.UC_PPC_REG_LR))

    def _watch_x86(self, address: int, size: int) -> None:
        code = bytes(self.engine.mem_read(address, size))
        if code[0] == 0xE8 or (code[0] == 0xFF and code[1] >> 3 & 7 == 2):
            self.shadow.append(address + size)
        elif code[0] in (0xC2, 0xC3):
            self._check_return(self._pop())

    def _check_return(self, actual: int) -> None:
        expected = self.shadow.pop() if self.shadow else None
        self.wrong_return = self.wrong_return or actual != expected


@pytest.fixture
def boot() -> Callable[[Path], Machine]:
    return Machine
