"""Before PROVED is printed, the final graph is proved again as what it is: an inductive invariant.

The reachable nodes claim: every state at a location satisfies the predicate of one of its reachable nodes. Checked with
z3 (the proof was found with bitwuzla, which is asked again only where z3 cannot decide), one obligation per outcome of
each reachable node:

- initiation: the entry state is at the start location and satisfies a reachable node's predicate there;
- consecution and completeness: from a state of a reachable node, every outcome ends at a halt, faults, or ends at a
  known location in a state that satisfies the predicate of a reachable node there, with its return matching its call;
- safety: no location is a target, and no outcome is unsupported.

Nothing of the edges, splits or distances found during the search is used.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcveto.dpg.location import Location
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.proof import Proof
from mcveto.dpg.state import SymbolicState
from mcveto.dpg.steps import Steps
from mcveto.logic import terms as t
from mcveto.logic.solver import make_solver
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program


def recheck(program: Program, proof: Proof, steps: Steps, entry: SymbolicState, timeout: float) -> str:
    """What is wrong with the proof, or "" if it holds."""
    solvers = (make_solver("z3"), make_solver("bitwuzla"))

    def refutes(*literals: Term) -> str:
        """ "unsat" from the first solver that can decide, else what the last one said."""
        answer = "unknown"
        for solver in solvers:
            solver.push()
            for literal in literals:
                solver.add(literal)
            answer = solver.check((), timeout)
            solver.pop()
            if answer != "unknown":
                break
        return answer

    by_location = proof.invariants()
    row = program.decoder.row
    starts = [node.location for node in proof.nodes if node.is_start]
    if not starts or any(location.pc != program.entry for location in starts):
        return "the start location is not the entry"
    invariant = t.disj(by_location[starts[0]])
    answer = refutes(t.bnot(entry.value(invariant)))
    if answer != "unsat":
        return f"initiation at {starts[0]}: {answer}"
    for node in proof.nodes:
        if row.code_address(node.location.pc) in program.targets:
            return f"a target is reachable at {node.location}"
        for outcome in steps.outcomes(node.location):
            safe = _safe_end(steps, node.location, outcome, by_location.items())
            answer = refutes(*node.literals, *outcome.guard, t.bnot(safe))
            if answer != "unsat":
                return f"step from {node.location}: {answer}"
    return ""


def _safe_end(
    steps: Steps, source: Location, outcome: Outcome, invariants: Iterable[tuple[Location, list[Term]]]
) -> Term:
    """Where an outcome may end: at a halt, or in the invariant of a known location; a return where it must."""
    if outcome.unsupported:
        return t.FALSE
    ends = [steps.ends_at(outcome, end) for end in steps.ends]
    ends.append(t.bnot(steps.executable(outcome)))
    for location, predicates in invariants:
        arrival = steps.arrival(source, outcome, location)
        if arrival is not None:
            ends.append(t.conj([*arrival, t.disj(outcome.after(predicate) for predicate in predicates)]))
    safe = t.disj(ends)
    if outcome.transfer is Transfer.RETURN:
        matched = steps.goes_to(outcome, source.frames[-1]) if source.frames else t.FALSE
        safe = t.conj([matched, safe])
    return safe
