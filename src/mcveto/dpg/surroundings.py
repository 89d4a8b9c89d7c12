"""Faults that do not end the program: system calls, and accesses to what belongs to another module.

The machine stops at both, but nobody knows how the program goes on: such a path is unsupported and leads to TS, never
to a proof. Only a system call that ends the process (`program.exits`) is an end.
"""

from __future__ import annotations

from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.concolic import ConcolicExecution
from mcveto.machine.emulator import Outcome as MachineOutcome
from mcveto.machine.faults import Fault, FaultKind
from mcveto.machine.symbolic import SymbolicDomain
from mcveto.program.exits import exit_convention, explained
from mcveto.program.program import Program


class Surroundings:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._ranges = program.undetermined.foreign_ranges()
        self._exit = exit_convention(program)

    def foreign(self, address: Term) -> Term:
        """When an address, if nothing is mapped there, may belong to another module."""
        return t.disj(
            t.conj([t.ule(t.const(start, address.width), address), t.ule(address, t.const(end - 1, address.width))])
            for start, end in self._ranges
        )

    def goes_on(self, fault: Fault, domain: SymbolicDomain) -> tuple[str, tuple[Term, ...]] | None:
        """(why we do not know how it goes on, under which conditions), or None if the fault ends the run."""
        if fault.kind is FaultKind.SYSTEM_CALL:
            if self._exit is None:
                return "system call", ()
            number = self._register(domain, self._exit.number_register)
            ends = (t.eq(number, t.const(end, number.width)) for end in sorted(self._exit.numbers))
            return "system call", tuple(t.bnot(end) for end in ends)
        if fault.address is not None and self._program.undetermined.is_foreign(fault.address):
            action = "jump" if fault.kind is FaultKind.UNMAPPED_EXECUTE else "access"
            return f"{action} to {self._program.undetermined.describe(fault.address, None)}", ()
        return None

    def explain(self, fault: Fault, execution: ConcolicExecution, came_from: int | None) -> MachineOutcome:
        """How a run that stopped at a fault ended."""
        pc = execution.pc
        stopped = MachineOutcome("fault", pc, fault.kind, fault.address, str(fault), execution.steps)
        value = execution.evaluator.value
        return explained(self._program, stopped, lambda name: value(self._register(execution.domain, name)), came_from)

    def _register(self, domain: SymbolicDomain, name: str) -> Term:
        parts = [
            t.extract(domain.read_register(cell), low + bits - 1, low)
            for cell, low, bits in self._program.decoder.layout.named(name)
        ]
        result = parts[0]
        for part in parts[1:]:
            result = t.concat(result, part)
        return result
