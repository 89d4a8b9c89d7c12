"""Naive answers to compare with: explicit enumeration of configurations and nested words, written from the
definitions and sharing no code with the algorithms under test."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from itertools import product

from mcveto.automata.nested_words import ANY, Kind, NWPrefix
from mcveto.automata.nwa import NWA, Call, Internal, Return
from mcveto.automata.pds import PDS, Configuration, Rule

Config = Configuration[str, str]


def stacks(symbols: str, height: int) -> Iterator[tuple[str, ...]]:
    """All stacks up to the given height."""
    for length in range(height + 1):
        yield from product(symbols, repeat=length)


def reachable(pds: PDS[str, str], starts: Iterable[Config], height: int) -> dict[Config, int]:
    """Configurations reached from `starts` through stacks up to `height`, with their number of steps."""
    distances = dict.fromkeys(starts, 0)
    queue = deque(distances)
    while queue:
        config = queue.popleft()
        control, stack = config
        for rule in pds.rules:
            if stack and rule.control == control and rule.symbol == stack[0]:
                after = (rule.target, rule.pushed + stack[1:])
                if len(after[1]) <= height and after not in distances:
                    distances[after] = distances[config] + 1
                    queue.append(after)
    return distances


def all_words(symbols: Iterable[Hashable], length: int) -> Iterator[NWPrefix]:
    """All nested-word prefixes up to the given length."""
    letters = [(symbol, kind) for symbol in symbols for kind in Kind]
    for size in range(length + 1):
        for word in product(letters, repeat=size):
            depth = 0
            for _, kind in word:
                depth += {Kind.CALL: 1, Kind.RETURN: -1, Kind.INTERNAL: 0}[kind]
                if depth < 0:
                    break
            else:
                yield NWPrefix(tuple(s for s, _ in word), tuple(k for _, k in word))


def steps_of(
    nwa: NWA[int], state: int, calls: tuple[int, ...]
) -> Iterator[tuple[Kind, Hashable, int, tuple[int, ...]]]:
    """The moves of the automaton in `state` with the given pending calls, the innermost first."""
    for transition in nwa.transitions():
        if isinstance(transition, Return):
            if calls and transition.source == state and transition.call == calls[0]:
                yield Kind.RETURN, transition.symbol, transition.target, calls[1:]
        elif transition.source == state:
            if isinstance(transition, Internal):
                yield Kind.INTERNAL, transition.symbol, transition.target, calls
            else:
                assert isinstance(transition, Call)
                yield Kind.CALL, transition.symbol, transition.target, (state, *calls)


def accepts_by_search(nwa: NWA[int], word: NWPrefix) -> bool:
    """Acceptance by trying all runs one after the other."""

    def search(position: int, state: int, calls: tuple[int, ...]) -> bool:
        if position == len(word):
            return state in nwa.final
        return any(
            kind is word.kinds[position]
            and (label is ANY or label == word.symbols[position])
            and search(position + 1, target, after)
            for kind, label, target, after in steps_of(nwa, state, calls)
        )

    return any(search(0, state, ()) for state in nwa.initial)


def distance_by_search(nwa: NWA[int], depth: int) -> int | None:
    """Length of a shortest accepted word among those that nest no deeper than `depth`; breadth-first."""
    known: dict[tuple[int, tuple[int, ...]], int] = {(state, ()): 0 for state in nwa.initial}
    queue = deque(known)
    while queue:
        state, calls = queue.popleft()
        if state in nwa.final:
            return known[state, calls]
        for _, _, target, after in steps_of(nwa, state, calls):
            if len(after) <= depth and (target, after) not in known:
                known[target, after] = known[state, calls] + 1
                queue.append((target, after))
    return None


def is_run(nwa: NWA[int], word: NWPrefix, states: tuple[int, ...]) -> bool:
    """Whether `states` is an accepting run on `word`, step by step."""
    if len(states) != len(word) + 1 or states[0] not in nwa.initial or states[-1] not in nwa.final:
        return False
    calls: tuple[int, ...] = ()
    for position, (symbol, kind) in enumerate(zip(word.symbols, word.kinds, strict=True)):
        after = {
            (target, remaining)
            for k, label, target, remaining in steps_of(nwa, states[position], calls)
            if k is kind and label == symbol
        }
        matching = [remaining for target, remaining in sorted(after) if target == states[position + 1]]
        if not matching:
            return False
        calls = matching[0]
    return True


def replay(start: Config, rules: Iterable[Rule[str, str]], known: PDS[str, str]) -> Config:
    """Where the rules, each of which must be one of `known`, lead from `start`."""
    config = start
    for rule in rules:
        assert rule in known.rules
        control, stack = config
        assert (control, stack[:1]) == (rule.control, (rule.symbol,))
        config = (rule.target, rule.pushed + stack[1:])
    return config
