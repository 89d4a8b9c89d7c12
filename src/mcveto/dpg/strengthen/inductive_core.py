"""The part of an inductive invariant that a proof needs.

Starting from what refutes the exits, whatever a needed conjunct needs one step earlier is needed too (the cores of its
induction). The constants the steps were built under are all kept.
"""

from __future__ import annotations

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.quantified import instances, loads_that_vary, speaks_of_all
from mcveto.dpg.strengthen.queries import Unsat
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

# The last questions before a proof: what was found should not be lost here.
QUERY_SECONDS = 8.0
SHORT_SECONDS = 0.5


def inductive_core(system: System) -> dict[Location, list[Term]] | None:
    """Inductive conjuncts of the system's invariants that exclude every exit; None if that cannot be shown."""
    needed: dict[Location, dict[Term, None]] = {
        cut: {t.eq(place, t.const(value, place.width)): None for place, value in system.constants[cut].items()}
        for cut in system.cuts
    }
    waiting = [(cut, literal) for cut in system.cuts for literal in needed[cut]]

    def need(source: Location | None, literals: list[Term]) -> bool:
        known = [*needed[source], *system.invariants[source]] if source is not None else []
        said = {
            instance: literal
            for literal in known
            if speaks_of_all(literal)
            for instance in instances([literal], literals)
        }
        answer = system.queries.ask([*literals, *known, *said], source is None, QUERY_SECONDS)
        if not isinstance(answer, Unsat):
            return False
        core = answer.core | {said[instance] for instance in answer.core & said.keys()}
        # What is said of arrays costs most in a proof, and cores are not minimal.
        for literal in [literal for literal in known if literal in core and loads_that_vary([literal])]:
            if source is not None and literal not in needed[source]:
                # Guards may have been told already what is said of all cells.
                rest = [one for one in (*literals, *said) if one not in said or said[one] in core - {literal}]
                rest += [one for one in known if one in core and one is not literal]
                if system.queries.refutes(rest, False, SHORT_SECONDS):
                    core.discard(literal)
        if source is not None:
            for literal in system.invariants[source]:
                if literal in core and literal not in needed[source]:
                    needed[source][literal] = None
                    waiting.append((source, literal))
        return True

    for step in system.exits():
        if not need(step.source, list(step.guard)):
            return None
    while waiting:
        cut, literal = waiting.pop()
        for step in system.into(cut):
            before = step.pre(literal)
            if before is not t.TRUE and not need(step.source, [*step.guard, t.bnot(before)]):
                return None
    return {cut: list(literals) for cut, literals in needed.items()}
