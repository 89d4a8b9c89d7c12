"""A counterexample is run again before it is reported: on the emulator, with its own auxiliary stack.

Long runs are made by the compiled machine, which agrees with the reference emulator bit for bit but knows only the
usual values of what the manual leaves undefined. Nothing symbolic takes part. The run is given the values of the
inputs, the entry registers and the entry memory that were found, and must reach a target or make a return that does
not match its call.
"""

from __future__ import annotations

from mcveto.dpg.runs import Ending, Run
from mcveto.machine.emulator import Machine
from mcveto.machine.pcode import FreshOrigin, Transfer
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program

# Steps from which on the compiled machine is the faster one.
LONG = 20_000


def confirm(program: Program, run: Run, must_match: bool = True) -> tuple[str, ...]:
    """Which machines confirm the violation that `run` found; empty if it does not replay.

    A target counts only if all returns before it match their calls, unless `must_match` is off.
    """
    is_long = run.steps > LONG and not run.undefined
    drawn = run.execution.fresh_values
    values = [value for _, origin, value in drawn if origin is FreshOrigin.INPUT or not is_long]
    position = [0]

    def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
        if is_long and origin is not FreshOrigin.INPUT:
            return usual
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
    machine = (_compiled() if is_long else Machine)(
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
    mismatch = first_mismatch(program, machine)
    if run.ending is Ending.TARGET:
        return ("emulator",) if outcome.kind == "target" and (mismatch is None or not must_match) else ()
    return ("emulator",) if mismatch == run.steps - 1 else ()


def _compiled() -> type[Machine]:
    from mcveto.machine.compiled import CompiledMachine

    return CompiledMachine


def first_mismatch(program: Program, machine: Machine) -> int | None:
    """The first step of the trace that returns elsewhere than its call expects, by an auxiliary stack of our own."""
    frames = [program.return_sentinel]
    for number, step in machine.trace.calls_and_returns():
        if step.transfer is Transfer.CALL:
            frames.append((step.pc + len(step.bytes)) & program.space.mask)
        elif step.transfer is Transfer.RETURN and (not frames or frames.pop() != step.next_pc):
            return number
    return None
