"""The configurations of the product, one step forwards or backwards, and how far from the start they are.

A configuration is a head on a stack. How many steps from the start it is at least is read off post* (see `reachable`),
which is a weighted automaton that reads stacks: each stack carries the entries that activations on it may have begun
with, each with the fewest steps to that beginning. A configuration that no run reaches has no distance. Recursion that
is not wanted is cut here, where a frame is put on a stack; distances know nothing of that, so they are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.product import Head
from mcveto.counterexamples.reachable import Entry, Reachable
from mcveto.counterexamples.recursion import Recursion
from mcveto.counterexamples.stacks import Stack, StackTable, number_of

Key = tuple[Head, int]
"""A head and the number of the stack it is on."""

Beginnings = dict[Entry, int]


class Configurations:
    """Stacks of `height` or more are left out (below the top, that is); `left_out` says whether there were any."""

    def __init__(self, reachable: Reachable, recursion: Recursion, height: int | None = None) -> None:
        self._reachable = reachable
        self._product = reachable.product
        self._recursion = recursion
        self._height = height
        self.left_out = False
        self._stacks = StackTable()
        # By the number of the stack.
        self._beginnings: dict[int, Beginnings] = {0: dict.fromkeys(reachable.bases, 0)}
        self._before: dict[Head, list[Head]] = {}
        self._callers: dict[Key, list[Head]] = {}
        self._callees: dict[tuple[Entry, int], list[tuple[Entry, int]]] = {}
        self._frames_above: dict[Entry, dict[int, None]] = {}
        self._index()
        self.initial: Stack | None = None
        for symbol in reversed(self._product.start_stack[1:]):
            self.initial = self._made(symbol, self.initial)
        recursion.begin_with(self.initial)
        self.starts = tuple(dict.fromkeys(reachable.entries[root] for root in reachable.roots))

    def _index(self) -> None:
        """Rules by what they lead to, over the part that was reached."""
        reachable, product = self._reachable, self._product
        for entry, frames in enumerate(reachable.callers):
            for (symbol, below), steps in frames.items():
                self._callees.setdefault((below, symbol), []).append((entry, steps))
                self._frames_above.setdefault(below, {})[symbol] = None
        count, is_final, before, callers = product.symbol_count, product.is_final, self._before, self._callers
        rules_of = product.rules
        for head in dict.fromkeys(chain.from_iterable(reachable.distance)):
            if is_final[head // count]:
                continue
            for target, first, second in rules_of(head):
                if first == NOTHING:
                    continue
                following = target * count + first
                if second == NOTHING:
                    known = before.get(following)
                    if known is None:
                        before[following] = [head]
                    else:
                        known.append(head)
                else:
                    callers.setdefault((following, second), []).append(head)

    def beginnings(self, stack: Stack | None) -> Beginnings:
        """The entries of activations on the stack, with the fewest steps from the start to their beginning."""
        return self._beginnings[number_of(stack)]

    def distance(self, head: Head, stack: Stack | None) -> int | None:
        """At least so many steps from the start; None if no run reaches the configuration."""
        best = None
        distances = self._reachable.distance
        for entry, reached in self._beginnings[0 if stack is None else stack.number].items():
            within = distances[entry].get(head)
            if within is not None and (best is None or reached + within < best):
                best = reached + within
        return best

    def is_start(self, head: Head, stack: Stack | None) -> bool:
        return stack is self.initial and head in self.starts

    def push(self, symbol: int, below: Stack | None) -> Stack | None:
        """The frame put on the stack; None if that recursion is not wanted, or no run does that."""
        if self._height is not None and (1 if below is None else below.height + 1) >= self._height:
            self.left_out = True
            return None
        stack = self._made(symbol, below)
        if not self._beginnings[stack.number] or not self._recursion.allows(stack):
            return None
        return stack

    def _made(self, symbol: int, below: Stack | None) -> Stack:
        stack = self._stacks.push(symbol, below)
        if stack.number not in self._beginnings:
            found: Beginnings = {}
            for entry, reached in self._beginnings[number_of(below)].items():
                for callee, steps in self._callees.get((entry, symbol), ()):
                    known = found.get(callee)
                    if known is None or reached + steps < known:
                        found[callee] = reached + steps
            self._beginnings[stack.number] = found
        return stack

    def higher(self, stack: Stack | None) -> Iterator[Stack]:
        """The stacks that are one frame higher."""
        symbols: dict[int, None] = {}
        for entry in self._beginnings[number_of(stack)]:
            known = self._frames_above.get(entry)
            if known is not None:
                symbols = {**symbols, **known} if symbols else known
        for symbol in symbols:
            above = self.push(symbol, stack)
            if above is not None:
                yield above

    def predecessors(self, head: Head, stack: Stack | None) -> Iterator[tuple[Head, Stack | None]]:
        """The configurations that one step leads from to this one; perhaps some that no run reaches."""
        for before in self._before.get(head, ()):
            yield before, stack
        if stack is not None:
            for before in self._callers.get((head, stack.symbol), ()):
                yield before, stack.below
        control, symbol = divmod(head, self._product.symbol_count)
        entries = self._beginnings[number_of(stack)]
        if any((entry, symbol) in self._callees for entry in entries):
            above = self.push(symbol, stack)
            if above is not None:
                pops = self._reachable.pops
                heads: dict[Head, None] = {}
                for callee in self._beginnings[above.number]:
                    heads.update(dict.fromkeys(pops[callee].get(control, ())))
                for before in heads:
                    yield before, above

    def successors(self, head: Head, stack: Stack | None) -> Iterator[tuple[Head, Stack | None]]:
        """The configurations that one step leads to; none from an error."""
        count = self._product.symbol_count
        if self._product.is_final[head // count]:
            return
        for target, first, second in self._product.rules(head):
            if first == NOTHING:
                if stack is not None:
                    yield target * count + stack.symbol, stack.below
            elif second == NOTHING:
                yield target * count + first, stack
            else:
                above = self.push(second, stack)
                if above is not None:
                    yield target * count + first, above
