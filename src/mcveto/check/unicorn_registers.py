"""Which of our registers are which bits of Unicorn's, for the instruction sets that can be followed in it.

Not every register of ours can be shown: Unicorn keeps PowerPC's SO, OV and CA, and every reservation, to itself.
MIPS is left out: Unicorn cannot be stopped exactly behind a delay slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import unicorn
from unicorn import arm64_const, arm_const, ppc_const, riscv_const, x86_const

from mcveto.late_methods import dataclass

_X86_FLAGS = {"CF": 0, "PF": 2, "AF": 4, "ZF": 6, "SF": 7, "DF": 10, "OF": 11}
# Bit 1 always reads as one, IF is set in user mode.
_X86_FIXED = 0x202
_ARM_FLAGS = {"NG": 31, "ZR": 30, "CY": 29, "OV": 28, "Q": 27, "GE1": 16, "GE2": 17, "GE3": 18, "GE4": 19}
_ARM_USER, _ARM_THUMB, _ARM_BIG_ENDIAN = 0x10, 0x20, 0x200


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits [low, low+bits) of one of Unicorn's registers; `fixed` are bits of it that must be set."""

    register: int
    low: int = 0
    bits: int = 64
    fixed: int = 0


@dataclass(frozen=True, slots=True)
class UnicornIsa:
    architecture: int
    mode: int
    registers: Mapping[str, Bits]
    program_counter: int
    processor: int | None = None
    status: tuple[tuple[int, int, int], ...] = ()
    """(register, mask, value) to be set once, before anything else."""


def unicorn_isa(isa: str, general: tuple[str, ...], thumb: bool) -> UnicornIsa | None:
    """How Unicorn represents an instruction set; None if it cannot be followed there."""
    make = _FAMILIES.get(isa)
    return None if make is None else make(isa, general, thumb)


def _named(module: Any, prefix: str, names: tuple[str, ...], bits: int) -> dict[str, Bits]:
    return {name: Bits(getattr(module, f"{prefix}{name.upper()}"), 0, bits) for name in names}


def _x86(isa: str, general: tuple[str, ...], _: bool) -> UnicornIsa:
    wide = isa == "x86-64"
    flags = x86_const.UC_X86_REG_RFLAGS if wide else x86_const.UC_X86_REG_EFLAGS
    registers = _named(x86_const, "UC_X86_REG_", general, 64 if wide else 32)
    registers |= {name: Bits(flags, low, 1, _X86_FIXED) for name, low in _X86_FLAGS.items()}
    return UnicornIsa(
        unicorn.UC_ARCH_X86,
        unicorn.UC_MODE_64 if wide else unicorn.UC_MODE_32,
        registers,
        x86_const.UC_X86_REG_RIP if wide else x86_const.UC_X86_REG_EIP,
        x86_const.UC_CPU_X86_ICELAKE_SERVER,
    )


def _powerpc(_: str, general: tuple[str, ...], __: bool) -> UnicornIsa:
    registers = {
        name: Bits(
            ppc_const.UC_PPC_REG_0 + int(name[1:]) if name[0] == "r" else getattr(ppc_const, f"UC_PPC_REG_{name}"),
            0,
            32,
        )
        for name in general
    }
    registers |= {f"cr{i}": Bits(ppc_const.UC_PPC_REG_CR, 28 - 4 * i, 4) for i in range(8)}
    mode = unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN
    return UnicornIsa(unicorn.UC_ARCH_PPC, mode, registers, ppc_const.UC_PPC_REG_PC)


def _arm(isa: str, general: tuple[str, ...], thumb: bool) -> UnicornIsa:
    big_endian = isa == "arm-be8"
    fixed = _ARM_USER | (_ARM_THUMB if thumb else 0) | (_ARM_BIG_ENDIAN if big_endian else 0)
    status = ((arm_const.UC_ARM_REG_CPSR, 0xFFFFFFFF, fixed),)
    registers = {name: Bits(arm_const.UC_ARM_REG_CPSR, low, 1) for name, low in _ARM_FLAGS.items()}
    registers |= _named(arm_const, "UC_ARM_REG_", general, 32)
    mode = unicorn.UC_MODE_THUMB if thumb else unicorn.UC_MODE_ARM
    return UnicornIsa(unicorn.UC_ARCH_ARM, mode, registers, arm_const.UC_ARM_REG_PC, arm_const.UC_CPU_ARM_MAX, status)


def _aarch64(_: str, general: tuple[str, ...], __: bool) -> UnicornIsa:
    registers = _named(arm64_const, "UC_ARM64_REG_", general, 64)
    flags = {"NG": 31, "ZR": 30, "CY": 29, "OV": 28}
    registers |= {name: Bits(arm64_const.UC_ARM64_REG_NZCV, low, 1) for name, low in flags.items()}
    return UnicornIsa(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM, registers, arm64_const.UC_ARM64_REG_PC)


def _riscv(isa: str, general: tuple[str, ...], _: bool) -> UnicornIsa:
    wide = isa == "riscv64"
    registers = _named(riscv_const, "UC_RISCV_REG_", general, 64 if wide else 32)
    mode = unicorn.UC_MODE_RISCV64 if wide else unicorn.UC_MODE_RISCV32
    return UnicornIsa(unicorn.UC_ARCH_RISCV, mode, registers, riscv_const.UC_RISCV_REG_PC)


_FAMILIES: dict[str, Callable[[str, tuple[str, ...], bool], UnicornIsa]] = {
    "x86-32": _x86,
    "x86-64": _x86,
    "ppc32-be": _powerpc,
    "arm": _arm,
    "arm-be8": _arm,
    "aarch64": _aarch64,
    "riscv32": _riscv,
    "riscv64": _riscv,
}
