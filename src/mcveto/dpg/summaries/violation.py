"""Inputs that may violate the property are run; what a run does is the answer.

Where summaries leave a way to a target open, a model of that way gives the inputs of a run. If the summaries are exact
the run goes there, however deep the recursion: id(n) = n says which n makes id return 10,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mcveto.dpg.replay import confirm
from mcveto.dpg.runs import Choices, Ending, Run
from mcveto.dpg.violation_inputs import MEETS_UNDEFINED, violation_inputs
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.concolic import Assignment
from mcveto.machine.emulator import Machine
from mcveto.machine.pcode import FreshOrigin
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.verdict import Verdict


class _Recorded(Machine):
    """Remembers the values that the run was given."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        given = options["fresh"]
        self.fresh_values: list[tuple[FreshOrigin, int]] = []

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            value = int(given(bits, origin, usual))
            self.fresh_values.append((origin, value))
            return value

        super().__init__(*arguments, **{**options, "fresh": fresh})


def violated_by(program: Program, inputs: Sequence[int], max_steps: int) -> Verdict | None:
    """The violation of a run with these inputs, all else zero, if it reaches a target."""
    if program.input_registers or program.input_memory:
        return None
    if program.machine(InputSource(inputs), make=CompiledMachine).run(max_steps).kind != "target":
        return None
    source = InputSource(inputs)
    machine = program.machine(source, make=_Recorded)
    assert isinstance(machine, _Recorded)
    outcome = machine.run(max_steps)
    if outcome.kind != "target":
        return None
    execution = program.concolic_with(Assignment())
    fresh = {number: value for number, (_, value) in enumerate(machine.fresh_values)}
    execution.fresh_values.extend((None, origin, value) for origin, value in machine.fresh_values)  # type: ignore[misc]
    run = Run(
        0,
        Choices(fresh),
        [],
        Ending.TARGET,
        "",
        outcome.pc,
        outcome.steps + 1,
        [],
        execution,
        list(source.consumed),
        [],
    )
    confirmed = confirm(program, run)
    if not confirmed:
        return None
    reason = f"{outcome.pc:#x} is reached"
    given = violation_inputs(program, run)
    statistics: dict[str, float | int] = {"instructions_executed": outcome.steps}
    verdict = Verdict("violated", "reach", reason, given, confirmed, program.assumptions, statistics, at=outcome.pc)
    meets_undefined = any(origin is not FreshOrigin.INPUT for origin, _ in machine.fresh_values)
    return replace(verdict, warnings=(MEETS_UNDEFINED,)) if meets_undefined else verdict
