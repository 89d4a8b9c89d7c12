"""Rules [*]1 and [*]2: reads of an updated memory are resolved in the derivation itself (lecture §4).

    Γ ⊢ e = e'   Γ ⊢ 0 ≤ e < U                    Γ ⊢ e ≠ e'   Γ ⊢ 0 ≤ e < U
    ───────────────────────────── [*]1            ───────────────────────────── [*]2
    Γ ⊢ Mem{e ↦ ẽ}(e') = ẽ                        Γ ⊢ Mem{e ↦ ẽ}(e') = Mem(e')

At a leaf that reads Mem{e ↦ ẽ}(e'), whichever of e = e' and e ≠ e' follows from the context decides the rule, and the
read is replaced. Where neither follows the goal is split into the two cases. Where e may be out of bounds, or one of
e, ẽ and e' undefined, the leaf is left as it is and the solver's arrays decide it: the two cases would not be all.
"""

from __future__ import annotations

from dataclasses import replace

from mcveto.whilelang.arithmetic import Arithmetic
from mcveto.whilelang.guards import term_guards
from mcveto.whilelang.rewriting import in_bounds
from mcveto.whilelang.sequents import Condition, Node, Sequent
from mcveto.whilelang.syntax import Binary, Compare, Connective, Formula, Memory, Not, Read, Term, Unary, Update

MAX_RESOLUTIONS = 200


def resolve_reads(leaves: list[Node], arithmetic: Arithmetic) -> list[Node]:
    """Resolves the reads in leaves with a condition, in place; returns the leaves that are left."""
    result: list[Node] = []
    work = list(reversed(leaves))
    budget = MAX_RESOLUTIONS
    while work:
        node = work.pop()
        condition = node.condition
        assert condition is not None
        read = _first_read((*condition.sequent.assumptions, condition.sequent.goal)) if budget > 0 else None
        premises = None if read is None else _premises(node, condition, read, arithmetic)
        if premises is None:
            result.append(node)
            continue
        budget -= 1
        work.extend(reversed(premises))
    return result


def _premises(node: Node, condition: Condition, read: Read, arithmetic: Arithmetic) -> list[Node] | None:
    """Applies a rule to the leaf; its premises that still need an answer, or None if no rule applies."""
    update = read.memory
    assert isinstance(update, Update)
    assumptions = condition.sequent.assumptions
    bounds = Sequent(assumptions, in_bounds(update.index))
    demands = [guard for term in (update.index, update.value, read.index) for _, guard in term_guards(term, 0)]
    if any(arithmetic.decide(Sequent(assumptions, goal)).kind != "valid" for goal in (bounds.goal, *demands)):
        return None
    same = Compare("=", update.index, read.index)
    other = Compare("≠", update.index, read.index)
    closed = node.rule
    older = Read(update.memory, read.index)
    for rule, relation, value in (("[*]1", same, update.value), ("[*]2", other, older)):
        premise = Sequent(assumptions, relation)
        if (update.index == read.index and rule == "[*]1") or arithmetic.decide(premise).kind == "valid":
            rest = _leaf(closed, _replaced(condition, read, value))
            node.rule, node.condition = rule, None
            node.children = [_closed(closed, premise), _closed(closed, bounds), rest]
            return [rest]
    cases = [
        _leaf(closed, replace(condition, sequent=Sequent((*assumptions, relation), condition.sequent.goal)))
        for relation in (same, other)
    ]
    node.rule, node.condition, node.children = "cases", None, cases
    return cases


def _leaf(rule: str, condition: Condition) -> Node:
    return Node(rule, lambda: condition.sequent, condition=condition)


def _closed(rule: str, sequent: Sequent) -> Node:
    return Node(rule, lambda: sequent, closed=True)


def _replaced(condition: Condition, read: Read, value: Term) -> Condition:
    sequent = condition.sequent
    assumptions = tuple(_in_formula(item, read, value) for item in sequent.assumptions)
    return replace(condition, sequent=Sequent(assumptions, _in_formula(sequent.goal, read, value)))


def _in_formula(formula: Formula, read: Read, value: Term) -> Formula:
    match formula:
        case Compare(op, left, right):
            return Compare(op, _in_term(left, read, value), _in_term(right, read, value))
        case Not(body):
            return Not(_in_formula(body, read, value))
        case Connective(op, left, right):
            return Connective(op, _in_formula(left, read, value), _in_formula(right, read, value), formula.lazy)
    return formula


def _in_term(term: Term, read: Read, value: Term) -> Term:
    if term == read:
        return value
    match term:
        case Unary(op, operand):
            return Unary(op, _in_term(operand, read, value))
        case Binary(op, left, right):
            return Binary(op, _in_term(left, read, value), _in_term(right, read, value))
        case Read(memory, index):
            return Read(_in_memory(memory, read, value), _in_term(index, read, value))
    return term


def _in_memory(memory: Memory, read: Read, value: Term) -> Memory:
    if isinstance(memory, Update):
        index, stored = _in_term(memory.index, read, value), _in_term(memory.value, read, value)
        return Update(_in_memory(memory.memory, read, value), index, stored)
    return memory


def _first_read(formulas: tuple[Formula, ...]) -> Read | None:
    """An innermost read of an updated memory: one whose index and update hold no other."""
    for formula in formulas:
        found = _read_in_formula(formula)
        if found is not None:
            return found
    return None


def _read_in_formula(formula: Formula) -> Read | None:
    match formula:
        case Compare(_, left, right):
            return _read_in_term(left) or _read_in_term(right)
        case Not(body):
            return _read_in_formula(body)
        case Connective(_, left, right):
            return _read_in_formula(left) or _read_in_formula(right)
    return None


def _read_in_term(term: Term) -> Read | None:
    match term:
        case Unary(_, operand):
            return _read_in_term(operand)
        case Binary(_, left, right):
            return _read_in_term(left) or _read_in_term(right)
        case Read(memory, index):
            inner = _read_in_term(index) or _read_in_memory(memory)
            return inner or (term if isinstance(memory, Update) else None)
    return None


def _read_in_memory(memory: Memory) -> Read | None:
    while isinstance(memory, Update):
        found = _read_in_term(memory.index) or _read_in_term(memory.value)
        if found is not None:
            return found
        memory = memory.memory
    return None
