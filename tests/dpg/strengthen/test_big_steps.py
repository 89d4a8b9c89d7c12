"""Large steps against runs: whatever a run does between two cut points is one of the steps, and the step says the same.

The steps are built without any constants assumed, so that nothing but the semantics is tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from mcveto.dpg.graph import Graph, Witness
from mcveto.dpg.location import Blocks, Location
from mcveto.dpg.outcomes import OutcomeTable
from mcveto.dpg.runs import Choices, Ending, Run, Runner
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.cuts import Shape
from mcveto.dpg.strengthen.places import Samples, relevant_places, value_at
from mcveto.dpg.strengthen.queries import Queries
from mcveto.dpg.strengthen.system import System
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec

EXAMPLES = Path(__file__).parents[3] / "examples"
PROGRAMS = ("fig10/x86-32/blast2", "fig10/x86-32/ex8", "fig10/ppc32-be/slam1", "machine/tricks/smc-loop")


def explored(name: str) -> tuple[Program, System, list[Run]]:
    program = load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))
    blocks = Blocks(program)
    runner = Runner(program, blocks, 600, 0)
    runs = [runner.run(Choices(seed=seed)) for seed in range(4)]
    runs = [run for run in runs if run.ending not in (Ending.TARGET, Ending.VIOLATION)]
    graph = Graph()
    for run in runs:
        graph.fold(run)
    shape = Shape(runs[0].visits[0].location, graph.successors)
    queries = Queries(program, lambda: 100.0)
    system = System(
        program, Steps(program, blocks, OutcomeTable(program)), blocks, shape, Samples((), shape.cuts), queries
    )
    system.assume_constants(lambda *_: [])
    return program, system, runs


def taken(system: System, source: Location, trail: list[Location], witness: Witness) -> list[BigStep]:
    """The steps along a trail whose guard the witness's state satisfies, given the inputs the run then got."""
    found = []
    for step in system.steps_from[source]:
        if list(step.trail) == trail and step.target is not None:
            value = reader(step, witness)
            if all(value(literal) for literal in step.guard):
                found.append(step)
    return found


def reader(step: BigStep, witness: Witness) -> Callable[[Term], int]:
    """Evaluates terms over the state at a visit and the fresh values made after it."""
    made = witness.run.execution.fresh_values
    first = witness.visit.fresh_count

    def value(term: Term) -> int:
        def variable(name: Term) -> int:
            text = str(name.data)
            if "!" in text:
                return made[first + int(text.partition("!")[2])][2]
            return value_at(name, witness)

        state = witness.visit.state
        assert state is not None
        evaluator = witness.run.execution.evaluator
        memory = state.value(step.state._mem)
        return Evaluator(variable, lambda _, address: evaluator.byte(memory, address)).value(term)

    return value


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_take_the_steps(name: str) -> None:
    _, system, runs = explored(name)
    relevant = relevant_places(system.places, system.all_steps())
    checked: Counter[str] = Counter()
    for run in runs:
        cuts = [visit for visit in run.visits if visit.location in system.cuts]
        for here, there in pairwise(cuts):
            if here.state is None or there.state is None:
                continue
            trail = [visit.location for visit in run.visits[here.number : there.number]]
            witness, after = Witness(run, here), Witness(run, there)
            (step,) = taken(system, here.location, trail, witness)
            value = reader(step, witness)
            for place in relevant.get(there.location, ()):
                assert value(step.pre(place)) == value_at(place, after)
                checked["places"] += 1
            checked["steps"] += 1
    assert checked["steps"] > 3
