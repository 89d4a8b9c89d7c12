"""Emptiness of a nested word automaton, with a shortest accepted word.

Facts (k, q) as in `nested_paths` carry the length of the shortest nested word that reads from k to q:
min-plus summaries. They are found in order of length by Knuth's generalisation of Dijkstra's algorithm
(Information Processing Letters 6, 1977), since combining a call, a body and a return is never shorter
than any of its parts. Line 5 of TR1669's Algorithm 1 asks this question through pre* (section 3.3);
this is the direct way, and it yields the nested word. Entries are seeded where a call can be reached if
returns may pop any reached call state.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from mcveto.automata.nested_paths import ROOT, Derivation, Fact, Matched, Seed, Step, unfold
from mcveto.automata.nested_words import Kind
from mcveto.automata.nwa import NWA, Call, Return, Run

Q = TypeVar("Q", bound=Hashable)


def shortest_run(nwa: NWA[Q], targets: Iterable[Q] | None = None, *, limit: int = 10_000_000) -> Run[Q] | None:
    """None if L(nwa) = ∅, else a run that accepts a word of L(nwa) of least length.

    `targets` replaces the final states. Where the run takes a wildcard transition, its word contains ANY:
    every instance is accepted. Raises PathTooLong if the shortest word is longer than `limit`.
    """
    goals = dict.fromkeys(nwa.final if targets is None else targets)
    search = _Search(nwa)
    for length, (context, state) in search.facts():
        if context is ROOT and state in goals:
            return unfold(state, search.derivations.__getitem__, length, limit)
    return None


def is_empty(nwa: NWA[Q]) -> bool:
    """Whether L(nwa) = ∅."""
    search = _Search(nwa)
    return not any(context is ROOT and nwa.is_final(state) for _, (context, state) in search.facts())


class _Search(Generic[Q]):
    def __init__(self, nwa: NWA[Q]) -> None:
        self.nwa = nwa
        self.length: dict[Fact[Q], int] = {}
        self.derivations: dict[Fact[Q], Derivation[Q]] = {}
        self.queue: list[tuple[int, int, Fact[Q], Derivation[Q]]] = []
        self.pushed = 0
        # (entry, call state) → the calls made in that state, per context that reached it
        self.callers: dict[tuple[Q, Q], dict[tuple[Fact[Q], Call[Q]], None]] = {}
        # (entry, call state) → the return transitions from settled exits of that entry
        self.exits: dict[tuple[Q, Q], dict[Return[Q], None]] = {}

    def facts(self) -> Iterator[tuple[int, Fact[Q]]]:
        """All derivable facts, in order of length; lengths are final when yielded."""
        for state in self.nwa.initial:
            self.push(0, (ROOT, state), Seed())
        for entry in self.possible_entries():
            self.push(0, (entry, entry), Seed())
        while self.queue:
            length, _, fact, derivation = heapq.heappop(self.queue)
            if fact in self.length:
                continue
            self.length[fact] = length
            self.derivations[fact] = derivation
            yield length, fact
            self.expand(length, fact)

    def push(self, length: int, fact: Fact[Q], derivation: Derivation[Q]) -> None:
        if fact not in self.length:
            heapq.heappush(self.queue, (length, self.pushed, fact, derivation))
            self.pushed += 1

    def possible_entries(self) -> tuple[Q, ...]:
        reached: dict[Q, None] = dict.fromkeys(self.nwa.initial)
        entries: dict[Q, None] = {}
        worklist = list(reached)
        while worklist:
            state = worklist.pop()
            successors = [internal.target for internal in self.nwa.internals_from(state)]
            for call in self.nwa.calls_from(state):
                entries[call.target] = None
                successors.append(call.target)
            successors += [ret.target for ret in self.nwa.returns_from(state) if ret.call in reached]
            successors += [ret.target for ret in self.nwa.returns_for_call(state) if ret.source in reached]
            for successor in successors:
                if successor not in reached:
                    reached[successor] = None
                    worklist.append(successor)
        return tuple(entries)

    def expand(self, length: int, fact: Fact[Q]) -> None:
        context, state = fact
        for internal in self.nwa.internals_from(state):
            self.push(length + 1, (context, internal.target), Step(fact, Kind.INTERNAL, internal.symbol))
        for call in self.nwa.calls_from(state):
            if context is ROOT:
                self.push(length + 1, (ROOT, call.target), Step(fact, Kind.CALL, call.symbol))
            self.callers.setdefault((call.target, state), {})[fact, call] = None
            for ret in self.exits.get((call.target, state), ()):
                self.combine(fact, call, ret)
        if context is not ROOT:
            for ret in self.nwa.returns_from(state):
                self.exits.setdefault((context, ret.call), {})[ret] = None
                for caller, call in self.callers.get((context, ret.call), ()):
                    self.combine(caller, call, ret)

    def combine(self, caller: Fact[Q], call: Call[Q], ret: Return[Q]) -> None:
        body = (call.target, ret.source)
        length = self.length[caller] + self.length[body] + 2
        self.push(length, (caller[0], ret.target), Matched(caller, call.symbol, body, ret.symbol))
