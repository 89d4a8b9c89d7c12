"""The abstract graph: nodes are locations with predicates, the target surrogate TS is everything not explored.

It represents `G0 ∩ π1/[·] ∩ … ∩ πk/[·]` with the splits made so far (TR1669 §3.1, Fig. 1, Fig. 5 in its variant for
self-modifying code, items 8-10 replaced: every location has an edge to TS) incrementally: the union of the explored
edges, and TS edges where no trace went. Invariants:

- the predicates of the nodes of one location are disjoint and cover it;
- every step of the machine from a state of node n leads into a node n has an edge to, into a halt, or into TS if n
  has the TS edge.

Folding a trace adds, for a new successor ℓ' of ℓ, edges only from the nodes of ℓ that still have their TS edge: a
node whose TS edge was refuted cannot step outside the successors known at that time, hence not to ℓ'.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcveto.automata.dynamic_shortest_path import DynamicShortestPath
from mcveto.dpg.location import Location
from mcveto.dpg.runs import Run, Visit
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_WITNESSES = 12
TS = 0


@dataclass(frozen=True, slots=True)
class Witness:
    run: Run
    visit: Visit


@dataclass
class Node:
    number: int
    location: Location
    literals: tuple[Term, ...]
    """The predicate is their conjunction."""
    witnesses: list[Witness] = field(default_factory=list)
    successors: set[int] = field(default_factory=set)
    is_start: bool = False


class Graph:
    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.by_location: dict[Location, list[int]] = {}
        self.successors: dict[Location, set[Location]] = {}
        self.predecessors: dict[int, set[int]] = {TS: set()}
        self.reachability = DynamicShortestPath()
        self._next = 1

    def add_location(self, location: Location, is_start: bool = False) -> None:
        """A location seen for the first time: one node for all its states, and an edge to TS."""
        if location in self.by_location:
            return
        node = self._new_node(location, (), is_start)
        self.by_location[location] = [node.number]
        self.successors[location] = set()
        self.add_edge(node.number, TS)

    def add_successor(self, source: Location, target: Location) -> None:
        """A step from `source` to `target` was seen."""
        if target in self.successors[source]:
            return
        self.successors[source].add(target)
        for number in self.by_location[source]:
            if TS in self.nodes[number].successors:
                for other in self.by_location[target]:
                    self.add_edge(number, other)

    def fold(self, run: Run) -> None:
        """Incorporates a run: its locations, its steps, and its visits as witnesses."""
        previous: Location | None = None
        for visit in run.visits:
            self.add_location(visit.location, is_start=previous is None)
            if previous is not None:
                self.add_successor(previous, visit.location)
            previous = visit.location
        for visit in run.visits:
            if visit.state is not None:
                self.add_witness(Witness(run, visit))

    def add_witness(self, witness: Witness) -> None:
        """Gives the witness to the node of its location whose predicate it satisfies."""
        for number in self.by_location[witness.visit.location]:
            node = self.nodes[number]
            if len(node.witnesses) < MAX_WITNESSES and all(holds(literal, witness) for literal in node.literals):
                node.witnesses.append(witness)
                return

    def add_edge(self, source: int, target: int) -> None:
        self.nodes[source].successors.add(target)
        self.predecessors[target].add(source)
        self.reachability.add_edge(source, target)

    def remove_edge(self, source: int, target: int) -> None:
        self.nodes[source].successors.discard(target)
        self.predecessors[target].discard(source)
        self.reachability.remove_edge(source, target)

    def split(self, number: int, rho: Term) -> tuple[int, int]:
        """Replaces node n by (n and not rho) and (n and rho), both with all edges of n; returns their numbers.

        The first keeps the number. Witnesses go where they belong. The graph accepts exactly the traces it accepted.
        """
        node = self.nodes[number]
        twin = self._new_node(node.location, _with(node.literals, rho), node.is_start)
        self.by_location[node.location].append(twin.number)
        node.literals = _with(node.literals, t.bnot(rho))
        for source in sorted(self.predecessors[number]):
            self.add_edge(source, twin.number)
        for target in sorted(node.successors):
            self.add_edge(twin.number, target)
        if number in node.successors:
            self.add_edge(twin.number, twin.number)
        stay: list[Witness] = []
        go: list[Witness] = []
        for witness in node.witnesses:
            (go if holds(rho, witness) else stay).append(witness)
        node.witnesses, twin.witnesses = stay, go
        return number, twin.number

    def unstart(self, number: int) -> None:
        """No entry state satisfies the node's predicate."""
        self.nodes[number].is_start = False
        self.reachability.remove_start(number)

    def path(self) -> list[int] | None:
        """Node numbers of a shortest path from a start node to TS, or None if there is none."""
        return self.reachability.path(TS)

    def reachable(self) -> list[int]:
        """Nodes on some path from a start node, TS not being left."""
        found = [number for number, node in sorted(self.nodes.items()) if node.is_start]
        seen = set(found)
        while found:
            for successor in sorted(self.nodes[found.pop()].successors):
                if successor != TS and successor not in seen:
                    seen.add(successor)
                    found.append(successor)
        return sorted(seen)

    def _new_node(self, location: Location, literals: tuple[Term, ...], is_start: bool) -> Node:
        node = Node(self._next, location, literals, is_start=is_start)
        self._next += 1
        self.nodes[node.number] = node
        self.predecessors[node.number] = set()
        if is_start:
            self.reachability.add_start(node.number)
        return node


def holds(literal: Term, witness: Witness) -> bool:
    """Whether a predicate over the state holds where the witness is."""
    state = witness.visit.state
    assert state is not None
    return bool(witness.run.execution.evaluator.value(state.value(literal)))


def _with(literals: tuple[Term, ...], added: Term) -> tuple[Term, ...]:
    """The conjunction as literals, flat and without repetition."""
    parts = added.args if added.op == "and" and added.width == 1 else (added,)
    return (*literals, *(part for part in parts if part not in literals and part is not t.TRUE))
