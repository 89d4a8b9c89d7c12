"""The part of an inductive invariant that a proof needs.

Starting from what refutes the exits, whatever a needed conjunct needs one step earlier is needed too (the cores of its
induction). The constants the steps were built under are all kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.quantified import instances, loads_that_vary, speaks_of_all
from mcveto.dpg.strengthen.queries import Unsat
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

# The last questions before a proof: what was found should not be lost here.
QUERY_SECONDS = 8.0
SHORT_SECONDS = 0.5
LONGER_SECONDS = 2.0


def inductive_core(system: System) -> dict[Location, list[Term]] | None:
    """Inductive conjuncts of the system's invariants that exclude every exit; None if that cannot be shown."""
    system.queries.needed_facts.clear()
    needed: dict[Location, dict[Term, None]] = {
        cut: {t.eq(place, t.const(value, place.width)): None for place, value in system.constants[cut].items()}
        for cut in system.cuts
    }
    waiting = [(cut, literal) for cut in system.cuts for literal in needed[cut]]

    def need(source: Location | None, literals: list[Term]) -> bool:
        if source is None:
            return isinstance(system.queries.ask(literals, True, QUERY_SECONDS), Unsat)
        mine = needed[source]
        core = None
        for known, seconds in _more_and_more(mine, system.invariants[source]):
            core = _core(system, literals, known, seconds)
            if core is not None:
                break
        if core is None:
            return False
        added = [literal for literal in known if literal in core and literal not in mine]
        for literal in sorted(filter(_cost, added), key=_cost, reverse=True):
            # Cores are not minimal. What costs nothing stays: bounds that follow from others help to see what does.
            fewer = [other for other in added if other is not literal]
            if len(fewer) < len(added):
                core = _core(system, literals, [*mine, *fewer], SHORT_SECONDS)
                added = added if core is None else [other for other in fewer if other in core or not _cost(other)]
        for literal in added:
            mine[literal] = None
            waiting.append((source, literal))
        return True

    for step in system.exits():
        if not need(step.source, step.own_guard):
            return None
    while waiting:
        cut, literal = waiting.pop()
        for step in system.into(cut):
            before = step.pre(literal)
            if before is not t.TRUE and not need(step.source, [*step.own_guard, t.bnot(before)]):
                return None
    return {cut: list(literals) for cut, literals in needed.items()}


def _cost(literal: Term) -> int:
    """What a conjunct costs in a proof: most, what is said of arrays; remainders; cases."""
    operations = {term.op for term in t.postorder([literal])}
    return 4 * bool(loads_that_vary([literal])) + 2 * ("urem" in operations) + bool(operations & {"or", "extract"})


def _more_and_more(needed: Collection[Term], invariants: Collection[Term]) -> Iterator[tuple[list[Term], float]]:
    """What may be used, the less the better for the proof, and the seconds it is worth: what is needed anyway; all but
    what is said by cases, of which there is most, and of single cells of arrays, which needs more of the same at every
    step before; everything."""
    yield list(needed), SHORT_SECONDS
    plain = [
        literal
        for literal in invariants
        if speaks_of_all(literal) or (literal.op != "or" and not loads_that_vary([literal]))
    ]
    if len(plain) < len(invariants):
        yield [*needed, *plain], LONGER_SECONDS
    yield [*needed, *invariants], QUERY_SECONDS


def _core(system: System, literals: list[Term], known: Collection[Term], seconds: float) -> set[Term] | None:
    """What of the known the literals contradict; None if they do not, or if that is not seen in time."""
    said = {
        instance: literal for literal in known if speaks_of_all(literal) for instance in instances([literal], literals)
    }
    answer = system.queries.ask([*literals, *known, *said], False, seconds)
    if not isinstance(answer, Unsat):
        return None
    return {literal for literal in known if literal in answer.core} | {
        said[instance] for instance in answer.core & said.keys()
    }
