"""The inputs that make a run follow a path of steps from an entry state.

The steps are composed into one path, whose condition speaks of the entry state and of fresh values alone; a model of it
is what the run is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.dpg.runs import Choices
from mcveto.dpg.strengthen.pdr import Path
from mcveto.dpg.strengthen.queries import Model, Queries
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term
from mcveto.program.program import Program


def inputs_for(
    program: Program, queries: Queries, path: Path, seed: int, timeout: float, wanted: Sequence[Term] = ()
) -> Choices | None:
    """Inputs for the path that make `wanted` true behind it.

    None if the solver finds none, or if they would depend on bytes that the file does not determine."""
    first, *rest = path.steps
    condition = list(first.guard)
    state = first.state
    visits = len(first.trail)
    for step in rest:
        condition += [state.value(literal) for literal in step.guard]
        state = state.through(step.state)
        visits += len(step.trail)
    condition += [state.value(literal) for literal in wanted]
    answer = queries.ask(condition, at_entry=True, timeout=timeout)
    if not isinstance(answer, Model):
        return None
    return choices_from(program, condition, answer, seed, visits)


def choices_from(program: Program, condition: Sequence[Term], answer: Model, seed: int, visits: int) -> Choices | None:
    """What a model of a path's condition tells a run; None if it depends on bytes that the file does not determine."""
    used: dict[int, int] = {}

    def byte(_: Term, address: int) -> int:
        known = program.space.initial_byte(address)
        if known is None:
            known = used[address] = answer.byte(address)
        return known

    evaluator = Evaluator(lambda variable: answer.values.get(variable, 0), byte)
    for literal in condition:
        evaluator.value(literal)
    made_up = program.undetermined.byte
    if any(made_up(address) not in (None, value) for address, value in used.items()):
        return None
    fresh: dict[int, int] = {}
    registers: dict[str, int] = {}
    for variable, value in answer.values.items():
        name = str(variable.data)
        if name in program.decoder.layout.by_name:
            registers[name] = value
        elif "!" in name:
            fresh[int(name.partition("!")[2])] = value
    memory = {address: value for address, value in sorted(used.items()) if program.space.region_at(address)}
    return Choices(fresh, registers, memory, seed, frozenset({visits - 1, visits}))
