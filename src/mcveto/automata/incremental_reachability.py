"""Reachability of a target in a changing nested graph, with a shortest path.

The value of a fact (k, q), as in `nested_paths`, is the length of the shortest nested path from entry k
to q (from a start node, with calls pending, for k = ROOT). Values solve a system of equations over min
and +, a "grammar problem". Changes of the graph change equations; we repair the solution by the
algorithm DynamicSWSF-FP of Ramalingam and Reps, "An incremental algorithm for a generalization of the
shortest-path problem" (J. Algorithms 21, 1996), section 4: a fact whose value differs from its equation
is put right in order of the smaller of both; a value that became too small is first withdrawn. Work is
proportional to the facts whose value changes and their edges, not to the graph: added edges propagate
decreases; removed edges re-evaluate the cone that depended on them, and stop where another path is as
short.

Where we differ:
- each fact keeps the candidates for its minimum in a heap that is cleaned lazily, so that a node with
  thousands of incoming edges, such as a target surrogate, is re-evaluated in logarithmic amortised
  time;
- summaries are computed only for entries that are called from a reachable node; an entry that becomes
  reachable is seeded, one that ceases to be is withdrawn, each after the values have settled;
- a target is never left: a shortest path ends at the first target, and what precedes it is a
  nested-word prefix.

Every step has length 1, so all cycles of the equations are strict, which the algorithm's correctness
needs.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

from mcveto.automata import nested_paths
from mcveto.automata.nested_graph import CallEdge, GraphEdge, InternalEdge, NestedGraph, Nodes, ReturnEdge
from mcveto.automata.nested_words import ANY, Kind
from mcveto.automata.nwa import Run

Q = TypeVar("Q", bound=Hashable)

ROOT = -1
GOAL = -2
"""A pseudo node of the ROOT context, derived from each target."""

Fact = tuple[int, int]


class Why(IntEnum):
    SEED = 0
    INTERNAL = 1
    PENDING = 2
    MATCHED = 3
    TARGET = 4


Derivation = tuple[Why, int, int, int]
"""Why, and: the source node; or the call node, the entry and the exit of a matched call."""


@dataclass
class Work:
    """What was done so far, in counts that do not depend on the machine."""

    settled: int = 0
    """values set or withdrawn"""
    candidates: int = 0
    """candidates put into heaps"""
    checks: int = 0
    """candidates looked at again"""

    @property
    def total(self) -> int:
        return self.settled + self.candidates + self.checks


class _Candidates:
    """A heap of (value, number, derivation), some of them out of date."""

    __slots__ = ("heap", "limit")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Derivation]] = []
        self.limit = 32


class IncrementalReachability(Generic[Q]):
    """After any sequence of changes, `distance` and `shortest_path` answer for the graph as it is now."""

    def __init__(self) -> None:
        self.work = Work()
        self._nodes: list[Q] = []
        self._ids: dict[Q, int] = {}
        self._graph = NestedGraph()
        self._starts: Nodes = {}
        self._targets: Nodes = {}
        self._active: Nodes = {}
        self._values: dict[Fact, int] = {}
        self._contexts: dict[int, Nodes] = {}
        self._candidates: dict[Fact, _Candidates] = {}
        self._queue: list[tuple[int, int, Fact]] = []
        self._queued: dict[Fact, int] = {}
        self._number = 0
        self._entries_to_check: Nodes = {}

    # The graph

    def add_start(self, node: Q) -> None:
        start = self._id(node)
        if start not in self._starts:
            self._starts[start] = None
            self._offer((ROOT, start), (Why.SEED, start, 0, 0))

    def remove_start(self, node: Q) -> None:
        start = self._id(node)
        if start in self._starts:
            del self._starts[start]
            self._review((ROOT, start))

    def add_target(self, node: Q) -> None:
        target = self._id(node)
        if target not in self._targets:
            left_by = list(self._consequences_in_all_contexts(target))
            self._targets[target] = None
            for head, _ in left_by:
                self._review(head)
            self._check_entries_of(target)
            self._offer((ROOT, GOAL), (Why.TARGET, target, 0, 0))

    def remove_target(self, node: Q) -> None:
        target = self._id(node)
        if target in self._targets:
            del self._targets[target]
            self._review((ROOT, GOAL))
            for head, derivation in self._consequences_in_all_contexts(target):
                self._offer(head, derivation)
            self._check_entries_of(target)

    def add_internal(self, source: Q, target: Q) -> None:
        self._add(InternalEdge(self._id(source), self._id(target)))

    def remove_internal(self, source: Q, target: Q) -> None:
        self._remove(InternalEdge(self._id(source), self._id(target)))

    def add_call(self, call: Q, entry: Q) -> None:
        self._add(CallEdge(self._id(call), self._id(entry)))

    def remove_call(self, call: Q, entry: Q) -> None:
        self._remove(CallEdge(self._id(call), self._id(entry)))

    def add_return(self, exit_node: Q, call: Q, target: Q) -> None:
        self._add(ReturnEdge(self._id(exit_node), self._id(call), self._id(target)))

    def remove_return(self, exit_node: Q, call: Q, target: Q) -> None:
        self._remove(ReturnEdge(self._id(exit_node), self._id(call), self._id(target)))

    def split(self, node: Q, twin: Q) -> None:
        """Makes the new node `twin` a copy of `node`, with the same edges in all roles; a start or target
        node has a start or target twin. Paths are exactly the old ones, with either of both at each visit."""
        if node not in self._ids or twin in self._ids:
            raise ValueError(f"cannot split {node!r}: it must be a node, and {twin!r} must not be one")
        old = self._ids[node]
        new = self._id(twin)
        if old in self._targets:
            self.add_target(twin)
        for edge in tuple(self._graph.edges_of_split(old, new)):
            self._add(edge)
        if old in self._starts:
            self.add_start(twin)

    def remove_node(self, node: Q) -> None:
        """Removes all edges of the node, and its being a start or a target."""
        gone = self._id(node)
        for edge in self._graph.edges_of(gone):
            self._remove(edge)
        self.remove_start(node)
        self.remove_target(node)

    # Questions

    def distance(self) -> int | None:
        """The length of a shortest nested path from a start node to a target; None if there is no path."""
        self._settle()
        return self._values.get((ROOT, GOAL))

    def distance_to(self, node: Q) -> int | None:
        """The length of a shortest nested path from a start node to `node` through no target, if any."""
        self._settle()
        return self._values.get((ROOT, self._ids[node])) if node in self._ids else None

    def shortest_path(self, *, limit: int = 10_000_000) -> Run[Q] | None:
        """A shortest nested path from a start node to a target, as a run whose symbols are all ANY; None if
        no target is reachable. Raises PathTooLong if it has more than `limit` steps."""
        length = self.distance()
        if length is None:
            return None
        target = self._reason((ROOT, GOAL))[1]
        return nested_paths.unfold(self._nodes[target], self._explain, length, limit)

    # Changes

    def _id(self, node: Q) -> int:
        if node not in self._ids:
            self._ids[node] = len(self._nodes)
            self._nodes.append(node)
        return self._ids[node]

    def _add(self, edge: GraphEdge) -> None:
        if self._graph.add(edge):
            for head, derivation in self._consequences_of_edge(edge):
                self._offer(head, derivation)
            if isinstance(edge, CallEdge):
                self._entries_to_check[edge.entry] = None

    def _remove(self, edge: GraphEdge) -> None:
        if self._graph.remove(edge):
            for head, _ in self._consequences_of_edge(edge):
                self._review(head)
            if isinstance(edge, CallEdge):
                self._entries_to_check[edge.entry] = None

    def _check_entries_of(self, call: int) -> None:
        self._entries_to_check.update(self._graph.entries(call))

    # Equations: which facts follow from a fact, and by which derivation

    def _consequences(self, fact: Fact) -> Iterator[tuple[Fact, Derivation]]:
        context, node = fact
        if node == GOAL:
            return
        if node in self._targets:
            if context == ROOT:
                yield (ROOT, GOAL), (Why.TARGET, node, 0, 0)
            return
        graph, values, targets = self._graph, self._values, self._targets
        for successor in graph.successors(node):
            yield (context, successor), (Why.INTERNAL, node, 0, 0)
        entries = graph.entries(node)
        if entries:
            if context == ROOT:
                for entry in entries:
                    yield (ROOT, entry), (Why.PENDING, node, 0, 0)
            for exit_node in graph.exits(node):
                if exit_node not in targets:
                    for entry in entries:
                        if (entry, exit_node) in values:
                            for target in graph.return_targets(exit_node, node):
                                yield (context, target), (Why.MATCHED, node, entry, exit_node)
        if context != ROOT:
            for call in graph.calls_returned_to(node):
                if call not in targets and context in graph.entries(call):
                    for target in graph.return_targets(node, call):
                        for outer in self._contexts.get(call, ()):
                            yield (outer, target), (Why.MATCHED, call, context, node)

    def _consequences_in_all_contexts(self, node: int) -> Iterator[tuple[Fact, Derivation]]:
        for context in tuple(self._contexts.get(node, ())):
            yield from self._consequences((context, node))

    def _consequences_of_edge(self, edge: GraphEdge) -> Iterator[tuple[Fact, Derivation]]:
        """The facts that the edge, if it is there, helps to derive from the present facts."""
        targets, values = self._targets, self._values
        if isinstance(edge, InternalEdge):
            if edge.source not in targets:
                for context in self._contexts.get(edge.source, ()):
                    yield (context, edge.target), (Why.INTERNAL, edge.source, 0, 0)
            return
        call = edge.call
        if call in targets or call not in self._contexts:
            return
        if isinstance(edge, CallEdge):
            if (ROOT, call) in values:
                yield (ROOT, edge.entry), (Why.PENDING, call, 0, 0)
            pairs = [
                (edge.entry, exit_node, target)
                for exit_node in self._graph.exits(call)
                for target in self._graph.return_targets(exit_node, call)
            ]
        else:
            pairs = [(entry, edge.exit, edge.target) for entry in self._graph.entries(call)]
        for entry, exit_node, target in pairs:
            if exit_node not in targets and (entry, exit_node) in values:
                for context in self._contexts[call]:
                    yield (context, target), (Why.MATCHED, call, entry, exit_node)

    def _evaluate(self, fact: Fact, derivation: Derivation) -> int | None:
        """The value that the derivation gives the fact in the present graph; None if it does not hold."""
        context, node = fact
        why, source, entry, exit_node = derivation
        if why is Why.INTERNAL:
            if source in self._targets or node not in self._graph.successors(source):
                return None
            value = self._values.get((context, source))
            return None if value is None else value + 1
        if why is Why.MATCHED:
            if (
                source in self._targets
                or exit_node in self._targets
                or entry not in self._graph.entries(source)
                or node not in self._graph.return_targets(exit_node, source)
            ):
                return None
            outside = self._values.get((context, source))
            inside = self._values.get((entry, exit_node))
            return None if outside is None or inside is None else outside + inside + 2
        if why is Why.PENDING:
            if source in self._targets or node not in self._graph.entries(source):
                return None
            value = self._values.get((ROOT, source))
            return None if value is None else value + 1
        if why is Why.SEED:
            return 0 if node in (self._starts if context == ROOT else self._active) else None
        return self._values.get((ROOT, source)) if source in self._targets else None

    # Repair

    def _offer(self, fact: Fact, derivation: Derivation) -> None:
        """Lets the fact know of a derivation whose value is new."""
        value = self._evaluate(fact, derivation)
        if value is not None:
            self.work.candidates += 1
            candidates = self._candidates.setdefault(fact, _Candidates())
            heapq.heappush(candidates.heap, (value, self._next_number(), derivation))
            if len(candidates.heap) > candidates.limit:
                self._compact(fact, candidates)
        self._review(fact)

    def _compact(self, fact: Fact, candidates: _Candidates) -> None:
        """Drops candidates that are outdated or double; amortised over the pushes that doubled the heap."""
        kept: dict[Derivation, tuple[int, int, Derivation]] = {}
        for entry in sorted(candidates.heap):
            self.work.checks += 1
            if entry[2] not in kept and self._evaluate(fact, entry[2]) == entry[0]:
                kept[entry[2]] = entry
        candidates.heap = list(kept.values())
        candidates.limit = 2 * len(candidates.heap) + 32

    def _minimum(self, fact: Fact) -> int | None:
        """The right-hand side of the fact's equation; None is ∞. Every change of a premise offers the
        derivation anew, so an outdated candidate can be dropped."""
        candidates = self._candidates.get(fact)
        if candidates is None:
            return None
        heap = candidates.heap
        while heap:
            self.work.checks += 1
            value, _, derivation = heap[0]
            if self._evaluate(fact, derivation) == value:
                return value
            heapq.heappop(heap)
        del self._candidates[fact]
        return None

    def _review(self, fact: Fact) -> None:
        """Queues the fact if its value differs from its equation, and unqueues it if not."""
        minimum = self._minimum(fact)
        value = self._values.get(fact)
        if minimum == value:
            self._queued.pop(fact, None)
            return
        key = min(bound for bound in (minimum, value) if bound is not None)
        if self._queued.get(fact) != key:
            self._queued[fact] = key
            heapq.heappush(self._queue, (key, self._next_number(), fact))

    def _settle(self) -> None:
        """Makes every value equal to its equation, with the entries seeded that a reachable node calls."""
        self._repair()
        while self._entries_to_check:
            checked, self._entries_to_check = self._entries_to_check, {}
            for entry in checked:
                wanted = any(
                    (ROOT, call) in self._values and call not in self._targets for call in self._graph.callers(entry)
                )
                if wanted and entry not in self._active:
                    self._active[entry] = None
                    self._offer((entry, entry), (Why.SEED, entry, 0, 0))
                elif not wanted and entry in self._active:
                    del self._active[entry]
                    self._review((entry, entry))
            self._repair()

    def _repair(self) -> None:
        while self._queue:
            key, _, fact = heapq.heappop(self._queue)
            if self._queued.get(fact) != key:
                continue
            del self._queued[fact]
            minimum = self._minimum(fact)
            value = self._values.get(fact)
            if minimum is not None and (value is None or minimum < value):
                self._set(fact, minimum)
                for head, derivation in tuple(self._consequences(fact)):
                    self._offer(head, derivation)
            elif value is not None and minimum != value:
                affected = tuple(self._consequences(fact))
                self._withdraw(fact)
                self._review(fact)
                for head, _ in affected:
                    self._review(head)

    def _set(self, fact: Fact, value: int) -> None:
        self.work.settled += 1
        if fact not in self._values:
            context, node = fact
            self._contexts.setdefault(node, {})[context] = None
            if context == ROOT:
                self._check_entries_of(node)
        self._values[fact] = value

    def _withdraw(self, fact: Fact) -> None:
        self.work.settled += 1
        del self._values[fact]
        context, node = fact
        del self._contexts[node][context]
        if not self._contexts[node]:
            del self._contexts[node]
        if context == ROOT:
            self._check_entries_of(node)

    # Explanation

    def _reason(self, fact: Fact) -> Derivation:
        value = self._minimum(fact)
        assert value == self._values[fact]
        return self._candidates[fact].heap[0][2]

    def _explain(self, fact: nested_paths.Fact[Q]) -> nested_paths.Derivation[Q]:
        context = ROOT if fact[0] is nested_paths.ROOT else self._ids[fact[0]]
        why, source, entry, exit_node = self._reason((context, self._ids[fact[1]]))
        if why is Why.SEED:
            return nested_paths.Seed()
        before = (fact[0], self._nodes[source])
        if why is Why.MATCHED:
            return nested_paths.Matched(before, ANY, (self._nodes[entry], self._nodes[exit_node]), ANY)
        return nested_paths.Step(before, Kind.INTERNAL if why is Why.INTERNAL else Kind.CALL, ANY)

    def _next_number(self) -> int:
        self._number += 1
        return self._number
