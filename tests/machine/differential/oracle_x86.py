"""Unicorn's names for the registers and flags of x86-32 and x86-64."""

from __future__ import annotations

import re
from typing import Any

import unicorn
from unicorn import x86_const as x86

from mcveto.machine.pcode import Instruction

from .harness import Case, Outcome
from .unicorn_oracle import Bits, UnicornTarget

FLAG_BITS = {"CF": 0, "PF": 2, "AF": 4, "ZF": 6, "SF": 7, "DF": 10, "OF": 11}
# Bit 1 always reads as one, IF is set in user mode.
FLAGS_FIXED = 0x202
GENERAL = {
    "x86-32": ("EAX", "ECX", "EDX", "EBX", "ESP", "EBP", "ESI", "EDI"),
    "x86-64": ("RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", *(f"R{i}" for i in range(8, 16))),
}
VECTORS = {"x86-32": 8, "x86-64": 16}
INTERRUPTS = {
    0: "divide-error",
    1: "breakpoint",
    3: "breakpoint",
    4: "overflow-trap",
    5: "overflow-trap",
    6: "undefined-instruction",
    13: "general-protection",
    14: "memory",
    0x80: "system-call",
}


def names(isa: str) -> tuple[str, ...]:
    """Everything compared: general registers, flags, XMM registers."""
    return (*GENERAL[isa], *FLAG_BITS, *(f"XMM{i}" for i in range(VECTORS[isa])))


def _newer_processor(engine: Any) -> None:
    engine.ctl_set_cpu_model(x86.UC_CPU_X86_ICELAKE_SERVER)


def target(isa: str) -> UnicornTarget:
    bits = 32 if isa == "x86-32" else 64
    flags_register = x86.UC_X86_REG_EFLAGS if bits == 32 else x86.UC_X86_REG_RFLAGS
    registers = {name: Bits(getattr(x86, f"UC_X86_REG_{name}"), 0, bits) for name in GENERAL[isa]}
    registers |= {name: Bits(flags_register, low, 1, FLAGS_FIXED) for name, low in FLAG_BITS.items()}
    registers |= {f"XMM{i}": Bits(getattr(x86, f"UC_X86_REG_XMM{i}"), 0, 128) for i in range(VECTORS[isa])}
    return UnicornTarget(
        unicorn.UC_ARCH_X86,
        unicorn.UC_MODE_32 if bits == 32 else unicorn.UC_MODE_64,
        registers,
        x86.UC_X86_REG_EIP if bits == 32 else x86.UC_X86_REG_RIP,
        INTERRUPTS,
        _newer_processor,
    )


_EXTENDED_MOVE = re.compile("(?:66|67|f2|f3|2e|36|3e|26)*4[4-7c-f]c[67]")


def unicorn_cannot_tell(instruction: Instruction, case: Case, ours: Outcome) -> bool:
    """Where Unicorn contradicts the manual (docs/agreement/x86.md says how), or runs in kernel mode."""
    mnemonic = instruction.mnemonic
    if ours.fault == "general-protection":
        return True  # privileged instructions run, alignment of vector operands is not checked
    if mnemonic in ("SYSCALL", "SYSENTER", "NEG.LOCK", "NOP"):
        return True
    if mnemonic == "RET" and instruction.operands:
        return True  # sign-extends the operand
    if mnemonic in ("LAHF", "SAHF") and instruction.size > 1:
        return True  # takes AH for SPL after a REX prefix
    if mnemonic == "CMPXCHG" and "[" not in instruction.operands:
        return True  # writes the destination register, clearing its upper half, although unequal
    if mnemonic == "MOV" and _EXTENDED_MOVE.match(instruction.bytes.hex()):
        return True  # refuses REX.R on C6 and C7, which the processor ignores
    if mnemonic.startswith(("PHADD", "PHSUB")) and len(set(instruction.operands.split(", "))) == 1:
        return True  # reads the source after it has written half of the destination
    # Unicorn reads the operand of FF /7 before it refuses it, and allows LOCK where it is undefined.
    return ours.fault == "undefined-instruction" and mnemonic.startswith(("INC", "DEC"))


def host_cannot_tell(instruction: Instruction, case: Case, ours: Outcome) -> bool:
    """Where single-stepping shows: system calls, TF in pushed flags, branches that fault at once if non-canonical."""
    if ours.fault == "system-call" or instruction.mnemonic.startswith("PUSHF"):
        return True
    return not ours.fault and ours.pc >= 1 << 47
