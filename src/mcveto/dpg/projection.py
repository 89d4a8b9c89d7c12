"""Existential projection of a step's fresh values out of a refinement predicate.

`project(literals, fresh, …)` returns literals without the fresh variables whose conjunction is implied by "some fresh
values satisfy the given ones": a superset of the exact projection, which is all that soundness needs (no state outside
may make the step), and one that the witness is outside of. Tried in turn:

1. an equation that defines the variable is substituted, which is exact;
2. the literals without the variable, if the witness violates them: what the others say is not needed;
3. model-based: the parts of the literals that do not depend on fresh values are fixed to what they are at the witness;
   an unsatisfiable core tells which of them matter, and each equation is weakened to a bound where that is enough.
   A state outside the result makes the literals unsatisfiable for every fresh value.

Reading inputs from a tape array instead was measured to diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcveto.logic import terms as t
from mcveto.logic.definition import definition_of
from mcveto.logic.solver import Solver
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term, free_variables


def project(
    literals: Sequence[Term], fresh: Sequence[Term], concrete: Callable[[Term], int], solver: Solver, timeout: float
) -> tuple[Term, ...] | None:
    """Literals over the state alone; None if the solver could not decide. An empty disjunction is (FALSE,)."""
    remaining = _eliminated(literals, fresh)
    hidden = set(fresh)
    free = {literal: hidden.isdisjoint(free_variables([literal])) for literal in remaining}
    plain = tuple(literal for literal in remaining if free[literal])
    if len(plain) == len(remaining) or not all(concrete(literal) for literal in plain):
        return plain
    return _model_based(remaining, plain, hidden, concrete, solver, timeout)


def _eliminated(literals: Sequence[Term], fresh: Sequence[Term]) -> list[Term]:
    remaining = list(literals)
    for variable in fresh:
        definition = definition_of(variable, remaining)
        if definition is not None:
            remaining = [substitute(literal, {variable: definition}) for literal in remaining]
    return [literal for literal in dict.fromkeys(remaining) if literal is not t.TRUE]


def _model_based(
    literals: Sequence[Term],
    plain: tuple[Term, ...],
    hidden: set[Term],
    concrete: Callable[[Term], int],
    solver: Solver,
    timeout: float,
) -> tuple[Term, ...] | None:
    mixed = [literal for literal in literals if literal not in plain]
    parts = _visible_parts(mixed, hidden)
    fixed = {t.eq(part, t.const(concrete(part), part.width)): part for part in parts}
    solver.push()
    try:
        for literal in mixed:
            solver.add(literal)
        facts = [fact for fact in fixed if fact is not t.TRUE]
        if solver.check(facts, timeout) != "unsat":
            return None
        facts = solver.core()
        for number, fact in enumerate(facts):
            part = fixed[fact]
            value = t.const(concrete(part), part.width)
            for bound in (t.sle(part, value), t.sle(value, part), t.ule(part, value), t.ule(value, part)):
                attempt = [*facts[:number], bound, *facts[number + 1 :]]
                if part.width > 1 and bound is not t.TRUE and solver.check(attempt, timeout) == "unsat":
                    facts[number] = bound
                    break
    finally:
        solver.pop()
    return (t.bnot(t.conj(facts)),)


def _visible_parts(literals: Sequence[Term], hidden: set[Term]) -> list[Term]:
    """The largest subterms that do not depend on fresh values, constants and memories left out."""
    parts: dict[Term, None] = {}
    seen: set[Term] = set()
    stack = list(literals)
    while stack:
        term = stack.pop()
        if term in seen or term.op == "const":
            continue
        seen.add(term)
        if term.width and hidden.isdisjoint(free_variables([term])):
            parts[term] = None
        else:
            stack.extend(term.args)
    return list(parts)
