"""Directed tests: from the states the runs were in, towards every way out of what was explored.

Block by block (`next_test`) and a whole path ahead from the cut points (`next_test_ahead`), where a step out may need
several branches to go together.

The cheap half of finding violations: a step that no run took is tried from each state kept at its location, before any
invariant is thought about (TR1669 Alg. 1, lines 8-12, without the splitting). A question is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from mcveto.dpg.feasibility import Feasibility, Feasible
from mcveto.dpg.graph import Graph, Witness
from mcveto.dpg.location import Location
from mcveto.dpg.runs import Choices
from mcveto.dpg.steps import Steps
from mcveto.dpg.strengthen.big_steps import BigStep

QUERY_SECONDS = 0.5
WITNESSES = 6
WITNESSES_AHEAD = 16
QUESTIONS_AHEAD = 400


class Explorer:
    def __init__(self, graph: Graph, steps: Steps, feasibility: Feasibility) -> None:
        self._graph = graph
        self._steps = steps
        self._feasibility = feasibility
        self._asked: set[tuple[int, int, Location, tuple[object, ...]]] = set()
        self.questions = 0

    def next_test(self, remaining: Callable[[], float]) -> Choices | None:
        """Inputs that should take a step nobody took; None if none is found from the states known."""
        for location in sorted(self._graph.by_location):
            successors = self._graph.successors[location]
            witnesses = self._witnesses(location)
            for outcome in self._steps.outcomes(location):
                if outcome.unsupported:
                    continue
                for literals in self._steps.outside(location, outcome, successors):
                    for witness in witnesses:
                        key = (witness.run.number, witness.visit.number, location, literals)
                        if key in self._asked:
                            continue
                        self._asked.add(key)
                        if remaining() <= 0:
                            return None
                        self.questions += 1
                        answer = self._feasibility.ask(witness, literals, max(0.05, min(QUERY_SECONDS, remaining())))
                        if isinstance(answer, Feasible):
                            return answer.choices
        return None

    def next_test_ahead(
        self, exits: Iterable[BigStep], visits: Mapping[Location, Sequence[Witness]], remaining: Callable[[], float]
    ) -> Choices | None:
        """Inputs that should take a path out from a state at a cut point; None if none is found."""
        candidates = [step for step in exits if step.source is not None and not step.unsupported]
        most = max(2, min(WITNESSES_AHEAD, QUESTIONS_AHEAD // max(1, len(candidates))))
        for step in candidates:
            assert step.source is not None
            for witness in _spread(visits[step.source], most):
                key = (witness.run.number, witness.visit.number, step.source, step.guard)
                if key in self._asked:
                    continue
                self._asked.add(key)
                if remaining() <= 0:
                    return None
                self.questions += 1
                answer = self._feasibility.ask(witness, step.guard, max(0.05, min(QUERY_SECONDS, remaining())))
                if isinstance(answer, Feasible):
                    return answer.choices
        return None

    def _witnesses(self, location: Location) -> list[Witness]:
        """Some of the states at a location: the first and the last ones."""
        found = [
            witness for number in self._graph.by_location[location] for witness in self._graph.nodes[number].witnesses
        ]
        half = WITNESSES // 2
        return found if len(found) <= WITNESSES else [*found[:half], *found[-half:]]


def _spread(witnesses: Sequence[Witness], most: int) -> list[Witness]:
    """At most so many, evenly chosen."""
    if len(witnesses) <= most:
        return list(witnesses)
    return [witnesses[at * len(witnesses) // most] for at in range(most)]
