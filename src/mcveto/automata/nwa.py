"""Nested word automata with wildcard symbols and state predicates.

TR1669 appendix A: A = (Q, Σ, q0, δ, F) with δ = (δi, δc, δr). Two differences: there may be several
initial states (as in Alur and Madhusudan), because splitting an initial state yields two; and Σ is not
listed, because it is "all possible machine-code instructions": any hashable is a symbol, and ANY on a
transition matches every symbol. A state's predicate is an opaque hashable; None is the predicate
"true".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from mcveto.automata.nested_words import ANY, NWPrefix
from mcveto.late_methods import dataclass

Q = TypeVar("Q", bound=Hashable)


@dataclass(frozen=True)
class Internal(Generic[Q]):
    source: Q
    symbol: Hashable
    target: Q


@dataclass(frozen=True)
class Call(Generic[Q]):
    source: Q
    symbol: Hashable
    target: Q


@dataclass(frozen=True)
class Return(Generic[Q]):
    source: Q
    call: Q
    symbol: Hashable
    target: Q


@dataclass(frozen=True)
class Run(Generic[Q]):
    """A run: `states[i]` before and `states[i + 1]` after the i-th symbol of `word`."""

    word: NWPrefix
    states: tuple[Q, ...]


class NWA(Generic[Q]):
    """A nested word automaton; L(A) is a set of nested-word prefixes."""

    def __init__(self) -> None:
        self._predicates: dict[Q, Hashable] = {}
        self._initial: dict[Q, None] = {}
        self._final: dict[Q, None] = {}
        self._internals: dict[Q, dict[Internal[Q], None]] = {}
        self._calls: dict[Q, dict[Call[Q], None]] = {}
        self._returns_by_exit: dict[Q, dict[Return[Q], None]] = {}
        self._returns_by_call: dict[Q, dict[Return[Q], None]] = {}

    def add_state(self, state: Q, predicate: Hashable = None, *, initial: bool = False, final: bool = False) -> None:
        """Adds the state or extends it; the predicate of a known state is kept if none is given."""
        if predicate is not None or state not in self._predicates:
            self._predicates[state] = predicate
        if initial:
            self._initial[state] = None
        if final:
            self._final[state] = None

    def add_internal(self, source: Q, symbol: Hashable, target: Q) -> None:
        self._ensure(symbol, source, target)
        self._internals.setdefault(source, {})[Internal(source, symbol, target)] = None

    def add_call(self, source: Q, symbol: Hashable, target: Q) -> None:
        self._ensure(symbol, source, target)
        self._calls.setdefault(source, {})[Call(source, symbol, target)] = None

    def add_return(self, source: Q, call: Q, symbol: Hashable, target: Q) -> None:
        self._ensure(symbol, source, call, target)
        transition = Return(source, call, symbol, target)
        self._returns_by_exit.setdefault(source, {})[transition] = None
        self._returns_by_call.setdefault(call, {})[transition] = None

    @property
    def states(self) -> tuple[Q, ...]:
        return tuple(self._predicates)

    @property
    def initial(self) -> tuple[Q, ...]:
        return tuple(self._initial)

    @property
    def final(self) -> tuple[Q, ...]:
        return tuple(self._final)

    def __contains__(self, state: Q) -> bool:
        return state in self._predicates

    def is_final(self, state: Q) -> bool:
        return state in self._final

    def predicate(self, state: Q) -> Hashable:
        return self._predicates[state]

    def internals_from(self, state: Q) -> tuple[Internal[Q], ...]:
        return tuple(self._internals.get(state, ()))

    def calls_from(self, state: Q) -> tuple[Call[Q], ...]:
        return tuple(self._calls.get(state, ()))

    def returns_from(self, state: Q) -> tuple[Return[Q], ...]:
        """Return transitions that leave the exit state `state`."""
        return tuple(self._returns_by_exit.get(state, ()))

    def returns_for_call(self, state: Q) -> tuple[Return[Q], ...]:
        """Return transitions whose matching call was made in `state`."""
        return tuple(self._returns_by_call.get(state, ()))

    def transitions(self) -> Iterator[Internal[Q] | Call[Q] | Return[Q]]:
        for internals in self._internals.values():
            yield from internals
        for calls in self._calls.values():
            yield from calls
        for returns in self._returns_by_exit.values():
            yield from returns

    def _ensure(self, symbol: Hashable, *states: Q) -> None:
        if symbol is None:
            raise ValueError("None is not a symbol; use ANY for a transition that reads every symbol")
        for state in states:
            self._predicates.setdefault(state, None)


def matches(label: Hashable, symbol: Hashable) -> bool:
    """Whether a transition labelled `label` reads `symbol`. Of words, ANY is only read by ANY: a word that
    contains ANY counts as accepted if each of its instances is accepted along the same run."""
    return label is ANY or label == symbol


def meet(left: Hashable, right: Hashable) -> Hashable | None:
    """The label that matches exactly what both labels match; None if there is no such symbol."""
    if left is ANY:
        return right
    return left if right is ANY or left == right else None
