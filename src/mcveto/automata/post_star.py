"""post*: all configurations that are reached from a regular set, with weights.

Schwoon, "Model-Checking Pushdown Systems" (2002), Algorithm 2, weighted as in Reps, Schwoon, Jha and
Melski (SCP 58, 2005, Figure 4). A push rule ⟨p,γ⟩ ↪ ⟨p',γ'γ''⟩ goes through a state of its own for
(p',γ'); a pop rule makes an ε-transition. We join ε-transitions with what follows them at once and
return an automaton without them: an emptied stack is accepted by making the entry state final.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.pds import PDS, Rule
from mcveto.automata.regular_sets import lifted
from mcveto.automata.saturation import ByRule, Fresh, Joined, Saturated, Saturation, Transition
from mcveto.automata.semirings import BOOLEAN, Semiring

P = TypeVar("P", bound=Hashable)
G = TypeVar("G", bound=Hashable)
W = TypeVar("W")


def weighted_post_star(
    pds: PDS[P, G],
    sources: PAutomaton[P, G, bool],
    semiring: Semiring[W],
    weight: Callable[[Rule[P, G]], W],
) -> Saturated[P, G, W]:
    """A P-automaton in which c has the weight ⊕ { weight(r1) ⊗ … ⊗ weight(rn) | sources ∋ c' ⇒r1 … ⇒rn c }.

    In particular it accepts exactly post*(sources), up to configurations whose every path has weight zero.
    """
    automaton = lifted(sources, semiring, against_reading=True)
    control_of = {}
    for control in dict.fromkeys((*automaton.controls, *pds.controls)):
        control_of[automaton.entry(control)] = control
    saturation: Saturation[P, G, W] = Saturation(automaton)
    extend = semiring.extend
    weights = saturation.weights
    between: dict[tuple[P, G], int] = {}
    popped_into: dict[int, dict[int, None]] = {}
    emptied: dict[int, ByRule[P, G]] = {}

    def apply(rule: Rule[P, G], transition: Transition[G]) -> None:
        total = extend(weights[transition], weight(rule))
        witness = ByRule(rule, (saturation.witnesses[transition],))
        entry = automaton.entry(rule.target)
        if not rule.pushed:
            saturation.improve((entry, None, transition[2]), total, witness)
        elif len(rule.pushed) == 1:
            saturation.improve((entry, rule.pushed[0], transition[2]), total, witness)
        else:
            upper, lower = rule.pushed
            if (rule.target, upper) not in between:
                between[rule.target, upper] = automaton.new_state()
            middle = between[rule.target, upper]
            saturation.improve((entry, upper, middle), semiring.one, Fresh())
            saturation.improve((middle, lower, transition[2]), total, witness)

    def join(pop: Transition[G], below: Transition[G]) -> None:
        popped = saturation.witnesses[pop]
        assert isinstance(popped, ByRule)
        witness = Joined(popped, saturation.witnesses[below])
        total = extend(weights[below], weights[pop])
        saturation.improve((pop[0], below[1], below[2]), total, witness)

    while (transition := saturation.pop()) is not None:
        source, symbol, target = transition
        if symbol is None:
            popped_into.setdefault(target, {})[source] = None
            for lower, end, _ in tuple(automaton.transitions_from(target)):
                join(transition, (target, lower, end))
            if automaton.is_final(target):
                before = automaton.final_weight(source)
                automaton.add_final(source, extend(automaton.final_weight(target), weights[transition]))
                if automaton.final_weight(source) != before:
                    popped = saturation.witnesses[transition]
                    assert isinstance(popped, ByRule)
                    emptied[source] = popped
        elif source in control_of:
            for rule in pds.rules_for(control_of[source], symbol):
                apply(rule, transition)
        else:
            for entry in tuple(popped_into.get(source, ())):
                join((entry, None, source), transition)
    return Saturated(automaton, saturation.witnesses, emptied)


def post_star(pds: PDS[P, G], sources: PAutomaton[P, G, bool]) -> PAutomaton[P, G, bool]:
    """A P-automaton that accepts exactly post*(sources) = { c | sources ∋ c' ⇒* c }."""
    return weighted_post_star(pds, sources, BOOLEAN, lambda _: True).configurations
