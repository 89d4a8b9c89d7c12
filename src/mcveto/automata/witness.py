"""Witness paths: the rule sequence behind a configuration of pre* or post*.

Schwoon, "Model-Checking Pushdown Systems" (2002), section 3.1.6; Reps, Schwoon, Jha and Melski (SCP 58,
2005), section 3.4. A configuration's cheapest accepting run is a list of transitions, each with a
witness. For pre* the first witness gives the next rule and is replaced by the transitions that read
what the rule pushed, until the run is one of the given automaton. For post* the same goes backwards.
Selective semirings only (Boolean, min-plus): one path then has exactly the weight of the configuration.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.pds import Configuration, Rule
from mcveto.automata.saturation import ByRule, Fresh, Given, Joined, Saturated, Transition, Witness
from mcveto.automata.semirings import SelectiveSemiring

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)
W = TypeVar("W")


def path_to_targets(
    saturated: Saturated[P, G, W], semiring: SelectiveSemiring[W], configuration: Configuration[P, G]
) -> list[Rule[P, G]] | None:
    """For a pre* result: rules that lead from `configuration` into the target set with exactly its weight;
    None if the configuration is not in pre*."""
    run = _cheapest_run(saturated.configurations, semiring, configuration)
    if run is None:
        return None
    pending = [saturated.witnesses[transition] for transition in reversed(run)]
    rules: list[Rule[P, G]] = []
    while pending and isinstance(top := pending.pop(), ByRule):
        rules.append(top.rule)
        pending.extend(reversed(top.parts))
    return rules


def path_from_sources(
    saturated: Saturated[P, G, W], semiring: SelectiveSemiring[W], configuration: Configuration[P, G]
) -> list[Rule[P, G]] | None:
    """For a post* result: rules that lead from the source set to `configuration` with exactly its weight;
    None if the configuration is not in post*."""
    run = _cheapest_run(saturated.configurations, semiring, configuration)
    if run is None:
        return None
    pending: list[Witness[P, G]] = [saturated.witnesses[transition] for transition in reversed(run)]
    if not run:
        entry = saturated.configurations.entry(configuration[0])
        if entry not in saturated.emptied:
            return []
        pending = [saturated.emptied[entry]]
    rules: list[Rule[P, G]] = []
    while pending:
        top = pending.pop()
        if isinstance(top, Given):
            break
        if isinstance(top, Joined):
            pending.append(top.below)
            top = top.popped
        elif isinstance(top, Fresh):
            lower = pending.pop()
            assert isinstance(lower, ByRule)
            top = lower
        rules.append(top.rule)
        pending.extend(top.parts)
    rules.reverse()
    return rules


def _cheapest_run(
    automaton: PAutomaton[P, G, W], semiring: SelectiveSemiring[W], configuration: Configuration[P, G]
) -> list[Transition[G]] | None:
    """The transitions of an accepting run of least cost; None if there is no accepting run."""
    control, stack = configuration
    start = automaton.find_entry(control)
    if start is None:
        return None
    layers: list[dict[int, tuple[W, Transition[G] | None]]] = [{start: (semiring.one, None)}]
    for symbol in stack:
        layer: dict[int, tuple[W, Transition[G] | None]] = {}
        for state, (weight, _) in layers[-1].items():
            for target, step in automaton.transitions_on(state, symbol):
                reached = automaton.sequence(weight, step)
                if target not in layer or semiring.cost(reached) < semiring.cost(layer[target][0]):
                    layer[target] = (reached, (state, symbol, target))
        layers.append(layer)
    accepting = [
        (semiring.cost(automaton.sequence(weight, automaton.final_weight(state))), number, state)
        for number, (state, (weight, _)) in enumerate(layers[-1].items())
        if automaton.is_final(state)
    ]
    if not accepting:
        return None
    state = min(accepting)[2]
    run: list[Transition[G]] = []
    for layer in reversed(layers[1:]):
        transition = layer[state][1]
        assert transition is not None
        run.append(transition)
        state = transition[0]
    run.reverse()
    return run
