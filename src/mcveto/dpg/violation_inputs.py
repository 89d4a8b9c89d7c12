"""What a violating run depends on, as the verdict lists it.

First the inputs of the spec in the order consumed (what `mcveto run --inputs` takes), then what else the run's path
depends on or was chosen for it: unspecified registers and bytes of the entry state, and values that the manual leaves
undefined where they are not the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcveto.dpg.runs import Run
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term, free_variables
from mcveto.machine.pcode import FreshOrigin, Instruction
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.verdict import VerdictInput

RESTS_ON_UNDEFINED = "the path depends on a value that the manual leaves undefined: another processor may not take it"

MEETS_UNDEFINED = "values that the manual leaves undefined occur on the path; whether it depends on them is not known"


def violation_warnings(run: Run) -> tuple[str, ...]:
    """What a reader of the inputs should know: replay uses the same undefined values, other machines may not."""
    undefined = {variable for variable, origin, _ in run.execution.fresh_values if origin is not FreshOrigin.INPUT}
    return () if undefined.isdisjoint(free_variables(run.path)) else (RESTS_ON_UNDEFINED,)


def violation_inputs(program: Program, run: Run) -> tuple[VerdictInput, ...]:
    layout, choices = program.decoder.layout, run.choices
    drawn = InputSource((), choices.seed)
    base = program.choices(drawn, choices.seed)
    registers, memory = _entry_state(program, run, lambda address: choices.memory.get(address, base.byte(address)))
    registers.update(choices.registers)
    memory.update(choices.memory)
    cells = [register.cell for register in program.input_registers]
    addresses = [address for start, end in program.input_memory for address in range(start, end)]
    keys: list[str | int] = [*cells, *addresses]
    found = []
    for key, item in zip(keys, drawn.consumed, strict=True):
        value = registers.pop(key, item.value) if isinstance(key, str) else memory.pop(key, item.value)
        found.append(VerdictInput(value & ((1 << item.bits) - 1), item.bits, item.where))
    found += [VerdictInput(item.value, item.bits, item.where) for item in run.consumed]
    for name, value in sorted(registers.items()):
        bits = layout.significant_bits(layout.by_name[name])
        found.append(VerdictInput(value & ((1 << bits) - 1), bits, f"unspecified register {name} at entry"))
    for address, value in sorted(memory.items()):
        found.append(VerdictInput(value, 8, f"unspecified memory {address:#x} at entry"))
    return (*found, *(VerdictInput(item.value, item.bits, item.where) for item in run.undefined))


def _entry_state(program: Program, run: Run, byte_at: Callable[[int], int]) -> tuple[dict[str, int], dict[int, int]]:
    """Registers and unspecified bytes of the entry state that the path mentions, with their values."""
    variable_value = run.execution.evaluator.value
    used: dict[int, int] = {}

    def byte(_: Term, address: int) -> int:
        known = program.space.initial_byte(address)
        if known is None:
            known = used[address] = byte_at(address)
        return known

    evaluator = Evaluator(variable_value, byte)
    for term in run.path:
        evaluator.value(term)
    names = {
        str(v.data): v for v in free_variables(run.path) if v.width and str(v.data) in program.decoder.layout.by_name
    }
    return {name: variable_value(variable) for name, variable in names.items()}, used


def warnings_of_trace(instructions: Iterable[Instruction]) -> tuple[str, ...]:
    """What is to be said of a violation by a run that was not followed symbolically, from its instructions."""
    meets_undefined = any(
        op.opcode == "FRESH" and op.inputs[1].offset != FreshOrigin.INPUT
        for instruction in instructions
        for op in instruction.ops
    )
    return (MEETS_UNDEFINED,) if meets_undefined else ()
