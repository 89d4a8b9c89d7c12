"""Refinement across a frontier (TR1669 Fig. 1): split n so that the part with the witness cannot make the step.

For every outcome of the step the infeasible literals' core is turned into a predicate over the state before:
projected onto the state (fresh values out), simplified under the witness's aliasing. ρ is the disjunction over the
outcomes of (α ⇒ ψ'). Then (i) no state of n that satisfies ¬ρ makes the step, and (ii) the witness satisfies ¬ρ;
(ii) is checked, because an inexact projection can spoil it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcveto.dpg.graph import Witness, holds
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.pre_alpha import pre_alpha
from mcveto.dpg.projection import project
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.solver import Solver
from mcveto.logic.terms import Term


@dataclass(frozen=True, slots=True)
class Refuted:
    """An outcome that cannot make the step from the witness, and the literals that say why."""

    outcome: Outcome
    core: tuple[Term, ...]


def refinement_predicate(
    witness: Witness,
    refuted: Sequence[Refuted],
    solver: Solver,
    timeout: float,
    is_certain: Callable[[Term], bool] = lambda condition: True,
) -> Term | None:
    """ρ for a step all of whose outcomes are refuted; None if no predicate separates the witness."""
    state = witness.visit.state
    assert state is not None
    evaluator = witness.run.execution.evaluator

    def concrete(term: Term) -> int:
        return evaluator.value(state.value(term))

    parts: list[Term] = []
    for item in refuted:
        simplified, alpha = pre_alpha(item.core, concrete, is_certain)
        if item.outcome.fresh:
            projected = project(simplified, item.outcome.fresh, concrete, solver, timeout)
            if projected is None:
                return None
            simplified = projected
        parts.append(t.disj([*(t.bnot(condition) for condition in alpha), t.conj(simplified)]))
    rho = t.disj(parts)
    if rho is t.FALSE:
        return rho
    return None if holds(rho, witness) else rho
