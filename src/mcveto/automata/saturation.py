"""What pre* and post* share: an automaton whose transitions only get better, and why each has its weight.

Reps, Schwoon, Jha and Melski (SCP 58, 2005), Figures 3 and 4: a worklist of transitions whose weight
changed. We take the cheapest first where the semiring is selective (Knuth's order), so that with
min-plus weights a transition is settled once rather than once per improvement; otherwise first come,
first served. A witness records the rule and the transitions that gave a transition its present weight.
Witnesses are immutable and refer to the witnesses of that moment, so they stay consistent when a weight
improves later; for a selective semiring one witness per transition explains the weight (their section
3.4 keeps sets, for the general case).
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.pds import Rule
from mcveto.automata.semirings import Semiring
from mcveto.late_methods import dataclass

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)
W = TypeVar("W")

Transition = tuple[int, G | None, int]
"""Source, symbol and target; the symbol None is ε (post* only)."""


@dataclass(frozen=True, eq=False)
class Given:
    """The transition belongs to the automaton that saturation started from."""


@dataclass(frozen=True, eq=False)
class Fresh:
    """post*: the transition that reads the upper symbol that a rule pushed; the lower one knows the rule."""


@dataclass(frozen=True, eq=False)
class ByRule(Generic[P, G]):
    """pre*: the rule, then the transitions that read what it pushed. post*: the rule, after `parts[0]`."""

    rule: Rule[P, G]
    parts: tuple[Witness[P, G], ...]


@dataclass(frozen=True, eq=False)
class Joined(Generic[P, G]):
    """post*: an ε-transition, made by the pop rule of `popped`, followed by a transition below it."""

    popped: ByRule[P, G]
    below: Witness[P, G]


Witness = Given | Fresh | ByRule[P, G] | Joined[P, G]


class Saturation(Generic[P, G, W]):
    """`automaton` under saturation: `pop` hands out the transitions that `improve` changed."""

    def __init__(self, automaton: PAutomaton[P, G, W]) -> None:
        self.automaton = automaton
        self.semiring: Semiring[W] = automaton.semiring
        self.witnesses: dict[Transition[G], Witness[P, G]] = {}
        self.weights: dict[Transition[G], W] = {}
        self._cost = getattr(automaton.semiring, "cost", lambda _: 0)
        self._queue: list[tuple[int, int, Transition[G]]] = []
        self._queued: dict[Transition[G], int] = {}
        self._pushed = 0
        for state in range(automaton.state_count):
            for symbol, target, weight in automaton.transitions_from(state):
                self._record((state, symbol, target), weight, Given())

    def improve(self, transition: Transition[G], weight: W, witness: Witness[P, G]) -> None:
        """Combines `weight` into the transition and schedules it if that changed its weight."""
        old = self.weights.get(transition, self.semiring.zero)
        new = self.semiring.combine(old, weight)
        if new != old:
            self._record(transition, new, witness)
            source, symbol, target = transition
            if symbol is not None:
                self.automaton.set_weight(source, symbol, target, new)

    def pop(self) -> Transition[G] | None:
        while self._queue:
            _, number, transition = heapq.heappop(self._queue)
            if self._queued.get(transition) == number:
                del self._queued[transition]
                return transition
        return None

    def _record(self, transition: Transition[G], weight: W, witness: Witness[P, G]) -> None:
        self.weights[transition] = weight
        self.witnesses[transition] = witness
        self._queued[transition] = self._pushed
        heapq.heappush(self._queue, (self._cost(weight), self._pushed, transition))
        self._pushed += 1


@dataclass(frozen=True)
class Saturated(Generic[P, G, W]):
    """The result of pre* or post*: the weighted set, and the witnesses of its transitions."""

    configurations: PAutomaton[P, G, W]
    witnesses: dict[Transition[G], Witness[P, G]]
    # post*: entry states that became final, i.e. empty stacks, with the pop that emptied the stack
    emptied: dict[int, ByRule[P, G]]
