"""The abstract graph: nodes are locations with predicates, the target surrogate TS is everything not explored.

It represents `G0 ∩ π1/[·] ∩ … ∩ πk/[·]` with the splits made so far (TR1669 §3.1, Fig. 1, Fig. 5 in its variant for
self-modifying code, items 8-10 replaced: every location has an edge to TS) incrementally: the union of the explored
edges, and TS edges where no trace went. Invariants:

- the predicates of the nodes of one location are disjoint and cover it;
- every step of the machine from a state of node n leads into a node n has an edge to, into a halt, or into TS if n
  has the TS edge.

An edge that could not be decided is given up: it still stands for steps of the machine, but paths no longer go along
it, so that the search goes on elsewhere. Nothing is proved as long as the source of such an edge can be reached.

Folding a trace adds, for a new successor ℓ' of ℓ, edges only from the nodes of ℓ that still have their TS edge: a
node whose TS edge was refuted cannot step outside the successors known at that time, hence not to ℓ'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import astuple, field

from mcveto.automata.dynamic_shortest_path import DynamicShortestPath
from mcveto.dpg.location import Location
from mcveto.dpg.runs import Run, Visit
from mcveto.dpg.ways import INTERNAL, Way
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_WITNESSES = 12
TS = 0
_WITNESSED = -1


@dataclass(frozen=True, slots=True)
class Witness:
    run: Run
    visit: Visit


@dataclass(frozen=True, slots=True)
class Edge:
    source: int
    way: Way
    target: int


@dataclass(frozen=True, slots=True)
class Frontier:
    """A step from a node with a witness into one without, on a path from the start to TS."""

    edge: Edge
    witness: Witness


@dataclass
class Node:
    number: int
    location: Location
    literals: tuple[Term, ...]
    """The predicate is their conjunction."""
    witnesses: list[Witness] = field(default_factory=list)
    edges: dict[Way, Set[int]] = field(default_factory=dict)
    is_start: bool = False

    @property
    def successors(self) -> Set[int]:
        """The targets of internal edges."""
        return self.edges.get(INTERNAL, frozenset())

    def steps(self) -> Iterator[Edge]:
        for way, targets in sorted(self.edges.items()):
            for target in sorted(targets):
                yield Edge(self.number, way, target)


class Graph:
    """The graph of a fold that keeps call strings in its locations: all its steps are internal."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.by_location: dict[Location, list[int]] = {}
        self.successors: dict[Location, set[Location]] = {}
        """The observed steps between locations, in whatever way."""
        self.given_up: set[Edge] = set()
        self._splits: dict[int, list[tuple[Term, int]]] = {}
        """What was split off a node, in order: the predicate of the twin, and the twin."""
        self._known: dict[tuple[Location, Way], set[Location]] = {}
        self._to_ts = DynamicShortestPath(_WITNESSED)
        """The graph backwards: from TS to the nodes that have a witness."""
        self._to_ts.add_start(TS)
        self._next = 1
        self.observer: Callable[..., None] | None = None
        """Is told every change of nodes and edges (see `history`)."""

    def known(self, location: Location, way: Way = INTERNAL) -> set[Location]:
        """Where a step from `location` was seen to lead in a given way."""
        return self._known.get((location, way), set())

    def add_location(self, location: Location, is_start: bool = False) -> None:
        """A location seen for the first time: one node for all its states, and an edge to TS."""
        if location in self.by_location:
            return
        node = self._new_node(location, (), is_start)
        self.by_location[location] = [node.number]
        self.successors[location] = set()
        self._add_ts_edges(node)

    def add_successor(self, source: Location, target: Location, way: Way = INTERNAL) -> None:
        """A step from `source` to `target` was seen."""
        known = self._known.setdefault((source, way), set())
        if target in known:
            return
        known.add(target)
        self.successors[source].add(target)
        for number in self.by_location[source]:
            if self._may_leave(Edge(number, self.ts_way(way), TS)):
                for other in self.by_location[target]:
                    self.add_edge(Edge(number, way, other))

    def ts_way(self, way: Way) -> Way:
        """The way to TS that stands for the unexplored steps of a given way."""
        return way

    def fold(self, run: Run) -> None:
        """Incorporates a run: its locations, its steps, and its visits as witnesses."""
        previous: Location | None = None
        for visit in run.visits:
            self.add_location(visit.location, is_start=previous is None)
            if previous is not None:
                self.add_successor(previous, visit.location, self._way_of(visit))
            previous = visit.location
        for visit in run.visits:
            if visit.state is not None:
                self.add_witness(Witness(run, visit))

    def add_witness(self, witness: Witness) -> None:
        """Gives the witness to the node of its location whose predicate it satisfies."""
        node = self.nodes[self.node_of(witness)]
        if self._has_room(node, witness):
            node.witnesses.append(witness)
            self._witnesses_changed(node)

    def node_of(self, witness: Witness) -> int:
        """The node of a visit whose state was kept."""
        number = self.by_location[witness.visit.location][0]
        parts = self._splits.get(number, [])
        at = 0
        while at < len(parts):
            rho, twin = parts[at]
            at += 1
            if holds(rho, witness):
                # What was split off the twin since then; it had no parts before.
                number, parts, at = twin, self._splits.get(twin, []), 0
        return number

    def add_edge(self, edge: Edge) -> None:
        self._link(edge)
        self._observe("edge", edge)

    def remove_edge(self, edge: Edge) -> None:
        self.given_up.discard(edge)
        self._unlink(edge)
        self._observe("gone", edge)

    def give_up(self, edge: Edge) -> None:
        """The edge cannot be decided: paths no longer go along it."""
        self.given_up.add(edge)
        self._unlink(edge)
        self._observe("given up", edge)

    def split(self, number: int, rho: Term) -> tuple[int, int]:
        """Replaces node n by (n and not rho) and (n and rho), both with all edges of n; returns their numbers.

        The first keeps the number. Witnesses go where they belong. The graph accepts exactly the traces it accepted.
        """
        node = self.nodes[number]
        twin = self._new_node(node.location, _with(node.literals, rho), node.is_start, is_twin_of=number)
        self.by_location[node.location].append(twin.number)
        self._splits.setdefault(number, []).append((rho, twin.number))
        node.literals = _with(node.literals, t.bnot(rho))
        self._share_given_up(number, twin.number)
        if self.observer is not None:
            self.observer("twin", number, twin.number)
        stay: list[Witness] = []
        go: list[Witness] = []
        for witness in node.witnesses:
            (go if holds(rho, witness) else stay).append(witness)
        node.witnesses, twin.witnesses = stay, go
        self._witnesses_changed(node)
        self._witnesses_changed(twin)
        return number, twin.number

    def unstart(self, number: int) -> None:
        """No entry state satisfies the node's predicate."""
        self.nodes[number].is_start = False
        if self.observer is not None:
            self.observer("unstart", number)

    def frontier(self) -> Frontier | None:
        """A frontier from which TS is nearest; None if no path from the start to TS is left.

        A node with a witness is reachable, so a path from the start to TS exists exactly if one from such a node does.
        On a shortest of those, no other node has a witness: its first step is the frontier.
        """
        source = self._to_ts.last_before_goal()
        if source is None:
            return None
        target = self._to_ts.before(source)
        assert target is not None
        return Frontier(Edge(source, INTERNAL, target), self.nodes[source].witnesses[0])

    def reachable(self) -> list[int]:
        """Nodes on some path from a start node, TS not being left."""
        found = [number for number, node in sorted(self.nodes.items()) if node.is_start]
        seen = set(found)
        while found:
            for edge in self.nodes[found.pop()].steps():
                if edge.target != TS and edge.target not in seen:
                    seen.add(edge.target)
                    found.append(edge.target)
        return sorted(seen)

    def undecided(self) -> bool:
        """Whether an edge was given up that can still be reached."""
        return bool(self.given_up) and not {edge.source for edge in self.given_up}.isdisjoint(self.reachable())

    def _add_ts_edges(self, node: Node) -> None:
        self.add_edge(Edge(node.number, INTERNAL, TS))

    def _way_of(self, visit: Visit) -> Way:
        return INTERNAL

    def _has_room(self, node: Node, witness: Witness) -> bool:
        return len(node.witnesses) < MAX_WITNESSES

    def _may_leave(self, edge: Edge) -> bool:
        """Whether an edge, given up or not, is there."""
        return edge.target in self.nodes[edge.source].edges.get(edge.way, ()) or edge in self.given_up

    def _link(self, edge: Edge) -> None:
        self._to_ts.add_edge(edge.target, edge.source)

    def _unlink(self, edge: Edge) -> None:
        self._to_ts.remove_edge(edge.target, edge.source)

    def _start(self, node: Node) -> None:
        """The node is a start: all graphs that search from the start must know."""

    def _attach_edges(self, node: Node) -> None:
        """The edges of a new node are those that paths go along: kept once, seen here as they change."""
        node.edges[INTERNAL] = self._to_ts.predecessors(node.number)

    def _witnesses_changed(self, node: Node) -> None:
        if node.witnesses:
            self._to_ts.add_edge(node.number, _WITNESSED)
        else:
            self._to_ts.remove_edge(node.number, _WITNESSED)

    def _link_twin(self, number: int, twin: int) -> None:
        """Paths may go through `twin` wherever they may go through `number`."""
        self._to_ts.split(number, twin)

    def _share_given_up(self, number: int, twin: int) -> None:
        for edge in sorted(self.given_up, key=astuple):
            if edge.source == number or edge.target == number:
                sources = {edge.source} | ({twin} if edge.source == number else set())
                targets = {edge.target} | ({twin} if edge.target == number else set())
                self.given_up.update(Edge(source, edge.way, target) for source in sources for target in targets)

    def _new_node(
        self, location: Location, literals: tuple[Term, ...], is_start: bool, is_twin_of: int | None = None
    ) -> Node:
        node = Node(self._next, location, literals, is_start=is_start)
        self._next += 1
        self.nodes[node.number] = node
        if is_twin_of is not None:
            self._link_twin(is_twin_of, node.number)
        elif is_start:
            self._start(node)
        self._attach_edges(node)
        if self.observer is not None and is_twin_of is None:
            self.observer("node", node.number, location.pc, int(is_start))
        return node

    def _observe(self, what: str, edge: Edge) -> None:
        if self.observer is not None:
            way = "" if edge.way == INTERNAL else f"{edge.way.kind.name.lower()} {edge.way.address:#x}"
            self.observer(what, edge.source, edge.target, way)


def holds(literal: Term, witness: Witness) -> bool:
    """Whether a predicate over the state holds where the witness is."""
    state = witness.visit.state
    assert state is not None
    return bool(witness.run.execution.evaluator.value(state.value(literal)))


def _with(literals: tuple[Term, ...], added: Term) -> tuple[Term, ...]:
    """The conjunction as literals, flat and without repetition."""
    parts = added.args if added.op == "and" and added.width == 1 else (added,)
    return (*literals, *(part for part in parts if part not in literals and part is not t.TRUE))
