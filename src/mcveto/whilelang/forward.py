"""Derivations that run forwards: [:=]= moves assignments into the context, with a new name for each version.

Starting from P ⊢ [α]Q the rules are applied to the outermost modality until only arithmetic is left (lecture §2):

    [;]  [:=]=  [assert]  [assume]  [if]  [unfold]  [*]=  [input]  [call]  [loop]  and →R, ∧R of the sequent calculus

Loops are unfolded as often as their bound allows. What follows then is a policy:

    replace   the loop is replaced by its postcondition, as the lecture does; a refuted condition need not be a bug
    assume    only paths that leave the loop there are followed ([assume(¬Q)]P)
    assert    unwinding assertions: [assert(¬Q)]P, so that valid conditions are a proof for all traces

A loop with an invariant J can be cut by it instead ([loop]): J holds, J is preserved, J and ¬Q suffice; whatever the
body changes gets a new name. Procedures are unfolded like loops: [call] is the body with names of its own; too deep a
recursion is cut by assume(false), or assert(false).

Branches that contradict a long context are closed at once: a loop with a constant number of turns costs one path.

A new version x_1 is needed only where x occurs already: `rename="needed"` keeps x where nothing was said of it (as in
the lecture's §2), `rename="always"` never does (its §3).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from mcveto.errors import UsageError
from mcveto.whilelang.guards import guarded
from mcveto.whilelang.inlining import Inliner, new_name
from mcveto.whilelang.rewriting import (
    both,
    changed,
    changes_memory,
    conjuncts,
    formula_names,
    in_bounds,
    instantiate,
    instantiate_term,
    negate,
    term_names,
)
from mcveto.whilelang.sequents import Condition, Node, Sequent
from mcveto.whilelang.syntax import (
    FALSE,
    MEM,
    TRUE,
    Assert,
    Assign,
    Assume,
    Box,
    Call,
    Command,
    Compare,
    Connective,
    Formula,
    If,
    Input,
    Memory,
    MemVar,
    Module,
    Position,
    Seq,
    Skip,
    Store,
    Term,
    Update,
    Var,
    While,
)
from mcveto.whilelang.theory import theory_named

MAX_CONDITIONS = 20_000
# Contexts with more assumptions than this are checked for contradictions at every branch.
LONG_CONTEXT = 12


@dataclass(frozen=True, slots=True)
class Bounds:
    """How often loops are unfolded; `lines` has the bounds of the loops that start on a line."""

    default: int = 1
    lines: Mapping[int, int] = field(default_factory=dict)
    recursion: int | None = None
    """How deep one procedure may call itself; `default` if not given."""

    def of(self, loop: While) -> int:
        return self.lines.get(loop.at.line, self.default) if loop.at is not None else self.default

    @property
    def depth(self) -> int:
        return self.default if self.recursion is None else self.recursion


class TooLarge(UsageError):
    """The derivation has more leaves than anybody would wait for."""


@dataclass(frozen=True, slots=True)
class _Goal:
    """Γ ⊢ goal, where `names` and `memory` say what the program's variables and its memory are called by now."""

    assumptions: tuple[Formula, ...]
    goal: Formula
    names: Mapping[str, Term]
    memory: Memory
    used: frozenset[str]
    inputs: tuple[str, ...] = ()
    why: str = "postcondition"
    at: Position | None = None
    ending: Formula | None = None
    unwinding: Formula | None = None

    def here(self, formula: Formula) -> Formula:
        return instantiate(formula, self.names, self.memory)

    def sequent(self) -> Sequent:
        return Sequent(self.assumptions, self.here(self.goal))

    def assuming(self, formula: Formula) -> _Goal:
        shown = self.here(formula)
        if shown == TRUE:
            return self
        used = self.used.union(formula_names(shown))
        return replace(self, assumptions=(*self.assumptions, *conjuncts(shown)), used=used)


class ForwardDerivation:
    """Builds the tree for one module; `cut` is replace, assume or assert."""

    def __init__(
        self,
        module: Module,
        bounds: Bounds | None = None,
        cut: str = "assume",
        *,
        rename: str = "needed",
        use_invariants: bool = True,
    ) -> None:
        self.module = guarded(module)
        self._arithmetic = theory_named(module.theory).symbol
        self._bounds = bounds or Bounds()
        self._cut = cut
        self._rename = rename
        self._use_invariants = use_invariants
        self.conditions: list[Node] = []
        self.was_cut = False
        """Whether some path was not followed to its end (never with cut=assert: then a condition says so)."""
        self.feasible: Callable[[tuple[Formula, ...]], bool] = lambda assumptions: True
        """Whether assumptions can hold together; asked in long contexts, whose branches are then closed early."""
        self.deadline = math.inf
        self.timed_out = False
        self._inliner = Inliner(self.module)
        self._names = self._inliner.names

    def derive(self) -> Node:
        """The derivation of ⊢ pre → [program] post."""
        module = self.module
        start = _Goal((), Box(module.program, module.post), {}, MEM, frozenset())
        if module.pre == TRUE:
            return self._complete(start)
        whole = Connective("→", module.pre, start.goal)
        root = Node("→R", lambda: Sequent((), whole))
        root.children.append(self._complete(start.assuming(module.pre)))
        return root

    def _complete(self, goal: _Goal) -> Node:
        """The tree above a goal, built with an explicit work list: derivations are as deep as paths are long."""
        top = Node("", goal.sequent)
        work: list[tuple[_Goal, Node]] = [(goal, top)]
        while work:
            if time.monotonic() > self.deadline:
                self.was_cut = self.timed_out = True
                break
            current, node = work.pop()
            work.extend(reversed(self._apply(current, node)))
            if len(self.conditions) > MAX_CONDITIONS:
                raise TooLarge(f"more than {MAX_CONDITIONS} verification conditions", "choose a smaller bound")
        return top

    def _apply(self, goal: _Goal, node: Node) -> list[tuple[_Goal, Node]]:
        """Names the rule for the goal in its node; returns what is left to do."""
        if not isinstance(goal.goal, Box):
            if goal.goal == TRUE or FALSE in goal.assumptions:
                node.rule, node.closed = ("⊤R" if goal.goal == TRUE else "⊥L"), True
                return []
            node.rule = self._arithmetic
            node.condition = Condition(goal.sequent(), goal.why, goal.at, goal.inputs, goal.ending, goal.unwinding)
            self.conditions.append(node)
            return []
        command, rest = goal.goal.program, goal.goal.body
        match command:
            case Seq(commands):
                tail: Command = commands[1] if len(commands) == 2 else Seq(commands[1:])
                return _one(node, "[;]", replace(goal, goal=Box(commands[0], Box(tail, rest))))
            case Skip():
                return _one(node, "[skip]", replace(goal, goal=rest))
            case Assign(target, value):
                shown = instantiate_term(value, goal.names, goal.memory)
                named = self._version(goal, target, frozenset(term_names(shown)))
                equation = Compare("=", Var(named.name), shown)
                used = goal.used.union(term_names(shown), (named.name,))
                after = replace(
                    goal,
                    assumptions=(*goal.assumptions, equation),
                    goal=rest,
                    names={**goal.names, target: named},
                    used=used,
                )
                return _one(node, "[:=]=", after)
            case Input(target):
                named = self._version(goal, target, frozenset())
                after = replace(
                    goal,
                    goal=rest,
                    names={**goal.names, target: named},
                    used=goal.used | {named.name},
                    inputs=(*goal.inputs, named.name),
                )
                return _one(node, "[input]", after)
            case Store(index, value):
                return self._store(goal, node, index, value, command.at, rest)
            case Assert(condition):
                return self._assert(goal, node, command, condition, rest)
            case Assume(condition):
                node.rule = "[assume]"
                return self._imply(goal, node, condition, rest)
            case If(condition, then, otherwise):
                node.rule = "[if]"
                other: Formula = rest if otherwise is None else Box(otherwise, rest)
                return self._branch(goal, node, condition, Box(then, rest), other)
            case While():
                return self._while(goal, node, command, rest)
            case Call():
                return self._call(goal, node, command, rest)

    def _store(
        self, goal: _Goal, node: Node, index: Term, value: Term, at: Position | None, rest: Formula
    ) -> list[tuple[_Goal, Node]]:
        node.rule = "[*]="
        at_index = instantiate_term(index, goal.names, goal.memory)
        stored = instantiate_term(value, goal.names, goal.memory)
        used = goal.used.union(term_names(at_index), term_names(stored))
        after = replace(goal, goal=rest, memory=Update(goal.memory, at_index, stored), used=used)
        bounds = in_bounds(at_index)
        split = Node("∧R", lambda: Sequent(goal.assumptions, both(after.here(rest), bounds)))
        node.children.append(split)
        # The index is instantiated already: no name of it may be replaced again.
        check = replace(goal, goal=bounds, names={}, memory=MEM, why="memory", at=at, ending=None, unwinding=None)
        return [_child(split, after), _child(split, check)]

    def _assert(
        self, goal: _Goal, node: Node, command: Assert, condition: Formula, rest: Formula
    ) -> list[tuple[_Goal, Node]]:
        node.rule = "[assert]"
        why, at = command.why, command.at
        if rest == TRUE:
            # Q ∧ ⊤ is Q.
            return [_child(node, replace(goal, goal=condition, why=why, at=at))]
        if not isinstance(rest, Box):
            unwinding = goal.here(condition) if why == "unwinding" else goal.unwinding
            return [
                _child(
                    node, replace(goal, goal=both(condition, rest), why=f"{why}, postcondition", unwinding=unwinding)
                )
            ]
        split = Node("∧R", lambda: Sequent(goal.assumptions, both(goal.here(condition), goal.here(rest))))
        node.children.append(split)
        check = replace(goal, goal=condition, why=why, at=at)
        if why == "unwinding":
            check = replace(check, unwinding=goal.here(condition))
        return [_child(split, check), _child(split, replace(goal, goal=rest))]

    def _imply(self, goal: _Goal, node: Node, condition: Formula, rest: Formula) -> list[tuple[_Goal, Node]]:
        implied = Node("→R", lambda: Sequent(goal.assumptions, Connective("→", goal.here(condition), goal.here(rest))))
        node.children.append(implied)
        premise = replace(goal.assuming(condition), goal=rest)
        if len(premise.assumptions) > LONG_CONTEXT and not self.feasible(premise.assumptions):
            implied.children.append(Node(self._arithmetic, premise.sequent, closed=True, note="no state is like this"))
            return []
        return [_child(implied, premise)]

    def _branch(
        self, goal: _Goal, node: Node, condition: Formula, then: Formula, other: Formula
    ) -> list[tuple[_Goal, Node]]:
        """(Q → then) ∧ (¬Q → other)."""
        opposite = negate(condition)

        def shown() -> Sequent:
            first = Connective("→", goal.here(condition), goal.here(then))
            second = Connective("→", goal.here(opposite), goal.here(other))
            return Sequent(goal.assumptions, Connective("∧", first, second))

        split = Node("∧R", shown)
        node.children.append(split)
        return [*self._imply(goal, split, condition, then), *self._imply(goal, split, opposite, other)]

    def _while(self, goal: _Goal, node: Node, loop: While, rest: Formula) -> list[tuple[_Goal, Node]]:
        if loop.invariant is not None and self._use_invariants:
            return self._loop(goal, node, loop, loop.invariant, rest)
        fuel = self._bounds.of(loop) if loop.fuel is None else loop.fuel
        if fuel > 0:
            node.rule = "[unfold]"
            again = Box(replace(loop, fuel=fuel - 1), rest)
            return self._branch(goal, node, loop.condition, Box(loop.body, again), rest)
        leaves = negate(loop.condition)
        if self._cut == "assert":
            command: Command = Assert(leaves, loop.at, "unwinding")
            return _one(node, f"bound: {_loop_name(loop)}", replace(goal, goal=Box(command, rest)))
        self.was_cut = True
        if self._cut == "assume":
            return _one(node, f"bound: {_loop_name(loop)}", replace(goal, goal=Box(Assume(leaves, loop.at), rest)))
        ending = both(goal.ending or TRUE, goal.here(leaves))
        used = goal.used.union(formula_names(ending))
        after = replace(goal, goal=rest, ending=ending, used=used, why="cut", at=loop.at)
        return _one(node, f"bound: {_loop_name(loop)}", after)

    def _loop(
        self, goal: _Goal, node: Node, loop: While, invariant: Formula, rest: Formula
    ) -> list[tuple[_Goal, Node]]:
        """Γ ⊢ J;  Γ', J, Q ⊢ [α]J;  Γ', J, ¬Q ⊢ P, where Γ' calls what α changes by new names."""
        node.rule = "[loop]"
        names = dict(goal.names)
        used = set(goal.used)
        for variable in sorted(changed(loop.body)):
            new = new_name(variable, used | self._names)
            names[variable] = Var(new)
            used.add(new)
        memory = goal.memory
        if changes_memory(loop.body):
            name = new_name("Mem", used | self._names)
            used.add(name)
            memory = MemVar(name)
        anywhere = replace(goal, names=names, memory=memory, used=frozenset(used)).assuming(invariant)
        first = replace(goal, goal=invariant, why="invariant", at=loop.at)
        body = replace(anywhere.assuming(loop.condition), goal=Box(loop.body, invariant), why="invariant", at=loop.at)
        after = replace(anywhere.assuming(negate(loop.condition)), goal=rest)
        return [_child(node, first), _child(node, body), _child(node, after)]

    def _call(self, goal: _Goal, node: Node, call: Call, rest: Formula) -> list[tuple[_Goal, Node]]:
        name = call.procedure
        if call.within.count(name) > self._bounds.depth:
            if self._cut == "assert":
                command: Command = Assert(FALSE, call.at, "unwinding")
            else:
                self.was_cut = True
                command = Assume(FALSE, call.at)
            return _one(node, f"bound: calls of {name}", replace(goal, goal=Box(command, rest)))
        return _one(node, "[call]", replace(goal, goal=Box(self._inliner.inlined(call), rest)))

    def _version(self, goal: _Goal, target: str, in_value: frozenset[str]) -> Var:
        """The name of the next version of a variable."""
        if self._rename == "needed" and target not in goal.used and target not in in_value:
            return Var(target)
        return Var(new_name(target, goal.used | in_value | self._names))


def _loop_name(loop: While) -> str:
    return f"loop at line {loop.at.line}" if loop.at is not None else "loop"


def _one(node: Node, rule: str, goal: _Goal) -> list[tuple[_Goal, Node]]:
    node.rule = rule
    return [_child(node, goal)]


def _child(node: Node, goal: _Goal) -> tuple[_Goal, Node]:
    child = Node("", goal.sequent)
    node.children.append(child)
    return goal, child
