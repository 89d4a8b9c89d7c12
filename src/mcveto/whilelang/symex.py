"""Symbolic execution: paths of the control-flow graph, their path formulas, and what holds along them (lecture §3).

A path's formula is the conjunction of its conditions and of one equation per assignment, each to a new version of its
variable. A path is feasible if its formula is satisfiable; then its start is run in the interpreter. An invariant is
checked at every point of every path: the formula so far must imply it.

Paths are enumerated depth first, loops taken at most their bound each time they are entered. With `prune`, a path is
given up at the condition that makes it infeasible; without, every path to an error or the exit is listed as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mcveto.whilelang.arithmetic import Answer, Arithmetic
from mcveto.whilelang.cfg import Edge, Graph, control_flow_graph
from mcveto.whilelang.checker import Counterexample, replay
from mcveto.whilelang.formatter import MATHEMATICAL, Style, formula_text
from mcveto.whilelang.forward import Bounds
from mcveto.whilelang.inlining import new_name
from mcveto.whilelang.interpreter import Interpreter
from mcveto.whilelang.rewriting import conjuncts, formula_names, instantiate, instantiate_term, module_variables
from mcveto.whilelang.sequents import Sequent
from mcveto.whilelang.state import State
from mcveto.whilelang.syntax import (
    MEM,
    TRUE,
    Assign,
    Assume,
    Compare,
    Connective,
    Formula,
    Input,
    Memory,
    Module,
    Store,
    Term,
    Update,
    Var,
)
from mcveto.whilelang.theory import theory_named

MAX_PATHS = 5_000


@dataclass(frozen=True, slots=True)
class Path:
    """A path from the entry, with its formula as conjuncts and the current names of variables and memory."""

    edges: tuple[Edge, ...]
    conjuncts: tuple[Formula, ...]
    names: Mapping[str, Term]
    memory: Memory
    used: frozenset[str]
    inputs: tuple[str, ...] = ()
    turns: Mapping[int, int] = field(default_factory=dict)

    def formula(self) -> Formula:
        if not self.conjuncts:
            return TRUE
        result = self.conjuncts[0]
        for item in self.conjuncts[1:]:
            result = Connective("∧", result, item)
        return result

    def program_text(self, style: Style = MATHEMATICAL) -> str:
        """The path as a program: [?a > 0; x := 1; …]⊤."""
        shown = "; ".join(edge.text(style) for edge in self.edges if edge.label is not None)
        return f"[{shown}] {style.of('⊤')}"

    def here(self, formula: Formula) -> Formula:
        return instantiate(formula, self.names, self.memory)


@dataclass(frozen=True, slots=True)
class Finding:
    """A path to an error node, to the exit, or to a point where the invariant is asked.

    `goal` is what must follow from the path formula; None at an error, where the formula itself must be refuted.
    """

    kind: str
    path: Path
    goal: Formula | None
    answer: Answer
    counterexample: Counterexample | None

    @property
    def sequent(self) -> Sequent:
        assert self.goal is not None
        return Sequent(self.path.conjuncts, self.goal)

    def text(self) -> str:
        if self.goal is None:
            return formula_text(self.path.formula(), MATHEMATICAL)
        return self.sequent.text()


@dataclass(slots=True)
class Exploration:
    kind: str
    reason: str
    graph: Graph
    findings: list[Finding]
    paths: int
    counterexample: Counterexample | None

    @property
    def headline(self) -> str:
        match self.kind:
            case "proved":
                return "PROVED"
            case "violated":
                return f"VIOLATED({self.reason})"
        return f"UNKNOWN({self.reason})"


class SymbolicExecution:
    def __init__(
        self,
        module: Module,
        bounds: Bounds | None = None,
        *,
        invariant: Formula | None = None,
        prune: bool = True,
        seconds: float = 60.0,
        query_seconds: float = 10.0,
    ) -> None:
        self._module = module
        self._bounds = bounds or Bounds()
        self._invariant = invariant
        self._prune = prune
        self._deadline = time.monotonic() + seconds
        self._arithmetic = Arithmetic(theory_named(module.theory), module.cells, query_seconds)
        self._variables = module_variables(module)
        self.graph = control_flow_graph(module, self._bounds.depth)
        self._reserved = frozenset(self._variables)
        self._open: dict[str, None] = {}
        self._findings: list[Finding] = []
        self._paths = 0

    def explore(self) -> Exploration:
        """Follows all paths within the bounds."""
        start = Path((), (), {}, MEM, frozenset())
        if self._module.pre != TRUE:
            start = self._assuming(start, self._module.pre)
        work: list[tuple[int, Path]] = [(0, start)]
        if self.graph.is_cut:
            self._open["no violation up to the bound"] = None
        while work:
            if time.monotonic() > self._deadline or self._paths > MAX_PATHS:
                late = self._paths <= MAX_PATHS
                self._open["time-out" if late else f"more than {MAX_PATHS} paths"] = None
                break
            node, path = work.pop()
            if self._visit(node, path):
                following = list(self._followers(node, path))
                work.extend(reversed(following))
        return self._conclude()

    def _visit(self, node: int, path: Path) -> bool:
        """Judges a path that has come to a node; whether to go on from there."""
        error = self.graph.errors.get(node)
        if error is not None:
            self._paths += 1
            answer = self._arithmetic.satisfying(list(path.conjuncts))
            self._record(f"error: {error.why}", path, None, answer)
            return False
        if self._prune and path.edges and isinstance(path.edges[-1].label, Assume):
            answer = self._arithmetic.satisfying(list(path.conjuncts))
            if answer.kind == "valid":
                self._paths += 1
                return False
        if self._invariant is not None and (not path.edges or path.edges[-1].label is not None):
            goal = path.here(self._invariant)
            self._record("invariant", path, goal, self._arithmetic.decide(Sequent(path.conjuncts, goal)))
        if node == self.graph.exit:
            self._paths += 1
            if self._module.post != TRUE:
                goal = path.here(self._module.post)
                self._record("postcondition", path, goal, self._arithmetic.decide(Sequent(path.conjuncts, goal)))
            return False
        return True

    def _followers(self, node: int, path: Path) -> Iterator[tuple[int, Path]]:
        for edge in self.graph.edges.get(node, []):
            turns = path.turns
            if edge.enters is not None:
                turns = {**turns, edge.enters: 0}
            if edge.repeats is not None:
                taken = turns.get(edge.repeats, 0) + 1
                at = self.graph.loops[edge.repeats]
                bound = self._bounds.default
                if at is not None:
                    bound = self._bounds.lines.get(at.line, bound)
                if taken > bound:
                    beyond = self._step(path, edge)
                    if self._arithmetic.satisfying(list(beyond.conjuncts)).kind != "valid":
                        self._open["no violation up to the bound"] = None
                    continue
                turns = {**turns, edge.repeats: taken}
            yield edge.target, replace(self._step(path, edge), turns=turns)

    def _step(self, path: Path, edge: Edge) -> Path:
        """The path with one more edge."""
        path = replace(path, edges=(*path.edges, edge))
        match edge.label:
            case None:
                return path
            case Assume(condition):
                return self._assuming(path, condition)
            case Assign(target, value):
                shown = instantiate_term(value, path.names, path.memory)
                path, name = self._version(path, target)
                return _with(path, Compare("=", Var(name), shown))
            case Input(target):
                path, name = self._version(path, target)
                return replace(path, inputs=(*path.inputs, name))
            case Store(index, value):
                at = instantiate_term(index, path.names, path.memory)
                return replace(path, memory=Update(path.memory, at, instantiate_term(value, path.names, path.memory)))

    def _assuming(self, path: Path, condition: Formula) -> Path:
        shown = path.here(condition)
        for item in conjuncts(shown) if shown != TRUE else ():
            path = _with(path, item)
        return path

    def _version(self, path: Path, target: str) -> tuple[Path, str]:
        name = new_name(target, path.used | self._reserved)
        return replace(path, names={**path.names, target: Var(name)}, used=path.used | {name}), name

    def _record(self, kind: str, path: Path, goal: Formula | None, answer: Answer) -> None:
        found: Counterexample | None = None
        if answer.kind == "refuted":
            initial = answer.state(self._variables)
            inputs = tuple(answer.values.get(name, 0) for name in path.inputs)
            if kind == "invariant":
                found = self._invariant_broken(initial, inputs)
            else:
                found = replay(self._module, initial, inputs)
            if found is None:
                self._open["a path's start does not replay"] = None
        elif answer.kind == "unknown":
            self._open["the solver does not decide a path formula"] = None
        self._findings.append(Finding(kind, path, goal, answer, found))

    def _invariant_broken(self, initial: State, inputs: tuple[int, ...]) -> Counterexample | None:
        """A run of the program with a state outside the invariant."""
        assert self._invariant is not None
        interpreter = Interpreter(self._module, 100_000)
        if interpreter.satisfies(self._module.pre, initial) is not True:
            return None
        remaining = iter(inputs)
        run = interpreter.run(initial, lambda: next(remaining, 0))
        if all(interpreter.satisfies(self._invariant, state) is True for state in run.states()):
            return None
        return Counterexample(initial, run.inputs, run, "invariant")

    def _conclude(self) -> Exploration:
        found = next((item.counterexample for item in self._findings if item.counterexample is not None), None)
        if found is not None:
            kind, reason = "violated", found.what
        elif self._open:
            kind, reason = "unknown", "; ".join(self._open)
        else:
            kind, reason = "proved", ""
        return Exploration(kind, reason, self.graph, self._findings, self._paths, found)


def _with(path: Path, formula: Formula) -> Path:
    return replace(path, conjuncts=(*path.conjuncts, formula), used=path.used.union(formula_names(formula)))
