"""A counterexample is run again before it is reported: on the reference emulator, with its own auxiliary stack.

Nothing symbolic takes part. The run is given the values of the inputs, the entry registers and the entry memory that
were found, and must reach a target or make a return that does not match its call.
"""

from __future__ import annotations

from mcveto.dpg.runs import Ending, Run
from mcveto.machine.emulator import Machine
from mcveto.machine.pcode import FreshOrigin, Transfer
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program


def confirm(program: Program, run: Run) -> tuple[str, ...]:
    """Which machines confirm the violation that `run` found; empty if it does not replay."""
    values = [value for _, _, value in run.execution.fresh_values]
    position = [0]

    def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
        number = position[0]
        position[0] += 1
        return values[number] if number < len(values) else usual

    base = program.machine(InputSource((), run.choices.seed), run.choices.seed, stop_at_targets=True)
    registers = dict(base.registers)
    layout = program.decoder.layout
    for name, value in run.choices.registers.items():
        registers[layout.by_name[name].number] = value
    for address, byte in run.choices.memory.items():
        base.memory.poke(address, bytes([byte]))
    machine = Machine(
        program.decoder,
        base.memory,
        registers,
        program.entry,
        hooks=program.hooks,
        halts=base.halts,
        targets=program.targets,
        fresh=fresh,
    )
    outcome = machine.run(run.steps)
    violation = _first_violation(program, machine)
    if run.ending is Ending.TARGET:
        holds = outcome.kind == "target" and violation is None
    else:
        holds = run.ending is Ending.VIOLATION and violation == run.steps - 1
    return ("emulator",) if holds else ()


def _first_violation(program: Program, machine: Machine) -> int | None:
    """The number of the first step that returns to where it was not called from."""
    frames = [program.return_sentinel]
    for number, step in enumerate(machine.trace):
        if step.transfer is Transfer.CALL:
            frames.append((step.pc + len(step.bytes)) & program.space.mask)
        elif step.transfer is Transfer.RETURN and (not frames or frames.pop() != step.next_pc):
            return number
    return None
