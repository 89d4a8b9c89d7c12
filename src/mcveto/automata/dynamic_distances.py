"""Distances in a changing nested graph: the repair of a system of min-plus equations.

The value of a fact (k, q), as in `nested_paths`, is the length of the shortest nested path from entry k to q
(from a start vertex, with calls pending, for k = ROOT). Values solve equations over min and +, a "grammar
problem". Changes of the graph change equations; we repair the solution by the algorithm DynamicSWSF-FP of
Ramalingam and Reps, "An incremental algorithm for a generalization of the shortest-path problem" (Journal of
Algorithms 21, 1996), section 4: a fact whose value differs from its equation is put right, the smaller of
both first; a value that became too small is first withdrawn. Added edges propagate decreases; removed edges
re-evaluate the cone that depended on them, and stop where another path is as short.

Where we differ:
- Only what can matter is repaired, as in Koenig and Likhachev's Lifelong Planning A* ("Incremental A*", NIPS
  2001), which we extend to summaries. A path that uses the fact (k, q) is at least as long as distance of k +
  value of (k, q) + `guide` of q, a lower bound of the way from q to a target (if k ≠ ROOT, by way of a
  return from k). Where this exceeds the target's present distance D, and for improvements also where it
  equals D, a fact may stay wrong until D grows or the bound drops. If a path shorter than D existed, the
  first wrong fact along it would have a bound below D; so D is never too large, and without a D, i.e. for
  the answer "unreachable", all that can lead to a target was repaired. That D is not too small is checked at
  the end by going through the facts it rests on; a wrong one is repaired out of turn.
- Each fact keeps the candidates for its minimum in a heap that is cleaned lazily, so that a node with
  thousands of incoming edges, such as a target surrogate, is re-evaluated in logarithmic amortised time.
- A target is never left: a shortest path ends at the first target, and what precedes it is a nested-word
  prefix.
- Internal edges may have length 0, but no cycle has.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterator
from enum import IntEnum

from mcveto.automata.nested_graph import CallEdge, GraphEdge, InternalEdge, NestedGraph, Nodes
from mcveto.late_methods import dataclass

ROOT = -1
GOAL = -2
"""A pseudo node of the ROOT context, derived from each target."""

Fact = tuple[int, int]
Key = tuple[int, int]
"""The smaller of value and equation; then 0 if the value is too small, 1 if it is too large."""
UNKNOWN = sys.maxsize
"""A bound used for a fact that was put aside because its context or the target is not reached."""


def inside(node: int) -> int:
    """The vertex at which a guide keeps its bound for `node` in a call that must return; its own inverse."""
    return GOAL - 1 - node


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
    def repairs(self) -> int:
        return self.settled + self.candidates

    @property
    def total(self) -> int:
        return self.repairs + self.checks

    def __add__(self, other: Work) -> Work:
        return Work(self.settled + other.settled, self.candidates + other.candidates, self.checks + other.checks)

    def __sub__(self, other: Work) -> Work:
        return Work(self.settled - other.settled, self.candidates - other.candidates, self.checks - other.checks)


def _premises(fact: Fact, derivation: Derivation) -> tuple[Fact, ...]:
    why, source, entry, exit_node = derivation
    if why is Why.SEED:
        return ()
    if why is Why.MATCHED:
        return (fact[0], source), (entry, exit_node)
    return ((fact[0], source),)


class _Candidates:
    """A heap of (value, number, derivation), some of them out of date."""

    __slots__ = ("heap", "limit")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Derivation]] = []
        self.limit = 32


class DynamicDistances:
    """After any sequence of changes and `settle`, the value of (ROOT, GOAL) is the distance from a start to a
    target, absent if there is no path, and `reason` explains it down to the seeds. Without targets and guide,
    all values are exact."""

    def __init__(self, guide: DynamicDistances | None = None) -> None:
        """`guide` holds, as values of ROOT, lower bounds of the way to a target: at q, and at inside(q) if
        the way must first return from the present call; absent means that there is none."""
        self.work = Work()
        self.changed: Nodes = {}
        self._guide = guide
        self.graph = NestedGraph()
        self.starts: Nodes = {}
        self.targets: Nodes = {}
        self.values: dict[Fact, int] = {}
        self._contexts: dict[int, Nodes] = {}
        self._candidates: dict[Fact, _Candidates] = {}
        # facts that differ from their equations; those that may matter are also in the heap, by lower bound
        self._queued: dict[Fact, Key] = {}
        self._queued_in: dict[int, Nodes] = {}
        self._queued_at: dict[int, Nodes] = {}
        self._queue: list[tuple[int, int, int, int, int, Fact]] = []
        self._greatest_offset: dict[int, int] = {}
        self._number = 0

    def add_start(self, start: int) -> None:
        if start not in self.starts:
            self.starts[start] = None
            self._offer((ROOT, start), (Why.SEED, start, 0, 0))

    def remove_start(self, start: int) -> None:
        if start in self.starts:
            del self.starts[start]
            self._review((ROOT, start))

    def add_target(self, target: int) -> None:
        if target not in self.targets:
            left_by = list(self._consequences_in_all_contexts(target))
            self.targets[target] = None
            for head, _ in left_by:
                self._review(head)
            self._offer((ROOT, GOAL), (Why.TARGET, target, 0, 0))

    def remove_target(self, target: int) -> None:
        if target in self.targets:
            del self.targets[target]
            self._review((ROOT, GOAL))
            for head, derivation in self._consequences_in_all_contexts(target):
                self._offer(head, derivation)

    def add(self, edge: GraphEdge) -> None:
        if self.graph.add(edge):
            for head, derivation in tuple(self._consequences_of_edge(edge)):
                self._offer(head, derivation)
            if isinstance(edge, CallEdge):
                self._offer((edge.entry, edge.entry), (Why.SEED, edge.entry, 0, 0))

    def remove(self, edge: GraphEdge) -> None:
        if self.graph.remove(edge):
            for head, _ in tuple(self._consequences_of_edge(edge)):
                self._review(head)
            if isinstance(edge, CallEdge):
                self._review((edge.entry, edge.entry))

    def reason(self, fact: Fact) -> Derivation:
        """A derivation that gives the fact its value; after `settle`."""
        value = self._minimum(fact)
        assert value == self.values[fact]
        return self._candidates[fact].heap[0][2]

    # Equations: which facts follow from a fact, and by which derivation

    def _consequences(self, fact: Fact) -> Iterator[tuple[Fact, Derivation]]:
        context, node = fact
        if node == GOAL:
            return
        if node in self.targets:
            if context == ROOT:
                yield (ROOT, GOAL), (Why.TARGET, node, 0, 0)
            return
        graph, values, targets = self.graph, self.values, self.targets
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
        targets, values = self.targets, self.values
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
                for exit_node in self.graph.exits(call)
                for target in self.graph.return_targets(exit_node, call)
            ]
        else:
            pairs = [(entry, edge.exit, edge.target) for entry in self.graph.entries(call)]
        for entry, exit_node, target in pairs:
            if exit_node not in targets and (entry, exit_node) in values:
                for context in self._contexts[call]:
                    yield (context, target), (Why.MATCHED, call, entry, exit_node)

    def _evaluate(self, fact: Fact, derivation: Derivation) -> int | None:
        """The value that the derivation gives the fact in the present graph; None if it does not hold."""
        context, node = fact
        why, source, entry, exit_node = derivation
        if why is Why.INTERNAL:
            if source in self.targets or node not in self.graph.successors(source):
                return None
            value = self.values.get((context, source))
            return None if value is None else value + self.graph.successors(source)[node]
        if why is Why.MATCHED:
            if (
                source in self.targets
                or exit_node in self.targets
                or entry not in self.graph.entries(source)
                or node not in self.graph.return_targets(exit_node, source)
            ):
                return None
            outside = self.values.get((context, source))
            inside = self.values.get((entry, exit_node))
            return None if outside is None or inside is None else outside + inside + 2
        if why is Why.PENDING:
            if source in self.targets or node not in self.graph.entries(source):
                return None
            value = self.values.get((ROOT, source))
            return None if value is None else value + 1
        if why is Why.SEED:
            return 0 if (node in self.starts if context == ROOT else self.graph.callers(node)) else None
        return self.values.get((ROOT, source)) if source in self.targets else None

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
        value = self.values.get(fact)
        if minimum == value:
            self._unqueue(fact)
            return
        if minimum is not None and (value is None or minimum < value):
            key = (minimum, 1)
        else:
            assert value is not None
            key = (value, 0)
        if self._queued.get(fact) != key:
            self._queued[fact] = key
            self._queued_in.setdefault(fact[0], {})[fact[1]] = None
            self._queued_at.setdefault(fact[1], {})[fact[0]] = None
            self._push(fact, key)

    def _unqueue(self, fact: Fact) -> None:
        if self._queued.pop(fact, None) is not None:
            del self._queued_in[fact[0]][fact[1]]
            del self._queued_at[fact[1]][fact[0]]

    def _bound(self, fact: Fact, key: Key) -> int | None:
        """A lower bound of the length of all paths to a target that use the fact; None if there are none."""
        context = fact[0]
        offset: int | None = 0
        if context != ROOT:
            offset = self.values.get((ROOT, context))
            used = UNKNOWN if offset is None else offset
            self._greatest_offset[context] = max(used, self._greatest_offset.get(context, 0))
        remaining = self._remaining(fact)
        return None if offset is None or remaining is None else offset + key[0] + remaining

    def _remaining(self, fact: Fact) -> int | None:
        context, node = fact
        if self._guide is None or node == GOAL:
            return 0
        return self._guide.values.get((ROOT, node if context == ROOT else inside(node)))

    def _push(self, fact: Fact, key: Key) -> None:
        """Among equal bounds, what is too small goes first, then what is nearest to a target."""
        bound = self._bound(fact, key)
        if bound is not None:
            remaining = self._remaining(fact) or 0
            entry = (bound, key[1], remaining, self._next_number(), key[0], fact)
            heapq.heappush(self._queue, entry)

    def settle(self) -> None:
        """Repairs all values that can matter to the distance of the target."""
        if self._guide is not None:
            self._guide.settle()
            moved, self._guide.changed = self._guide.changed, {}
            for vertex in moved:
                node = inside(vertex) if vertex < ROOT else vertex
                for context in tuple(self._queued_at.get(node, ())):
                    self._push((context, node), self._queued[context, node])
        self._process_queue()
        while (doubtful := self._doubtful_support()) is not None:
            self._unqueue(doubtful)
            self._repair(doubtful)
            self._process_queue()

    def settle_at(self, node: int) -> None:
        """Repairs the facts at the node out of turn, in contexts where they may matter."""
        distance = self.values.get((ROOT, GOAL))
        for context in tuple(self._queued_at.get(node, ())):
            fact = (context, node)
            bound = self._bound(fact, self._queued[fact])
            if bound is not None and (distance is None or bound <= distance):
                self._unqueue(fact)
                self._repair(fact)

    def _process_queue(self) -> None:
        while self._queue:
            bound, improves, _, _, least, fact = self._queue[0]
            distance = self.values.get((ROOT, GOAL))
            if distance is not None and (bound > distance or (bound == distance and improves)):
                return
            heapq.heappop(self._queue)
            self.work.checks += 1
            key = (least, improves)
            if self._queued.get(fact) == key:
                now = self._bound(fact, key)
                if now is not None and now > bound:
                    self._push(fact, key)
                elif now is not None:
                    self._unqueue(fact)
                    self._repair(fact)

    def _doubtful_support(self) -> Fact | None:
        """A wrong fact among those that the distance of the target rests on; None if all are right."""
        if (ROOT, GOAL) not in self.values:
            return None
        seen: set[Fact] = {(ROOT, GOAL)}
        pending: list[Fact] = [(ROOT, GOAL)]
        while pending:
            fact = pending.pop()
            if fact in self._queued:
                return fact
            for premise in _premises(fact, self.reason(fact)):
                if premise not in seen:
                    seen.add(premise)
                    pending.append(premise)
        return None

    def _repair(self, fact: Fact) -> None:
        minimum = self._minimum(fact)
        value = self.values.get(fact)
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
        context, node = fact
        if fact not in self.values:
            self._contexts.setdefault(node, {})[context] = None
        self.values[fact] = value
        if context == ROOT:
            self.changed[node] = None
            if value < self._greatest_offset.get(node, 0):
                # bounds of facts in the context of this node were computed with a greater offset
                self._greatest_offset[node] = value
                for inner in tuple(self._queued_in.get(node, ())):
                    self._push((node, inner), self._queued[node, inner])

    def _withdraw(self, fact: Fact) -> None:
        self.work.settled += 1
        del self.values[fact]
        context, node = fact
        del self._contexts[node][context]
        if not self._contexts[node]:
            del self._contexts[node]
        if context == ROOT:
            self.changed[node] = None

    def _next_number(self) -> int:
        self._number += 1
        return self._number
