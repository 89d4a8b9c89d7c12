"""From a derivation to a verdict: every condition is asked, every counterexample is run.

PROVED needs every condition valid and no path cut off. VIOLATED needs a run of the interpreter, from a state of the
precondition, that aborts or ends outside the postcondition: an assignment that refutes a condition is only a suggestion
of where to start (a path cut by a bound, or by an invariant, need not be a path of the program).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from mcveto.whilelang.arithmetic import Answer, Arithmetic
from mcveto.whilelang.backward import BackwardDerivation
from mcveto.whilelang.forward import ForwardDerivation
from mcveto.whilelang.interpreter import Interpreter, Run, violation
from mcveto.whilelang.reads import resolve_reads
from mcveto.whilelang.rewriting import module_variables
from mcveto.whilelang.sequents import Condition, Node
from mcveto.whilelang.state import State
from mcveto.whilelang.syntax import Module
from mcveto.whilelang.theory import theory_named

REPLAY_STEPS = 200_000
# With more conditions than this, the first counterexample ends the search.
MANY_CONDITIONS = 64


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A start, the inputs read from there, and the run that breaks the contract."""

    initial: State
    inputs: tuple[int, ...]
    run: Run
    what: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A condition with its answer; `counterexample` only if its run was seen to break the contract."""

    node: Node
    answer: Answer
    counterexample: Counterexample | None = None

    @property
    def condition(self) -> Condition:
        assert self.node.condition is not None
        return self.node.condition


@dataclass(slots=True)
class Result:
    """`kind` is proved, violated or unknown."""

    kind: str
    reason: str
    tree: Node
    checked: list[Checked]
    module: Module
    """As the derivation saw it: with its guards."""
    counterexample: Counterexample | None = None
    queries: int = 0

    @property
    def headline(self) -> str:
        match self.kind:
            case "proved":
                return "PROVED"
            case "violated":
                return f"VIOLATED({self.reason})"
        return f"UNKNOWN({self.reason})"


def replay(module: Module, initial: State, inputs: tuple[int, ...]) -> Counterexample | None:
    """The counterexample, if the run from there breaks the contract."""
    interpreter = Interpreter(module, REPLAY_STEPS)
    if interpreter.satisfies(module.pre, initial) is not True:
        return None
    remaining = iter(inputs)
    run = interpreter.run(initial, lambda: next(remaining, 0))
    what = violation(module, run)
    return None if what is None else Counterexample(initial, run.inputs, run, what)


def check(
    module: Module,
    derivation: ForwardDerivation | BackwardDerivation,
    *,
    seconds: float = 60.0,
    query_seconds: float = 10.0,
    resolve: bool = False,
) -> Result:
    """Derives, asks and replays, for at most about `seconds`; `resolve` applies [*]1 and [*]2 in the derivation."""
    deadline = time.monotonic() + seconds
    arithmetic = Arithmetic(theory_named(module.theory), module.cells, query_seconds)
    if isinstance(derivation, ForwardDerivation):
        derivation.deadline = deadline
        derivation.feasible = lambda assumptions: arithmetic.satisfying(list(assumptions)).kind != "valid"
    tree = derivation.derive()
    variables = module_variables(module)
    found: Counterexample | None = None
    open_reasons: dict[str, None] = {}
    if isinstance(derivation, ForwardDerivation) and derivation.timed_out:
        open_reasons["time-out"] = None
    leaves = derivation.conditions
    if resolve:
        leaves = resolve_reads(leaves, arithmetic)
    # Short paths first: they are decided sooner, and their counterexamples are easier to read.
    order = sorted(leaves, key=lambda node: 0 if node.condition is None else len(node.condition.sequent.assumptions))
    by_node: dict[int, Checked] = {}
    for node in order:
        if time.monotonic() > deadline:
            open_reasons["time-out"] = None
            break
        if found is not None and len(leaves) > MANY_CONDITIONS:
            break
        item = _check_one(module, node, arithmetic, variables)
        node.closed = {"valid": True, "refuted": False}.get(item.answer.kind)
        by_node[id(node)] = item
        if item.answer.kind == "unknown":
            open_reasons["the solver does not decide a condition"] = None
        elif item.answer.kind == "refuted" and item.counterexample is None:
            node.note = _open_because(item.condition)
            open_reasons[node.note] = None
        found = found or item.counterexample
    checked = [by_node[id(node)] for node in leaves if id(node) in by_node]
    result = Result("unknown", "; ".join(open_reasons), tree, checked, derivation.module, found, arithmetic.queries)
    if found is not None:
        result.kind, result.reason = "violated", found.what
    elif not open_reasons and not derivation.was_cut:
        result.kind = "proved"
    elif not open_reasons:
        result.reason = "no violation up to the bound"
    return result


def _check_one(module: Module, node: Node, arithmetic: Arithmetic, variables: list[str]) -> Checked:
    condition = node.condition
    assert condition is not None
    answer = arithmetic.decide(condition.sequent)
    if answer.kind != "refuted":
        return Checked(node, answer)
    counterexample = _replayed(module, condition, answer, variables)
    if counterexample is None:
        # The path was cut: look for one that really leaves the loop there.
        ending = condition.ending or condition.unwinding
        if ending is not None:
            second = arithmetic.decide(condition.sequent, ending)
            if second.kind == "refuted":
                counterexample = _replayed(module, condition, second, variables)
    return Checked(node, answer, counterexample)


def _replayed(module: Module, condition: Condition, answer: Answer, variables: list[str]) -> Counterexample | None:
    inputs = tuple(answer.values.get(name, 0) for name in condition.inputs)
    return replay(module, answer.state(variables), inputs)


def _open_because(condition: Condition) -> str:
    where = "" if condition.at is None else f" of line {condition.at.line}"
    if condition.unwinding is not None:
        return f"the unwinding assertion{where} does not hold: the bound is too small"
    if condition.ending is not None:
        return f"the loop{where} may go on where the bound cuts it"
    return f"a condition ({condition.why}{where}) is open, and its counterexample is not one of the program"
