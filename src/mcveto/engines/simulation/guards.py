"""Flags that matter only while others are set: how a lock was taken is asked only where it is held.

What a free lock was taken by last is different on every way through a handler, and no way on depends on it: states that
differ in it may join. Which flags these are is learned from where they decide about a target: a flag's guards are the
flags that were set each time it did. While one of its guards is as at the start, a flag is idle. That it does not
matter then is a guess, like all that is kept apart: a wrong one is taken back when something that was forgotten seems
to reach a target.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.engines.state import PathState

Flag = tuple[int, int]
"""Address and size."""


class Guards:
    def __init__(self) -> None:
        self.deciding: set[int] = set()
        """Bytes that were read to decide about a target, flags or not."""
        self.first: dict[Flag, int] = {}
        """Flags that decided, kept apart or not, and what they are at the start."""
        self._of: dict[Flag, frozenset[Flag]] = {}

    def note(self, flags: Iterable[Flag], first: PathState) -> None:
        """These decide."""
        for flag in flags:
            if flag not in self.first:
                value = first.memory.load(*flag)
                assert isinstance(value, int)
                self.first[flag] = value

    def begin(self, flag: Flag, others: frozenset[Flag]) -> None:
        """A flag decided for the first time, while these were set."""
        if others - {flag}:
            self._of[flag] = others - {flag}

    def narrow(self, flag: Flag, others: frozenset[Flag]) -> bool:
        """A flag decided again; whether some of its guards were not set then, and are none any more."""
        known = self._of.get(flag)
        if known is None or known <= others:
            return False
        self._of[flag] = known & others
        if not self._of[flag]:
            self.free(flag)
        return True

    def free(self, flag: Flag | None) -> None:
        """A flag matters always."""
        if flag is not None:
            self._of.pop(flag, None)

    def has(self, flag: Flag | None) -> bool:
        return flag in self._of

    def set_in(self, state: PathState) -> frozenset[Flag]:
        """The flags that are known to differ from what they are at the start."""
        return frozenset(flag for flag, first in self.first.items() if _differs(state, flag, first))

    def is_idle(self, flag: Flag | None, state: PathState) -> bool:
        others = self._of.get(flag) if flag is not None else None
        if others is None:
            return False
        load, first = state.memory.load, self.first
        for other in others:
            value = load(*other)
            if type(value) is int and value == first[other]:
                return True
        return False

    def idle_cells(self, state: PathState) -> set[int]:
        idle = [flag for flag in self._of if self.is_idle(flag, state)]
        return {cell for start, size in idle for cell in range(start, start + size)}


def _differs(state: PathState, flag: Flag, first: int) -> bool:
    value = state.memory.load(*flag)
    if isinstance(value, int):
        return value != first
    low, high = bounds_of(value, state.path)
    return not low <= first <= high
