"""The trace of a run: what is left of it in the model once rounds of loops are taken out.

The automaton of the model knows no data, so it may have several ways along one run; one that ends in an error at the
end of the run, and not before, is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mcveto.counterexamples.along_trace import Configuration
from mcveto.counterexamples.extraction import Extracted
from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.stacks import Stack, StackTable
from mcveto.counterexamples.trace import State, Witness


def witness_of(product: Product, extracted: Extracted, passed: Sequence[Configuration], error: str) -> Witness | None:
    """The trace of a run that passed these configurations and then reached the error; None if the model has no such
    run."""
    number = {pc: product.model.symbol_numbers[name] for name, pc in extracted.addresses.items()}
    if not all(pc in number for configuration in passed for pc in configuration):
        return None
    stacks = [(*(number[pc] for pc in configuration), product.bottom) for configuration in passed]
    # For every position the controls the product may be in, each with one that it came from.
    layers: list[dict[int, int]] = [dict.fromkeys(product.starts, -1)]
    for here, following in pairwise(stacks):
        layer: dict[int, int] = {}
        for control in layers[-1]:
            for target, first, second in product.rules(product.head(control, here[0])):
                pushed = tuple(symbol for symbol in (first, second) if symbol != NOTHING)
                if (*pushed, *here[1:]) == following and not product.is_final[target]:
                    layer.setdefault(target, control)
        layers.append(layer)
    for control in layers[-1]:
        for target, first, second in product.rules(product.head(control, stacks[-1][0])):
            if product.is_final[target] and product.controls[target].configuration.state == error:
                pushed = tuple(symbol for symbol in (first, second) if symbol != NOTHING)
                last = (target, (*pushed, *stacks[-1][1:]))
                return _without_rounds(product, [*_back(layers, stacks, control), last])
    return None


def _back(
    layers: list[dict[int, int]], stacks: list[tuple[int, ...]], control: int
) -> list[tuple[int, tuple[int, ...]]]:
    states = []
    for layer, stack in zip(reversed(layers), reversed(stacks), strict=True):
        states.append((control, stack))
        control = layer[control]
    return states[::-1]


def _without_rounds(product: Product, run: list[tuple[int, tuple[int, ...]]]) -> Witness:
    position: dict[tuple[int, tuple[int, ...]], int] = {}
    kept: list[tuple[int, tuple[int, ...]]] = []
    for state in run:
        if state in position:
            for gone in kept[position[state] + 1 :]:
                del position[gone]
            del kept[position[state] + 1 :]
        else:
            position[state] = len(kept)
            kept.append(state)
    table = StackTable()
    states = []
    for control, stack in kept:
        below: Stack | None = None
        for symbol in reversed(stack[1:]):
            below = table.push(symbol, below)
        states.append(State(control, stack[0], below))
    return Witness(product, tuple(states))
