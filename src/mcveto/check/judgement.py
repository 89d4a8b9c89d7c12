"""Whether a counterexample violates what it says, on the reference emulator, and at which step: by property.

`reach` and `return-address` are judged along the run itself, memory safety and faults by the monitor beside it.
"""

from __future__ import annotations

from mcveto.check.counterexample import SAFETY, Counterexample
from mcveto.check.reference_run import MAX_STEPS, Turns, Violation, turns_of
from mcveto.program.program import Program


def judgement(program: Program, example: Counterexample, max_steps: int = MAX_STEPS) -> tuple[Turns, Violation | str]:
    """The turns of undefined values, and the violation; or why there is none."""
    if example.about not in SAFETY:
        return turns_of(program, example, max_steps)
    from mcveto.check.safety_monitor import safety_violation

    turns, found = safety_violation(program, example, max_steps)
    if isinstance(found, str):
        return turns, found
    if found.about != example.about:
        return (), f"the run violates {found.about}, not {example.about} ({found.reason})"
    return turns, Violation(found.about, found.steps, found.stopped_at, found.reason)
