"""Pushdown models: rules over control locations and stack symbols, and the events that happen at them.

Basu et al., section 2: a pushdown system (P, Γ, Δ) whose rules push at most two symbols, and the labelling
λ ⊆ P × Γ × E by control location and top of the stack: the events of a node happen when one of its rules is taken. A
finite-state model is one that neither pushes nor pops. Controls and symbols are numbers here, named in `controls` and
`symbols`: a model of 100,000 rules has to fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcveto.property.typestate import Label

NOTHING = -1


class ModelRule(NamedTuple):
    """⟨control, symbol⟩ ↪ ⟨target, first second⟩; NOTHING where the rule pushes fewer symbols."""

    control: int
    symbol: int
    target: int
    first: int = NOTHING
    second: int = NOTHING

    @property
    def pushed(self) -> tuple[int, ...]:
        return tuple(symbol for symbol in (self.first, self.second) if symbol != NOTHING)


class Model:
    def __init__(self, name: str = "model", is_finite: bool = False) -> None:
        self.name = name
        self.is_finite = is_finite
        self.controls: list[str] = []
        self.symbols: list[str] = []
        self.start_control = 0
        self.start_stack: tuple[int, ...] = ()
        self.by_symbol: list[list[ModelRule]] = []
        """The rules of each symbol, in order of definition."""
        self.rule_count = 0
        self.label_sets: list[tuple[Label, ...]] = [()]
        """The sets of events that nodes have; number 0 is none."""
        self._label_numbers: dict[tuple[Label, ...], int] = {(): 0}
        self._labels: dict[tuple[int, int], int] = {}
        self.control_numbers: dict[str, int] = {}
        self.symbol_numbers: dict[str, int] = {}

    def control(self, name: str) -> int:
        number = self.control_numbers.get(name)
        if number is None:
            number = self.control_numbers[name] = len(self.controls)
            self.controls.append(name)
        return number

    def symbol(self, name: str) -> int:
        number = self.symbol_numbers.get(name)
        if number is None:
            number = self.symbol_numbers[name] = len(self.symbols)
            self.symbols.append(name)
            self.by_symbol.append([])
        return number

    def add(self, rule: ModelRule) -> None:
        self.by_symbol[rule.symbol].append(rule)
        self.rule_count += 1

    def set_start(self, control: int, stack: Sequence[int]) -> None:
        if not stack:
            raise ValueError("the start needs a stack")
        self.start_control, self.start_stack = control, tuple(stack)

    def add_labels(self, control: int, symbol: int, labels: Iterable[Label]) -> None:
        every = tuple(dict.fromkeys((*self.labels(control, symbol), *labels)))
        number = self._label_numbers.setdefault(every, len(self.label_sets))
        if number == len(self.label_sets):
            self.label_sets.append(every)
        self._labels[control, symbol] = number

    def label_number(self, control: int, symbol: int) -> int:
        """Which of the label sets the node has."""
        return self._labels.get((control, symbol), 0)

    def labels(self, control: int, symbol: int) -> tuple[Label, ...]:
        return self.label_sets[self.label_number(control, symbol)]

    def labelled(self) -> list[tuple[int, int]]:
        """The nodes that have events, as (control, symbol)."""
        return [node for node, number in self._labels.items() if number]

    def rules(self) -> Iterable[ModelRule]:
        for rules in self.by_symbol:
            yield from rules
