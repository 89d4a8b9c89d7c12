"""More states at the cut points: the steps between them, taken from states in which no run took them.

An explicit-state search over the values of the places that matter, bounded by a number of runs. A loop over modes has
few such states, and having seen them all is what makes candidates true; of other loops it sees a few more iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mcveto.dpg.feasibility import Feasibility, Feasible
from mcveto.dpg.graph import Witness
from mcveto.dpg.location import Blocks, Location
from mcveto.dpg.runs import Choices
from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.places import relevant_places, value_at
from mcveto.dpg.strengthen.system import System
from mcveto.logic.terms import Term, free_variables

QUERY_SECONDS = 0.3
MAX_QUESTIONS = 600

State = tuple[int, ...]


class Widening:
    """Remembers what was tried, also across systems built later."""

    def __init__(self, feasibility: Feasibility, blocks: Blocks) -> None:
        self._feasibility = feasibility
        self._blocks = blocks
        self._tried: set[tuple[Location, State, tuple[Location, ...]]] = set()

    def tests(self, system: System) -> Iterator[tuple[Choices, int]]:
        """Inputs that take a step from a state it was not taken from, and how many instructions that takes; first
        those that give some place a new value."""
        relevant = relevant_places(system.places, system.all_steps())
        places: dict[Location, list[Term]] = {
            cut: sorted((p for p in relevant.get(cut, ()) if p not in system.constants[cut]), key=lambda p: p.serial)
            for cut in system.cuts
        }
        seen: dict[Location, dict[State, Witness]] = {cut: {} for cut in system.cuts}
        values: dict[Location, set[tuple[int, int]]] = {cut: set() for cut in system.cuts}
        for cut in system.cuts:
            for witness in system.samples.visits[cut]:
                state = tuple(value_at(place, witness) for place in places[cut])
                seen[cut].setdefault(state, witness)
                values[cut].update(enumerate(state))
        later: list[tuple[BigStep, Witness, State]] = []
        for cut in system.cuts:
            steps = [step for step in system.steps_from[cut] if step.target is not None]
            for state, witness in seen[cut].items():
                for step in steps:
                    assert step.target is not None
                    if (cut, state, step.trail) in self._tried or not _possible(step, witness):
                        continue
                    self._tried.add((cut, state, step.trail))
                    behind = tuple(value_at(step.pre(place), witness) for place in places[step.target])
                    if behind in seen[step.target]:
                        continue
                    if values[step.target].issuperset(enumerate(behind)):
                        later.append((step, witness, behind))
                        continue
                    values[step.target].update(enumerate(behind))
                    yield from self._test(step, witness)
        planned: set[tuple[Location | None, State]] = set()
        for step, witness, behind in later[:MAX_QUESTIONS]:
            if (step.target, behind) not in planned:
                planned.add((step.target, behind))
                yield from self._test(step, witness)

    def _test(self, step: BigStep, witness: Witness) -> Iterator[tuple[Choices, int]]:
        answer = self._feasibility.ask(witness, step.guard, QUERY_SECONDS)
        if isinstance(answer, Feasible):
            behind = witness.visit.number + len(step.trail)
            length = witness.visit.step + sum(len(self._blocks.of(location)) for location in step.trail)
            yield replace(answer.choices, keep=answer.choices.keep | {behind}), length


def _possible(step: BigStep, witness: Witness) -> bool:
    """Whether the witness's state satisfies what the guard says of the state alone."""
    hidden = set(step.fresh)
    return all(value_at(literal, witness) for literal in step.guard if hidden.isdisjoint(free_variables([literal])))
