"""P-automata: regular sets of configurations of a pushdown system, with weights.

Bouajjani, Esparza and Maler (CONCUR 1997), weighted as in Reps, Schwoon, Jha and Melski (SCP 58, 2005).
The set is {⟨p, u⟩ | u is read from the entry state of p to a final state}; the weight of a
configuration is the combine over such runs of the extend of the transitions' weights, in the order of
reading for pre*, against it for post*. States are integers. There are no ε-transitions: where Schwoon's
post* keeps one to accept an empty stack, the entry state itself becomes final, so final states carry
weights too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from mcveto.automata.pds import Configuration
from mcveto.automata.semirings import BOOLEAN, Semiring

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)
W = TypeVar("W")


class PAutomaton(Generic[P, G, W]):
    def __init__(self, semiring: Semiring[W], *, against_reading: bool = False) -> None:
        self.semiring = semiring
        self.against_reading = against_reading
        self._entries: dict[P, int] = {}
        self._out: list[dict[G, dict[int, W]]] = []
        self._final: dict[int, W] = {}

    def new_state(self) -> int:
        self._out.append({})
        return len(self._out) - 1

    def entry(self, control: P) -> int:
        """The state in which reading a stack in `control` begins; made if missing."""
        if control not in self._entries:
            self._entries[control] = self.new_state()
        return self._entries[control]

    def set_weight(self, source: int, symbol: G, target: int, weight: W) -> None:
        """Makes `weight` the weight of the transition; zero is the absence of a transition."""
        if weight == self.semiring.zero:
            raise ValueError("a transition of weight zero is no transition")
        self._out[source].setdefault(symbol, {})[target] = weight

    def add(self, source: int, symbol: G, target: int, weight: W) -> None:
        """Combines `weight` into the transition."""
        if weight != self.semiring.zero:
            previous = self._out[source].get(symbol, {}).get(target, self.semiring.zero)
            self.set_weight(source, symbol, target, self.semiring.combine(previous, weight))

    def add_final(self, state: int, weight: W) -> None:
        """Combines `weight` into the final weight of the state."""
        if weight != self.semiring.zero:
            self._final[state] = self.semiring.combine(self.final_weight(state), weight)

    @property
    def controls(self) -> tuple[P, ...]:
        return tuple(self._entries)

    @property
    def state_count(self) -> int:
        return len(self._out)

    def find_entry(self, control: P) -> int | None:
        return self._entries.get(control)

    def final_weight(self, state: int) -> W:
        return self._final.get(state, self.semiring.zero)

    def is_final(self, state: int) -> bool:
        return state in self._final

    def transitions_from(self, state: int) -> Iterator[tuple[G, int, W]]:
        for symbol, targets in self._out[state].items():
            for target, weight in targets.items():
                yield symbol, target, weight

    def transitions_on(self, state: int, symbol: G) -> tuple[tuple[int, W], ...]:
        return tuple(self._out[state].get(symbol, {}).items())

    def sequence(self, read: W, following: W) -> W:
        """The extend of the weight of what was read with the weight of what follows."""
        if self.against_reading:
            return self.semiring.extend(following, read)
        return self.semiring.extend(read, following)

    def read(self, control: P, stack: Iterable[G]) -> dict[int, W]:
        """The states reached by reading `stack` in `control`, with the weight of reading so far."""
        start = self._entries.get(control)
        current: dict[int, W] = {} if start is None else {start: self.semiring.one}
        for symbol in stack:
            following: dict[int, W] = {}
            for state, weight in current.items():
                for target, step in self.transitions_on(state, symbol):
                    reached = self.sequence(weight, step)
                    known = following.get(target, self.semiring.zero)
                    following[target] = self.semiring.combine(known, reached)
            current = {state: weight for state, weight in following.items() if weight != self.semiring.zero}
        return current

    def weight(self, configuration: Configuration[P, G]) -> W:
        """The weight of the configuration; zero if it is not in the set."""
        result = self.semiring.zero
        for state, weight in self.read(*configuration).items():
            result = self.semiring.combine(result, self.sequence(weight, self.final_weight(state)))
        return result

    def __contains__(self, configuration: Configuration[P, G]) -> bool:
        return self.weight(configuration) != self.semiring.zero


def weighted_set(configurations: Iterable[Configuration[P, G]], semiring: Semiring[W]) -> PAutomaton[P, G, W]:
    """A P-automaton that accepts exactly the given configurations, each with weight one.

    Common lower parts of stacks are shared, so that the executed configurations of a deep recursion take
    linear space. No transition leads into an entry state.
    """
    result: PAutomaton[P, G, W] = PAutomaton(semiring)
    bottom: int | None = None
    below: dict[tuple[G, int], int] = {}
    for control, stack in configurations:
        entry = result.entry(control)
        if not stack:
            result.add_final(entry, semiring.one)
            continue
        if bottom is None:
            bottom = result.new_state()
            result.add_final(bottom, semiring.one)
        rest = bottom
        for symbol in reversed(stack[1:]):
            if (symbol, rest) not in below:
                below[symbol, rest] = result.new_state()
                result.add(below[symbol, rest], symbol, rest, semiring.one)
            rest = below[symbol, rest]
        result.add(entry, stack[0], rest, semiring.one)
    return result


def configuration_set(configurations: Iterable[Configuration[P, G]]) -> PAutomaton[P, G, bool]:
    """A Boolean P-automaton that accepts exactly the given configurations."""
    return weighted_set(configurations, BOOLEAN)
