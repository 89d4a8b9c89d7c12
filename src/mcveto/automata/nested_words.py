"""Nested words and nested-word prefixes.

TR1669 appendix A, Definition 4 (after Alur and Madhusudan, "Adding nesting structure to words", JACM
2009). A nested word is a word with a nesting relation of edges that do not cross. The relation is
determined by which positions are calls, internals and returns, so that is what we store; `from_nesting`
and `nesting` translate. Positions count from 0 here (from 1 in the paper); None stands for -∞ as a
source and for +∞ as a target.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

Edge = tuple[int | None, int | None]


class Kind(Enum):
    INTERNAL = "internal"
    CALL = "call"
    RETURN = "return"


class Wildcard(Enum):
    """A symbol that, on a transition, matches every symbol; in a word, it stands for an arbitrary symbol."""

    ANY = "*"


ANY: Final = Wildcard.ANY


@dataclass(frozen=True)
class NestedWord:
    symbols: tuple[Hashable, ...]
    kinds: tuple[Kind, ...]

    def __post_init__(self) -> None:
        if len(self.symbols) != len(self.kinds):
            raise ValueError(f"{len(self.symbols)} symbols but {len(self.kinds)} kinds of positions")

    def __len__(self) -> int:
        return len(self.symbols)

    @classmethod
    def from_nesting(cls, symbols: Iterable[Hashable], edges: Iterable[Edge]) -> NestedWord:
        """The nested word (w, ↝); ValueError if `edges` is not a nesting relation of length |w|."""
        word = tuple(symbols)
        kinds = [Kind.INTERNAL] * len(word)
        given = sorted(edges, key=lambda edge: (-1 if edge[0] is None else edge[0], _target(edge, len(word))))
        for source, target in given:
            if source is None and target is None:
                raise ValueError("an edge from -∞ to +∞ touches no position")
            for position, kind in ((source, Kind.CALL), (target, Kind.RETURN)):
                if position is None:
                    continue
                if not 0 <= position < len(word):
                    raise ValueError(f"position {position} is outside the word of length {len(word)}")
                if kinds[position] is not Kind.INTERNAL:
                    raise ValueError(f"position {position} lies on two nesting edges")
                kinds[position] = kind
        result = cls(word, tuple(kinds))
        # Positions determine the only non-crossing matching; anything else crosses or runs backwards.
        if set(result.nesting()) != set(given):
            raise ValueError("nesting edges cross or go backwards")
        return result

    def nesting(self) -> tuple[Edge, ...]:
        """The nesting relation, ordered by the position at which an edge ends (pending calls last)."""
        edges: list[Edge] = []
        open_calls: list[int] = []
        for position, kind in enumerate(self.kinds):
            if kind is Kind.CALL:
                open_calls.append(position)
            elif kind is Kind.RETURN:
                edges.append((open_calls.pop() if open_calls else None, position))
        edges.extend((position, None) for position in open_calls)
        return tuple(edges)

    def call_predecessor(self, position: int) -> int | None:
        """The call that the return at `position` matches; None if the return is pending."""
        if self.kinds[position] is not Kind.RETURN:
            raise ValueError(f"position {position} is not a return")
        depth = 0
        for earlier in range(position - 1, -1, -1):
            if self.kinds[earlier] is Kind.RETURN:
                depth += 1
            elif self.kinds[earlier] is Kind.CALL:
                if depth == 0:
                    return earlier
                depth -= 1
        return None

    @property
    def pending_calls(self) -> tuple[int, ...]:
        return tuple(source for source, target in self.nesting() if target is None and source is not None)

    @property
    def pending_returns(self) -> tuple[int, ...]:
        return tuple(target for source, target in self.nesting() if source is None and target is not None)

    @property
    def is_matched(self) -> bool:
        """Whether the word is in MatchedNW: no pending calls, no pending returns."""
        return all(source is not None and target is not None for source, target in self.nesting())

    @property
    def is_prefix(self) -> bool:
        """Whether the word is in NWPrefix: no pending returns."""
        return not self.pending_returns


@dataclass(frozen=True)
class NWPrefix(NestedWord):
    """A nested word without pending returns: an execution that keeps to call/return matching."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_prefix:
            raise ValueError(f"pending return at position {self.pending_returns[0]}: not a nested-word prefix")

    def prefix(self, length: int) -> NWPrefix:
        """The first `length` positions; calls whose return is cut off become pending."""
        return NWPrefix(self.symbols[:length], self.kinds[:length])


def _target(edge: Edge, length: int) -> int:
    return length if edge[1] is None else edge[1]
