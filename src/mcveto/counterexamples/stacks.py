"""Stacks as shared linked cells: equal stacks are the same object, so that configurations compare at once."""

from __future__ import annotations


class Stack:
    """A non-empty stack: its top symbol and what is below it (None: nothing)."""

    __slots__ = ("below", "height", "number", "symbol")

    def __init__(self, symbol: int, below: Stack | None, number: int) -> None:
        self.symbol = symbol
        self.below = below
        self.number = number
        self.height: int = 1 if below is None else below.height + 1


class StackTable:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Stack] = {}

    def push(self, symbol: int, below: Stack | None) -> Stack:
        key = (symbol, number_of(below))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Stack(symbol, below, len(self._known) + 1)
        return found


def number_of(stack: Stack | None) -> int:
    """The number of a stack; 0 for the empty one."""
    return 0 if stack is None else stack.number


def symbols_of(stack: Stack | None) -> tuple[int, ...]:
    """The symbols, top first."""
    found = []
    while stack is not None:
        found.append(stack.symbol)
        stack = stack.below
    return tuple(found)
