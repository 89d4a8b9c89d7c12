"""All minimum-recursion loop-free witness traces, lazily, shortest first.

Phase 2 of Basu et al. (section 4), a backward search guided by the stack, over post* (see `reachable`) instead of the
B-graph. First a stack is chosen, from the bottom up so that unnecessary recursion is cut at once; then the trace is
built backwards from the error on top of that stack. A node of the search carries, besides the configuration, the entry
of every pending activation, so the fewest steps from the start to it are known exactly: the search is A* with a perfect
estimate and never builds a suffix that no run completes. Distinct complete traces have distinct nodes, so no trace
comes twice. Deviations from Fig. 5: traces come in order of length over all final states, not per node and stack; and
we stop when no stack and no suffix is left, not at the first stack height without a trace (heights may have gaps:
procedures that call each other may fail at every second height only).
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass

from mcveto.counterexamples.collector import without_cycle_collection
from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.product import Head
from mcveto.counterexamples.reachable import Entry, Frame, Reachable
from mcveto.counterexamples.recursion import Recursion
from mcveto.counterexamples.stacks import Stack, StackTable
from mcveto.counterexamples.trace import State, Witness


@dataclass(frozen=True, slots=True)
class Limits:
    """When to give up; None is no limit."""

    expansions: int | None = None
    stack_height: int | None = None
    length: int | None = None
    seconds: float | None = None


class _Activation:
    """A pending activation: the frame it continues with, the entry it began with, and the activation that called it."""

    __slots__ = ("below", "entry", "stack")

    def __init__(self, stack: Stack, entry: Entry, below: _Activation | None) -> None:
        self.stack = stack
        self.entry = entry
        self.below = below


class _Node:
    """A configuration on top of pending activations, and the suffix of the trace that follows it.

    `reached` are the fewest steps from the start to the beginning of the activation that runs.
    """

    __slots__ = ("entry", "head", "length", "next", "pending", "reached")

    def __init__(
        self, head: Head, entry: Entry, pending: _Activation | None, reached: int, following: _Node | None
    ) -> None:
        self.head = head
        self.entry = entry
        self.pending = pending
        self.reached = reached
        self.next = following
        self.length: int = 0 if following is None else following.length + 1

    @property
    def stack(self) -> Stack | None:
        return None if self.pending is None else self.pending.stack

    @property
    def key(self) -> tuple[Head, int]:
        return self.head, 0 if self.pending is None else self.pending.stack.number


class _Choice:
    """Pending activations on which the error may happen, or which may call on."""

    __slots__ = ("entry", "pending", "reached")

    def __init__(self, entry: Entry, pending: _Activation | None, reached: int) -> None:
        self.entry = entry
        self.pending = pending
        self.reached = reached


class Enumeration:
    """Iterate once. Afterwards `is_exhaustive` says whether every trace was given, `stopped` why not."""

    def __init__(self, reachable: Reachable, recursion: Recursion, limits: Limits | None = None) -> None:
        self._reachable = reachable
        self._product = reachable.product
        self._recursion = recursion
        self.limits = limits or Limits()
        self.stopped = ""
        self.is_exhaustive = False
        self.expansions = 0
        self._started = time.monotonic()
        self._stacks = StackTable()
        self._queue: list[tuple[int, int, _Node | _Choice]] = []
        self._pushed = 0
        self._visited: set[tuple[Head, int]] = set()
        self._visited_of: _Node | None = None
        self._to_error: dict[Entry, int] = {}
        self._errors: dict[Entry, list[Head]] = {}
        self._calls_up: dict[Entry, list[tuple[Entry, Frame, int]]] = {}
        self._before: dict[Head, list[Head]] = {}
        self._callers: dict[tuple[Head, int], list[Head]] = {}
        self._callees: dict[tuple[Entry, int], list[Entry]] = {}
        # The stack of the start below its top.
        self._initial: Stack | None = None

    def __iter__(self) -> Iterator[Witness]:
        with without_cycle_collection():
            self._prepare()
        while self._queue:
            # Whoever iterates may change the limits on the way.
            limits = self.limits
            estimate, _, item = heapq.heappop(self._queue)
            if limits.length is not None and estimate > limits.length:
                self.stop(f"traces of more than {limits.length} steps are left out")
                return
            if limits.expansions is not None and self.expansions >= limits.expansions:
                self.stop(f"the search was ended after {self.expansions} steps")
                return
            if limits.seconds is not None and self.seconds > limits.seconds:
                self.stop(f"the search was ended after {limits.seconds:.1f} seconds")
                return
            self.expansions += 1
            if isinstance(item, _Choice):
                self._choose(item)
            else:
                if self._is_start(item):
                    yield self._witness(item)
                    if len(self._reachable.roots) == 1:
                        continue
                self._extend(item)
        self.is_exhaustive = not self.stopped

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def stop(self, reason: str) -> None:
        """Says that the list is not complete, and why."""
        self.stopped = self.stopped or reason

    def _push(self, estimate: int, item: _Node | _Choice) -> None:
        # Among equals the last one first: the search then finishes one trace before it begins another.
        self._pushed += 1
        heapq.heappush(self._queue, (estimate, -self._pushed, item))

    def _prepare(self) -> None:
        """Indexes for going backwards, over the part that was reached."""
        reachable, product = self._reachable, self._product
        for entry, head in reachable.errors:
            self._errors.setdefault(entry, []).append(head)
        for entry, frames in enumerate(reachable.callers):
            for frame, steps in frames.items():
                self._calls_up.setdefault(frame.below, []).append((entry, frame, steps))
                self._callees.setdefault((frame.below, frame.symbol), []).append(entry)
        self._measure_errors()
        if not self._errors:
            return
        count, is_final = product.symbol_count, product.is_final
        seen: set[Head] = set()
        for here in reachable.distance:
            for head in here:
                if head in seen or is_final[head // count]:
                    continue
                seen.add(head)
                for target, first, second in product.rules(head):
                    if first == NOTHING:
                        continue
                    following = target * count + first
                    if second == NOTHING:
                        self._before.setdefault(following, []).append(head)
                    else:
                        self._callers.setdefault((following, second), []).append(head)
        for symbol in reversed(product.start_stack[1:]):
            self._initial = self._stacks.push(symbol, self._initial)
        for base in reachable.bases:
            self._offer(_Choice(base, None, 0))

    def _measure_errors(self) -> None:
        """For each entry the fewest steps from its beginning to an error, in it or in what it calls."""
        queue = []
        for entry, heads in self._errors.items():
            nearest = min(self._reachable.distance[entry][head] for head in heads)
            queue.append((nearest, entry))
        heapq.heapify(queue)
        while queue:
            steps, entry = heapq.heappop(queue)
            if entry in self._to_error:
                continue
            self._to_error[entry] = steps
            for frame, to_call in self._reachable.callers[entry].items():
                if frame.below not in self._to_error:
                    heapq.heappush(queue, (steps + to_call, frame.below))

    def _offer(self, choice: _Choice) -> None:
        rest = self._to_error.get(choice.entry)
        if rest is not None:
            self._push(choice.reached + rest, choice)

    def _choose(self, choice: _Choice) -> None:
        distance = self._reachable.distance[choice.entry]
        for head in self._errors.get(choice.entry, ()):
            node = _Node(head, choice.entry, choice.pending, choice.reached, None)
            self._push(choice.reached + distance[head], node)
        for entry, frame, steps in self._calls_up.get(choice.entry, ()):
            pending = self._activation(frame, choice.pending)
            if pending is not None:
                self._offer(_Choice(entry, pending, choice.reached + steps))

    def _activation(self, frame: Frame, below: _Activation | None) -> _Activation | None:
        """The frame put on the pending activations; None if that recursion is not wanted."""
        stack = self._stacks.push(frame.symbol, None if below is None else below.stack)
        limit = self.limits.stack_height
        if limit is not None and stack.height >= limit:
            self.stop(f"stacks higher than {limit} are left out")
            return None
        return _Activation(stack, frame.below, below) if self._recursion.allows(stack) else None

    def _is_start(self, node: _Node) -> bool:
        return (
            node.reached == 0
            and node.stack is self._initial
            and node.entry in self._reachable.roots
            and node.head == self._reachable.entries[node.entry]
        )

    def _extend(self, node: _Node) -> None:
        """All configurations that may come before the node's."""
        reachable = self._reachable
        distance = reachable.distance[node.entry]
        visited = self._suffix(node)

        def offer(head: Head, entry: Entry, pending: _Activation | None, reached: int) -> None:
            key = (head, 0 if pending is None else pending.stack.number)
            if key not in visited:
                following = _Node(head, entry, pending, reached, node)
                self._push(following.length + reached + reachable.distance[entry][head], following)

        for head in self._before.get(node.head, ()):
            if head in distance:
                offer(head, node.entry, node.pending, node.reached)
        pending = node.pending
        if pending is not None and node.head == reachable.entries[node.entry]:
            frame = Frame(pending.stack.symbol, pending.entry)
            before = node.reached - reachable.callers[node.entry][frame]
            caller = reachable.distance[pending.entry]
            for head in self._callers.get((node.head, frame.symbol), ()):
                if head in caller:
                    offer(head, pending.entry, pending.below, before)
        control, symbol = self._product.split(node.head)
        for callee in self._callees.get((node.entry, symbol), ()):
            heads = reachable.pops[callee].get(control)
            if heads is None:
                continue
            frame = Frame(symbol, node.entry)
            called = self._activation(frame, node.pending)
            if called is not None:
                for head in heads:
                    offer(head, callee, called, node.reached + reachable.callers[callee][frame])

    def _suffix(self, node: _Node) -> set[tuple[Head, int]]:
        """The configurations of the node and of what follows it."""
        if node.next is not None and node.next is self._visited_of:
            self._visited.add(node.key)
        else:
            self._visited = set()
            at: _Node | None = node
            while at is not None:
                self._visited.add(at.key)
                at = at.next
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
