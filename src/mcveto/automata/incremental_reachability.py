"""Reachability of a target in a graph whose nodes split and whose edges come and go, with a shortest path.

The graph is that of TR1669 section 3: internal, call and return edges, refined by splitting a node and
removing some of the edges of its parts (Figure 1). Distances are kept by `dynamic_distances`; this file
keeps the graph small. Splitting by the book copies every edge of the node, and after many splits the
parts of two neighbouring nodes are joined by an edge for nearly every pair. We do not copy. The parts
of a node form a tree, and each tree node has an "in" and an "out" vertex:

    in(parent) → in(part), in(part) → out(part) if the part is not split further, out(part) → out(parent)

all of length 0. An edge from out(a) to in(b), of length 1, stands for the edges from all parts of a to
all parts of b. So a split costs a constant number of edges, and existing ones are untouched. Removing
the edge between two parts replaces the edge that covers it by edges that cover the others: one for each
level that it lies above the parts. A node's role as the caller, in call and return edges, is not shared
among parts but copied, since a return must match the very part in which the call was made.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from mcveto.automata import nested_paths
from mcveto.automata.dynamic_distances import GOAL, ROOT, DynamicDistances, Why, Work, inside
from mcveto.automata.nested_graph import CallEdge, GraphEdge, InternalEdge, ReturnEdge
from mcveto.automata.nested_words import ANY, Kind, NWPrefix
from mcveto.automata.nwa import Run
from mcveto.late_methods import dataclass

Q = TypeVar("Q", bound=Hashable)


@dataclass(eq=False)
class _Part:
    """A node of a tree of parts."""

    enter: int
    leave: int
    parent: _Part | None = None
    parts: tuple[_Part, ...] = ()

    def upwards(self) -> Iterator[_Part]:
        """This part and all that it is a part of."""
        part: _Part | None = self
        while part is not None:
            yield part
            part = part.parent

    def others_below(self, whole: _Part) -> list[_Part]:
        """Disjoint parts that make up `whole` without this part."""
        others = []
        part = self
        while part is not whole:
            assert part.parent is not None
            others += [sibling for sibling in part.parent.parts if sibling is not part]
            part = part.parent
        return others


class IncrementalReachability(Generic[Q]):
    """After any sequence of changes, `distance` and `shortest_path` answer for the graph as it is now."""

    def __init__(self) -> None:
        # distances to a target, backwards, in a graph where a return may go to any caller
        self._guide = DynamicDistances()
        self._distances = DynamicDistances(self._guide)
        self._uses: dict[InternalEdge, int] = {}
        self._parts: dict[Q, _Part] = {}
        self._names: dict[int, Q] = {}
        self._vertices = 0

    @property
    def work(self) -> Work:
        return self._distances.work + self._guide.work

    # Changes

    def add_start(self, node: Q) -> None:
        self._distances.add_start(self._part(node).enter)

    def remove_start(self, node: Q) -> None:
        self._distances.remove_start(self._part(node).enter)

    def add_target(self, node: Q) -> None:
        self._add_target(self._part(node).enter)

    def remove_target(self, node: Q) -> None:
        self._remove_target(self._part(node).enter)

    def add_internal(self, source: Q, target: Q) -> None:
        one, other = self._part(source), self._part(target)
        if self._covering_internal(one, other) is None:
            self._add(InternalEdge(one.leave, other.enter))

    def remove_internal(self, source: Q, target: Q) -> None:
        one, other = self._part(source), self._part(target)
        covering = self._covering_internal(one, other)
        if covering is None:
            return
        above, beyond = covering
        for sibling in one.others_below(above):
            self._add(InternalEdge(sibling.leave, beyond.enter))
        for sibling in other.others_below(beyond):
            self._add(InternalEdge(one.leave, sibling.enter))
        self._remove(InternalEdge(above.leave, beyond.enter))

    def add_call(self, call: Q, entry: Q) -> None:
        caller, entered = self._part(call), self._part(entry)
        if self._covering_call(caller, entered) is None:
            self._add(CallEdge(caller.leave, entered.enter))

    def remove_call(self, call: Q, entry: Q) -> None:
        caller, entered = self._part(call), self._part(entry)
        covering = self._covering_call(caller, entered)
        if covering is None:
            return
        for sibling in entered.others_below(covering):
            self._add(CallEdge(caller.leave, sibling.enter))
        self._remove(CallEdge(caller.leave, covering.enter))

    def add_return(self, exit_node: Q, call: Q, target: Q) -> None:
        left, caller, arrived = self._part(exit_node), self._part(call), self._part(target)
        if self._covering_return(left, caller, arrived) is None:
            self._add(ReturnEdge(left.leave, caller.leave, arrived.enter))

    def remove_return(self, exit_node: Q, call: Q, target: Q) -> None:
        left, caller, arrived = self._part(exit_node), self._part(call), self._part(target)
        covering = self._covering_return(left, caller, arrived)
        if covering is None:
            return
        above, beyond = covering
        for sibling in left.others_below(above):
            self._add(ReturnEdge(sibling.leave, caller.leave, beyond.enter))
        for sibling in arrived.others_below(beyond):
            self._add(ReturnEdge(left.leave, caller.leave, sibling.enter))
        self._remove(ReturnEdge(above.leave, caller.leave, beyond.enter))

    def split(self, node: Q, twin: Q) -> None:
        """Makes the new node `twin` a copy of `node`, with the same edges in all roles; a start or
        target node has a start or target twin. Paths are exactly the old ones, with either at each visit."""
        if node not in self._parts or twin in self._parts:
            raise ValueError(f"cannot split {node!r}: it must be a node, and {twin!r} must not be one")
        distances = self._distances
        whole = self._parts[node]
        parts = tuple(self._new_part(name, whole) for name in (node, twin))
        whole.parts = parts
        del self._names[whole.enter]
        if whole.enter in distances.targets:
            for part in parts:
                self._add_target(part.enter)
            self._remove_target(whole.enter)
        for part in parts:
            self._add(InternalEdge(whole.enter, part.enter, 0))
            self._add(InternalEdge(part.leave, whole.leave, 0))
        # with the values of the parts in place, what rests on the whole is not disturbed
        for part in parts:
            for vertex in (part.leave, part.enter):
                self._guide.settle_at(vertex)
                self._guide.settle_at(inside(vertex))
            distances.settle_at(part.enter)
            distances.settle_at(part.leave)
        self._remove(InternalEdge(whole.enter, whole.leave))
        if whole.enter in distances.starts:
            for part in parts:
                distances.add_start(part.enter)
            distances.remove_start(whole.enter)
        self._share_calls(whole, parts)

    def remove_node(self, node: Q) -> None:
        """Removes the node with all its edges; the name may be used for a new node."""
        part = self._part(node)
        self._distances.remove_start(part.enter)
        self._remove_target(part.enter)
        for vertex in (part.enter, part.leave):
            for edge in self._distances.graph.edges_of(vertex):
                self._remove(edge)
        del self._names[part.enter]
        del self._parts[node]

    # Questions

    def distance(self) -> int | None:
        """The length of a shortest nested path from a start node to a target; None if there is no path."""
        self._distances.settle()
        return self._distances.values.get((ROOT, GOAL))

    def shortest_path(self, *, limit: int = 10_000_000) -> Run[Q] | None:
        """A shortest nested path from a start node to a target, as a run whose symbols are all ANY; None if
        no target is reachable. Raises PathTooLong if it has more than `limit` steps."""
        length = self.distance()
        if length is None:
            return None
        nested_paths.check_length(length, limit)
        target = self._distances.reason((ROOT, GOAL))[1]
        moves = nested_paths.moves_to(target, self._explain)
        kinds = tuple(kind for kind, _, _ in moves if kind is not None)
        # between two steps the path comes through the "in" vertex of exactly one part that is not split
        states = tuple(self._names[vertex] for _, _, vertex in moves if vertex in self._names)
        return Run(NWPrefix((ANY,) * len(kinds), kinds), states)

    # The graph of vertices, and the same backwards without the matching of calls and returns

    def _add(self, edge: GraphEdge) -> None:
        if edge not in self._distances.graph:
            self._distances.add(edge)
            for backward in _backward(edge):
                self._uses[backward] = self._uses.get(backward, 0) + 1
                self._guide.add(backward)

    def _remove(self, edge: GraphEdge) -> None:
        if edge in self._distances.graph:
            self._distances.remove(edge)
            for backward in _backward(edge):
                self._uses[backward] -= 1
                if not self._uses[backward]:
                    del self._uses[backward]
                    self._guide.remove(backward)

    def _add_target(self, vertex: int) -> None:
        self._distances.add_target(vertex)
        self._guide.add_start(vertex)

    def _remove_target(self, vertex: int) -> None:
        self._distances.remove_target(vertex)
        self._guide.remove_start(vertex)

    # Parts

    def _part(self, node: Q) -> _Part:
        if node not in self._parts:
            self._new_part(node, None)
        return self._parts[node]

    def _new_part(self, name: Q, parent: _Part | None) -> _Part:
        part = _Part(self._vertices, self._vertices + 1, parent)
        self._vertices += 2
        self._parts[name] = part
        self._names[part.enter] = name
        self._add(InternalEdge(part.enter, part.leave, 0))
        return part

    def _share_calls(self, whole: _Part, parts: tuple[_Part, ...]) -> None:
        """Hands call edges, and the role of the caller in return edges, down from a part to its parts."""
        graph = self._distances.graph
        for entry in tuple(graph.entries(whole.leave)):
            for part in parts:
                self._add(CallEdge(part.leave, entry))
            self._remove(CallEdge(whole.leave, entry))
        for left in tuple(graph.exits(whole.leave)):
            for arrived in tuple(graph.return_targets(left, whole.leave)):
                for part in parts:
                    self._add(ReturnEdge(left, part.leave, arrived))
                self._remove(ReturnEdge(left, whole.leave, arrived))

    # An edge between two parts is covered by at most one edge between parts that contain them.

    def _covering_internal(self, source: _Part, target: _Part) -> tuple[_Part, _Part] | None:
        containing = tuple(target.upwards())
        for above in source.upwards():
            successors = self._distances.graph.successors(above.leave)
            for beyond in containing:
                if beyond.enter in successors:
                    return above, beyond
        return None

    def _covering_call(self, caller: _Part, entered: _Part) -> _Part | None:
        entries = self._distances.graph.entries(caller.leave)
        return next((part for part in entered.upwards() if part.enter in entries), None)

    def _covering_return(self, left: _Part, caller: _Part, arrived: _Part) -> tuple[_Part, _Part] | None:
        containing = tuple(arrived.upwards())
        for above in left.upwards():
            targets = self._distances.graph.return_targets(above.leave, caller.leave)
            for beyond in containing:
                if beyond.enter in targets:
                    return above, beyond
        return None

    def _explain(self, fact: nested_paths.Fact[int]) -> nested_paths.Derivation[int]:
        context = ROOT if fact[0] is nested_paths.ROOT else fact[0]
        why, source, entry, exit_vertex = self._distances.reason((context, fact[1]))
        if why is Why.SEED:
            return nested_paths.Seed()
        before = (fact[0], source)
        if why is Why.MATCHED:
            return nested_paths.Matched(before, ANY, (entry, exit_vertex), ANY)
        if why is Why.PENDING:
            return nested_paths.Step(before, Kind.CALL, ANY)
        silent = self._distances.graph.successors(source)[fact[1]] == 0
        return nested_paths.Step(before, None if silent else Kind.INTERNAL, ANY)


def _backward(edge: GraphEdge) -> tuple[InternalEdge, ...]:
    """The edge as steps of the guide: outside of calls that must return, inside, and from in to out."""
    if isinstance(edge, InternalEdge):
        source, target, length = edge.source, edge.target, edge.length
    elif isinstance(edge, CallEdge):
        source, target, length = edge.call, edge.entry, 1
    else:
        source, target, length = edge.exit, edge.target, 1
    steps = (InternalEdge(target, source, length), InternalEdge(inside(target), inside(source), length))
    if isinstance(edge, ReturnEdge):
        return (*steps, InternalEdge(target, inside(source)))
    return steps
