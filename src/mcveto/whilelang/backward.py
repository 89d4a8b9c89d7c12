"""Derivations that run backwards: [:=] substitutes into the postcondition, innermost modality first (lecture §3, (10)).

Every axiom is an equivalence, so the derivation is a chain and leaves one verification condition, without the history
of the variables that [:=]= keeps. Loops and calls are unfolded and cut as in `forward`. Programs that read inputs are
refused: a condition of this kind does not tell in which order they are read.
"""

from __future__ import annotations

from dataclasses import replace

from mcveto.errors import UsageError
from mcveto.whilelang.forward import Bounds, TooLarge
from mcveto.whilelang.guards import guarded
from mcveto.whilelang.inlining import Inliner
from mcveto.whilelang.rewriting import both, conjuncts, implication, in_bounds, instantiate, negate
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
    Connective,
    Formula,
    If,
    Input,
    Module,
    Not,
    Seq,
    Skip,
    Store,
    Update,
    While,
)
from mcveto.whilelang.theory import theory_named

MAX_STEPS = 2_000
MAX_SIZE = 20_000


class BackwardDerivation:
    def __init__(self, module: Module, bounds: Bounds | None = None, cut: str = "assume") -> None:
        self.module = guarded(module)
        self._bounds = bounds or Bounds()
        self._cut = cut
        self._inliner = Inliner(self.module)
        self.conditions: list[Node] = []
        self.was_cut = False

    def derive(self) -> Node:
        """The derivation of ⊢ pre → [program] post."""
        module = self.module
        formula: Formula = Box(module.program, module.post)
        assumptions = () if module.pre == TRUE else tuple(conjuncts(module.pre))
        root = node = _node(assumptions, formula)
        if assumptions:
            whole = Connective("→", module.pre, formula)
            root = Node("→R", lambda: Sequent((), whole), [node])
        for _ in range(MAX_STEPS):
            if not _has_box(formula):
                node.rule = theory_named(module.theory).symbol
                node.condition = Condition(Sequent(assumptions, formula), "program")
                self.conditions.append(node)
                return root
            formula, node.rule = self._step(formula)
            if _size(formula) > MAX_SIZE:
                break
            following = _node(assumptions, formula)
            node.children.append(following)
            node = following
        raise TooLarge("the formula that [:=] builds is too large", "use [:=]= (--rule context)")

    def _step(self, formula: Formula) -> tuple[Formula, str]:
        """The formula with its first innermost modality reduced, and the axiom that does it."""
        match formula:
            case Box(program, body):
                if not _has_box(body):
                    return self._axiom(program, body)
                inner, rule = self._step(body)
                return Box(program, inner), rule
            case Not(body):
                inner, rule = self._step(body)
                return Not(inner), rule
            case Connective(op, left, right):
                join = {"∧": both, "→": implication}.get(op)
                if _has_box(left):
                    left, rule = self._step(left)
                else:
                    right, rule = self._step(right)
                simple = join is not None and not _has_box(left) and not _has_box(right)
                if simple and join is not None:
                    return join(left, right), rule
                return Connective(op, left, right, formula.lazy), rule
        raise TypeError("no modality")

    def _axiom(self, command: Command, post: Formula) -> tuple[Formula, str]:
        match command:
            case Seq(commands):
                tail: Command = commands[1] if len(commands) == 2 else Seq(commands[1:])
                return Box(commands[0], Box(tail, post)), "[;]"
            case Skip():
                return post, "[skip]"
            case Assign(target, value):
                return instantiate(post, {target: value}, MEM), "[:=]"
            case Store(index, value):
                return both(instantiate(post, {}, Update(MEM, index, value)), in_bounds(index)), "[*]="
            case Assert(condition):
                return both(condition, post), "[assert]"
            case Assume(condition):
                return implication(condition, post), "[assume]"
            case If(condition, then, otherwise):
                other = post if otherwise is None else Box(otherwise, post)
                yes, no = implication(condition, Box(then, post)), implication(negate(condition), other)
                return both(yes, no), "[if]"
            case While():
                return self._while(command, post)
            case Call():
                return self._call(command, post)
            case Input():
                raise UsageError("[:=] derivations cannot read inputs", "use [:=]= (--rule context)")

    def _while(self, loop: While, post: Formula) -> tuple[Formula, str]:
        fuel = self._bounds.of(loop) if loop.fuel is None else loop.fuel
        leaves = negate(loop.condition)
        if fuel > 0:
            again = Box(loop.body, Box(replace(loop, fuel=fuel - 1), post))
            return both(implication(loop.condition, again), implication(leaves, post)), "[unfold]"
        if self._cut == "assert":
            return Box(Assert(leaves, loop.at, "unwinding"), post), "bound"
        self.was_cut = True
        return (implication(leaves, post) if self._cut == "assume" else post), "bound"

    def _call(self, call: Call, post: Formula) -> tuple[Formula, str]:
        if call.within.count(call.procedure) <= self._bounds.depth:
            return Box(self._inliner.inlined(call), post), "[call]"
        if self._cut == "assert":
            return FALSE, "bound"
        self.was_cut = True
        return TRUE, "bound"


def _node(assumptions: tuple[Formula, ...], formula: Formula) -> Node:
    return Node("", lambda: Sequent(assumptions, formula))


def _has_box(formula: Formula) -> bool:
    match formula:
        case Box():
            return True
        case Not(body):
            return _has_box(body)
        case Connective(_, left, right):
            return _has_box(left) or _has_box(right)
    return False


def _size(formula: Formula) -> int:
    match formula:
        case Not(body):
            return 1 + _size(body)
        case Box(_, body):
            return 1 + _size(body)
        case Connective(_, left, right):
            return _size(left) + _size(right)
    return 1
