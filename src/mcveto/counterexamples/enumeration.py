"""All minimum-recursion loop-free witness traces, lazily, shortest first.

Phase 2 of Basu et al. (section 4), a backward search guided by the stack, over post* (see `reachable`) instead of the
B-graph. First a stack is chosen, from the bottom up so that unnecessary recursion is cut at once; then the trace is
built backwards from the error on top of that stack. The search is A*: the fewest steps from the start to the first
configuration of a suffix are known (`configurations`), so a suffix that is completed as fast as that is followed
straight to the start. Where that fails, because the way is barred by the suffix itself or by unnecessary recursion, the
suffix is examined (`completion`): it is dropped if nothing completes it, and else put off until its length is due. The
same happens to the shortest suffix of it that is no better off, with all that was made from it; whatever is made from
these later is examined at once. So, as in Yen's algorithm for simple paths, the suffixes made for each trace are not
exponentially many. Distinct complete traces are distinct paths of the search, so none comes twice.

Deviations from Fig. 5: traces come in order of length over all final states, not per node and stack; and we stop when
no stack and no suffix is left, not at the first stack height without a trace (heights may have gaps: procedures that
call each other may fail at every second height only).
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mcveto.counterexamples.collector import without_cycle_collection
from mcveto.counterexamples.completion import Completion, Way
from mcveto.counterexamples.configurations import Configurations, Key
from mcveto.counterexamples.product import Head
from mcveto.counterexamples.reachable import Entry, Reachable
from mcveto.counterexamples.recursion import Recursion
from mcveto.counterexamples.stacks import Stack
from mcveto.counterexamples.trace import State, Witness

_NEVER = float("inf")
# Steps between two looks at the clock.
_BETWEEN_LOOKS = 64
# Configurations explored from the start on whenever an estimate fails.
_EXPLORED = 64
# Questions may take so much, and so much for each step of the search, as long as they may have no answer.
_DOUBT, _DOUBT_PER_STEP = 50_000, 20


@dataclass(frozen=True, slots=True)
class Limits:
    """When to give up; None is no limit."""

    expansions: int | None = None
    stack_height: int | None = None
    length: int | None = None
    seconds: float | None = None


class _Node:
    """A configuration and the suffix of the trace that follows it.

    `way` is the shortest completion, if that was asked for; `bound` is the length of that trace, None if nothing was
    asked because no estimate has failed. `is_doubtful`: one has failed for a part of the suffix; that was looked up
    when there had been `since` such corrections.
    """

    __slots__ = ("bound", "head", "is_doubtful", "length", "next", "since", "stack", "way")

    def __init__(self, head: Head, stack: Stack | None, following: _Node | None, since: int) -> None:
        self.head = head
        self.stack = stack
        self.next = following
        self.since = since
        self.bound: float | None = None
        self.way: Way | None = None
        if following is None:
            self.length, self.is_doubtful = 0, False
        else:
            self.length = following.length + 1
            self.is_doubtful = following.is_doubtful or following.bound is not None

    @property
    def key(self) -> Key:
        return self.head, 0 if self.stack is None else self.stack.number


class _Choice:
    """A stack on which the error may happen, or which may grow on."""

    __slots__ = ("stack",)

    def __init__(self, stack: Stack | None) -> None:
        self.stack = stack


class Enumeration:
    """Iterate once. Afterwards `is_exhaustive` says whether every trace was given, `stopped` why not."""

    def __init__(self, reachable: Reachable, recursion: Recursion, limits: Limits | None = None) -> None:
        self._reachable = reachable
        self._product = reachable.product
        self.limits = limits or Limits()
        self.stopped = ""
        self.is_exhaustive = False
        self._steps = 0
        self._started = time.monotonic()
        self._queue: list[tuple[int, int, _Node | _Choice]] = []
        self._pushed = 0
        self._visited: set[Key] = set()
        self._visited_of: _Node | None = None
        self._to_error: dict[Entry, int] = {}
        self._errors: dict[Entry, list[Head]] = {}
        self._corrections = 0
        with without_cycle_collection():
            self._measure_errors()
            self._configurations = Configurations(reachable, recursion, self.limits.stack_height)
        self._completion = Completion(self._configurations)

    def __iter__(self) -> Iterator[Witness]:
        nearest = self._to_error_on(None)
        if nearest is not None:
            self._push(nearest, _Choice(None))
        while self._queue:
            estimate, _, item = heapq.heappop(self._queue)
            if self._is_over(estimate):
                return
            # As long as the estimate is right there is no need for the queue.
            choice = item if isinstance(item, _Choice) else None
            while choice is not None:
                self._steps += 1
                if self._steps % _BETWEEN_LOOKS == 0 and self._is_over(estimate):
                    return
                choice = self._choose(choice, estimate)
            node = item if isinstance(item, _Node) and self._is_due(item, estimate) else None
            while node is not None:
                self._steps += 1
                if self._steps % _BETWEEN_LOOKS == 0 and self._is_over(estimate):
                    return
                if self._configurations.is_start(node.head, node.stack):
                    yield self._witness(node)
                    if len(self._configurations.starts) == 1:
                        break
                node = self._extend(node, estimate)
        if self._configurations.left_out:
            self.stop(f"stacks higher than {self.limits.stack_height} are left out")
        self.is_exhaustive = not self.stopped

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def expansions(self) -> int:
        """Configurations looked at."""
        return self._steps + self._completion.effort

    def stop(self, reason: str) -> None:
        """Says that the list is not complete, and why."""
        self.stopped = self.stopped or reason

    def _is_over(self, estimate: int) -> bool:
        # Whoever iterates may change the limits on the way.
        limits = self.limits
        if limits.length is not None and estimate > limits.length:
            self.stop(f"traces of more than {limits.length} steps are left out")
        elif limits.expansions is not None and self.expansions >= limits.expansions:
            self.stop(f"the search was ended after {self.expansions} steps")
        elif limits.seconds is not None and self.seconds > limits.seconds:
            self.stop(f"the search was ended after {limits.seconds:.1f} seconds")
        else:
            return False
        return True

    def _push(self, estimate: int, item: _Node | _Choice) -> None:
        # Among equals the last one first: the search then finishes one trace before it begins another.
        self._pushed += 1
        heapq.heappush(self._queue, (estimate, -self._pushed, item))

    def _measure_errors(self) -> None:
        """For each entry the fewest steps from its beginning to an error, in it or in what it calls."""
        reachable = self._reachable
        for entry, head in reachable.errors:
            self._errors.setdefault(entry, []).append(head)
        queue = []
        for entry, heads in self._errors.items():
            nearest = min(reachable.distance[entry][head] for head in heads)
            queue.append((nearest, entry))
        heapq.heapify(queue)
        while queue:
            steps, entry = heapq.heappop(queue)
            if entry in self._to_error:
                continue
            self._to_error[entry] = steps
            for frame, to_call in reachable.callers[entry].items():
                if frame.below not in self._to_error:
                    heapq.heappush(queue, (steps + to_call, frame.below))

    def _to_error_on(self, stack: Stack | None) -> int | None:
        """The fewest steps of a trace to an error on the stack or above it."""
        best = None
        for entry, reached in self._configurations.beginnings(stack).items():
            rest = self._to_error.get(entry)
            if rest is not None and (best is None or reached + rest < best):
                best = reached + rest
        return best

    def _choose(self, choice: _Choice, estimate: int) -> _Choice | None:
        """Queues the errors on the stack, and higher stacks but for one for which the estimate is the same."""
        stack = choice.stack
        if not self._completion.may_occur(stack):
            return None
        is_right = False
        heads: dict[Head, None] = {}
        for entry in self._configurations.beginnings(stack):
            if entry in self._errors:
                heads.update(dict.fromkeys(self._errors[entry]))
        for head in heads:
            length = self._completion.distance(head, stack)
            if length is not None:
                is_right = is_right or length == estimate
                self._push(length, _Node(head, stack, None, self._corrections))
        best: _Choice | None = None
        for above in self._configurations.higher(stack):
            length = self._to_error_on(above)
            if length == estimate and best is None:
                best = _Choice(above)
            elif length is not None:
                self._push(length, _Choice(above))
        if best is None and not is_right:
            self._completion.explore(_EXPLORED)
        return best

    def _is_due(self, node: _Node, estimate: int) -> bool:
        """Whether to go on with a node: it may have turned out to be dead, or longer than was thought."""
        distance = self._completion.distance(node.head, node.stack)
        if distance is None:
            return False
        bound: float = max(estimate, node.length + distance)
        if node.since != self._corrections:
            node.since = self._corrections
            at = node.next
            while at is not None:
                if at.bound is not None:
                    node.is_doubtful = True
                    bound = max(bound, at.bound)
                at = at.next
        if bound == estimate and node.is_doubtful and node.bound is None:
            bound = max(bound, self._examine(node, self._suffix(node)) or 0)
        if bound == estimate:
            return True
        if bound < _NEVER:
            self._push(int(bound), node)
        return False

    def _examine(self, node: _Node, suffix: Collection[Key]) -> float | None:
        """The length of the shortest trace with this suffix; None if that is not known."""
        if self._configurations.is_start(node.head, node.stack):
            return node.length
        completion = self._completion
        if not completion.is_exact and completion.effort > _DOUBT + _DOUBT_PER_STEP * self._steps:
            return None
        found = completion.shortest(node.head, node.stack, suffix)
        if isinstance(found, Way):
            node.way = found
            node.bound = node.length + found.steps + 1
        elif found.is_certain:
            node.bound = _NEVER
        return node.bound

    def _extend(self, node: _Node, estimate: int) -> _Node | None:
        """Queues what may come before the node; returns one for which the estimate is the same, if there is any."""
        visited = self._suffix(node)
        way, length, distance_of = node.way, node.length + 1, self._completion.distance
        best: _Node | None = None
        found: list[tuple[int, _Node]] = []
        for head, stack in self._configurations.predecessors(node.head, node.stack):
            key = (head, 0 if stack is None else stack.number)
            if key in visited:
                continue
            distance = distance_of(head, stack)
            if distance is None:
                continue
            before = _Node(head, stack, node, self._corrections)
            if way is not None and way.key == key:
                before.way, before.bound = way.before, node.bound
            total = max(estimate, length + distance)
            if total == estimate and (best is None or before.bound is not None):
                best = before
            found.append((total, before))
        is_wrong = best is None and node.bound is None and not self._configurations.is_start(node.head, node.stack)
        if is_wrong and self._correct(node, estimate):
            return None
        for total, before in found:
            if before is not best:
                self._push(total, before)
        if best is not None and best.is_doubtful and best.bound is None:
            self._push(estimate, best)
            return None
        return best

    def _correct(self, node: _Node, estimate: int) -> bool:
        """The estimate is wrong: finds out for which part of the suffix. Whether the node need not be extended now."""
        self._completion.explore(_EXPLORED)
        suffix = set(self._suffix(node))
        length = self._examine(node, suffix)
        if length is None:
            return False
        chain = []
        at = node.next
        while at is not None and at.bound is None:
            chain.append(at)
            at = at.next
        # The longer the suffix, the longer the trace; the first part of the chain is as wrong as the node.
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            other = chain[middle]
            known = self._examine(other, _keys(other))
            if known is None:
                break
            if known > estimate:
                low = middle + 1
            else:
                high = middle
                other.bound = other.way = None
        self._corrections += 1
        if length < _NEVER:
            self._push(int(length), node)
        return True

    def _suffix(self, node: _Node) -> set[Key]:
        """The configurations of the node and of what follows it."""
        if node.next is not None and node.next is self._visited_of:
            self._visited.add(node.key)
        elif node is not self._visited_of:
            self._visited = _keys(node)
        self._visited_of = node
        return self._visited

    def _witness(self, node: _Node) -> Witness:
        states: list[State] = []
        at: _Node | None = node
        while at is not None:
            control, symbol = self._product.split(at.head)
            states.append(State(control, symbol, at.stack))
            at = at.next
        return Witness(self._product, tuple(states))


def _keys(node: _Node) -> set[Key]:
    keys = set()
    at: _Node | None = node
    while at is not None:
        keys.add(at.key)
        at = at.next
    return keys
