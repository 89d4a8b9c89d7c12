"""Runs: the trace semantics of programs with abort Λ (lecture, Definition 3).

A run from ω is the trace (ω, …): one more state per assignment, update or input; none for assert, if and while; Λ as
the last element where a command's term or formula is undefined or an assertion fails. Two deviations, both forced:

- Definition 3(2) as printed lets Mem(U) be written, although it can never be read and axiom [*]= demands 0 ≤ e < U;
  we abort there, so that the axiom is the equivalence it is meant to be.
- A failed `assume` is no run at all (blocked), and a run longer than the limit is reported as such.

Calls keep an explicit stack, so recursion is bounded by the step limit alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mcveto.whilelang.state import State, UndefinedValue, formula_value, term_value
from mcveto.whilelang.syntax import (
    Assert,
    Assign,
    Assume,
    Call,
    Command,
    Formula,
    If,
    Input,
    Module,
    Position,
    Seq,
    Skip,
    Store,
    Term,
    While,
)
from mcveto.whilelang.theory import theory_named

OutcomeKind = Literal["ended", "aborted", "blocked", "limit"]
DEFAULT_STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """What one step of a trace changes: a variable (in a frame of depth `depth`) or a memory cell."""

    target: str | int
    value: int
    depth: int
    at: Position | None


@dataclass(slots=True)
class Run:
    """How a run ended; for `aborted`, `why` is assertion, memory or division."""

    kind: OutcomeKind
    initial: State
    final: State
    changes: list[Change]
    why: str = ""
    detail: str = ""
    at: Position | None = None
    steps: int = 0
    inputs: tuple[int, ...] = ()

    def states(self) -> list[State]:
        """The states of the trace as the outermost frame sees them; Λ is not among them."""
        trace = [self.initial.copy()]
        for change in self.changes:
            state = trace[-1].copy()
            if isinstance(change.target, int):
                state.memory[change.target] = change.value
            elif change.depth == 0:
                state.variables[change.target] = change.value
            trace.append(state)
        return trace


@dataclass(frozen=True, slots=True)
class _Return:
    """On the work list: the end of a call."""

    caller: dict[str, int]
    target: str | None
    result: str | None
    at: Position | None


class Interpreter:
    def __init__(self, module: Module, max_steps: int = DEFAULT_STEPS) -> None:
        self._module = module
        self._theory = theory_named(module.theory)
        self._cells = module.cells
        self._max_steps = max_steps

    def run(self, initial: State, supply: Callable[[], int] = lambda: 0, program: Command | None = None) -> Run:
        """Runs the program (or another one of the same module) from a state; `supply` gives the inputs."""
        state = initial.copy()
        consumed: list[int] = []
        changes: list[Change] = []
        work: list[Command | _Return] = [program if program is not None else self._module.program]
        depth = steps = 0

        def end(kind: OutcomeKind, why: str = "", detail: str = "", at: Position | None = None) -> Run:
            return Run(kind, initial.copy(), state, changes, why, detail, at, steps, tuple(consumed))

        def assign(target: str, value: int, at: Position | None) -> None:
            state.variables[target] = value
            changes.append(Change(target, value, depth, at))

        while work:
            command = work.pop()
            if isinstance(command, Seq):
                work.extend(reversed(command.commands))
                continue
            if isinstance(command, _Return):
                value = state.variables.get(command.result, 0) if command.result is not None else 0
                state.variables = command.caller
                depth -= 1
                if command.target is not None:
                    assign(command.target, value, command.at)
                continue
            steps += 1
            if steps > self._max_steps:
                return end("limit", detail=f"more than {self._max_steps} steps", at=command.at)
            try:
                match command:
                    case Skip():
                        pass
                    case Assign(target, term):
                        assign(target, self._value(term, state), command.at)
                    case Input(target):
                        consumed.append(self._theory.wrap(supply()))
                        assign(target, consumed[-1], command.at)
                    case Store(index, term):
                        at, value = self._value(index, state), self._value(term, state)
                        if not 0 <= at < self._cells:
                            raise UndefinedValue("memory", f"Mem({at}) is outside 0 ≤ i < {self._cells}")
                        state.memory[at] = value
                        changes.append(Change(at, value, depth, command.at))
                    case Assert(condition):
                        if not self._holds(condition, state):
                            return end("aborted", command.why, "the assertion is false", command.at)
                    case Assume(condition):
                        if not self._holds(condition, state):
                            return end("blocked", detail="an assumption is false", at=command.at)
                    case If(condition, then, otherwise):
                        if self._holds(condition, state):
                            work.append(then)
                        elif otherwise is not None:
                            work.append(otherwise)
                    case While(condition, body):
                        if self._holds(condition, state):
                            work += [command, body]
                    case Call(target, name, arguments):
                        procedure = self._module.procedure(name)
                        values = [self._value(item, state) for item in arguments]
                        work += [_Return(state.variables, target, procedure.result, command.at), procedure.body]
                        depth += 1
                        state.variables = dict(zip(procedure.parameters, values, strict=True))
            except UndefinedValue as problem:
                return end("aborted", problem.kind, str(problem), command.at)
        return end("ended")

    def satisfies(self, formula: Formula, state: State) -> bool | None:
        """Whether ω ⊨ P; None where P is undefined."""
        try:
            return self._holds(formula, state)
        except UndefinedValue:
            return None

    def _value(self, term: Term, state: State) -> int:
        return term_value(term, state, self._theory, self._cells)

    def _holds(self, formula: Formula, state: State) -> bool:
        return formula_value(formula, state, self._theory, self._cells)


def violation(module: Module, run: Run) -> str | None:
    """How a run from a state of the precondition breaks the contract; None if it does not (or has not ended)."""
    if run.kind == "aborted":
        return run.why
    if run.kind == "ended" and Interpreter(module).satisfies(module.post, run.final) is not True:
        return "postcondition"
    return None
