"""From a state at a violation to a verdict: the inputs are run, concretely, before anything is said.

The inputs are those of the state's model. At a target they are run at once on the reference emulator; its trace must
end there with every return matching its call. Where that is not so, and at returns that go astray, the run is made as
directed proof generation makes it, which tells where exactly it ends. Either way the emulator has the last word.
"""

from __future__ import annotations

from mcveto.dpg.location import Blocks
from mcveto.dpg.replay import confirm
from mcveto.dpg.runs import Choices, Ending, Run, Runner
from mcveto.dpg.violation_inputs import violation_inputs, violation_warnings
from mcveto.engines.queries import Model
from mcveto.engines.state import PathState, drawn
from mcveto.logic import terms as t
from mcveto.machine.concolic import Assignment
from mcveto.machine.pcode import FreshOrigin
from mcveto.program.inputs import ConsumedInput
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
    run: Run | None = None
    confirmed: tuple[str, ...] = ()
    if program.decoder.row.code_address(state.pc) in program.targets:
        run = _run_to_target(program, state, state.model, choices)
        confirmed = confirm(program, run)
    if not confirmed:
        run = Runner(program, Blocks(program), state.steps + _SLACK, 0).run(choices)
        if run.ending in (Ending.TARGET, Ending.VIOLATION):
            confirmed = confirm(program, run)
    if not confirmed or run is None:
        return "self-check failed: the counterexample does not replay"
    name = "reach" if run.ending is Ending.TARGET else "return-address"
    reason = f"{run.pc:#x} is reached" if name == "reach" else run.detail
    at = run.pc if name == "reach" else run.came_from
    inputs, warnings = violation_inputs(program, run), violation_warnings(run)
    return Verdict("violated", name, reason, inputs, confirmed, program.assumptions, at=at, warnings=warnings)


def choices_of(program: Program, state: PathState, model: Model) -> Choices:
    layout = program.decoder.layout
    registers = {
        str(variable.data): value for variable, value in model.values.items() if str(variable.data) in layout.by_name
    }
    for register in program.input_registers:
        registers[register.cell] = model.value(t.var(register.cell, register.bits))
    memory = {address: byte for address, byte in sorted(model.memory.items()) if program.space.region_at(address)}
    fresh = {number: model.value(item.variable) for number, item in enumerate(drawn(state.log, model))}
    return Choices(fresh, registers, memory, 0)


def _run_to_target(program: Program, state: PathState, model: Model, choices: Choices) -> Run:
    """What the exploration claims about the run: that it consumes these values and ends at the target."""
    consumed: list[ConsumedInput] = []
    undefined: list[ConsumedInput] = []
    values: dict[str, int] = dict(choices.registers)
    made = drawn(state.log, model)
    for item in made:
        value = values[str(item.variable.data)] = model.value(item.variable)
        usual = item.usual if isinstance(item.usual, int) else model.value(item.usual)
        if item.origin is FreshOrigin.INPUT:
            call = program.spec.input_calls[usual]
            cut = value & ((1 << call.bits) - 1)
            shown = cut - (1 << call.bits) if call.signed and cut >> (call.bits - 1) else cut
            where = call.at if isinstance(call.at, str) else f"{call.at:#x}"
            consumed.append(ConsumedInput(shown, call.bits, f"call of {where}"))
        elif value != usual:
            undefined.append(ConsumedInput(value, item.variable.width, f"undefined value at {item.pc:#x}"))
    execution = program.concolic_with(Assignment(values, lambda address: choices.memory.get(address, 0)))
    execution.fresh_values.extend((item.variable, item.origin, model.value(item.variable)) for item in made)
    steps = state.steps + _SLACK
    path = list(state.path.terms)
    return Run(0, choices, [], Ending.TARGET, "", state.pc, steps, path, execution, consumed, undefined)
