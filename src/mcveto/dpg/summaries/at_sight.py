"""Claims about single arguments that follow by putting in: f(7) = 13 because f(6) = 7, f(5) = 4 and f(4) = 2.

A table has a row for each argument. Where a path is to show one, its argument is a number, and so is, one activation
after the other, what these begin with: of all rows that are assumed of them one is left, an equation that says what
they return. A solver that is asked about all rows at once has to find that out by search, in seconds; a substitution
does it in milliseconds. What does not follow so is left to the solver.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.dpg.summaries.sums import Known
from mcveto.logic import terms as t
from mcveto.logic.terms import Term


def follows(goal: Term, facts: Sequence[Term], rounds: int) -> bool:
    """Whether a goal "if a place is this number, then ..." is true, or the facts contradict themselves, once the number
    and the equations that the facts then are have been put in; False if that does not show."""
    known = _numbers(goal)
    if not known:
        return False
    for _ in range(rounds):
        values = Known(known)
        if values.of(goal) is t.TRUE:
            return True
        new: dict[Term, Term] = {}
        rest = []
        for fact in map(values.of, facts):
            if fact is t.FALSE:
                return True
            if (equation := _solved(fact)) is not None and not any(place in new for place in t.postorder(equation)):
                new[equation[0]] = equation[1]
            elif fact is not t.TRUE:
                rest.append(fact)
        if not new:
            return False
        facts = [*rest, *(t.eq(place, value) for place, value in new.items())]
        put_in = Known(new)
        known = {place: put_in.of(value) for place, value in known.items()} | new
    return Known(known).of(goal) is t.TRUE


def _numbers(goal: Term) -> dict[Term, Term]:
    """The places that a goal is about the case of certain numbers of."""
    found: dict[Term, Term] = {}
    for part in goal.args if goal.op == "or" else ():
        condition = t.bnot(part)
        if condition.op == "eq" and condition.args[0].op in ("var", "load") and condition.args[1].op == "const":
            found[condition.args[0]] = condition.args[1]
    return found


def _solved(fact: Term) -> tuple[Term, Term] | None:
    """(place, value) if a fact says what a place is."""
    if fact.op != "eq":
        return None
    for place, value in (fact.args, fact.args[::-1]):
        if place.op in ("var", "load") and place.width > 1 and place not in t.postorder([value]):
            return place, value
    return None
