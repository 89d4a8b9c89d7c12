"""A graph with internal, call and return edges that changes.

The unlabelled form of a nested word automaton (TR1669 section 3), indexed by every role a vertex can
play, so that adding and removing an edge takes constant time. Vertices are small integers; internal
edges have lengths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mcveto.late_methods import dataclass


@dataclass(frozen=True)
class InternalEdge:
    source: int
    target: int
    length: int = field(default=1, compare=False)


@dataclass(frozen=True)
class CallEdge:
    call: int
    entry: int


@dataclass(frozen=True)
class ReturnEdge:
    exit: int
    call: int
    target: int


GraphEdge = InternalEdge | CallEdge | ReturnEdge
Nodes = dict[int, None]
"""An insertion-ordered set of nodes."""

_NONE: Nodes = {}
_NO_LENGTHS: dict[int, int] = {}


class NestedGraph:
    def __init__(self) -> None:
        self._internal_out: dict[int, dict[int, int]] = {}
        self._internal_in: dict[int, Nodes] = {}
        self._entries: dict[int, Nodes] = {}
        self._callers: dict[int, Nodes] = {}
        self._returns_by_call: dict[int, dict[int, Nodes]] = {}
        self._returns_by_exit: dict[int, dict[int, Nodes]] = {}
        self._returns_into: dict[int, dict[tuple[int, int], None]] = {}

    def successors(self, node: int) -> dict[int, int]:
        """The targets of internal edges from `node`, with the lengths of these edges."""
        return self._internal_out.get(node, _NO_LENGTHS)

    def entries(self, call: int) -> Nodes:
        """The nodes that a call in `call` enters."""
        return self._entries.get(call, _NONE)

    def callers(self, entry: int) -> Nodes:
        """The nodes from which a call enters `entry`."""
        return self._callers.get(entry, _NONE)

    def exits(self, call: int) -> Iterator[int]:
        """The nodes from which a return to a call made in `call` is possible."""
        return iter(self._returns_by_call.get(call, _NONE))

    def calls_returned_to(self, exit_node: int) -> Iterator[int]:
        """The nodes whose calls `exit_node` can return to."""
        return iter(self._returns_by_exit.get(exit_node, _NONE))

    def return_targets(self, exit_node: int, call: int) -> Nodes:
        return self._returns_by_exit.get(exit_node, {}).get(call, _NONE)

    def __contains__(self, edge: GraphEdge) -> bool:
        if isinstance(edge, InternalEdge):
            return edge.target in self.successors(edge.source)
        if isinstance(edge, CallEdge):
            return edge.entry in self.entries(edge.call)
        return edge.target in self.return_targets(edge.exit, edge.call)

    def add(self, edge: GraphEdge) -> bool:
        """Adds the edge; whether it was new."""
        if edge in self:
            return False
        if isinstance(edge, InternalEdge):
            self._internal_out.setdefault(edge.source, {})[edge.target] = edge.length
            self._internal_in.setdefault(edge.target, {})[edge.source] = None
        elif isinstance(edge, CallEdge):
            self._entries.setdefault(edge.call, {})[edge.entry] = None
            self._callers.setdefault(edge.entry, {})[edge.call] = None
        else:
            exit_node, call, target = edge.exit, edge.call, edge.target
            # both indices share the set of targets
            targets = self._returns_by_call.setdefault(call, {}).setdefault(exit_node, {})
            self._returns_by_exit.setdefault(exit_node, {})[call] = targets
            targets[target] = None
            self._returns_into.setdefault(target, {})[exit_node, call] = None
        return True

    def remove(self, edge: GraphEdge) -> bool:
        """Removes the edge; whether it was there."""
        if edge not in self:
            return False
        if isinstance(edge, InternalEdge):
            del self._internal_out[edge.source][edge.target]
            del self._internal_in[edge.target][edge.source]
        elif isinstance(edge, CallEdge):
            del self._entries[edge.call][edge.entry]
            del self._callers[edge.entry][edge.call]
        else:
            exit_node, call, target = edge.exit, edge.call, edge.target
            targets = self._returns_by_call[call][exit_node]
            del targets[target]
            del self._returns_into[target][exit_node, call]
            if not targets:
                del self._returns_by_call[call][exit_node]
                del self._returns_by_exit[exit_node][call]
        return True

    def edges_of(self, node: int) -> tuple[GraphEdge, ...]:
        """Every edge in which the node plays a role, once."""
        found: dict[GraphEdge, None] = {}
        for target in self.successors(node):
            found[InternalEdge(node, target)] = None
        for source in self._internal_in.get(node, _NONE):
            found[InternalEdge(source, node)] = None
        for entry in self.entries(node):
            found[CallEdge(node, entry)] = None
        for call in self.callers(node):
            found[CallEdge(call, node)] = None
        for exit_node, targets in self._returns_by_call.get(node, {}).items():
            for target in targets:
                found[ReturnEdge(exit_node, node, target)] = None
        for call, targets in self._returns_by_exit.get(node, {}).items():
            for target in targets:
                found[ReturnEdge(node, call, target)] = None
        for exit_node, call in self._returns_into.get(node, {}):
            found[ReturnEdge(exit_node, call, node)] = None
        return tuple(found)
