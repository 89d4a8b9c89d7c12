"""Interpreter, formatter, verification conditions and lowering agree on random programs.

The interpreter is the oracle: in theories of two bits every initial state and every input can be tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcveto.errors import UsageError
from mcveto.machine.faults import FaultKind
from mcveto.program.inputs import InputSource
from mcveto.program.while_program import while_program
from mcveto.search import Question, search
from mcveto.whilelang.backward import BackwardDerivation
from mcveto.whilelang.checker import check
from mcveto.whilelang.formatter import module_text
from mcveto.whilelang.forward import Bounds, ForwardDerivation
from mcveto.whilelang.guards import memory_safety
from mcveto.whilelang.interpreter import Interpreter, Run, violation
from mcveto.whilelang.lowering import MEMORY_BASE
from mcveto.whilelang.parser import parse
from mcveto.whilelang.rewriting import module_variables
from mcveto.whilelang.state import State
from mcveto.whilelang.symex import SymbolicExecution
from mcveto.whilelang.syntax import Module
from mcveto.whilelang.theory import theory_named

from .strategies import VARIABLES, modules

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
# The theory, its largest value, how many cells can be counted in it.
SMALL = [("u2", 3, 2), ("s2", 1, 1)]
INPUTS = 2
CUTS = ("assert", "assume", "replace")


def runs(module: Module) -> Iterator[Run]:
    """Every run from a state of the precondition with up to INPUTS inputs; after those, inputs are 0.

    Runs that do not end within many more steps than there are states do not end at all.
    """
    theory = theory_named(module.theory)
    values = range(theory.smallest or 0, (theory.largest or 0) + 1)
    interpreter = Interpreter(module, 400)
    for variables in product(values, repeat=len(VARIABLES)):
        for memory in product(values, repeat=module.cells):
            state = State(dict(zip(VARIABLES, variables, strict=True)), dict(enumerate(memory)))
            if interpreter.satisfies(module.pre, state) is not True:
                continue
            pending: list[tuple[int, ...]] = [()]
            while pending:
                inputs = pending.pop()
                source = iter(inputs)
                run = interpreter.run(state, lambda source=source: next(source, 0))  # type: ignore[misc]
                if len(run.inputs) > len(inputs) and len(inputs) < INPUTS:
                    pending += [(*inputs, value) for value in values]
                else:
                    yield run


def truth(module: Module) -> bool | None:
    """Whether the contract holds, by trying everything; None if some run reads more inputs than we try."""
    holds: bool | None = True
    for run in runs(module):
        if violation(module, run):
            return False
        if len(run.inputs) > INPUTS:
            holds = None
    return holds


def campaign(few: int, many: int) -> pytest.MarkDecorator:
    """The number of examples: a few always, many in the slow tier."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.slow)])


SMALL_THEORIES = pytest.mark.parametrize(("theory", "largest", "cells"), SMALL)


@SMALL_THEORIES
@campaign(8, 300)
def test_conditions_of_programs_without_loops_decide_them(theory: str, largest: int, cells: int, examples: int) -> None:
    @settings(RELAXED, max_examples=examples)
    @given(modules(theory, largest, cells, loops=False), st.booleans())
    def decided(module: Module, resolve: bool) -> None:
        expected = truth(module)
        result = check(module, ForwardDerivation(module), resolve=resolve)
        assert result.kind in ("proved", "violated"), result.headline
        if expected is not None or result.kind == "proved":
            assert (result.kind == "proved") == (expected is not False)

    decided()


@SMALL_THEORIES
@campaign(8, 300)
def test_substitution_decides_them_too(theory: str, largest: int, cells: int, examples: int) -> None:
    @settings(RELAXED, max_examples=examples)
    @given(modules(theory, largest, cells, loops=False, inputs=False))
    def decided(module: Module) -> None:
        result = check(module, BackwardDerivation(module))
        assert (result.kind == "proved") == (truth(module) is True), result.headline

    decided()


@SMALL_THEORIES
@campaign(8, 300)
def test_no_verdict_on_loops_and_calls_is_wrong(theory: str, largest: int, cells: int, examples: int) -> None:
    @settings(RELAXED, max_examples=examples)
    @given(st.booleans().flatmap(lambda calls: modules(theory, largest, cells, calls=calls)), st.sampled_from(CUTS))
    def right(module: Module, cut: str) -> None:
        expected = truth(module)
        kinds = {check(module, ForwardDerivation(module, Bounds(2), cut), seconds=5, query_seconds=2).kind}
        kinds.add(SymbolicExecution(module, Bounds(2), seconds=5, query_seconds=2).explore().kind)
        if expected is False:
            assert "proved" not in kinds
        elif expected is True:
            assert "violated" not in kinds

    right()


@SMALL_THEORIES
@campaign(8, 300)
def test_proved_memory_safety_is_memory_safety(theory: str, largest: int, cells: int, examples: int) -> None:
    """Theorem 5 of the lecture, and its converse for programs without loops."""

    @settings(RELAXED, max_examples=examples)
    @given(modules(theory, largest, cells, loops=False))
    def sound(module: Module) -> None:
        safe = memory_safety(module)
        unsafe = next((run for run in runs(module) if run.kind == "aborted" and run.why == "memory"), None)
        result = check(safe, ForwardDerivation(safe))
        assert result.kind in ("proved", "violated"), result.headline
        if result.kind == "proved":
            assert unsafe is None
        else:
            assert result.reason == "memory"
            found = result.counterexample
            assert found is not None
            supply = iter(found.inputs)
            assert Interpreter(module).run(found.initial, lambda: next(supply, 0)).why == "memory"

    sound()


@campaign(8, 300)
def test_symbolic_execution_decides_programs_without_loops(examples: int) -> None:
    @settings(RELAXED, max_examples=examples)
    @given(modules("u2", 3, 2, loops=False))
    def decided(module: Module) -> None:
        found = SymbolicExecution(module).explore()
        assert found.kind in ("proved", "violated"), found.headline
        expected = truth(module)
        if expected is not None or found.kind == "proved":
            assert (found.kind == "proved") == (expected is not False)

    decided()


@settings(RELAXED, max_examples=30)
@given(module=st.one_of(modules("Z", 9, 4, calls=True), modules("u8", 255, 4), modules("s16", 9, 4)))
def test_formatting_and_parsing_is_the_identity(module: Module) -> None:
    text = module_text(module)
    assert parse(text) == module
    assert module_text(parse(text)) == text


@pytest.mark.parametrize("theory", ["u8", "s8", "u16", "s32", "u64", "s64"])
@campaign(6, 400)
def test_lowering_runs_as_the_interpreter_does(theory: str, examples: int) -> None:
    bits = theory_named(theory).bits
    assert bits is not None
    number = st.one_of(st.integers(0, 5), st.integers(0, (1 << bits) - 1))

    @settings(RELAXED, max_examples=examples)
    @given(st.data())
    def agrees(data: st.DataObject) -> None:
        module = data.draw(modules(theory, data.draw(st.sampled_from((3, 100))), 4, calls=data.draw(st.booleans())))
        initial = {name: data.draw(number) for name in module_variables(module)}
        cells = data.draw(st.lists(number, min_size=4, max_size=4))
        inputs = data.draw(st.lists(number, min_size=6, max_size=6))
        _compare_runs(module, initial, cells, inputs)

    agrees()


def _compare_runs(module: Module, initial: dict[str, int], cells: list[int], inputs: list[int]) -> None:
    theory = theory_named(module.theory)
    assert theory.bits is not None
    size = theory.bits // 8
    state = State(
        {name: theory.wrap(value) for name, value in initial.items()},
        {index: theory.wrap(value) for index, value in enumerate(cells)},
    )
    interpreter = Interpreter(module, 300)
    supply = iter(inputs)
    run = interpreter.run(state, lambda: next(supply, 0))
    program = while_program(module)
    order = [initial[item.name] for item in program.input_registers]
    content = b"".join(value.to_bytes(size, "little") for value in cells)
    memory_inputs = list(content) if program.input_memory else []
    machine = program.machine(InputSource([*order, *memory_inputs, *inputs, *[0] * 300]))
    outcome = machine.run(5_000)
    if interpreter.satisfies(module.pre, state) is not True:
        assert outcome.fault is FaultKind.ASSUMPTION_FAILED
        return
    if run.kind == "limit" or outcome.kind == "limit" or outcome.fault is FaultKind.UNMAPPED_WRITE:
        # Endless, or too deep a recursion for the stack.
        assert run.kind == "limit"
        return
    if run.kind == "blocked":
        assert outcome.fault is FaultKind.ASSUMPTION_FAILED
        return
    broken = violation(module, run)
    if broken is not None:
        assert outcome.kind == "target" and program.image.symbols[f"abort_{broken}"] == outcome.pc
        return
    assert outcome.kind == "halted"
    for name, value in run.final.variables.items():
        assert theory.wrap(machine.read(f"/{name}")) == value
    if program.input_memory:
        found = machine.memory.peek(MEMORY_BASE, size * module.cells)
        assert found is not None
        for index in range(module.cells):
            word = int.from_bytes(found[size * index : size * (index + 1)], "little")
            assert theory.wrap(word) == run.final.memory.get(index, 0)


@pytest.mark.slow
def test_directed_proof_generation_agrees_with_the_conditions() -> None:
    """Programs without loops, decided by their conditions; the engine may say UNKNOWN but nothing else."""
    kinds: list[str] = []

    @settings(RELAXED, max_examples=40)
    @given(modules("u8", 3, 2, loops=False))
    def agrees(module: Module) -> None:
        expected = check(module, ForwardDerivation(module)).kind
        verdict = search(lambda: while_program(module), Question(timeout=20)).verdict
        kinds.append(verdict.kind)
        assert verdict.kind in (expected, "unknown"), verdict

    agrees()
    assert {"proved", "violated"} <= set(kinds)


def test_theories_without_machine_code_are_refused() -> None:
    for theory in ("Z", "u7"):
        with pytest.raises(UsageError, match="no machine code"):
            while_program(parse("x := 1", theory=theory))
