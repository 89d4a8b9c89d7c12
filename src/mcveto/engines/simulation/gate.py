"""A condition that tells two paths apart: of what depends on it, each value can be kept, where the paths meet."""

from __future__ import annotations

from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MOST_GATE = 64


def gate_of(first: list[Term], second: list[Term]) -> Term | None:
    """A short condition that the first path says and the second denies; either may say it in parts."""
    mine, others = set(first), set(second)
    for term in reversed(first):
        if term not in others and _is_said(t.bnot(term), others) and t.are_short([term], MOST_GATE):
            return term
    for term in reversed(second):
        if term.op == "or" and _is_said(t.bnot(term), mine) and t.are_short([term], MOST_GATE):
            return t.bnot(term)
    return None


def _is_said(condition: Term, path: set[Term]) -> bool:
    return condition in path or (condition.op == "and" and path.issuperset(condition.args))
