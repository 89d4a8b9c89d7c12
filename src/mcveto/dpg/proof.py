"""What a strategy hands over when no path is left: an inductive invariant, as nodes of the graph.

The claim: whenever a run is at a location, its state satisfies the predicate of one of the nodes of that location; no
run is ever at another location; none of the locations is a target. How the nodes were found does not matter, and
nothing else of the search is used when the claim is proved again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mcveto.dpg.graph import Graph
from mcveto.dpg.location import Location
from mcveto.logic import terms as t
from mcveto.logic.terms import Term


@dataclass(frozen=True, slots=True)
class ProofNode:
    """States at a location that satisfy all literals."""

    location: Location
    literals: tuple[Term, ...]
    is_start: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    nodes: tuple[ProofNode, ...]

    def invariants(self) -> dict[Location, list[Term]]:
        """The disjuncts of the invariant of each location."""
        found: dict[Location, list[Term]] = {}
        for node in self.nodes:
            found.setdefault(node.location, []).append(t.conj(node.literals))
        return found


def proof_of(graph: Graph, reachable: Iterable[int]) -> Proof:
    nodes = (graph.nodes[number] for number in reachable)
    return Proof(tuple(ProofNode(node.location, node.literals, node.is_start) for node in nodes))
