"""What a concrete run that stopped at a target says: the violation, with the inputs that the run consumed."""

from __future__ import annotations

from mcveto.dpg.replay import first_mismatch
from mcveto.dpg.violation_inputs import warnings_of_trace
from mcveto.machine.emulator import Machine
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.verdict import Verdict, VerdictInput


def violation(
    program: Program, machine: Machine, source: InputSource, counts: dict[str, float | int]
) -> Verdict | None:
    """None if a return went elsewhere than its call expects before: then the run violates something else."""
    if first_mismatch(program, machine) is not None:
        return None
    at = program.decoder.row.code_address(machine.pc)
    return Verdict(
        "violated",
        "reach",
        f"{at:#x} is reached",
        tuple(VerdictInput(item.value, item.bits, item.where) for item in source.consumed),
        ("emulator",),
        program.assumptions,
        counts,
        at=at,
        warnings=warnings_of_trace(machine.trace.instructions()),
    )
