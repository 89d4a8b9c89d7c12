"""Unfolding derivations of reachability facts into nested paths.

A fact (k, q) says: from the entry k of a procedure activation, q is reached at the same nesting level.
With k = ROOT it says: q is reached from an initial state, with any number of calls pending. Facts are
derived as in interprocedural reachability by summaries (Reps, Horwitz and Sagiv, POPL 1995); a
derivation names the facts it rests on, and unfolding it from the goal gives a run, a nested-word prefix
with the states along it. Derivations share subtrees, so a run can be exponentially longer than the
derivation: `limit` guards against that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum
from typing import Final, Generic, TypeVar

from mcveto.automata.nested_words import Kind, NWPrefix
from mcveto.automata.nwa import Run
from mcveto.late_methods import dataclass

Q = TypeVar("Q", bound=Hashable)


class Root(Enum):
    ROOT = "root"


ROOT: Final = Root.ROOT
Fact = tuple[Q | Root, Q]


@dataclass(frozen=True)
class Seed:
    """An initial state in ROOT, or a procedure entry in its own context."""


@dataclass(frozen=True)
class Step(Generic[Q]):
    """An internal step, or a call that stays pending, from the state of `source`; of kind None, a move that
    reads no symbol."""

    source: Fact[Q]
    kind: Kind | None
    symbol: Hashable


@dataclass(frozen=True)
class Matched(Generic[Q]):
    """A call in the state of `call` into the entry body[0], which comes back from the exit body[1]."""

    call: Fact[Q]
    call_symbol: Hashable
    body: tuple[Q, Q]
    return_symbol: Hashable


Derivation = Seed | Step[Q] | Matched[Q]


class PathTooLong(Exception):
    """The shortest path exists but has more positions than the caller is prepared to look at."""


Move = tuple[Kind | None, Hashable, Q]
"""Kind and symbol of the position by which a state is reached; kind None for the first and silently."""


def moves_to(goal: Q, derivation: Callable[[Fact[Q]], Derivation[Q]]) -> list[Move[Q]]:
    """The path from an initial state to `goal` that the derivations describe."""
    moves: list[Move[Q]] = []
    pending: list[Fact[Q] | Move[Q]] = [(ROOT, goal)]
    while pending:
        item = pending.pop()
        if len(item) == 3:
            moves.append(item)
            continue
        context, state = item
        rule = derivation((context, state))
        if isinstance(rule, Seed):
            if context is ROOT:
                moves.append((None, None, state))
        elif isinstance(rule, Step):
            pending += ((rule.kind, rule.symbol, state), rule.source)
        else:
            entry = rule.body[0]
            pending += (
                (Kind.RETURN, rule.return_symbol, state),
                rule.body,
                (Kind.CALL, rule.call_symbol, entry),
                rule.call,
            )
    return moves


def check_length(length: int, limit: int) -> None:
    if length > limit:
        raise PathTooLong(f"the shortest path has {length} positions, more than the limit of {limit}")


def unfold(goal: Q, derivation: Callable[[Fact[Q]], Derivation[Q]], length: int, limit: int) -> Run[Q]:
    """The run to `goal` that the derivations, none of them silent, describe; it has `length` positions."""
    check_length(length, limit)
    moves = moves_to(goal, derivation)
    kinds = tuple(kind for kind, _, _ in moves if kind is not None)
    symbols = tuple(symbol for kind, symbol, _ in moves if kind is not None)
    return Run(NWPrefix(symbols, kinds), tuple(state for _, _, state in moves))
