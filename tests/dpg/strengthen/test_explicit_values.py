"""Enumerated values against runs: every state that a run passes a cut point in is one of the combinations found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mcveto.dpg.graph import Graph
from mcveto.dpg.location import Blocks
from mcveto.dpg.outcomes import OutcomeTable
from mcveto.dpg.runs import Choices, Ending, Runner
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.cuts import Shape
from mcveto.dpg.strengthen.explicit_values import ExplicitValues
from mcveto.dpg.strengthen.houdini import surviving
from mcveto.dpg.strengthen.path_inputs import inputs_for
from mcveto.dpg.strengthen.places import Samples
from mcveto.dpg.strengthen.queries import Queries
from mcveto.dpg.strengthen.system import System
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec

EXAMPLES = Path(__file__).parents[3] / "examples"
SEEDS = 60
STEPS = 500
ROUNDS = 5


def explored(name: str, more: Sequence[Choices] = (), seeds: int = SEEDS) -> tuple[Program, System, Runner]:
    """The part of a program that some random runs saw, and more runs; of several not those that end at the target."""
    program = load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))
    system, runner = explored_part(program, more, seeds)
    return program, system, runner


def explored_part(program: Program, more: Sequence[Choices], seeds: int) -> tuple[System, Runner]:
    blocks = Blocks(program)
    runner = Runner(program, blocks, STEPS, 0)
    runs = [runner.run(choices) for choices in (*(Choices(seed=seed) for seed in range(seeds)), *more)]
    runs = [run for run in runs if seeds == 1 or run.ending not in (Ending.TARGET, Ending.VIOLATION)]
    graph = Graph()
    for run in runs:
        graph.fold(run)
    shape = Shape(runs[0].visits[0].location, graph.successors)
    samples = Samples(runs, shape.cuts)
    system = System(
        program,
        Steps(program, blocks, OutcomeTable(program)),
        blocks,
        shape,
        samples,
        Queries(program, lambda: 1000.0),
    )
    system.assume_constants(lambda *_: [])
    return system, runner


def test_a_protocol_is_enumerated() -> None:
    _, system, _ = explored("loops/x86-32-O0/handshake-safe")
    found = ExplicitValues(system, system.exits()).search()
    assert found.is_safe and not found.paths
    for cut, invariants in found.invariants.items():
        for invariant in invariants:
            assert system.samples.holds(cut, invariant)
    kept = surviving(system, {cut: dict(claims) for cut, claims in found.invariants.items()})
    assert kept == found.invariants
    for step in system.exits():
        known = kept[step.source] if step.source is not None else {}
        assert system.queries.refutes([*step.guard, *known], step.source is None)


def test_feasible_paths_are_tests_that_lead_to_the_target() -> None:
    tests: list[Choices] = []
    for _ in range(ROUNDS):
        program, system, runner = explored("loops/x86-32-O0/handshake-unsafe", tests)
        found = ExplicitValues(system, system.exits()).search()
        assert found.paths and not found.is_safe
        for path in found.paths:
            choices = inputs_for(program, system.queries, path, 0, 5.0)
            assert choices is not None
            tests.append(choices)
        if any(runner.run(choices).ending is Ending.TARGET for choices in tests):
            return
    pytest.fail("the target was not reached")


def test_a_counter_is_not_enumerated() -> None:
    _, system, _ = explored("loops/x86-32-O0/counter-safe", seeds=3)
    found = ExplicitValues(system, system.exits()).search()
    assert not found.is_safe or all(len(claims) <= 1 for claims in found.invariants.values())
