"""Witness traces: what a run of the product looks like to a reader."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from mcveto.counterexamples.product import Product
from mcveto.counterexamples.stacks import Stack, symbols_of
from mcveto.property.typestate import Label, Value


class StepKind(Enum):
    """How a step changes the stack (section 5 of the paper)."""

    CALL = "call"
    DIRECT = "direct"
    EXIT = "exit"


class State(NamedTuple):
    """A configuration of the product: control, top of the stack, and the stack below it, down to the bottom symbol."""

    control: int
    top: int
    below: Stack | None

    @property
    def height(self) -> int:
        return 1 + (self.below.height if self.below is not None else 0)


@dataclass(frozen=True, eq=False)
class Witness:
    """A run from the start to the first error state."""

    product: Product
    states: tuple[State, ...]

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.states) - 1

    def automaton_state(self, number: int) -> str:
        return self.product.controls[self.states[number].control].configuration.state

    def values(self, number: int) -> dict[str, Value]:
        values = self.product.controls[self.states[number].control].configuration.values
        return dict(zip(self.product.automaton.variables, values, strict=True))

    def control(self, number: int) -> str:
        """The control location of the model."""
        return self.product.model.controls[self.product.controls[self.states[number].control].control]

    def node(self, number: int) -> str:
        """The top of the stack; "" if the run has emptied it."""
        top = self.states[number].top
        return "" if top == self.product.bottom else self.product.model.symbols[top]

    def stack(self, number: int) -> tuple[str, ...]:
        """The whole stack, its top first; empty where the run emptied it."""
        state = self.states[number]
        names = self.product.model.symbols
        return tuple(names[symbol] for symbol in (state.top, *symbols_of(state.below))[:-1])

    def kind(self, step: int) -> StepKind:
        """How step `step`, from state `step` to the next, changes the stack."""
        difference = self.states[step + 1].height - self.states[step].height
        return {1: StepKind.CALL, 0: StepKind.DIRECT, -1: StepKind.EXIT}[difference]

    def labels(self, step: int) -> tuple[Label, ...]:
        """The events that happen in step `step`."""
        state = self.states[step]
        return self.product.step_labels(self.product.head(state.control, state.top))

    def is_interesting(self, step: int) -> bool:
        """Whether the step changes the automaton; others are folded."""
        controls = self.product.controls
        before, after = self.states[step], self.states[step + 1]
        return controls[before.control].configuration != controls[after.control].configuration

    @cached_property
    def key(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The run as names: (automaton state, stack) of every configuration."""
        return tuple((self.automaton_state(number), self.stack(number)) for number in range(len(self.states)))
