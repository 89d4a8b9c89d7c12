"""Conversion of a nested word automaton to a pushdown system.

TR1669 section 3.3, rule for rule: an internal transition (q,σ,q') becomes ⟨p,q⟩ -σ→ ⟨p,q'⟩; a call
(qc,σ,qe) becomes ⟨p,qc⟩ -σ→ ⟨p,qe qc⟩; a return (qx,qc,σ,qr) becomes ⟨p,qx⟩ -ε→ ⟨px,ε⟩ and ⟨px,qc⟩ -σ→
⟨p,qr⟩. The configuration ⟨p, q c1 … cn⟩ is: in state q, with calls pending that were made in cn, …, c1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from enum import Enum
from typing import Final, Generic, TypeVar

from mcveto.automata.nested_words import Kind
from mcveto.automata.nwa import NWA, Call, Internal, Return, Run
from mcveto.automata.pautomaton import PAutomaton
from mcveto.automata.pds import PDS, Configuration, Rule
from mcveto.automata.semirings import BOOLEAN
from mcveto.late_methods import dataclass

Q = TypeVar("Q", bound=Hashable)


class Between(Enum):
    P = "p"


P: Final = Between.P
"""The paper's control location p: between two steps."""


@dataclass(frozen=True)
class Popped(Generic[Q]):
    """The paper's control location px: the exit x has been popped, the return is not yet done."""

    exit: Q


Control = Between | Popped[Q]


def to_pds(nwa: NWA[Q]) -> PDS[Control[Q], Q]:
    """A PDS with ⟨p,q0⟩ ⇒* ⟨p, q c1 … cn⟩ exactly if some run of the NWA ends in q with calls pending in
    cn, …, c1; the actions along the way spell the run's word."""
    pds: PDS[Control[Q], Q] = PDS()
    for transition in nwa.transitions():
        if isinstance(transition, Internal):
            pds.add(Rule(P, transition.source, P, (transition.target,), transition.symbol))
        elif isinstance(transition, Call):
            pushed = (transition.target, transition.source)
            pds.add(Rule(P, transition.source, P, pushed, transition.symbol))
        else:
            popped = Popped(transition.source)
            pds.add(Rule(P, transition.source, popped, ()))
            pds.add(Rule(popped, transition.call, P, (transition.target,), transition.symbol))
    return pds


def transition_of(rule: Rule[Control[Q], Q]) -> Internal[Q] | Call[Q] | Return[Q] | None:
    """The transition that the rule completes; None for the ε-rule that only pops an exit."""
    if isinstance(rule.target, Popped):
        return None
    if isinstance(rule.control, Popped):
        return Return(rule.control.exit, rule.symbol, rule.action, rule.pushed[0])
    kind = Internal if len(rule.pushed) == 1 else Call
    return kind(rule.symbol, rule.action, rule.pushed[0])


def steps(rule: Rule[Control[Q], Q]) -> int:
    """The weight that makes distances in the PDS count positions of nested words."""
    return 0 if isinstance(rule.target, Popped) else 1


def at(state: Q, *pending: Q) -> Configuration[Control[Q], Q]:
    """The configuration in `state` with calls pending in the given states, the innermost first."""
    return P, (state, *pending)


def start_configurations(nwa: NWA[Q]) -> list[Configuration[Control[Q], Q]]:
    """⟨p,q0⟩ for each initial state."""
    return [at(state) for state in nwa.initial]


def with_any_stack(nwa: NWA[Q], states: Iterable[Q]) -> PAutomaton[Control[Q], Q, bool]:
    """The set of ⟨p, q u⟩ with q among `states` and u ∈ Q*: where prefixes end in one of them."""
    result: PAutomaton[Control[Q], Q, bool] = PAutomaton(BOOLEAN)
    below = result.new_state()
    result.add_final(below, True)
    for state in states:
        result.add(result.entry(P), state, below, True)
    for state in nwa.states:
        result.add(below, state, below, True)
    return result


def executed_configurations(nwa: NWA[Q], runs: Iterable[Run[Q]]) -> Iterator[Configuration[Control[Q], Q]]:
    """The configurations along the runs, TR1669's set X.

    Popping an exit is not a step of the program, so ⟨px,u⟩ counts as executed as soon as ⟨p,x u⟩ is: a
    frontier at a return is then always the step that arrives at the return state, never the ε-rule before it.
    """
    for run in runs:
        pending: list[Q] = []
        for position, state in enumerate(run.states):
            below = tuple(reversed(pending))
            yield P, (state, *below)
            if nwa.returns_from(state):
                yield Popped(state), below
            if position < len(run.word):
                kind = run.word.kinds[position]
                if kind is Kind.CALL:
                    pending.append(state)
                elif kind is Kind.RETURN:
                    pending.pop()
