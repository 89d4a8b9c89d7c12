"""From invariants at cut points to a proof that names every location.

The invariant of a location between cut points is its weakest precondition: every outcome of its block ends at a halt,
faults, or ends at a known successor in that one's invariant. Where the block makes a fresh value that still matters,
that would need a quantifier over it; there lemmas are found instead, by excluding the states that violate the
precondition one cube at a time, each generalised by what the paths from the cut points exclude.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcveto.dpg.location import Location
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.proof import Proof, ProofNode
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.cubes import conjuncts, cube_of
from mcveto.dpg.strengthen.queries import Model, Unsat
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term, free_variables

MAX_LEMMAS = 60
QUERY_SECONDS = 8.0

Cube = tuple[Term, ...]


class CannotCertify(Exception):
    """No invariant was found for a location between cut points."""


def certify(system: System, steps: Steps, invariants: Mapping[Location, list[Term]]) -> Proof:
    facts = list(system.queries.facts.values())
    found: dict[Location, list[Term]] = {cut: [*facts, *invariants[cut]] for cut in system.cuts}
    for location in reversed(system.shape.order):
        if location not in found:
            found[location] = _precondition(system, steps, location, found)
    nodes = []
    for location in system.shape.order:
        literals = tuple(dict.fromkeys(part for term in found[location] for part in conjuncts(term)))
        nodes.append(ProofNode(location, literals, location == system.shape.entry))
    return Proof(tuple(nodes))


def _precondition(
    system: System, steps: Steps, location: Location, invariants: Mapping[Location, list[Term]]
) -> list[Term]:
    found: dict[Term, None] = {}
    for outcome in steps.outcomes(location):
        safe = _safe_end(steps, location, outcome, system.shape.successors[location], invariants)
        needed = t.disj([*(t.bnot(literal) for literal in outcome.guard), safe])
        hidden = set(outcome.fresh)
        for part in conjuncts(needed):
            if part is t.TRUE:
                continue
            if hidden.isdisjoint(free_variables([part])):
                found[part] = None
            else:
                found.update(dict.fromkeys(_lemmas(system, location, part, outcome, list(found))))
    return list(found)


def _safe_end(
    steps: Steps,
    source: Location,
    outcome: Outcome,
    successors: list[Location],
    invariants: Mapping[Location, list[Term]],
) -> Term:
    """Where an outcome may end: at a halt, at a fault, or in the invariant of a known successor."""
    if outcome.unsupported:
        return t.FALSE
    ends = [steps.ends_at(outcome, end) for end in steps.ends]
    ends.append(t.bnot(steps.executable(outcome)))
    for target in successors:
        arrival = steps.arrival(source, outcome, target)
        if arrival is not None:
            ends.append(t.conj([*arrival, *(outcome.after(predicate) for predicate in invariants[target])]))
    safe = t.disj(ends)
    if steps.is_return(outcome):
        address = steps.expected_return(source, None)
        matched = steps.goes_to(outcome, address) if address is not None else t.FALSE
        safe = t.conj([matched, safe])
    return safe


def _lemmas(system: System, location: Location, needed: Term, outcome: Outcome, known: list[Term]) -> list[Term]:
    """Clauses over the state alone that hold on all paths to the location and imply `needed` for all fresh values."""
    violated = t.bnot(needed)
    lemmas = _constants(system, location, needed)
    for _ in range(MAX_LEMMAS):
        answer = system.queries.ask([violated, *known, *lemmas], timeout=QUERY_SECONDS)
        if isinstance(answer, Unsat):
            return lemmas
        if not isinstance(answer, Model):
            break
        cube = cube_of([violated], outcome.fresh, answer.value)
        core = _core(system, location, cube)
        if core is None:
            break
        lemmas.append(t.bnot(t.conj(_generalised(system, location, core))))
    raise CannotCertify(f"no invariant without inputs at {location}")


def _constants(system: System, location: Location, needed: Term) -> list[Term]:
    """What `needed` reads and all paths from the cut points leave with one value."""
    memory = t.memory("mem", system.program.space.address_bits)
    places: dict[Term, None] = {}
    for term in t.postorder([needed]):
        if term.op == "var" and "!" not in str(term.data):
            places[term] = None
        elif term.op == "load" and term.args[1].op == "const":
            places[t.load(memory, term.args[1], *term.data)] = None
    paths = list(system.paths_to(location))
    found: list[Term] = []
    for place in places:
        values = {step.pre(place) for step in paths}
        if len(values) == 1 and next(iter(values)).op == "const":
            found.append(t.eq(place, values.pop()))
    return found


def _core(system: System, location: Location, cube: Cube) -> Cube | None:
    """The literals that no path from a cut point to the location leads into, or None if one does."""
    needed: dict[Term, None] = {}
    for step in system.paths_to(location):
        before = {literal: step.pre(literal) for literal in cube}
        known = system.invariants[step.source] if step.source is not None else ()
        answer = system.queries.ask([*before.values(), *step.guard, *known], step.source is None, QUERY_SECONDS)
        if not isinstance(answer, Unsat):
            return None
        needed.update((literal, None) for literal, value in before.items() if value in answer.core)
    return tuple(literal for literal in cube if literal in needed)


def _generalised(system: System, location: Location, cube: Cube) -> Cube:
    current = list(cube)
    at = 0
    while at < len(current):
        shorter = _core(system, location, (*current[:at], *current[at + 1 :]))
        if shorter is None:
            at += 1
        else:
            current = list(shorter)
    return tuple(current)
