"""The list of counterexamples of a program all runs of which are known (`explored`).

Each trace of the graph is run on the emulator; one for which no run is found is tried like those of the model. Traces
with recursion that counts as unnecessary are left out if a trace that is listed passes the same nodes; if none does,
the data needs the recursion, whatever the automaton says.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mcveto.counterexamples.along_trace import Configuration
from mcveto.counterexamples.erase import Erase
from mcveto.counterexamples.explored import Explored
from mcveto.counterexamples.extraction import Extracted
from mcveto.counterexamples.feasible import Follower, Outcome
from mcveto.counterexamples.finder import COUNTED, Request
from mcveto.counterexamples.graph_traces import GraphTraces
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.recursion import BoundedRecursion, MinimumRecursion, Recursion
from mcveto.counterexamples.seen_runs import SeenRuns
from mcveto.counterexamples.trace import Witness
from mcveto.dpg.runs import Choices
from mcveto.machine.pcode import FreshOrigin
from mcveto.program.inputs import InputSource

# For one trace; for counting traces that are not listed.
RUN_SECONDS = 5.0
COUNTING_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Listed:
    witness: Witness
    trace: tuple[Configuration, ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class GraphList:
    listed: tuple[Listed, ...]
    more: int
    """Traces that were counted but not listed."""
    stopped: str
    """Why these are not all, if they are not."""
    traces: GraphTraces


def list_from_graph(
    explored: Explored,
    extracted: Extracted,
    product: Product,
    errors: dict[int, str],
    request: Request,
    follower: Follower,
    deadline: float,
) -> GraphList:
    """`errors` names the error that a target stands for."""
    traces = GraphTraces(explored, extracted, product, errors, deadline)
    recursion: Recursion = (
        MinimumRecursion(Erase(product)) if request.recursion is None else BoundedRecursion(request.recursion)
    )
    limits = request.limits
    listed: list[Listed] = []
    deeper: list[tuple[Witness, tuple[Configuration, ...], int]] = []
    known: set[tuple[Configuration, ...]] = set()
    more, stopped = 0, ""
    begun_with = False

    def add(witness: Witness, trace: tuple[Configuration, ...], error: int) -> None:
        outcome = _run(explored, traces, trace, error, follower, deadline)
        listed.append(Listed(witness, trace, outcome))

    for witness, trace, error in traces:
        if trace in known:
            continue
        known.add(trace)
        if not begun_with:
            recursion.begin_with(witness.states[0].below)
            begun_with = True
        if limits.length is not None and len(witness) > limits.length:
            stopped = f"traces of more than {limits.length} steps are left out"
            break
        if limits.stack_height is not None and any(state.height - 1 > limits.stack_height for state in witness.states):
            stopped = f"stacks higher than {limits.stack_height} are left out"
            continue
        if not all(recursion.allows(state.below) for state in witness.states):
            deeper.append((witness, trace, error))
        elif len(listed) < request.count:
            add(witness, trace, error)
            if len(listed) == request.count:
                traces.hurry(COUNTING_SECONDS)
        else:
            more += 1
        if more + len(deeper) >= COUNTED:
            stopped = f"counting was ended after {COUNTED} more"
            break
    passed = {_nodes(item.trace) for item in listed}
    for witness, trace, error in deeper:
        nodes = _nodes(trace)
        if nodes in passed:
            continue
        passed.add(nodes)
        if len(listed) < request.count:
            add(witness, trace, error)
        else:
            more += 1
    if not traces.is_complete:
        stopped = stopped or "not all traces were looked at"
    return GraphList(tuple(listed), more, stopped, traces)


def _nodes(trace: Sequence[Configuration]) -> frozenset[int]:
    return frozenset(configuration[0] for configuration in trace)


def _run(
    explored: Explored,
    traces: GraphTraces,
    trace: tuple[Configuration, ...],
    error: int,
    follower: Follower,
    deadline: float,
) -> Outcome:
    seen = follower.seen
    found = seen.find(trace)
    if found is None:
        path = traces.path(trace, error)
        until = min(deadline, time.monotonic() + RUN_SECONDS)
        choices = explored.choices_along(path, error, until) if path is not None else None
        if choices is not None:
            make_run(seen, choices)
            found = seen.find(trace)
    # Steps back to an earlier state forget what is known beyond it: the way may have been none.
    return follower.follow(trace) if found is None else found


def make_run(seen: SeenRuns, choices: Choices) -> None:
    """Makes the run; of the entry state only what is not as usual counts as input."""
    base = seen.program.choices(InputSource((), 0), 0)
    registers = {name: value for name, value in choices.registers.items() if value != base.registers.get(name, 0)}
    memory = {address: byte for address, byte in choices.memory.items() if byte != base.byte(address)}

    def choose(number: int, origin: FreshOrigin, usual: int) -> int:
        return choices.fresh.get(number, 0 if origin is FreshOrigin.INPUT else usual)

    seen.make(choose, registers, memory, is_limited=False)
