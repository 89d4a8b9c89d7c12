"""Which recursion is unnecessary: condition 2 of Definition 3 of Basu et al.

A frame γ'' on the stack stands for a pending call that continues at γ''. The stack increase w_D of a pending call is
the part of the stack from its frame down to the deepest frame with the same symbol. A recursive call is unnecessary if
Effect(q, w_D) is, for every control q, the same as for the pending call of the same frame just before it. So the
condition is one on the stack below the top alone, and what holds for a stack holds for everything below its frames:
stacks can be tested from the bottom.

Two things the paper does not say. Effects that alternate (a procedure that toggles a state) satisfy the condition at
every depth, so there may be infinitely many minimum-recursion traces: enumeration is lazy and takes limits. And a
recursion that is needed to bring the automaton forward *on the way down* has no effect on the way up, so the condition
may drop every trace to an error. Reachability is therefore decided before and without it, and `BoundedRecursion`, which
just counts, is there to be asked instead.
"""

from __future__ import annotations

from typing import Protocol

from mcveto.counterexamples.erase import Effect, Erase
from mcveto.counterexamples.stacks import Stack


class Recursion(Protocol):
    def allows(self, stack: Stack | None) -> bool:
        """Whether a trace may contain a configuration whose stack below the top is this one."""

    def begin_with(self, stack: Stack | None) -> None:
        """The stack below the top at the start: nobody called what is on it, so it is allowed whatever it is."""


class MinimumRecursion:
    """Definition 3, condition 2."""

    def __init__(self, erase: Erase) -> None:
        self._erase = erase
        self._allowed: dict[int, bool] = {}
        self._increase: dict[int, Effect] = {}

    def allows(self, stack: Stack | None) -> bool:
        pending: list[Stack] = []
        while stack is not None and stack.number not in self._allowed:
            pending.append(stack)
            stack = stack.below
        allowed = stack is None or self._allowed[stack.number]
        for frame in reversed(pending):
            if allowed:
                previous = frame.previous
                allowed = previous is None or self.increase(frame) != self.increase(previous)
            self._allowed[frame.number] = allowed
        return allowed

    def begin_with(self, stack: Stack | None) -> None:
        while stack is not None:
            self._allowed[stack.number] = True
            stack = stack.below

    def increase(self, frame: Stack) -> Effect:
        """Effect(·, w_D) of the pending call whose frame is on top of this stack."""
        found = self._increase.get(frame.number)
        if found is None:
            previous = frame.previous
            if previous is None:
                found = self._erase.effect(frame.symbol)
            else:
                found = self.increase(previous)
                between: list[Stack] = []
                at = frame
                while at is not previous:
                    between.append(at)
                    assert at.below is not None
                    at = at.below
                for item in reversed(between):
                    found = self._erase.compose(self._erase.effect(item.symbol), found)
            self._increase[frame.number] = found
        return found


class BoundedRecursion:
    """At most `limit` pending calls with the same continuation."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: dict[int, int] = {}

    def allows(self, stack: Stack | None) -> bool:
        # The stack below was tested before this frame was put on it.
        return stack is None or self._count(stack) <= self._limit

    def begin_with(self, stack: Stack | None) -> None:
        pass

    def _count(self, frame: Stack) -> int:
        found = self._counts.get(frame.number)
        if found is None:
            previous = frame.previous
            found = self._counts[frame.number] = 1 if previous is None else 1 + self._count(previous)
        return found


class AnyRecursion:
    def allows(self, stack: Stack | None) -> bool:
        return True

    def begin_with(self, stack: Stack | None) -> None:
        pass
