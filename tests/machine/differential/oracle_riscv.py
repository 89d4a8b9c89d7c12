"""Unicorn's names for the registers of RISC-V, and what it does not judge."""

from __future__ import annotations

import unicorn
from unicorn import riscv_const as riscv

from mcveto.machine.pcode import Instruction

from .harness import Case, Outcome
from .unicorn_oracle import Bits, UnicornTarget

GENERAL = (
    *("ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{i}" for i in range(8)),
    *(f"s{i}" for i in range(2, 12)),
    *(f"t{i}" for i in range(3, 7)),
)
INTERRUPTS = {
    2: "undefined-instruction",
    3: "breakpoint",
    4: "misaligned",
    5: "memory",
    6: "misaligned",
    7: "memory",
    8: "system-call",
    11: "system-call",
}


def target(isa: str) -> UnicornTarget:
    bits = 32 if isa == "riscv32" else 64
    registers = {name: Bits(getattr(riscv, f"UC_RISCV_REG_X{i + 1}"), 0, bits) for i, name in enumerate(GENERAL)}
    mode = unicorn.UC_MODE_RISCV32 if bits == 32 else unicorn.UC_MODE_RISCV64
    return UnicornTarget(unicorn.UC_ARCH_RISCV, mode, registers, riscv.UC_RISCV_REG_PC, INTERRUPTS)


def excuse(instruction: Instruction, case: Case, ours: Outcome) -> bool:
    """Store conditionals: Unicorn keeps the reservation of an earlier case and does not check their alignment.
    Breakpoints: Unicorn reports an illegal instruction."""
    return instruction.mnemonic.startswith("sc.") or instruction.mnemonic.endswith("ebreak")
