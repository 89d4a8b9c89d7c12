"""From a state at a violation to a verdict: the inputs are run, concretely, before anything is said.

The run is made by the same runner that directed proof generation uses and confirmed on the reference emulator; the
exploration's own terms take no part in it.
"""

from __future__ import annotations

from mcveto.dpg.location import Blocks
from mcveto.dpg.replay import confirm
from mcveto.dpg.runs import Choices, Ending, Runner
from mcveto.dpg.violation_inputs import violation_inputs
from mcveto.engines.queries import Model
from mcveto.engines.state import PathState, drawn_values
from mcveto.logic import terms as t
from mcveto.program.program import Program
from mcveto.verdict import Verdict

# A run may make so many more steps than the exploration counted before it is given up.
_SLACK = 1000


def replayed(program: Program, state: PathState) -> Verdict | str:
    """The verdict that a state at a violation gives, or why it gives none."""
    assert state.model is not None
    choices = choices_of(program, state, state.model)
    made_up = program.undetermined.byte
    if any(made_up(address) not in (None, byte) for address, byte in choices.memory.items()):
        return "it depends on bytes that the file does not determine"
    run = Runner(program, Blocks(program), state.steps + _SLACK, 0).run(choices)
    if run.ending not in (Ending.TARGET, Ending.VIOLATION):
        return "self-check failed: the counterexample does not replay"
    confirmed = confirm(program, run)
    if not confirmed:
        return "self-check failed: the counterexample does not replay"
    name = "reach" if run.ending is Ending.TARGET else "return-address"
    reason = f"{run.pc:#x} is reached" if name == "reach" else run.detail
    return Verdict("violated", name, reason, violation_inputs(program, run), confirmed, program.assumptions)


def choices_of(program: Program, state: PathState, model: Model) -> Choices:
    layout = program.decoder.layout
    registers = {
        str(variable.data): value for variable, value in model.values.items() if str(variable.data) in layout.by_name
    }
    for register in program.input_registers:
        registers[register.cell] = model.value(t.var(register.cell, register.bits))
    memory = {address: byte for address, byte in sorted(model.memory.items()) if program.space.region_at(address)}
    return Choices(dict(enumerate(drawn_values(state.log, model))), registers, memory, 0)
