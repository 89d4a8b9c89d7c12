"""Intersection of nested word automata.

Alur and Madhusudan (JACM 2009, Theorem 3.5): the product automaton, which works because both factors
share the nesting of the input word. Wildcards meet ordinary symbols in the ordinary symbol; predicates
of paired states are conjoined by the caller (TR1669 section 3, "Representing the Abstract Graph"). Only
product states are built that are reachable when a return may pop any call state built so far: a
superset of the reachable ones, found without computing summaries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum
from typing import Final, Generic, TypeVar

from mcveto.automata.nwa import NWA, Return, meet

Q = TypeVar("Q", bound=Hashable)
R = TypeVar("R", bound=Hashable)


class Unsatisfiable(Enum):
    UNSATISFIABLE = "unsatisfiable"


UNSATISFIABLE: Final = Unsatisfiable.UNSATISFIABLE

Conjoin = Callable[[Hashable, Hashable], Hashable]


def intersect(left: NWA[Q], right: NWA[R], conjoin: Conjoin) -> NWA[tuple[Q, R]]:
    """An NWA with L = L(left) ∩ L(right), whose state (q, r) has the predicate conjoin(q's, r's), except that

    - a predicate None ("true") is the neutral element and `conjoin` is not asked about it;
    - where `conjoin` answers UNSATISFIABLE the state is left out: then L is the set of words of the
      intersection that have a run through satisfiable states only.
    """
    return _Product(left, right, conjoin).build()


class _Product(Generic[Q, R]):
    def __init__(self, left: NWA[Q], right: NWA[R], conjoin: Conjoin) -> None:
        self.left = left
        self.right = right
        self.conjoin = conjoin
        self.result: NWA[tuple[Q, R]] = NWA()
        self.worklist: list[tuple[Q, R]] = []
        self.dropped: dict[tuple[Q, R], None] = {}

    def build(self) -> NWA[tuple[Q, R]]:
        for one in self.left.initial:
            for other in self.right.initial:
                if self.discover((one, other)):
                    self.result.add_state((one, other), initial=True)
        position = 0
        while position < len(self.worklist):
            self.expand(self.worklist[position])
            position += 1
        return self.result

    def discover(self, state: tuple[Q, R]) -> bool:
        """Whether the product state exists; schedules it when new."""
        if state in self.result:
            return True
        if state in self.dropped:
            return False
        predicate = self.conjunction(self.left.predicate(state[0]), self.right.predicate(state[1]))
        if predicate is UNSATISFIABLE:
            self.dropped[state] = None
            return False
        final = self.left.is_final(state[0]) and self.right.is_final(state[1])
        self.result.add_state(state, predicate, final=final)
        self.worklist.append(state)
        return True

    def conjunction(self, one: Hashable, other: Hashable) -> Hashable:
        if one is None:
            return other
        return one if other is None else self.conjoin(one, other)

    def expand(self, state: tuple[Q, R]) -> None:
        one, other = state
        for left_internal in self.left.internals_from(one):
            for right_internal in self.right.internals_from(other):
                symbol = meet(left_internal.symbol, right_internal.symbol)
                target = (left_internal.target, right_internal.target)
                if symbol is not None and self.discover(target):
                    self.result.add_internal(state, symbol, target)
        for left_call in self.left.calls_from(one):
            for right_call in self.right.calls_from(other):
                symbol = meet(left_call.symbol, right_call.symbol)
                target = (left_call.target, right_call.target)
                if symbol is not None and self.discover(target):
                    self.result.add_call(state, symbol, target)
        # A return transition needs both its exit and its call state: the later of the two adds it.
        for left_return in self.left.returns_from(one):
            for right_return in self.right.returns_from(other):
                self.add_return(left_return, right_return)
        for left_return in self.left.returns_for_call(one):
            for right_return in self.right.returns_for_call(other):
                self.add_return(left_return, right_return)

    def add_return(self, left_return: Return[Q], right_return: Return[R]) -> None:
        exit_state = (left_return.source, right_return.source)
        call_state = (left_return.call, right_return.call)
        symbol = meet(left_return.symbol, right_return.symbol)
        if symbol is None or exit_state not in self.result or call_state not in self.result:
            return
        target = (left_return.target, right_return.target)
        if self.discover(target):
            self.result.add_return(exit_state, call_state, symbol, target)
