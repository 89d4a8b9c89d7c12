"""Counterexamples of binaries: the model of the code, and each trace tried on the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.counterexamples import machine_code
from mcveto.counterexamples.entry_values import Confirmed
from mcveto.counterexamples.feasible import Dies, NeverReached
from mcveto.counterexamples.finder import Request
from mcveto.counterexamples.machine_code import MachineFound, machine_counterexamples
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.property.ghost import Bindings
from mcveto.property.library import find_typestate

EXAMPLES = Path(__file__).parents[2] / "examples" / "typestate"


def program(target: str, name: str) -> Program:
    path = EXAMPLES / target / name
    return load_program(f"{path}.sym.elf", load_spec(f"{path}.yaml"))


def counterexamples(target: str, name: str, automaton: str, bindings: Bindings) -> MachineFound:
    return machine_counterexamples(program(target, name), find_typestate(automaton), bindings, Request(), 250.0)


@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_missing_unlock(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def long_exploration(_: object) -> None:
        raise AssertionError("what is quickly proved is not explored for")

    monkeypatch.setattr(machine_code._Search, "_go_on", long_exploration)
    result = counterexamples(target, "driver-MISSING-1", "lock", {})
    assert result.is_exhaustive
    (only,) = result.confirmed
    assert isinstance(only.outcome, Confirmed)
    # A negative request leaves the lock held; the next round takes it again.
    assert only.outcome.inputs[0].value >> 31 == 1
    assert only.witness.automaton_state(len(only.witness)) == "locked-twice"
    # The model can also end the program with the lock held; no input does: a negative request is not zero.
    rejected = [item for item in result.tried if item is not only]
    assert [item.witness.automaton_state(len(item.witness)) for item in rejected] == ["still-locked"]
    # (Each round of the loop may be the last but one: trying cannot tell, a proof does.)
    assert all(isinstance(item.outcome, NeverReached) for item in rejected)


@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_no_missing_unlock(target: str) -> None:
    result = counterexamples(target, "driver-MISSING-0", "lock", {})
    assert result.tried == ()
    assert not result.found.is_violated
    assert result.extracted.gaps == ()


def test_arguments_decide() -> None:
    """In the model every read may be of the closed file; on the program only input 7 makes it so."""
    result = counterexamples("x86-32", "handles-WRONG-1", "use-after-close", {"write": ()})
    assert result.confirmed
    for item in result.confirmed:
        assert isinstance(item.outcome, Confirmed)
        assert item.outcome.inputs[0].value == 7
    right = counterexamples("x86-32", "handles-WRONG-0", "use-after-close", {"write": ()})
    assert right.found.is_violated and not right.confirmed
    assert all(isinstance(item.outcome, Dies) for item in right.tried)


@pytest.mark.parametrize("target", ["x86-32", "ppc32-be", "x86-64", "aarch64"])
def test_the_model_holds_every_run(target: str) -> None:
    """Whatever the program does, the model does: its rules lead along every concrete run, stack by stack."""
    subject = program(target, "driver-MISSING-0")
    result = counterexamples(target, "driver-MISSING-0", "lock", {})
    model, names = result.extracted.model, {pc: name for name, pc in result.extracted.addresses.items()}
    for inputs in ([0], [5, 0xFFFFFFFF, 0], [0x80000000, 1, 0]):
        machine = subject.machine(InputSource(inputs, 0))
        machine.run(10_000)
        stack = [model.symbols[symbol] for symbol in model.start_stack]
        visited = [names[step.next_pc] for step in machine.trace if step.next_pc in names]
        assert len(visited) > 5
        for name in visited:
            successors = []
            for rule in model.by_symbol[model.symbol_numbers[stack[0]]]:
                successors.append([model.symbols[symbol] for symbol in rule.pushed] + stack[1:])
            fitting = [item for item in successors if item and item[0] == name]
            assert fitting, f"{stack[0]} does not lead to {name}"
            stack = fitting[0]


@pytest.mark.parametrize(
    ("target", "variant", "expected"),
    [
        # The first request is 1, or the second one is (the first having gone through the loop and the last test).
        ("x86-32", 1, {"still-locked": 3}),
        # The first request is 47 and the second takes the lock again; or only the second is 47.
        ("x86-32", 2, {"locked-twice": 1, "still-locked": 1}),
        ("ppc32-be", 2, {"locked-twice": 1, "still-locked": 1}),
    ],
)
def test_runs_go_round_loops(target: str, variant: int, expected: dict[str, int]) -> None:
    """Traces leave the rounds of the loop out; the runs that confirm them go round it three times."""
    subject = program(target, f"requests-MISSING-{variant}")
    result = machine_counterexamples(subject, find_typestate("lock"), {}, Request(), 250.0)
    found: dict[str, int] = {}
    for item in result.confirmed:
        assert isinstance(item.outcome, Confirmed)
        state = item.witness.automaton_state(len(item.witness))
        found[state] = found.get(state, 0) + 1
        values = [entry.value for entry in item.outcome.inputs]
        assert ({1} if variant == 1 else {47}) & set(values)
        # Nothing of ours but the emulator takes part in saying so.
        machine = subject.machine(InputSource(values, 0))
        outcome = machine.run(10_000)
        assert outcome.kind == "halted"
        calls = [step.next_pc for step in machine.trace]
        locks = calls.count(subject.image.symbols["lock"])
        assert locks > calls.count(subject.image.symbols["unlock"])
    assert result.is_exhaustive
    assert found == expected
