"""The erase relation: in which controls the product can be when the top of the stack is gone, and `Effect`.

Basu et al., Definitions 1 and 2: (q1, γ, q2) ∈ erase iff ⟨q1, γ⟩ runs to ⟨q2, ε⟩; Effect(q, w) lifts it to stacks. The
least model of their three rules, computed for the heads that somebody asks about and what these depend on (tabling, as
in their implementation). Error states are ordinary here: Fig. 3(b) lists their tuples, too.
"""

from __future__ import annotations

from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.product import Head, Product

Effect = tuple[frozenset[int], ...]
"""For every control of the universe, in its order, the controls that erasing may end in."""


class Erase:
    def __init__(self, product: Product) -> None:
        self._product = product
        self._ends: dict[Head, set[int]] = {}
        # heads that end wherever this one does
        self._same: dict[Head, list[Head]] = {}
        # calls of a procedure: the calling head and the symbol it goes on with
        self._calls: dict[Head, list[tuple[Head, int]]] = {}
        self._new: list[tuple[Head, int]] = []
        self._effects: dict[int, Effect] = {}
        self._positions: dict[int, int] = {}

    def of(self, head: Head) -> frozenset[int]:
        """The controls q2 with (q1, γ, q2) ∈ erase, for head ⟨q1, γ⟩."""
        if head not in self._ends:
            self._demand(head)
            self._saturate()
        return frozenset(self._ends[head])

    def effect(self, symbol: int) -> Effect:
        """Effect(·, symbol)."""
        found = self._effects.get(symbol)
        if found is None:
            head = self._product.head
            found = tuple(self.of(head(control, symbol)) for control in self._product.universe())
            self._effects[symbol] = found
        return found

    def compose(self, first: Effect, second: Effect) -> Effect:
        """Effect(·, wv) from Effect(·, w) and Effect(·, v)."""
        if not self._positions:
            self._positions = {control: number for number, control in enumerate(self._product.universe())}
        position = self._positions
        return tuple(
            frozenset().union(*(second[position[control]] for control in controls)) if controls else controls
            for controls in first
        )

    def _demand(self, head: Head) -> None:
        """Makes the head and all that its first step leads to known."""
        worklist = [head]
        count = self._product.symbol_count
        while worklist:
            head = worklist.pop()
            if head in self._ends:
                continue
            self._ends[head] = set()
            for target, first, second in self._product.rules(head):
                if first == NOTHING:
                    self._add(head, target)
                    continue
                following = target * count + first
                worklist.append(following)
                if second == NOTHING:
                    self._same.setdefault(following, []).append(head)
                    ends = self._ends.get(following, ())
                    for control in tuple(ends):
                        self._add(head, control)
                else:
                    self._calls.setdefault(following, []).append((head, second))
                    for control in tuple(self._ends.get(following, ())):
                        self._continue(head, control, second, worklist)

    def _continue(self, head: Head, control: int, symbol: int, worklist: list[Head]) -> None:
        """A procedure that `head` called ended in `control`; `head` ends wherever ⟨control, symbol⟩ does."""
        rest = control * self._product.symbol_count + symbol
        self._same.setdefault(rest, []).append(head)
        if rest in self._ends:
            for end in tuple(self._ends[rest]):
                self._add(head, end)
        else:
            worklist.append(rest)

    def _add(self, head: Head, control: int) -> None:
        if control not in self._ends[head]:
            self._ends[head].add(control)
            self._new.append((head, control))

    def _saturate(self) -> None:
        while self._new:
            head, control = self._new.pop()
            for other in self._same.get(head, ()):
                self._add(other, control)
            for caller, symbol in tuple(self._calls.get(head, ())):
                missing: list[Head] = []
                self._continue(caller, control, symbol, missing)
                for rest in missing:
                    self._demand(rest)
