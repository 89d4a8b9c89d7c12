"""Before an exhausted exploration is called a proof: every way that was left out is refuted again.

The exploration was done with bitwuzla first; here z3 is asked, and bitwuzla (a new instance) only where z3 cannot
decide soon: products are hard for it, and a program has hundreds of such ways. What is asked are the conjuncts that
sufficed, without the rest of their path, and of those that differ in the names of their variables alone, only one: most
do, because loops are gone through several times and much code is alike. What a comparison computes is left out first
(`outline`): where bounds exclude each other, it does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from mcveto.engines.queries import Queries
from mcveto.logic import terms as t
from mcveto.logic.outline import outline
from mcveto.logic.solver import Solver, make_solver
from mcveto.logic.terms import Term
from mcveto.verdict import self_check_reason

_SECONDS = 10.0
_SOON = 0.3
# One instance decides most of them in a millisecond each. What it does not decide at once is mostly decided by a new
# one: z3 prepares a question much better if it is the only one.
_AT_ONCE = 0.02


def recheck(queries: Queries, deadline: float) -> str:
    """What is wrong, or "" if everything holds."""
    if not queries.refuted:
        return ""
    instance, second = _solver("z3", queries), _solver("bitwuzla", queries)
    named = {term for term in t.postorder(list(queries.facts)) if term.op == "var"}
    distinct = {_form(core, named): core for core in queries.refuted}
    for core in distinct.values():
        conjuncts: list[Term] = sorted(core, key=lambda term: term.serial)
        if _is_impossible_in_outline(instance, conjuncts, min(_AT_ONCE, deadline - time.monotonic())):
            continue
        answer = "unknown"
        for solver, seconds in ((instance, _AT_ONCE), (None, _SOON), (second, _SECONDS), (None, _SECONDS)):
            budget = min(seconds, deadline - time.monotonic())
            if budget <= 0:
                return "time-out while the proof was checked again"
            asked = solver or _solver("z3", queries)
            if solver is not None:
                solver.push()
            for term in conjuncts:
                asked.add(term)
            answer = asked.check((), budget)
            if solver is not None:
                solver.pop()
            if answer != "unknown":
                break
        if answer != "unsat":
            return self_check_reason(f"a way that was left out is {answer}")
    return ""


def _is_impossible_in_outline(solver: Solver, conjuncts: list[Term], seconds: float) -> bool:
    said = outline(conjuncts)
    if said is None or seconds <= 0:
        return False
    solver.push()
    for term in said:
        solver.add(term)
    answer = solver.check((), seconds)
    solver.pop()
    return answer == "unsat"


def _form(core: Iterable[Term], named: set[Term]) -> tuple[object, ...]:
    """The conjuncts without the names of variables: two that have the same form are the same but for names. Variables
    of which more is said elsewhere (`named`) keep theirs."""
    numbers: dict[Term, int] = {}

    def form(term: Term, number: Callable[[Term], object]) -> tuple[object, ...]:
        at: dict[Term, int] = {}
        rows: list[object] = []
        for part in t.postorder([term]):
            what = number(part) if part.op == "var" and part not in named else part.data
            rows.append((part.op, what, part.width, tuple(at[argument] for argument in part.args)))
            at[part] = len(at)
        return tuple(rows)

    ordered = sorted(core, key=lambda term: repr(form(term, lambda variable: 0)))
    return tuple(form(term, lambda variable: numbers.setdefault(variable, len(numbers))) for term in ordered)


def _solver(name: str, queries: Queries) -> Solver:
    solver = make_solver(name)
    for fact in queries.facts:
        solver.add(fact)
    return solver
