"""Shortest path from start nodes to a goal in a changing directed graph without calls and returns.

Distances from the starts are kept exact. An added edge propagates decreases; a removed edge re-evaluates only the
nodes whose every shortest path used it (Ramalingam and Reps, "An incremental algorithm for a generalization of the
shortest-path problem", J. Algorithms 21, 1996, section 2, for unit lengths). Each node counts its tight predecessors,
those one step closer, so that losing an edge usually costs one decrement.

The goal may have as many predecessors as there are nodes. Its edges are kept apart, and the nearest source of one is
the top of a heap whose outdated entries are dropped when they come up.

For graphs whose call strings are part of their nodes, this answers what `incremental_reachability` answers for nested
graphs, at a fraction of the cost.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Set

from mcveto.automata.split_edges import Predecessors, SplitEdges

_FAR = sys.maxsize
"""Stands for the distance of a node that is not reached."""


class DynamicShortestPath:
    """Nodes are natural numbers. Contract: after any changes, `path()` is a shortest path to the goal."""

    def __init__(self, goal: int) -> None:
        self._goal = goal
        self._exits: dict[int, int] = {}
        """The sources of edges to the goal, numbered as they were added."""
        self._nearest: list[tuple[int, int, int]] = []
        """A heap of (distance, number of the edge, source); an entry counts if both still agree with it."""
        self._edges_added = 0
        self._edges = SplitEdges()
        self._starts: set[int] = set()
        self._distance: list[int] = []
        """By node; `_FAR` if it is not reached."""
        self._tight: dict[int, int] = {}
        self.work = 0
        """Nodes and edges looked at so far."""

    def add_start(self, node: int) -> None:
        self._starts.add(node)
        self._make_room(node)
        if self._distance[node] != 0:
            self._settle([(0, node)])

    def remove_start(self, node: int) -> None:
        if node in self._starts:
            self._starts.discard(node)
            if self._distance[node] == 0:
                self._withdraw([node])

    def add_edge(self, source: int, target: int) -> None:
        self._make_room(max(source, target))
        if target == self._goal:
            self._add_exit(source)
            return
        if not self._edges.add(source, target):
            return
        distance, known = self._distance[source], self._distance[target]
        if distance == _FAR:
            return
        if distance + 1 < known:
            self._settle([(distance + 1, target)])
        elif distance + 1 == known:
            self._tight[target] += 1

    def remove_edge(self, source: int, target: int) -> None:
        if target == self._goal:
            self._exits.pop(source, None)
            return
        if not self._edges.remove(source, target):
            return
        if self._distance[target] == self._distance[source] + 1:
            self._tight[target] -= 1
            if not self._tight[target] and target not in self._starts:
                self._withdraw([target])

    def split(self, node: int, twin: int) -> None:
        """Makes the new node `twin` a copy of `node`, with the same edges; also a start if it is one.

        No distance changes, and the twin's is the node's: only the counts of its successors do.
        """
        self._edges.split(node, twin)
        self._make_room(max(node, twin))
        distance = self._distance[node]
        if distance != _FAR:
            self._distance[twin] = distance
            self._tight[twin] = self._tight[node]
            for target in self._at_distance(distance + 1, self._edges.successors(node)):
                self._tight[target] += 1
        if node in self._starts:
            self._starts.add(twin)
        if node in self._exits:
            self._add_exit(twin)

    def predecessors(self, node: int) -> Set[int]:
        """The sources of edges to `node` (which is not the goal): a view that changes with them."""
        return Predecessors(self._edges, node)

    def distance(self, node: int) -> int | None:
        found = self._distance[node] if node < len(self._distance) else _FAR
        return None if found == _FAR else found

    def last_before_goal(self) -> int | None:
        """The node from which a shortest path takes its last step to the goal; None if there is no path.

        Of several, the one whose edge is oldest."""
        while self._nearest:
            distance, number, node = self._nearest[0]
            if self._exits.get(node) == number and self._distance[node] == distance:
                return node
            heapq.heappop(self._nearest)
        return None

    def before(self, node: int) -> int | None:
        """The node before `node` on a shortest path to it; None if it is a start. Of several, the oldest."""
        wanted = self._distance[node] - 1
        return (
            next((p for p in self._edges.predecessors(node) if self._distance[p] == wanted), None)
            if wanted >= 0
            else None
        )

    def path(self) -> list[int] | None:
        """Nodes of a shortest path from a start to the goal, or None."""
        node = self.last_before_goal()
        if node is None:
            return None
        found = [self._goal]
        while node is not None:
            found.append(node)
            node = self.before(node)
        found.reverse()
        return found

    def _make_room(self, node: int) -> None:
        if node >= len(self._distance):
            self._distance.extend([_FAR] * (node + 1 - len(self._distance)))

    def _add_exit(self, source: int) -> None:
        if source not in self._exits:
            self._edges_added += 1
            self._exits[source] = self._edges_added
            self._note_distance(source)

    def _note_distance(self, node: int) -> None:
        """An edge from here to the goal may now be on a shortest path."""
        distance = self._distance[node]
        if node in self._exits and distance != _FAR:
            heapq.heappush(self._nearest, (distance, self._exits[node], node))

    def _settle(self, seeds: Iterable[tuple[int, int]]) -> None:
        """Lowers distances from the seeds (candidate distance, node) on, nearest first."""
        heap = list(seeds)
        heapq.heapify(heap)
        while heap:
            candidate, node = heapq.heappop(heap)
            if self._distance[node] <= candidate:
                continue
            self._forget_support(node)
            self._distance[node] = candidate
            self._note_distance(node)
            self._tight[node] = len(self._at_distance(candidate - 1, self._edges.predecessors(node)))
            successors = self._edges.successors(node)
            self.work += len(successors)
            of = self._distance
            for successor in [s for s in successors if of[s] > candidate]:
                if of[successor] != candidate + 1:
                    heapq.heappush(heap, (candidate + 1, successor))
                elif successor != node:
                    self._tight[successor] += 1

    def _at_distance(self, distance: int, nodes: Iterable[int]) -> list[int]:
        of = self._distance
        return [node for node in nodes if of[node] == distance]

    def _forget_support(self, node: int) -> None:
        """The node's old distance no longer supports its successors."""
        old, self._distance[node] = self._distance[node], _FAR
        if old != _FAR:
            for successor in self._at_distance(old + 1, self._edges.successors(node)):
                self._tight[successor] -= 1

    def _withdraw(self, roots: list[int]) -> None:
        """Re-evaluates the nodes that lost every shortest path."""
        affected: dict[int, None] = {}
        queue = list(roots)
        while queue:
            node = queue.pop()
            if node in affected:
                continue
            affected[node] = None
            old, self._distance[node] = self._distance[node], _FAR
            successors = self._edges.successors(node)
            self.work += len(successors)
            for successor in self._at_distance(old + 1, successors):
                self._tight[successor] -= 1
                if not self._tight[successor] and successor not in self._starts:
                    queue.append(successor)
        seeds = []
        of = self._distance
        for node in affected:
            predecessors = self._edges.predecessors(node)
            self.work += len(predecessors)
            nearest = min([of[p] for p in predecessors], default=_FAR) + 1
            if node in self._starts:
                nearest = 0
            if nearest < _FAR:
                seeds.append((nearest, node))
        self._settle(seeds)
