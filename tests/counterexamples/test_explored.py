"""All runs as a graph: its list is that of the traces tried one by one, and it ends where that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.counterexamples import explored as module
from mcveto.counterexamples.along_trace import Configuration
from mcveto.counterexamples.entry_values import Confirmed
from mcveto.counterexamples.explored import Explored
from mcveto.counterexamples.finder import Request
from mcveto.counterexamples.instances import matched
from mcveto.counterexamples.machine_code import MachineFound, machine_counterexamples
from mcveto.logic import terms as t
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.property.ghost import watch
from mcveto.property.library import find_typestate

EXAMPLES = Path(__file__).parents[2] / "examples" / "typestate"
HELD, TWICE, FREE = "the program ends with the lock held", "locked while held", "unlocked while free"
# What is wrong in each, and in how many ways.
WRONG: dict[str, dict[str, int]] = {
    "probe-MISSING-1": {HELD: 2},
    "trylock-MISSING-1": {FREE: 1},
    "trylock-MISSING-2": {FREE: 1, HELD: 1},
    "operations-MISSING-1": {HELD: 1},
    "callbacks-MISSING-1": {TWICE: 4, HELD: 7},
    "link-MISSING-1": {TWICE: 4, HELD: 2},
    "states-MISSING-1": {HELD: 1},
    "server-MISSING-1": {HELD: 1, TWICE: 2},
    "commands-MISSING-1": {HELD: 1},
    "commands-MISSING-2": {HELD: 1, FREE: 1},
}
LOCK = find_typestate("lock")


def program(target: str, name: str) -> Program:
    path = EXAMPLES / target / name
    return load_program(f"{path}.sym.elf", load_spec(f"{path}.yaml"))


def traces(found: MachineFound) -> set[tuple[Configuration, ...]]:
    addresses = found.extracted.addresses
    return {
        tuple(tuple(addresses[name] for name in item.witness.stack(at)) for at in range(len(item.witness)))
        for item in found.confirmed
    }


def every_violation(target: str, name: str) -> None:
    subject = program(target, name)
    found = machine_counterexamples(subject, LOCK, {}, Request(), 250.0)
    counted: dict[str, int] = {}
    symbols = subject.image.symbols
    for item in found.confirmed:
        assert isinstance(item.outcome, Confirmed)
        error = found.errors[item.outcome.error][1]
        counted[error] = counted.get(error, 0) + 1
        # The original program, on the emulator alone: as often as the lock is taken it is released, but for one.
        machine = subject.machine(InputSource([entry.value for entry in item.outcome.inputs], 0))
        machine.run(10_000)
        arrivals = [step.next_pc for step in machine.trace]
        assert error == TWICE or arrivals.count(symbols["lock"]) != arrivals.count(symbols["unlock"])
    assert counted == WRONG[name]
    assert found.is_exhaustive
    assert len(traces(found)) == len(found.confirmed)


@pytest.mark.parametrize("name", ["probe-MISSING-1", "trylock-MISSING-2", "states-MISSING-1", "server-MISSING-1"])
@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_every_violation(target: str, name: str) -> None:
    every_violation(target, name)


@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_an_endless_state_machine(target: str) -> None:
    every_violation(target, "link-MISSING-1")


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_all_violations(target: str, name: str) -> None:
    every_violation(target, name)


@pytest.mark.parametrize("name", ["tree-MISSING-1", "ioctl-MISSING-2", "probe-MISSING-1"])
def test_the_same_list_as_trace_by_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcveto.counterexamples import machine_code

    subject = program("x86-32", name)
    monkeypatch.setattr(machine_code, "TRIED_QUICKLY", 0)
    from_graph = machine_counterexamples(subject, LOCK, {}, Request(), 120.0)
    monkeypatch.setattr(module.Explored, "explore", lambda self, seconds: None)
    one_by_one = machine_counterexamples(subject, LOCK, {}, Request(), 120.0)
    assert from_graph.is_exhaustive and one_by_one.is_exhaustive
    assert traces(from_graph) == traces(one_by_one) != set()


def test_nothing_is_left_out_of_the_graph() -> None:
    """Runs with all small requests stay on the steps of the graph."""
    subject = program("x86-32", "link-MISSING-0")
    watched = watch(subject, LOCK)
    graph = Explored(watched, 120.0)
    graph.explore(120.0)
    assert graph.is_complete
    steps = {(state.pcs[-1], graph.states[step].pcs[0]) for state in graph.states for step in state.steps}
    known = {pc for state in graph.states for pc in state.pcs}
    for seed in range(30):
        machine = watched.program.machine(InputSource([(seed * 7 + turn * turn) % 10 for turn in range(12)] + [99], 0))
        machine.run(5_000)
        for step in machine.trace:
            assert step.pc in known
            if step.pc in {last for last, _ in steps} and step.next_pc in {first for _, first in steps}:
                assert (step.pc, step.next_pc) in steps


def test_an_exploration_that_is_cut_says_so() -> None:
    watched = watch(program("x86-32", "link-MISSING-0"), LOCK)
    graph = Explored(watched, 120.0)
    graph.explore(0.0)
    assert not graph.is_complete and graph.stopped == "out of time"
    graph.explore(120.0)
    assert graph.is_complete


def test_instances() -> None:
    x, y, z = (t.var(f"in!{number}", 32) for number in range(3))
    fixed = t.var("EAX", 32)
    one, two = t.const(1, 32), t.const(2, 32)
    # A counter that began anywhere is where it was, one further on.
    assert matched((t.add(x, one),), (t.add(x, two),)) == {x: t.add(x, one)}
    assert matched((x, t.eq(x, one)), (z, t.eq(z, one))) == {x: z}
    assert matched((x, t.eq(x, one)), (z, t.eq(y, one))) is None
    assert matched((x, x), (y, z)) is None
    assert matched((fixed,), (x,)) is None
    assert matched((t.mul(x, x),), (two,)) is None
    assert matched((x,), (t.const(1, 8),)) is None


def test_every_way_of_a_switch_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also trace by trace: a computed jump has more than one other way."""
    monkeypatch.setattr(module.Explored, "explore", lambda self, seconds: None)
    every_violation("x86-32", "commands-MISSING-2")
