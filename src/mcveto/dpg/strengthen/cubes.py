"""Cubes: conjunctions of simple literals, read off a model of a step (model-based projection of `Pre`).

`cube_of(literals, fresh, model)` returns literals over the state before alone, all true in the model, whose conjunction
implies that some fresh values satisfy the given ones. Reads that may alias a write are decided as they are in the
model, of an if-then-else the branch the model takes is kept with its condition, of a disjunction one disjunct. Fresh
values are eliminated exactly where that is easy (an equation that defines one, one that occurs in a single comparison),
otherwise replaced by the model's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcveto.dpg.pre_alpha import AliasingDecider
from mcveto.logic import terms as t
from mcveto.logic.definition import definition_of
from mcveto.logic.substitute import rebuild, substitute
from mcveto.logic.terms import Term, free_variables

Value = Callable[[Term], int]


def cube_of(literals: Iterable[Term], fresh: Sequence[Term], value: Value) -> tuple[Term, ...]:
    found = _implicant(literals, value)
    if fresh:
        found = _implicant(_without(found, fresh, value), value)
    return tuple(dict.fromkeys(found))


def conjuncts(term: Term) -> tuple[Term, ...]:
    return term.args if term.op == "and" and term.width == 1 else (term,)


def _implicant(literals: Iterable[Term], value: Value) -> list[Term]:
    """Literals without aliasing, if-then-else and disjunction that are true and imply the given ones."""
    decider = AliasingDecider(value)
    waiting = list(literals)
    found: dict[Term, None] = {}
    seen: set[Term] = set()
    while waiting:
        literal = waiting.pop()
        if literal is t.TRUE or literal in seen:
            continue
        seen.add(literal)
        if literal.op == "and" and literal.width == 1:
            waiting.extend(literal.args)
            continue
        if literal.op == "or" and literal.width == 1:
            waiting.append(min((x for x in literal.args if value(x)), key=_weight))
            continue
        condition = _some_condition(literal)
        if condition is not None:
            holds = bool(value(condition))
            waiting.append(condition if holds else t.bnot(condition))
            waiting.append(_decided(literal, condition, holds))
            continue
        simple = decider.simplify(literal)
        if simple is not literal:
            waiting.append(simple)
            waiting.extend(decider.alpha)
            continue
        found[literal] = None
    return list(found)


def _weight(term: Term) -> tuple[int, int]:
    return len(t.postorder([term])), term.serial


def _some_condition(literal: Term) -> Term | None:
    """The condition of an innermost if-then-else."""
    for term in t.postorder([literal]):
        if term.op == "ite":
            return term.args[0]
        # Addresses and shift counts that are truth values widened, x·zext(c): decided too would only lose generality.
    return None


def _decided(literal: Term, condition: Term, holds: bool) -> Term:
    """The literal with every if-then-else on the condition replaced by the branch taken."""
    done: dict[Term, Term] = {}
    for term in t.postorder([literal]):
        if term.op == "ite" and term.args[0] is condition:
            done[term] = done[term.args[1 if holds else 2]]
        else:
            arguments = tuple(done[x] for x in term.args)
            done[term] = term if arguments == term.args else rebuild(term, arguments)
    return done[literal]


def _without(literals: Sequence[Term], fresh: Sequence[Term], value: Value) -> list[Term]:
    remaining = list(literals)
    for variable in fresh:
        users = [literal for literal in remaining if variable in free_variables([literal])]
        if not users:
            continue
        definition = definition_of(variable, users)
        if definition is not None:
            remaining = [substitute(literal, {variable: definition}) for literal in remaining]
            continue
        if len(users) == 1:
            exists = some_value(variable, users[0])
            if exists is not None:
                remaining = [exists if literal is users[0] else literal for literal in remaining]
                continue
        constant = t.const(value(variable), variable.width)
        remaining = [substitute(literal, {variable: constant}) for literal in remaining]
    return remaining


def some_value(variable: Term, literal: Term) -> Term | None:
    """When some value of the variable satisfies the literal; None if that is not easily said."""
    negated = literal.op == "not"
    inner = literal.args[0] if negated else literal
    if inner.op not in ("eq", "ult", "ule", "slt", "sle") or variable.width == 1:
        return None
    one, other = inner.args
    if variable in (one, other) and one is not other:
        rest = other if one is variable else one
        if variable in free_variables([rest]):
            return None
        if inner.op == "eq" or ((inner.op in ("ule", "sle")) != negated):
            return t.TRUE
        # A strict comparison excludes one end of the range.
        top = (1 << variable.width) - 1
        half = 1 << (variable.width - 1)
        is_signed = inner.op in ("slt", "sle")
        variable_is_less = (one is variable) != negated
        if variable_is_less:
            end = half if is_signed else 0
        else:
            end = half - 1 if is_signed else top
        return t.ne(rest, t.const(end, rest.width))
    return None
