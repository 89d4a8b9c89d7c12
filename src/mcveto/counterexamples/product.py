"""The product of a pushdown model and a typestate automaton, made as far as it is looked at.

Basu et al., section 2, items 1-5. A control location of the product is a control location of the model with a
configuration of the automaton (state and values of its variables); the stack is the model's. Both are numbers here, and
so is a head ⟨control, top of stack⟩, which is `control * symbol count + symbol`. The paper's product ends silently when
a run pops its last symbol; ours then stands on a symbol of its own at the bottom, so that an error in this last step is
seen.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mcveto.counterexamples.model import Model
from mcveto.property.typestate import Configuration, Label, Typestate

Head = int


ProductRule = tuple[int, int, int]
"""The right side of a rule: target control, and one or two symbols pushed (NOTHING where there are fewer)."""


class ProductControl(NamedTuple):
    control: int
    configuration: Configuration


class Product:
    """`blocked` are nodes (control location and symbol of the model) that no run may leave: what remains reachable
    does not need them."""

    def __init__(self, model: Model, automaton: Typestate, blocked: Collection[tuple[int, int]] = frozenset()) -> None:
        self.model = model
        self._blocked = blocked
        self.automaton = automaton
        # One symbol more than the model has lies at the bottom, so that a run that empties the stack has a head, too.
        self.bottom = len(model.symbols)
        self.symbol_count = self.bottom + 1
        self.start_stack = (*model.start_stack, self.bottom)
        self.controls: list[ProductControl] = []
        self.is_final: list[bool] = []
        self._numbers: dict[ProductControl, int] = {}
        self._places: list[int] = []
        self._place_count = len(model.controls)
        self._label_set_count = len(model.label_sets)
        self._steps: dict[int, tuple[int, ...]] = {}
        self._rules: dict[Head, list[ProductRule]] = {}
        self._universe: tuple[int, ...] | None = None
        self.starts = tuple(
            self._number(ProductControl(model.start_control, configuration)) for configuration in automaton.initial()
        )

    def head(self, control: int, symbol: int) -> Head:
        return control * self.symbol_count + symbol

    def split(self, head: Head) -> tuple[int, int]:
        """Control and symbol of a head."""
        return divmod(head, self.symbol_count)

    def rules(self, head: Head) -> list[ProductRule]:
        """The right sides of the rules of a head, each once."""
        found = self._rules.get(head)
        if found is None:
            found = self._rules[head] = self._make_rules(head)
        return found

    def _make_rules(self, head: Head) -> list[ProductRule]:
        control, symbol = divmod(head, self.symbol_count)
        place = self._places[control]
        if symbol == self.bottom or (self._blocked and (place, symbol) in self._blocked):
            return []
        rules = self.model.by_symbol[symbol]
        base = (control * self._label_set_count + self.model.label_number(place, symbol)) * self._place_count
        steps = self._steps
        result: list[ProductRule] = []
        for rule_place, _, target_place, first, second in rules:
            if rule_place == place:
                targets = steps.get(base + target_place) or self._step(base + target_place)
                for target in targets:
                    result.append((target, first, second))
        return result

    def _step(self, key: int) -> tuple[int, ...]:
        """The controls after a step from a control, with some set of events, to a control location of the model."""
        rest, place = divmod(key, self._place_count)
        control, labels = divmod(rest, self._label_set_count)
        configuration = self.controls[control].configuration
        following = self.automaton.successors(configuration, self.model.label_sets[labels])
        found = self._steps[key] = tuple(self._number(ProductControl(place, item)) for item in following)
        return found

    def step_labels(self, head: Head) -> tuple[Label, ...]:
        control, symbol = self.split(head)
        return self.model.labels(self.controls[control].control, symbol)

    def universe(self) -> tuple[int, ...]:
        """All control locations of the product, P × Q where the automaton has no variables; with variables, what the
        model's events lead to from any of its states."""
        if self._universe is None:
            configurations = self.automaton.closure(self.model.label_sets)
            self._universe = tuple(
                self._number(ProductControl(control, configuration))
                for control in range(len(self.model.controls))
                for configuration in configurations
            )
        return self._universe

    def _number(self, control: ProductControl) -> int:
        number = self._numbers.get(control)
        if number is None:
            number = self._numbers[control] = len(self.controls)
            self.controls.append(control)
            self._places.append(control.control)
            self.is_final.append(control.configuration.state in self.automaton.errors)
        return number
