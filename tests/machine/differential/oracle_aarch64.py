"""Unicorn's names for the registers and flags of AArch64, and what it does not judge."""

from __future__ import annotations

import re
from typing import Any

import unicorn
from unicorn import arm64_const as arm64

from mcveto.machine.pcode import Instruction

from .harness import Case, Outcome
from .unicorn_oracle import Bits, UnicornTarget

FLAG_BITS = {"NG": 31, "ZR": 30, "CY": 29, "OV": 28}
INTERRUPTS = {1: "undefined-instruction", 2: "system-call", 4: "memory", 7: "breakpoint"}
GENERAL = (*(f"x{i}" for i in range(31)), "sp")
VECTORS = tuple(f"q{i}" for i in range(32))

# Exclusive stores: the monitor of an earlier case is still set. LDAPR: not in Unicorn's processor. Signed minimum and
# maximum below 64 bits: Unicorn compares zero-extended values (the manual: signed).
_NOT_JUDGED = re.compile(r"stl?x.*|ldapr.*")
_SIGNED = re.compile(r"(?:ld|st)s(?:max|min).*")


def _prepare(engine: Any) -> None:
    engine.ctl_set_cpu_model(arm64.UC_CPU_ARM64_MAX)
    engine.reg_write(arm64.UC_ARM64_REG_CPACR_EL1, 3 << 20)


def target() -> UnicornTarget:
    registers = {f"x{i}": Bits(getattr(arm64, f"UC_ARM64_REG_X{i}"), 0, 64) for i in range(31)}
    registers["sp"] = Bits(arm64.UC_ARM64_REG_SP, 0, 64)
    registers["tpidr_el0"] = Bits(arm64.UC_ARM64_REG_TPIDR_EL0, 0, 64)
    registers |= {name: Bits(arm64.UC_ARM64_REG_NZCV, low, 1) for name, low in FLAG_BITS.items()}
    registers |= {name: Bits(getattr(arm64, f"UC_ARM64_REG_{name.upper()}"), 0, 128) for name in VECTORS}
    return UnicornTarget(
        unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM, registers, arm64.UC_ARM64_REG_PC, INTERRUPTS, _prepare
    )


def excuse(instruction: Instruction, case: Case, ours: Outcome) -> bool:
    if _SIGNED.fullmatch(instruction.mnemonic):
        return not instruction.operands.startswith("x")
    return _NOT_JUDGED.fullmatch(instruction.mnemonic) is not None
