"""The end of a Linux process: the system calls exit and exit_group.

A system call is otherwise not modelled and stops a run as unsupported. The numbers are the kernel's (one table per
instruction set in the kernel's sources); they apply only to ELF files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from mcveto.machine.emulator import Machine, Outcome
from mcveto.machine.faults import FaultKind
from mcveto.program.program import Program


class ExitConvention(NamedTuple):
    number_register: str
    argument_register: str
    numbers: frozenset[int]


_GENERIC = frozenset({93, 94})
_CONVENTIONS = {
    "x86-32": ExitConvention("EAX", "EBX", frozenset({1, 252})),
    "x86-64": ExitConvention("RAX", "RDI", frozenset({60, 231})),
    "ppc32-be": ExitConvention("r0", "r3", frozenset({1, 234})),
    "ppc32-le": ExitConvention("r0", "r3", frozenset({1, 234})),
    "arm": ExitConvention("r7", "r0", frozenset({1, 248})),
    "arm-be": ExitConvention("r7", "r0", frozenset({1, 248})),
    "aarch64": ExitConvention("x8", "x0", _GENERIC),
    "riscv32": ExitConvention("a7", "a0", _GENERIC),
    "riscv64": ExitConvention("a7", "a0", _GENERIC),
    "mips32-be": ExitConvention("v0", "a0", frozenset({4001, 4246})),
    "mips32-le": ExitConvention("v0", "a0", frozenset({4001, 4246})),
}


def with_process_exit(program: Program, machine: Machine, outcome: Outcome) -> Outcome:
    """`outcome`, told apart: a system call is the process's exit or something unsupported, not a fault."""
    if outcome.fault is not FaultKind.SYSTEM_CALL:
        return outcome
    convention = _CONVENTIONS.get(program.image.isa)
    if convention is not None and program.image.format == "elf":
        number = machine.read(convention.number_register)
        if number in convention.numbers:
            code = machine.read(convention.argument_register) & 0xFF
            return replace(outcome, kind="exited", fault=None, detail=str(code))
        return replace(outcome, kind="unsupported", fault=None, detail=f"system call {number} at {outcome.pc:#x}")
    return replace(outcome, kind="unsupported", fault=None, detail=f"system call at {outcome.pc:#x}")
