"""What a strategy hands over when no path is left: an inductive invariant, as nodes of the graph.

The claim: whenever a run is at a location, its state satisfies the predicate of one of the nodes of that location; no
run is ever at another location; none of the locations is a target. How the nodes were found does not matter, and
nothing else of the search is used when the claim is proved again.

Where locations keep no call string, the claim is about nested paths: steps go along the listed edges only, and a
return goes along one that expects the address pending in its activation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcveto.dpg.location import Location
from mcveto.dpg.ways import Way
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

if TYPE_CHECKING:
    from mcveto.dpg.graph import Graph


@dataclass(frozen=True, slots=True)
class ProofNode:
    """States at a location that satisfy all literals."""

    location: Location
    literals: tuple[Term, ...]
    is_start: bool = False


class ProofEdge(NamedTuple):
    """A step between nodes, by their positions in the proof."""

    source: int
    way: Way
    target: int


@dataclass(frozen=True, slots=True)
class Proof:
    nodes: tuple[ProofNode, ...]
    edges: tuple[ProofEdge, ...] | None = None
    """None where locations keep call strings: then a step may lead to any node it fits."""

    def invariants(self) -> dict[Location, list[Term]]:
        """The disjuncts of the invariant of each location."""
        found: dict[Location, list[Term]] = {}
        for node in self.nodes:
            found.setdefault(node.location, []).append(t.conj(node.literals))
        return found


def proof_of(graph: Graph) -> Proof:
    """The claim of a graph in which no path to TS is left."""
    from mcveto.dpg.graph import TS
    from mcveto.dpg.nested_graph import NestedGraph

    numbers = graph.reachable()
    nodes = [graph.nodes[number] for number in numbers]
    edges = None
    if isinstance(graph, NestedGraph):
        position = {number: at for at, number in enumerate(numbers)}
        edges = tuple(
            ProofEdge(position[edge.source], edge.way, position[edge.target])
            for node in nodes
            for edge in node.steps()
            if edge.target != TS and edge.target in position
        )
    return Proof(tuple(ProofNode(node.location, node.literals, node.is_start) for node in nodes), edges)
