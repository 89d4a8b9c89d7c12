"""Stacks as shared linked cells: equal stacks are the same object, so that configurations compare at once."""

from __future__ import annotations


class Stack:
    """A non-empty stack: its top symbol and what is below it (None: nothing). `previous` is the nearest stack below
    with the same symbol on top."""

    __slots__ = ("below", "height", "number", "previous", "symbol")

    def __init__(self, symbol: int, below: Stack | None, number: int, previous: Stack | None = None) -> None:
        self.previous = previous
        self.symbol = symbol
        self.below = below
        self.number = number
        self.height: int = 1 if below is None else below.height + 1


class StackTable:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Stack] = {}
        # The least height at which a symbol is on some stack: below that nobody need look for it.
        self._lowest: dict[int, int] = {}

    def push(self, symbol: int, below: Stack | None) -> Stack:
        key = (symbol, number_of(below))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Stack(symbol, below, len(self._known) + 1, self._previous(symbol, below))
            self._lowest[symbol] = min(found.height, self._lowest.get(symbol, found.height))
        return found

    def _previous(self, symbol: int, below: Stack | None) -> Stack | None:
        lowest = self._lowest.get(symbol)
        if lowest is None:
            return None
        while below is not None and below.height >= lowest:
            if below.symbol == symbol:
                return below
            below = below.below
        return None


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
