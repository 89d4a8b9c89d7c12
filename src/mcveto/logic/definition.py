"""Elimination of a variable by a literal that defines it."""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.logic import terms as t
from mcveto.logic.terms import Term, free_variables


def definition_of(variable: Term, literals: Sequence[Term]) -> Term | None:
    """A term equal to the variable by one of the literals, if it does not mention the variable."""
    for literal in literals:
        if literal is variable:
            return t.TRUE
        if literal.op == "not" and literal.args[0] is variable:
            return t.FALSE
        if literal.op == "eq":
            for one, other in (literal.args, literal.args[::-1]):
                if one is variable and variable not in free_variables([other]):
                    return other
    return None
