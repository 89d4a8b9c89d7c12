"""Acceptance of a nested-word prefix by a nested word automaton.

TR1669 appendix A defines acceptance by runs; we simulate all runs at once, as in the determinisation of
Alur and Madhusudan (JACM 2009, Theorem 3.3): for each open call a set of pairs (state in which the call
was made, current state). Polynomial in the automaton, linear in the word.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from mcveto.automata.nested_words import Kind, NWPrefix
from mcveto.automata.nwa import NWA, matches

Q = TypeVar("Q", bound=Hashable)


def states_after(nwa: NWA[Q], word: NWPrefix) -> tuple[Q, ...]:
    """Exactly the states in which some run of the automaton on `word` ends."""
    frames: list[dict[tuple[Q, Q], None]] = []
    current: dict[tuple[Q, Q], None] = {(state, state): None for state in nwa.initial}
    for symbol, kind in zip(word.symbols, word.kinds, strict=True):
        following: dict[tuple[Q, Q], None] = {}
        if kind is Kind.INTERNAL:
            for opened, state in current:
                for internal in nwa.internals_from(state):
                    if matches(internal.symbol, symbol):
                        following[opened, internal.target] = None
        elif kind is Kind.CALL:
            frames.append(current)
            for _, state in current:
                for call in nwa.calls_from(state):
                    if matches(call.symbol, symbol):
                        following[state, call.target] = None
        else:
            callers: dict[Q, list[Q]] = {}
            for opened, state in frames.pop():
                callers.setdefault(state, []).append(opened)
            for call_state, state in current:
                for ret in nwa.returns_from(state):
                    if ret.call == call_state and matches(ret.symbol, symbol):
                        for opened in callers.get(call_state, ()):
                            following[opened, ret.target] = None
        current = following
    return tuple(dict.fromkeys(state for _, state in current))


def accepts(nwa: NWA[Q], word: NWPrefix) -> bool:
    """Whether word ∈ L(nwa)."""
    return any(nwa.is_final(state) for state in states_after(nwa, word))
