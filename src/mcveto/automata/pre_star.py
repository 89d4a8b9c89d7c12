"""pre*: all configurations from which a regular set is reached, with weights.

Bouajjani, Esparza and Maler (CONCUR 1997); the worklist form is Algorithm 1 of Esparza, Hansel,
Rossmanith and Schwoon (CAV 2000), weighted as in Reps, Schwoon, Jha and Melski (SCP 58, 2005, Figure
3). If ⟨p,γ⟩ ↪ ⟨p',w⟩ and the automaton reads w from p' to q, then it must read γ from p to q.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.pds import PDS, Rule
from mcveto.automata.regular_sets import lifted
from mcveto.automata.saturation import ByRule, Saturated, Saturation, Transition, Witness
from mcveto.automata.semirings import BOOLEAN, Semiring

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)
W = TypeVar("W")


def weighted_pre_star(
    pds: PDS[P, G],
    targets: PAutomaton[P, G, bool],
    semiring: Semiring[W],
    weight: Callable[[Rule[P, G]], W],
) -> Saturated[P, G, W]:
    """A P-automaton in which c has the weight ⊕ { weight(r1) ⊗ … ⊗ weight(rn) | c ⇒r1 … ⇒rn c' ∈ targets }.

    In particular it accepts exactly pre*(targets), up to configurations whose every path has weight zero.
    """
    automaton = lifted(targets, semiring)
    control_of = {}
    for control in dict.fromkeys((*automaton.controls, *pds.controls)):
        control_of[automaton.entry(control)] = control
    saturation: Saturation[P, G, W] = Saturation(automaton)
    extend = semiring.extend
    rules_onto: dict[tuple[P, G], list[tuple[Rule[P, G], W]]] = {}
    for rule in pds.rules:
        if rule.pushed:
            rules_onto.setdefault((rule.target, rule.pushed[0]), []).append((rule, weight(rule)))
        else:
            popping = (automaton.entry(rule.control), rule.symbol, automaton.entry(rule.target))
            saturation.improve(popping, weight(rule), ByRule(rule, ()))

    # (state, symbol) → push rules whose upper symbol was read up to that state, by which transition
    waiting: dict[tuple[int, G], dict[tuple[Rule[P, G], Transition[G]], W]] = {}

    def apply(rule: Rule[P, G], rule_weight: W, upper: Transition[G], lower: Transition[G] | None) -> None:
        total = extend(rule_weight, saturation.weights[upper])
        parts: tuple[Witness[P, G], ...] = (saturation.witnesses[upper],)
        end = upper[2]
        if lower is not None:
            total = extend(total, saturation.weights[lower])
            parts += (saturation.witnesses[lower],)
            end = lower[2]
        saturation.improve((automaton.entry(rule.control), rule.symbol, end), total, ByRule(rule, parts))

    while (transition := saturation.pop()) is not None:
        source, symbol, target = transition
        assert symbol is not None
        if source in control_of:
            for rule, rule_weight in rules_onto.get((control_of[source], symbol), ()):
                if len(rule.pushed) == 1:
                    apply(rule, rule_weight, transition, None)
                else:
                    waiting.setdefault((target, rule.pushed[1]), {})[rule, transition] = rule_weight
                    for end, _ in automaton.transitions_on(target, rule.pushed[1]):
                        apply(rule, rule_weight, transition, (target, rule.pushed[1], end))
        for (rule, upper), rule_weight in tuple(waiting.get((source, symbol), {}).items()):
            apply(rule, rule_weight, upper, transition)
    return Saturated(automaton, saturation.witnesses, {})


def pre_star(pds: PDS[P, G], targets: PAutomaton[P, G, bool]) -> PAutomaton[P, G, bool]:
    """A P-automaton that accepts exactly pre*(targets) = { c | c ⇒* c' ∈ targets }."""
    return weighted_pre_star(pds, targets, BOOLEAN, lambda _: True).configurations
