"""The traces of an explored program that lead to an error, shortest first.

A trace is what remains of a run once rounds of loops are taken out (`along_trace`). With every state of the program at
hand (`explored`) no trace of the pushdown model need be tried: a beginning of a trace is kept with all states in which
a run may be that has followed it, rounds of loops included, and grows by one step of the product as long as there is
such a state. So what dies is not begun, however many traces the model has.

A* over beginnings; the estimate is the distance to an error in the graph with all states of one configuration made one.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Iterator, Sequence

from mcveto.counterexamples.along_trace import Configuration
from mcveto.counterexamples.explored import Explored
from mcveto.counterexamples.extraction import Extracted
from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.stacks import Stack, StackTable
from mcveto.counterexamples.trace import State, Witness

_STEP, _BACK = 1, 1_000_000
Positions = frozenset[int]


class _Beginning:
    """Of a trace: its last configuration, and where in the graph a run may be."""

    __slots__ = ("before", "configuration", "control", "length", "positions")

    def __init__(
        self, control: int, configuration: Configuration, positions: Positions, before: _Beginning | None
    ) -> None:
        self.control = control
        self.configuration = configuration
        self.positions = positions
        self.before = before
        self.length: int = 0 if before is None else before.length + 1

    def has(self, control: int, configuration: Configuration) -> bool:
        at: _Beginning | None = self
        while at is not None:
            if at.control == control and at.configuration == configuration:
                return True
            at = at.before
        return False


class GraphTraces:
    """Positions are arrivals at nodes of the model, within the states of the graph."""

    def __init__(
        self, explored: Explored, extracted: Extracted, product: Product, errors: dict[int, str], deadline: float
    ) -> None:
        """`errors` names the error that a target stands for."""
        self._explored = explored
        self._product = product
        self._errors = errors
        self._deadline = deadline
        self.is_complete = True
        """Whether the traces given were all there are."""
        self._symbols = {pc: product.model.symbol_numbers[name] for name, pc in extracted.addresses.items()}
        self._stack_table = StackTable()
        self._numbers = {name: number for number, name in enumerate(extracted.automaton.states)}
        self._configurations: list[Configuration] = []
        self._owner: list[int] = []
        self._following: list[dict[int, int]] = []
        self._ends: list[tuple[int, ...]] = []
        self._make_positions(frozenset(extracted.addresses.values()))
        self._is_alive = self._alive()
        self._estimates = self._measure()
        self._closures: dict[tuple[int, Positions], Positions] = {}
        self._moves: dict[tuple[int, Configuration, Configuration], tuple[int, ...]] = {}

    def _make_positions(self, nodes: frozenset[int]) -> None:
        states = self._explored.states
        first: list[int | None] = []
        last: list[int | None] = []
        for number, state in enumerate(states):
            passed = [(pc, *state.frames) for pc in state.pcs if pc in nodes]
            at = len(self._configurations)
            first.append(at if passed else None)
            last.append(at + len(passed) - 1 if passed else None)
            for index, configuration in enumerate(passed):
                self._configurations.append(configuration)
                self._owner.append(number)
                self._following.append({at + index + 1: _STEP} if index + 1 < len(passed) else {})
                self._ends.append(tuple(state.errors) if index + 1 == len(passed) else ())
        for number, end in enumerate(last):
            if end is None:
                continue
            # Behind states without a node of the model come those that they lead to.
            seen: set[int] = set()
            pending = [(number, _STEP)]
            while pending:
                source, cost = pending.pop()
                for target in states[source].steps:
                    total = cost + (_BACK if target in states[source].back else 0)
                    there = first[target]
                    if there is not None:
                        known = self._following[end].get(there)
                        self._following[end][there] = total if known is None else min(known, total)
                    elif target not in seen:
                        seen.add(target)
                        pending.append((target, total))

    def _alive(self) -> list[bool]:
        """From where an error is reached."""
        before: list[list[int]] = [[] for _ in self._configurations]
        for source, targets in enumerate(self._following):
            for target in targets:
                before[target].append(source)
        alive = [bool(ends) for ends in self._ends]
        pending = [position for position, is_alive in enumerate(alive) if is_alive]
        while pending:
            for source in before[pending.pop()]:
                if not alive[source]:
                    alive[source] = True
                    pending.append(source)
        return alive

    def _measure(self) -> dict[Configuration, int]:
        before: dict[Configuration, set[Configuration]] = {}
        for source, targets in enumerate(self._following):
            for target in targets:
                before.setdefault(self._configurations[target], set()).add(self._configurations[source])
        found = {self._configurations[position]: 1 for position, ends in enumerate(self._ends) if ends}
        pending = deque(found)
        while pending:
            at = pending.popleft()
            for earlier in before.get(at, ()):
                if earlier not in found:
                    found[earlier] = found[at] + 1
                    pending.append(earlier)
        return found

    # Traces.

    def hurry(self, seconds: float) -> None:
        """Ends the search after so many seconds more."""
        self._deadline = min(self._deadline, time.monotonic() + seconds)

    def __iter__(self) -> Iterator[tuple[Witness, tuple[Configuration, ...], int]]:
        """The traces, each with its configurations before the error and the error's target."""
        queue: list[tuple[int, int, _Beginning]] = []
        count = 0
        if not self._configurations or not self._is_alive[0]:
            return
        start = self._configurations[0]
        for control in self._product.starts:
            beginning = _Beginning(control, start, self._closure(control, frozenset((0,))), None)
            heapq.heappush(queue, (self._estimates[start], count, beginning))
            count += 1
        while queue:
            if time.monotonic() > self._deadline:
                self.is_complete = False
                return
            _, _, beginning = heapq.heappop(queue)
            yield from self._ended(beginning)
            for control, configuration, positions in self._extended(beginning):
                grown = _Beginning(control, configuration, positions, beginning)
                count += 1
                # Among equals the last one first.
                heapq.heappush(queue, (grown.length + self._estimates[configuration], -count, grown))

    def _extended(self, beginning: _Beginning) -> Iterator[tuple[int, Configuration, Positions]]:
        arrivals: dict[Configuration, set[int]] = {}
        for position in beginning.positions:
            for target in self._following[position]:
                if self._is_alive[target]:
                    arrivals.setdefault(self._configurations[target], set()).add(target)
        for configuration, found in sorted(arrivals.items(), reverse=True):
            for control in self._controls(beginning.control, beginning.configuration, configuration):
                if beginning.has(control, configuration):
                    continue
                positions = frozenset(position for position in found if self._agrees(position, control))
                if positions:
                    yield control, configuration, self._closure(control, positions)

    def _agrees(self, position: int, control: int) -> bool:
        known = self._explored.states[self._owner[position]].automaton
        return known is None or known == self._numbers[self._product.controls[control].configuration.state]

    def _closure(self, control: int, positions: Positions) -> Positions:
        """With the positions at the same configuration that runs come to by going round loops."""
        found = self._closures.get((control, positions))
        if found is None:
            configuration = self._configurations[next(iter(positions))]
            seen = set(positions)
            pending = list(positions)
            while pending:
                for target in self._following[pending.pop()]:
                    if target not in seen and self._is_alive[target]:
                        seen.add(target)
                        pending.append(target)
            found = frozenset(
                position
                for position in seen
                if self._configurations[position] == configuration and self._agrees(position, control)
            )
            self._closures[control, positions] = found
        return found

    def _controls(self, control: int, before: Configuration, after: Configuration) -> tuple[int, ...]:
        """The controls of the product after a step between two configurations that is no error."""
        key = (control, before, after)
        found = self._moves.get(key)
        if found is None:
            rest, wanted = self._stack(before)[1:], self._stack(after)
            targets: dict[int, None] = {}
            for target, *symbols in self._product.rules(self._product.head(control, self._symbols[before[0]])):
                pushed = tuple(symbol for symbol in symbols if symbol != NOTHING)
                if (*pushed, *rest) == wanted and not self._product.is_final[target]:
                    targets[target] = None
            found = self._moves[key] = tuple(targets)
        return found

    def _stack(self, configuration: Configuration) -> tuple[int, ...]:
        return (*(self._symbols[pc] for pc in configuration), self._product.bottom)

    def _ended(self, beginning: _Beginning) -> Iterator[tuple[Witness, tuple[Configuration, ...], int]]:
        """The traces that end here."""
        reached = sorted({error for position in beginning.positions for error in self._ends[position]})
        if not reached:
            return
        product, rest = self._product, self._stack(beginning.configuration)[1:]
        for target, *symbols in product.rules(
            product.head(beginning.control, self._symbols[beginning.configuration[0]])
        ):
            name = product.controls[target].configuration.state
            for error in reached:
                if product.is_final[target] and self._errors[error] == name:
                    stack = (*(symbol for symbol in symbols if symbol != NOTHING), *rest)
                    yield self._witness(beginning, target, stack), _configurations(beginning), error
                    return

    def _witness(self, beginning: _Beginning, control: int, stack: tuple[int, ...]) -> Witness:
        states = [self._state(control, stack)]
        at: _Beginning | None = beginning
        while at is not None:
            states.append(self._state(at.control, self._stack(at.configuration)))
            at = at.before
        return Witness(self._product, tuple(reversed(states)))

    def _state(self, control: int, stack: tuple[int, ...]) -> State:
        below: Stack | None = None
        for symbol in reversed(stack[1:]):
            below = self._stack_table.push(symbol, below)
        return State(control, stack[0], below)

    # Runs.

    def path(self, trace: Sequence[Configuration], error: int) -> list[int] | None:
        """States of the graph that a run may pass that follows the trace, with as few steps back as there can be."""
        if not self._configurations or self._configurations[0] != trace[0]:
            return None
        # (position, index on the trace, whether the run is on a round of a loop)
        start = (0, 0, False)
        costs = {start: 0}
        came: dict[tuple[int, int, bool], tuple[int, int, bool]] = {}
        queue = [(0, start)]
        while queue:
            cost, at = heapq.heappop(queue)
            if cost > costs[at]:
                continue
            position, index, is_away = at
            if index == len(trace) - 1 and not is_away and error in self._ends[position]:
                return self._owners(at, came)
            for target, step in self._following[position].items():
                if not self._is_alive[target]:
                    continue
                there = self._configurations[target]
                ways = [(target, index, there != trace[index])]
                if not is_away and index + 1 < len(trace) and there == trace[index + 1]:
                    ways.append((target, index + 1, False))
                for way in ways:
                    if cost + step < costs.get(way, 1 << 62):
                        costs[way] = cost + step
                        came[way] = at
                        heapq.heappush(queue, (cost + step, way))
        return None

    def _owners(self, at: tuple[int, int, bool], came: dict[tuple[int, int, bool], tuple[int, int, bool]]) -> list[int]:
        positions = [at[0]]
        while at in came:
            at = came[at]
            positions.append(at[0])
        found: list[int] = []
        for before, after in zip((None, *reversed(positions)), reversed(positions), strict=False):
            owner = self._owner[after]
            if before is not None and after == before + 1 and self._owner[before] == owner:
                continue
            found += self._between(found[-1], owner) if found else [owner]
        return found

    def _between(self, source: int, target: int) -> list[int]:
        """The states after `source` up to `target`, on the way through states without a node of the model."""
        came = {source: source}
        pending = deque([source])
        while pending:
            at = pending.popleft()
            for step in self._explored.states[at].steps:
                if step == target:
                    path = [target]
                    while at != source:
                        path.append(at)
                        at = came[at]
                    return path[::-1]
                if step not in came:
                    came[step] = at
                    pending.append(step)
        return [target]

    def farthest(self, trace: Sequence[Configuration]) -> tuple[int, int]:
        """How far along the trace a run gets, and the instruction that leaves it."""
        reached = {0} if self._configurations and self._configurations[0] == trace[0] else set()
        for index in range(len(trace) - 1):
            seen = set(reached)
            pending = list(reached)
            while pending:
                for target in self._following[pending.pop()]:
                    if target not in seen:
                        seen.add(target)
                        pending.append(target)
            here = {position for position in seen if self._configurations[position] == trace[index]}
            reached = {
                target
                for position in here
                for target in self._following[position]
                if self._configurations[target] == trace[index + 1]
            }
            if not reached:
                last = max((self._explored.states[self._owner[position]].pcs[-1] for position in here), default=0)
                return index, last or trace[index][0]
        return len(trace) - 1, trace[-1][0]


def _configurations(beginning: _Beginning) -> tuple[Configuration, ...]:
    found = []
    at: _Beginning | None = beginning
    while at is not None:
        found.append(at.configuration)
        at = at.before
    return tuple(reversed(found))
