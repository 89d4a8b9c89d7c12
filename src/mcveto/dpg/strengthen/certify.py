"""From invariants at cut points to a proof that names every location.

The invariant of a location between cut points is its weakest precondition: every outcome of its block ends at a halt,
faults, or ends at a known successor in that one's invariant. Where the block makes a fresh value that still matters,
that would need a quantifier over it; there lemmas are found instead, by excluding the states that violate the
precondition one cube at a time, each generalised by what the paths from the cut points exclude.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mcveto.dpg.location import Location
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.proof import Proof, ProofNode
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.cubes import conjuncts, cube_of
from mcveto.dpg.strengthen.quantified import any_cell, instances, loads_that_vary, word_of_equal_bytes
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
    # Of the image only what the invariants rest on: solvers are slow where many bytes are named.
    facts = list(system.queries.needed_facts)
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
                lemmas = _Lemmas(system, location, invariants).implying(part, outcome.fresh, list(found))
                found.update(dict.fromkeys(lemmas))
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


class _Lemmas:
    """Clauses over the state alone that hold on all paths from the cut points to a location."""

    def __init__(self, system: System, location: Location, invariants: Mapping[Location, list[Term]]) -> None:
        self._queries = system.queries
        self._space = system.program.space
        self._memory = t.memory("mem", self._space.address_bits)
        self._location = location
        self._paths = system.paths_to(location)
        self._known = {step.source: invariants[step.source] for step in self._paths if step.source is not None}

    def implying(self, needed: Term, fresh: Sequence[Term], known: list[Term]) -> list[Term]:
        """Lemmas that imply `needed` for all fresh values."""
        violated = t.bnot(needed)
        lemmas = self._constants(needed)
        if loads_that_vary([needed]):
            lemmas += self._carried()
        for _ in range(MAX_LEMMAS):
            said = instances([*known, *lemmas], [violated])
            answer = self._queries.ask([violated, *known, *lemmas, *said], timeout=QUERY_SECONDS)
            if isinstance(answer, Unsat):
                return lemmas
            if not isinstance(answer, Model):
                break
            untouched = [lemma for lemma in self._untouched(violated, answer) if lemma not in lemmas]
            if untouched:
                lemmas += untouched
                continue
            core = self._core(cube_of([violated], fresh, answer.value))
            if core is None:
                break
            lemmas.append(t.bnot(t.conj(self._generalised(core))))
        raise CannotCertify(f"no invariant without inputs at {self._location}")

    def _constants(self, needed: Term) -> list[Term]:
        """What `needed` reads and all paths leave with one value."""
        places: dict[Term, None] = {}
        for term in t.postorder([needed]):
            if term.op == "var" and "!" not in str(term.data):
                places[term] = None
            elif term.op == "load" and term.args[1].op == "const":
                places[t.load(self._memory, term.args[1], *term.data)] = None
        found: list[Term] = []
        for place in places:
            values = {step.pre(place) for step in self._paths}
            if len(values) == 1 and next(iter(values)).op == "const":
                found.append(t.eq(place, values.pop()))
        return found

    def _carried(self) -> list[Term]:
        """What holds at the cut points before and still holds here."""
        claims = dict.fromkeys(claim for found in self._known.values() for claim in found)
        return [claim for claim in claims if self._holds(claim)]

    def _untouched(self, violated: Term, model: Model) -> Iterator[Term]:
        """That equal bytes around one that is read still are what they were at entry: all of them, since which one is
        read an input decides."""
        cell = any_cell(self._space.address_bits)
        for load in loads_that_vary([violated]):
            where = model.value(load.args[1])
            around, byte = self._space.uniform_range(where), self._space.initial_byte(where)
            if around is not None and byte is not None and around[1] - around[0] >= load.data[0]:
                claim = word_of_equal_bytes(self._memory, cell, around, byte, load)
                if self._holds(claim):
                    yield claim

    def _holds(self, claim: Term) -> bool:
        return self._core((t.bnot(claim),)) is not None

    def _core(self, cube: Cube) -> Cube | None:
        """The literals that no path to the location leads into, or None if one does."""
        needed: dict[Term, None] = {}
        for step in self._paths:
            before = {literal: step.pre(literal) for literal in cube}
            known = self._known[step.source] if step.source is not None else []
            asked = [*before.values(), *step.guard]
            asked += [*known, *instances(known, asked)]
            answer = self._queries.ask(asked, step.source is None, QUERY_SECONDS)
            if not isinstance(answer, Unsat):
                return None
            needed.update((literal, None) for literal, value in before.items() if value in answer.core)
        return tuple(literal for literal in cube if literal in needed)

    def _generalised(self, cube: Cube) -> Cube:
        current = list(cube)
        at = 0
        while at < len(current):
            shorter = self._core((*current[:at], *current[at + 1 :]))
            if shorter is None:
                at += 1
            else:
                current = list(shorter)
        return tuple(current)
