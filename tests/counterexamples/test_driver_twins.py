"""Small drivers with and without a mistake: every distinct way of going wrong is listed, and the others are proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.counterexamples.entry_values import Confirmed
from mcveto.counterexamples.finder import Request
from mcveto.counterexamples.machine_code import DeadPrefixes, machine_counterexamples
from mcveto.counterexamples.model_printer import model_text
from mcveto.program.inputs import InputSource
from mcveto.program.program import load_program
from mcveto.program.spec import PropertySpec, load_spec
from mcveto.property.attach import bindings_of, parse_event
from mcveto.property.library import find_typestate
from mcveto.search import Question, search

EXAMPLES = Path(__file__).parents[2] / "examples" / "typestate"
EVENTS = {"exits": ("end=syscall:exit", "end=syscall:exit_group")}
PROPERTY = {"twolocks": "lock-by-address"}
# What is wrong in each, and how often.
HELD, TWICE, FREE = "the program ends with the lock held", "locked while held", "unlocked while free"
WRONG: dict[str, dict[str, int]] = {
    "exits-MISSING-1": {HELD: 1},
    "flags-MISSING-1": {FREE: 1},
    "gates-MISSING-1": {HELD: 1},
    "ioctl-MISSING-1": {HELD: 1},
    "ioctl-MISSING-2": {HELD: 1},
    "nested-MISSING-1": {FREE: 1},
    "nested-MISSING-2": {HELD: 1},
    "retry-MISSING-1": {HELD: 1},
    "ring-MISSING-1": {HELD: 1},
    # The only leaf; or the first of two, and the second finds the lock held; or the second.
    "tree-MISSING-1": {HELD: 2, TWICE: 1},
    "tail-MISSING-1": {HELD: 1},
    "twolocks-WRONG-1": {TWICE: 1},
}
QUICK = (
    "exits-MISSING-1",
    "flags-MISSING-1",
    "gates-MISSING-1",
    "nested-MISSING-1",
    "tail-MISSING-1",
    "tree-MISSING-1",
)
RIGHT = tuple(sorted({f"{name.rpartition('-')[0]}-0" for name in WRONG}))


def every_violation(target: str, name: str) -> None:
    kind = name.partition("-")[0]
    path = EXAMPLES / target / name
    subject = load_program(f"{path}.sym.elf", load_spec(f"{path}.yaml"))
    automaton = find_typestate(PROPERTY.get(kind, "lock"))
    bindings = bindings_of([parse_event(text) for text in EVENTS.get(kind, ())], automaton)
    result = machine_counterexamples(subject, automaton, bindings, Request(), 250.0)
    found: dict[str, int] = {}
    for item in result.confirmed:
        assert isinstance(item.outcome, Confirmed)
        error = result.errors[item.outcome.error][1]
        found[error] = found.get(error, 0) + 1
        if kind != "twolocks":
            # The original program, on the emulator alone: as often as the lock is taken it is released, but for one.
            machine = subject.machine(InputSource([entry.value for entry in item.outcome.inputs], 0))
            machine.run(10_000)
            arrivals = [step.next_pc for step in machine.trace]
            symbols = subject.image.symbols
            assert arrivals.count(symbols["lock"]) != arrivals.count(symbols["unlock"])
    assert found == WRONG[name]
    assert result.is_exhaustive


def proof(target: str, name: str) -> None:
    kind = name.partition("-")[0]
    path = EXAMPLES / target / name
    spec = load_spec(f"{path}.yaml")
    spec = replace(spec, properties=(PropertySpec("typestate", PROPERTY.get(kind, "lock")),))
    events = tuple(parse_event(text) for text in EVENTS.get(kind, ()))
    answer = search(lambda: load_program(f"{path}.sym.elf", spec), Question(timeout=250.0, events=events))
    assert answer.verdict.kind == "proved", answer.verdict.headline


@pytest.mark.parametrize("name", QUICK)
def test_wrong(name: str) -> None:
    every_violation("x86-32", name)


@pytest.mark.parametrize("name", ["exits-MISSING-0", "flags-MISSING-0", "tail-MISSING-0"])
def test_right(name: str) -> None:
    proof("ppc32-be", name)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
@pytest.mark.parametrize("name", WRONG)
def test_all_that_are_wrong(target: str, name: str) -> None:
    every_violation(target, name)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
@pytest.mark.parametrize("name", RIGHT)
def test_all_that_are_right(target: str, name: str) -> None:
    proof(target, name)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86-64", "arm", "aarch64", "riscv32", "mips32-be"])
def test_system_calls_of_every_instruction_set(target: str) -> None:
    proof(target, "exits-MISSING-0")
    path = EXAMPLES / target / "exits-MISSING-1"
    automaton = find_typestate("lock")
    bindings = bindings_of([parse_event(text) for text in EVENTS["exits"]], automaton)
    subject = load_program(f"{path}.sym.elf", load_spec(f"{path}.yaml"))
    (only,) = machine_counterexamples(subject, automaton, bindings, Request(), 250.0).confirmed
    assert isinstance(only.outcome, Confirmed)
    assert only.outcome.inputs[0].value != 5 and only.outcome.inputs[1].value == 6


def test_dead_prefixes() -> None:
    from mcveto.counterexamples.feasible import Dies, Open

    dead = DeadPrefixes()
    trace = ((1,), (2,), (3,), (4,))
    dead.add(trace, Open("not known"))
    assert dead.find(trace) is None
    outcome = Dies(1, 2)
    dead.add(trace, outcome)
    # Nothing gets from 2 to 3: the same for every trace that begins so, and for no other.
    assert dead.find(((1,), (2,), (3,), (9,))) is outcome
    assert dead.find(((1,), (2,), (5,), (4,))) is None
    assert dead.find(((1,), (2,))) is None


def test_system_calls_in_the_model() -> None:
    """In the model any watched call may happen at a system call, or none."""
    path = EXAMPLES / "x86-32" / "exits-MISSING-0"
    automaton = find_typestate("lock")
    bindings = bindings_of([parse_event(text) for text in EVENTS["exits"]], automaton)
    subject = load_program(f"{path}.sym.elf", load_spec(f"{path}.yaml"))
    result = machine_counterexamples(subject, automaton, bindings, Request(), 60.0)
    assert not result.found.is_violated
    text = model_text(result.extracted.model)
    assert sum(line.startswith("event") and line.endswith(": end") for line in text.splitlines()) == 2


@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_the_end_of_main_without_symbols(target: str) -> None:
    """main ends by jumping to a function that it has called before, whose first return is not the end."""
    path = EXAMPLES / target / "tail-MISSING-0"
    symbols = load_program(f"{path}.sym.elf", load_spec(f"{path}.yaml")).image.symbols
    subject = load_program(f"{path}.elf", load_spec(f"{path}.yaml"))
    places = {"lock": "call:lock", "unlock": "call:unlock", "end": "return:main"}
    kinds = {event: where.split(":") for event, where in places.items()}
    events = [parse_event(f"{event}={kind}:{symbols[name]:#x}") for event, (kind, name) in kinds.items()]
    automaton = find_typestate("lock")
    result = machine_counterexamples(subject, automaton, bindings_of(events, automaton), Request(), 60.0)
    assert not result.found.is_violated
    assert result.is_exhaustive
