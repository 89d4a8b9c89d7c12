"""Before an exhausted exploration is called a proof: every way that was left out is refuted again.

The exploration was done with bitwuzla first; here z3 is asked, and bitwuzla (a new instance) only where z3 cannot
decide soon: products are hard for it, and a program has hundreds of such ways. What is asked are the conjuncts that
sufficed, without the rest of their path.
"""

from __future__ import annotations

import time

from mcveto.engines.queries import Queries
from mcveto.logic.solver import make_solver
from mcveto.logic.terms import Term
from mcveto.verdict import self_check_reason

_SECONDS = 10.0
_SOON = 0.3


def recheck(queries: Queries, deadline: float) -> str:
    """What is wrong, or "" if everything holds."""
    if not queries.refuted:
        return ""
    first, second = make_solver("z3"), make_solver("bitwuzla")
    for solver in (first, second):
        for fact in queries.facts:
            solver.add(fact)
    for core in queries.refuted:
        conjuncts: list[Term] = sorted(core, key=lambda term: term.serial)
        answer = "unknown"
        for solver, seconds in ((first, _SOON), (second, _SECONDS), (first, _SECONDS)):
            budget = min(seconds, deadline - time.monotonic())
            if budget <= 0:
                return "time-out while the proof was checked again"
            solver.push()
            for term in conjuncts:
                solver.add(term)
            answer = solver.check((), budget)
            solver.pop()
            if answer != "unknown":
                break
        if answer != "unsat":
            return self_check_reason(f"a way that was left out is {answer}")
    return ""
