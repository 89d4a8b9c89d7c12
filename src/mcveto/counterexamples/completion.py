"""Can a suffix of a trace be completed, and by how many steps at least?

A suffix may be beyond completion though a run leads to its first configuration: all such runs may pass a configuration
that the suffix has already, or need recursion that is not wanted. Cycles can be cut out of a run, so this is a question
of reachability, not of paths: is there a way from the start that avoids the suffix? It is answered by A*, backwards,
each configuration once, with the distances of post* for an estimate.

Backwards there may be infinitely many configurations, since unwanted recursion shows only where stacks are built up. So
the configurations are explored forwards, too, step by step with the other search; should they be finitely many, what
they are and how far from the start is known for certain, and every question has an answer.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from mcveto.counterexamples.configurations import Configurations, Key
from mcveto.counterexamples.product import Head
from mcveto.counterexamples.stacks import Stack, number_of

# How many configurations one question may look at while it is not known whether they are finitely many.
_QUESTION = 2_000
# And how many are kept at most.
MOST_CONFIGURATIONS = 200_000


class Way:
    """A configuration, and the ones before it up to the start."""

    __slots__ = ("before", "key", "steps")

    def __init__(self, key: Key, before: Way | None) -> None:
        self.key = key
        self.before = before
        self.steps: int = 0 if before is None else before.steps + 1


@dataclass(frozen=True, slots=True)
class NoWay:
    """There is none; or it is not known whether there is."""

    is_certain: bool


class Explored:
    """What the start reaches, breadth first, as far as was asked. Errors are not gone beyond."""

    def __init__(self, configurations: Configurations) -> None:
        self._configurations = configurations
        self.distance: dict[Key, int] = {}
        self.stacks: set[int] = {0}
        self._queue: deque[tuple[Head, Stack | None, int]] = deque()
        for head in configurations.starts:
            self._add(head, configurations.initial, 0)

    @property
    def is_complete(self) -> bool:
        return not self._queue

    def go_on(self, count: int) -> None:
        """Looks at so many more configurations."""
        while count > 0 and self._queue and len(self.distance) < MOST_CONFIGURATIONS:
            count -= 1
            head, stack, steps = self._queue.popleft()
            for following, above in self._configurations.successors(head, stack):
                self._add(following, above, steps + 1)

    def _add(self, head: Head, stack: Stack | None, steps: int) -> None:
        key = (head, number_of(stack))
        if key in self.distance:
            return
        self.distance[key] = steps
        self._queue.append((head, stack, steps))
        while stack is not None and stack.number not in self.stacks:
            self.stacks.add(stack.number)
            stack = stack.below


class Completion:
    """`effort` counts the configurations looked at."""

    def __init__(self, configurations: Configurations) -> None:
        self._configurations = configurations
        self._explored: Explored | None = None
        self.effort = 0

    @property
    def is_exact(self) -> bool:
        """Whether all configurations are known, and so are their distances."""
        return self._explored is not None and self._explored.is_complete

    def distance(self, head: Head, stack: Stack | None) -> int | None:
        """At least so many steps from the start; None if no run that is wanted reaches the configuration."""
        if self._explored is not None and self._explored.is_complete:
            return self._explored.distance.get((head, number_of(stack)))
        return self._configurations.distance(head, stack)

    def may_occur(self, stack: Stack | None) -> bool:
        """Whether the stack may be (part of) that of a configuration."""
        return not self.is_exact or self._explored is None or number_of(stack) in self._explored.stacks

    def explore(self, count: int) -> None:
        """Looks at so many more configurations from the start on."""
        if self._explored is None:
            self._explored = Explored(self._configurations)
        self._explored.go_on(count)

    def shortest(self, head: Head, stack: Stack | None, avoided: Collection[Key]) -> Way | NoWay:
        """The shortest way to a configuration that is not itself a start, not through any of `avoided`."""
        first = self.distance(head, stack)
        if first is None:
            return NoWay(True)
        limit = MOST_CONFIGURATIONS if self.is_exact else _QUESTION
        known: dict[Key, int] = {(head, number_of(stack)): 0}
        # Entries are unique in their first two parts; the last says where the search came from.
        queue: list[tuple[int, int, int, Head, Stack | None, Way | None]] = [(first, 0, 0, head, stack, None)]
        pushed = looked = 0
        while queue:
            _, _, steps, head, stack, behind = heapq.heappop(queue)
            if known[head, number_of(stack)] < steps:
                continue
            if steps and self._configurations.is_start(head, stack):
                self._spend(looked)
                return _turned(behind)
            if looked >= limit:
                self._spend(looked)
                return NoWay(False)
            looked += 1
            for before, other in self._configurations.predecessors(head, stack):
                key = (before, number_of(other))
                if key in avoided or known.get(key, steps + 2) <= steps + 1:
                    continue
                rest = self.distance(before, other)
                if rest is not None:
                    known[key] = steps + 1
                    pushed -= 1
                    heapq.heappush(queue, (steps + 1 + rest, pushed, steps + 1, before, other, Way(key, behind)))
        self._spend(looked)
        return NoWay(True)

    def _spend(self, looked: int) -> None:
        self.effort += looked
        if not self.is_exact:
            self.explore(looked)


def _turned(way: Way | None) -> Way:
    """The way in the other direction: from the configuration before the one asked about back to the start."""
    keys = []
    while way is not None:
        keys.append(way.key)
        way = way.before
    turned: Way | None = None
    for key in keys:
        turned = Way(key, turned)
    assert turned is not None
    return turned
