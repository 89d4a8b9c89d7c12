"""Before PROVED is printed, the final graph is proved again as what it is: an inductive invariant.

The reachable nodes claim: every state at a location satisfies the predicate of one of its reachable nodes. Checked with
z3 (the proof was found with bitwuzla, which is asked again only where z3 cannot decide), one obligation per outcome of
each reachable node:

- initiation: the entry state is at the start location and satisfies a reachable node's predicate there;
- consecution and completeness: from a state of a reachable node, every outcome ends at a halt, faults, or ends at a
  known location in a state that satisfies the predicate of a reachable node there, with its return matching its call;
- safety: no location is a target, and no outcome is unsupported.

In a proof without call strings an outcome must end in a node that its own node has an edge to in the same way, and a
return is checked once for every return address that can be pending on nested paths along the proof's edges.

Nothing of the edges, splits or distances found during the search is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from mcveto.dpg.location import Location
from mcveto.dpg.matched_reachability import pending_addresses
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.proof import Proof
from mcveto.dpg.refuter import Refuter
from mcveto.dpg.state import SymbolicState
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.quantified import instances
from mcveto.dpg.ways import Way
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.program.program import Program


def recheck(program: Program, proof: Proof, steps: Steps, entry: SymbolicState, timeout: float) -> str:
    """What is wrong with the proof, or "" if it holds."""
    refutes = Refuter(program, timeout).check
    by_location = proof.invariants()
    row = program.decoder.row
    starts = [node.location for node in proof.nodes if node.is_start]
    if not starts or any(location.pc != program.entry for location in starts):
        return "the start location is not the entry"
    invariant = t.disj(t.conj(node.literals) for node in proof.nodes if node.is_start)
    answer = Refuter(program, timeout, at_entry=True).check(t.bnot(entry.value(invariant)))
    if answer != "unsat":
        return f"initiation at {starts[0]}: {answer}"
    pending = _pending(program, proof)
    alone = Counter(node.location for node in proof.nodes)
    ends_in = _ends_in_edges(proof) if proof.edges is not None else _ends_anywhere(by_location)
    for number, node in enumerate(proof.nodes):
        if row.code_address(node.location.pc) in program.targets:
            return f"a target is reachable at {node.location}"
        for outcome in steps.outcomes(node.location):
            for expected in pending[number] if steps.is_return(outcome) else (None,):
                target = _only_target(steps, node.location, outcome, expected)
                known = ends_in(number, steps.way(outcome, expected), target)
                safe = _safe_end(steps, node.location, outcome, known, expected)
                step = (*outcome.guard, t.bnot(safe))
                # Which of several nodes a run is in may depend on the cell that their literals speak of.
                general = node.literals if alone[node.location] == 1 else ()
                answer = refutes(*node.literals, *instances(general, step), *step)
                if answer != "unsat":
                    return f"step from {node.location}: {answer}"
    return ""


Known = Iterable[tuple[Location, list[Term]]]


def _pending(program: Program, proof: Proof) -> dict[int, tuple[int | None, ...]]:
    """The return addresses that can be pending at each node; None where the location says it itself."""
    if proof.edges is None:
        return dict.fromkeys(range(len(proof.nodes)), (None,))
    steps: dict[int, list[tuple[Way, int]]] = {}
    for edge in proof.edges:
        steps.setdefault(edge.source, []).append((edge.way, edge.target))
    starts = [number for number, node in enumerate(proof.nodes) if node.is_start]
    found = pending_addresses(starts, program.return_sentinel, lambda number: steps.get(number, []))
    return {number: tuple(sorted(found.get(number, ()))) for number in range(len(proof.nodes))}


Ends = Callable[[int, Way, int | None], Known]
"""The invariants in which an outcome of a node may end, given its way and, if it is always the same, its target."""


def _ends_anywhere(invariants: dict[Location, list[Term]]) -> Ends:
    everywhere = list(invariants.items())
    by_pc: dict[int, list[tuple[Location, list[Term]]]] = {}
    for location, predicates in everywhere:
        by_pc.setdefault(location.pc, []).append((location, predicates))
    return lambda number, way, target: everywhere if target is None else by_pc.get(target, [])


def _ends_in_edges(proof: Proof) -> Ends:
    assert proof.edges is not None
    found: dict[tuple[int, Way], dict[Location, list[Term]]] = {}
    for edge in proof.edges:
        target = proof.nodes[edge.target]
        here = found.setdefault((edge.source, edge.way), {})
        here.setdefault(target.location, []).append(t.conj(target.literals))
    return lambda number, way, target: found.get((number, way), {}).items()


def _only_target(steps: Steps, source: Location, outcome: Outcome, expected: int | None) -> int | None:
    """The program counter at which the outcome ends, if it can be no other."""
    if steps.is_return(outcome):
        return steps.expected_return(source, expected)
    return int(outcome.target.data) if outcome.target.op == "const" else None


def _safe_end(steps: Steps, source: Location, outcome: Outcome, known: Known, expected: int | None) -> Term:
    """Where an outcome may end: at a halt, or in the invariant of a known location; a return where it must."""
    if outcome.unsupported:
        return t.FALSE
    ends = [steps.ends_at(outcome, end) for end in steps.ends]
    ends.append(t.bnot(steps.executable(outcome)))
    for location, predicates in known:
        arrival = steps.arrival(source, outcome, location, expected)
        if arrival is not None:
            ends.append(t.conj([*arrival, t.disj(outcome.after(predicate) for predicate in predicates)]))
    safe = t.disj(ends)
    if steps.is_return(outcome):
        address = steps.expected_return(source, expected)
        matched = steps.goes_to(outcome, address) if address is not None else t.FALSE
        safe = t.conj([matched, safe])
    return safe
