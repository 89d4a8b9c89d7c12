"""How a run of a program ends, told apart as far as the program's surroundings explain it.

The machine knows halts, targets, faults and what it does not support. A program adds two things: a system call is the
end of the process (exit, exit_group) or something that is not modelled, never a fault; and a fault on something that
belongs to another module is unsupported (see `undetermined`).

The numbers of the system calls are the Linux kernel's (one table per instruction set in its sources); they apply only
to ELF files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mcveto.machine.emulator import Machine, Outcome
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.program.program import Program

if TYPE_CHECKING:
    from mcveto.machine.concolic import ConcolicExecution


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
    "arm-be8": ExitConvention("r7", "r0", frozenset({1, 248})),
    "aarch64": ExitConvention("x8", "x0", _GENERIC),
    "riscv32": ExitConvention("a7", "a0", _GENERIC),
    "riscv64": ExitConvention("a7", "a0", _GENERIC),
    "mips32-be": ExitConvention("v0", "a0", frozenset({4001, 4246})),
    "mips32-le": ExitConvention("v0", "a0", frozenset({4001, 4246})),
}


def run_to_end(program: Program, machine: Machine, max_steps: int) -> Outcome:
    """Runs the machine until something ends the run."""
    outcome = machine.run(max_steps)
    came_from = machine.trace[-1].pc if outcome.kind == "fault" and len(machine.trace) else None
    return explained(program, outcome, machine.read, came_from)


def follow_to_end(program: Program, execution: ConcolicExecution, max_steps: int) -> Outcome:
    """The same for symbolic execution along a run."""
    code_address = program.decoder.row.code_address
    came_from: int | None = None
    while True:
        if code_address(execution.pc) in program.targets:
            return Outcome("target", execution.pc, steps=execution.steps)
        limit_reached = execution.steps >= max_steps
        if limit_reached and code_address(execution.pc) not in program.halts | {program.return_sentinel}:
            return Outcome("limit", execution.pc, steps=execution.steps)
        pc = execution.pc
        try:
            if execution.step() is None:
                return Outcome("halted", pc, steps=execution.steps)
        except Fault as fault:
            outcome = Outcome("fault", pc, fault.kind, fault.address, str(fault), execution.steps)
            return explained(program, outcome, lambda name: _value(program, execution, name), came_from)
        except Unsupported as error:
            return Outcome("unsupported", pc, None, None, str(error), execution.steps)
        came_from = pc


def _value(program: Program, execution: ConcolicExecution, name: str) -> int:
    value = 0
    for cell, low, bits in program.decoder.layout.named(name):
        whole = execution.evaluator.value(execution.domain.read_register(cell))
        value = value << bits | whole >> low & ((1 << bits) - 1)
    return value


def exit_convention(program: Program) -> ExitConvention | None:
    """How the program ends its process by a system call; None where every system call is unsupported."""
    return _CONVENTIONS.get(program.image.isa) if program.image.format == "elf" else None


def explained(program: Program, outcome: Outcome, read: Callable[[str], int], came_from: int | None) -> Outcome:
    """`outcome` of the machine, as far as the surroundings of the program explain it."""
    if outcome.fault is not FaultKind.SYSTEM_CALL:
        return program.undetermined.explain(outcome, came_from)
    convention = exit_convention(program)
    if convention is None:
        return replace(outcome, kind="unsupported", fault=None, detail=f"system call at {outcome.pc:#x}")
    number = read(convention.number_register)
    if number in convention.numbers:
        return replace(outcome, kind="exited", fault=None, detail=str(read(convention.argument_register) & 0xFF))
    return replace(outcome, kind="unsupported", fault=None, detail=f"system call {number} at {outcome.pc:#x}")
