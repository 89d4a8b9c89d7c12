"""The abstract graph of the `pc` fold: a nested word automaton, in which a return names the call it matches.

Locations are π/[PC] of TR1669 §3.1 (with the instruction's bytes). Call edges push, return edges pop the node in which
the call was made; a path from the start to TS is a nested path, found incrementally (§3.3). Where we deviate from
Fig. 5 as printed:

- Return edges depend on the call only through the return address it pushed. A return from any exit is possible into
  any call: for every (exit, pushed address) there is an edge to TS until it is refuted, and edges to the locations
  seen. The literal figure has edges only for pairs seen together and loses the others.
- Item 12 (returns that do not match) is part of the same TS edge: going to TS on a return with address a pending means
  going elsewhere than to a, or to a in an unexplored way.
- The run itself is a call, made at START, that returns to the sentinel: then returns always have a call to match.

A witness of a configuration is a visit whose pending calls were made in the very nodes that the path has pending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mcveto.automata.incremental_reachability import IncrementalReachability
from mcveto.automata.nested_words import Kind as WordKind
from mcveto.dpg.graph import MAX_WITNESSES, TS, Edge, Frontier, Graph, Node, Witness
from mcveto.dpg.location import Location
from mcveto.dpg.matched_reachability import pending_addresses
from mcveto.dpg.runs import Visit
from mcveto.dpg.ways import INTERNAL, Exits, Kind, Way

START = -1


class Position(NamedTuple):
    """A node on a path, how the path came there, and the nodes in which its pending calls were made, innermost last."""

    number: int
    way: Way
    pending: tuple[int, ...]


class NestedGraph(Graph):
    def __init__(self, exits: Callable[[Location], Exits], sentinel: int) -> None:
        super().__init__()
        self._targets: dict[int, dict[Way, set[int]]] = {}
        self._sources: dict[int, set[tuple[int, Way]]] = {TS: set()}
        self._exits = exits
        self._sentinel = sentinel
        self._nested: IncrementalReachability[int] = IncrementalReachability()
        self._nested.add_start(START)
        self._nested.add_target(TS)
        self._callers: dict[int, set[int]] = {sentinel: {START}}
        self._returning: set[int] = set()

    @property
    def start_way(self) -> Way:
        return Way(Kind.CALL, self._sentinel)

    def callers(self, address: int) -> list[int]:
        """The nodes whose calls push a return address, START among them."""
        return sorted(self._callers[address])

    def pending(self, witness: Witness) -> tuple[int, ...] | None:
        """The nodes in which the witness's pending calls were made, innermost first; None if a state was not kept."""
        found: list[int] = []
        caller = witness.visit.caller
        while caller is not None:
            visit = witness.run.visits[caller]
            if visit.state is None:
                return None
            found.append(self.node_of(Witness(witness.run, visit)))
            caller = visit.caller
        return (*found, START)

    def ts_way(self, way: Way) -> Way:
        return way if way.kind is Kind.RETURN else INTERNAL

    def add_successor(self, source: Location, target: Location, way: Way = INTERNAL) -> None:
        if way.kind is Kind.CALL:
            self._add_address(way.address)
        super().add_successor(source, target, way)

    def add_edge(self, edge: Edge) -> None:
        self._targets[edge.source].setdefault(edge.way, set()).add(edge.target)
        self._sources[edge.target].add((edge.source, edge.way))
        super().add_edge(edge)

    def remove_edge(self, edge: Edge) -> None:
        self._targets[edge.source].get(edge.way, set()).discard(edge.target)
        self._sources[edge.target].discard((edge.source, edge.way))
        super().remove_edge(edge)

    def unstart(self, number: int) -> None:
        self.nodes[number].is_start = False
        self._nested.remove_call(START, number)

    def nested_path(self) -> list[Position] | None:
        """A shortest nested path from START to TS, or None."""
        run = self._nested.shortest_path()
        if run is None:
            return None
        found = [Position(START, INTERNAL, ())]
        for kind, number in zip(run.word.kinds, run.states[1:], strict=True):
            source, _, pending = found[-1]
            if kind is WordKind.CALL:
                pending = (*pending, source)
                way = self.start_way if source == START else Way(Kind.CALL, self._pushed(source, number))
            elif kind is WordKind.RETURN:
                way = Way(Kind.RETURN, self._returned(source, pending[-1], number))
                pending = pending[:-1]
            else:
                way = INTERNAL
            found.append(Position(number, way, pending))
        return found

    def frontier(self) -> Frontier | None:
        path = self.nested_path()
        if path is None:
            return None
        following = path[-1]
        for position in reversed(path[1:-1]):
            witness = self._witness(position)
            if witness is not None:
                return Frontier(Edge(position.number, following.way, following.number), witness)
            following = position
        raise AssertionError("the start of a path has a witness")

    def reachable(self) -> list[int]:
        """Nodes on some nested path from START, TS not being left."""
        return sorted(self.pending_addresses())

    def pending_addresses(self) -> dict[int, set[int]]:
        """The nodes on nested paths, each with the return addresses that may be pending there."""
        starts = [node.number for node in self.nodes.values() if node.is_start]
        return pending_addresses(starts, self._sentinel, self._followed)

    def _followed(self, number: int) -> list[tuple[Way, int]]:
        return [(edge.way, edge.target) for edge in self.nodes[number].steps() if edge.target != TS]

    def _witness(self, position: Position) -> Witness | None:
        return next((w for w in self.nodes[position.number].witnesses if self._is_at(w, position.pending)), None)

    def _is_at(self, witness: Witness, pending: tuple[int, ...]) -> bool:
        """Whether the pending calls of the visit were made in exactly these nodes."""
        run = witness.run
        caller = witness.visit.caller
        for number in reversed(pending[1:]):
            if caller is None:
                return False
            visit = run.visits[caller]
            if visit.state is None or visit.location != self.nodes[number].location:
                return False
            if self.node_of(Witness(run, visit)) != number:
                return False
            caller = visit.caller
        return caller is None

    def _pushed(self, caller: int, entry: int) -> int:
        """The return address of a call edge."""
        return next(
            way.address
            for way, targets in sorted(self.nodes[caller].edges.items())
            if way.kind is Kind.CALL and entry in targets
        )

    def _returned(self, source: int, caller: int, target: int) -> int:
        """The return address with which an edge returns into a call made in `caller`."""
        return next(
            way.address
            for way, targets in sorted(self.nodes[source].edges.items())
            if way.kind is Kind.RETURN and target in targets and caller in self._callers[way.address]
        )

    def _way_of(self, visit: Visit) -> Way:
        return visit.way

    def _witnesses_changed(self, node: Node) -> None:
        """Paths are searched from START, whatever has a witness."""

    def _has_room(self, node: Node, witness: Witness) -> bool:
        """Witnesses are kept per place of the pending call."""
        place = _call_place(witness)
        return sum(_call_place(other) == place for other in node.witnesses) < MAX_WITNESSES

    def _add_ts_edges(self, node: Node) -> None:
        exits = self._exits(node.location)
        if exits.by_step:
            self.add_edge(Edge(node.number, INTERNAL, TS))
        if exits.by_return:
            self._returning.add(node.number)
            for address in sorted(self._callers):
                self.add_edge(Edge(node.number, Way(Kind.RETURN, address), TS))

    def _add_address(self, address: int) -> None:
        """A return address that calls push: from now on returns may be to it."""
        if address not in self._callers:
            self._callers[address] = set()
            for number in sorted(self._returning):
                self.add_edge(Edge(number, Way(Kind.RETURN, address), TS))

    def _link(self, edge: Edge) -> None:
        source, way, target = edge.source, edge.way, edge.target
        if way.kind is Kind.INTERNAL:
            self._nested.add_internal(source, target)
        elif way.kind is Kind.CALL:
            self._nested.add_call(source, target)
            self._add_caller(source, way.address)
        else:
            for caller in sorted(self._callers[way.address]):
                self._nested.add_return(source, caller, target)

    def _add_caller(self, number: int, address: int) -> None:
        if number in self._callers[address]:
            return
        self._callers[address].add(number)
        way = Way(Kind.RETURN, address)
        for source in sorted(self._returning):
            for target in sorted(self.nodes[source].edges.get(way, ())):
                if Edge(source, way, target) not in self.given_up:
                    self._nested.add_return(source, number, target)

    def _unlink(self, edge: Edge) -> None:
        source, way, target = edge.source, edge.way, edge.target
        if way.kind is Kind.INTERNAL:
            self._nested.remove_internal(source, target)
        elif way.kind is Kind.CALL:
            self._nested.remove_call(source, target)
        else:
            for caller in sorted(self._callers[way.address]):
                self._nested.remove_return(source, caller, target)

    def _start(self, node: Node) -> None:
        self._nested.add_call(START, node.number)

    def _link_twin(self, number: int, twin: int) -> None:
        self._nested.split(number, twin)
        self._copy_edges(number, twin)
        if number in self._returning:
            self._returning.add(twin)
        for callers in self._callers.values():
            if number in callers:
                callers.add(twin)

    def _copy_edges(self, number: int, twin: int) -> None:
        """Notes that the twin has all edges of the node, from and to."""
        self._targets[twin] = {way: set(targets) for way, targets in self._targets[number].items()}
        for source, way in (*self._sources[number], *((twin, way) for n, way in self._sources[number] if n == number)):
            self._targets[source][way].add(twin)
        self._sources[twin] = set(self._sources[number])
        for way, targets in self._targets[twin].items():
            for target in targets:
                self._sources[target].add((twin, way))

    def _attach_edges(self, node: Node) -> None:
        self._sources.setdefault(node.number, set())
        node.edges = self._targets.setdefault(node.number, {})  # type: ignore[assignment]


def _call_place(witness: Witness) -> Location | None:
    caller = witness.visit.caller
    return None if caller is None else witness.run.visits[caller].location
