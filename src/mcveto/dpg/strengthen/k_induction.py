"""k-induction over the steps between cut points (Sheeran, Singh, Stålmarck, "Checking safety properties using induction
and a SAT-solver", FMCAD 2000), written down as ordinary induction.

What holds after any k steps along which it held before need not be inductive, but this is: that it holds now, and
behind each of the next 1, …, k - 1 steps. If P is k-inductive, the conjunction of P, wp(P), …, wp^(k-1)(P) is
1-inductive: a state k steps on has k states with P before it. So k-induction only proposes candidates, what Houdini and
the certificate's checks see is an ordinary invariant, and no check has to know of k.

wp over a step is a substitution, under the step's guard. It quantifies over the inputs of the step; where these cannot
be eliminated, what mentions them is left out of the guard, which makes the candidate stronger, and maybe false. For the
property, conditions that are known to hold already (by invariants, or by conditions fewer steps from the exit) are not
unrolled further: when nothing is left to unroll, the property is k-inductive, and only the entry is left to ask about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.cubes import conjuncts, some_value
from mcveto.dpg.strengthen.houdini import Candidates
from mcveto.dpg.strengthen.queries import Unsat
from mcveto.dpg.strengthen.system import System
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.definition import definition_of
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term, free_variables

MAX_K = 5
MAX_CLAUSES = 160
MAX_SIZE = 4000
QUERY_SECONDS = 1.5


@dataclass(frozen=True)
class _Way:
    """What takes a state at a cut point to an exit in so many steps."""

    cut: Location
    literals: tuple[Term, ...]
    fresh: tuple[Term, ...]


def k_inductive(system: System, exits: Iterable[BigStep], most: int = MAX_CLAUSES) -> Candidates | None:
    """Conditions that together exclude the exits and are implied by those of them one step before; None if the exits
    are not excluded by k-induction with a small k and at most so many conditions, relative to what is known."""
    found: Candidates = {cut: {} for cut in system.cuts}
    frontier: list[_Way] = []
    for step in exits:
        if step.source is None:
            return None
        frontier.append(_Way(step.source, step.guard, step.fresh))
    for _ in range(MAX_K):
        added: list[tuple[Location, Term]] = []
        for way in frontier:
            excluded = _is_excluded(system, found, way)
            if excluded is None:
                return None
            if excluded:
                continue
            known = system.invariants[way.cut]
            # What holds anyway is left out of the guard: a shorter condition, which says the same with the others.
            literals = [literal for literal in way.literals if literal not in found[way.cut] and literal not in known]
            clause = _never(literals, way.fresh)
            if clause is t.FALSE or not system.samples.holds(way.cut, clause):
                return None
            if clause not in found[way.cut]:
                found[way.cut][clause] = None
                added.append((way.cut, clause))
            if sum(map(len, found.values())) > most:
                return None
        if not added:
            return found
        frontier = [
            _Way(step.source, _literals(step, clause), step.fresh)
            for cut, clause in added
            for step in system.into(cut)
            if step.source is not None
        ]
    return None


def with_earlier(system: System, candidates: Candidates) -> Candidates:
    """Candidates, and that they hold behind each next step: what is inductive of these is 2-inductive of those."""
    found: Candidates = {cut: dict(proposed) for cut, proposed in candidates.items()}
    for cut, proposed in candidates.items():
        for step in system.into(cut):
            if step.source is None:
                continue
            for clause in proposed:
                earlier = before(step, clause)
                if earlier.op != "const" and system.samples.holds(step.source, earlier):
                    found[step.source][earlier] = None
    return found


def before(step: BigStep, clause: Term) -> Term:
    """That the clause holds behind the step, if it is taken, whatever its inputs are."""
    return _never(_literals(step, clause), step.fresh)


def _literals(step: BigStep, clause: Term) -> tuple[Term, ...]:
    """That the step is taken and breaks the clause."""
    return (*step.guard, *conjuncts(t.bnot(step.pre(clause))))


def _never(literals: Sequence[Term], fresh: Sequence[Term]) -> Term:
    """That no values of the fresh variables satisfy the literals, or something stronger."""
    remaining = list(literals)
    for variable in fresh:
        users = [literal for literal in remaining if variable in free_variables([literal])]
        if not users:
            continue
        definition = definition_of(variable, users)
        if definition is not None:
            changed = [substitute(literal, {variable: definition}) for literal in remaining]
            remaining = [part for literal in changed for part in conjuncts(literal)]
            continue
        exists = some_value(variable, users[0]) if len(users) == 1 else None
        remaining = [literal for literal in remaining if literal not in users]
        if exists is not None:
            remaining.append(exists)
    return t.bnot(t.conj(remaining))


def _is_excluded(system: System, found: Candidates, way: _Way) -> bool | None:
    """Whether what is known and wanted at a cut point already excludes a way to an exit; None if nobody knows."""
    if t.FALSE in way.literals:
        return True
    if not t.are_short(way.literals, MAX_SIZE):
        return None
    literals = [*found[way.cut], *way.literals]
    known = system.invariants[way.cut]
    answer = system.queries.ask(literals, False, QUERY_SECONDS, way.cut, known, with_model=False)
    return None if answer is None else isinstance(answer, Unsat)
