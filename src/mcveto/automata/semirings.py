"""Bounded idempotent semirings, the weights of pushdown systems.

Reps, Schwoon, Jha and Melski, "Weighted pushdown systems and their application to interprocedural
dataflow analysis" (SCP 58, 2005), Definition 2.5: combine (⊕) is an idempotent commutative monoid
without infinite descending chains, extend (⊗) a monoid that distributes over it and is annihilated by
zero. A *selective* semiring's combine returns one of its arguments, so that a single path explains a
weight; its `cost` orders weights (the smaller cost is selected) and never decreases by extending.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

W = TypeVar("W")


class Semiring(Protocol[W]):
    @property
    def zero(self) -> W: ...
    @property
    def one(self) -> W: ...
    def combine(self, left: W, right: W) -> W: ...
    def extend(self, left: W, right: W) -> W: ...


class SelectiveSemiring(Semiring[W], Protocol[W]):
    def cost(self, weight: W) -> int: ...


class Boolean:
    """({False, True}, ∨, ∧): plain reachability."""

    zero: Final = False
    one: Final = True

    def combine(self, left: bool, right: bool) -> bool:
        return left or right

    def extend(self, left: bool, right: bool) -> bool:
        return left and right

    def cost(self, weight: bool) -> int:
        return 0


class MinPlus:
    """(ℕ ∪ {∞}, min, +): shortest distance. None is ∞, so that distances stay exact integers."""

    zero: Final = None
    one: Final = 0

    def combine(self, left: int | None, right: int | None) -> int | None:
        if left is None or right is None:
            return right if left is None else left
        return min(left, right)

    def extend(self, left: int | None, right: int | None) -> int | None:
        return None if left is None or right is None else left + right

    def cost(self, weight: int | None) -> int:
        if weight is None:
            raise ValueError("an unreachable element has no cost")
        return weight


BOOLEAN: Final = Boolean()
MIN_PLUS: Final = MinPlus()
