"""From an abstract path to an input: real paths are followed towards a target, along the abstract graph only.

The simulation tells which abstract node was entered from which. Going back from the target gives every node its
distance; a node without one cannot lead there. From the entry, exact paths (`representatives`) are followed best first:
by the distance of their node, with a surcharge for nodes that were visited often and for ways that the inputs at hand
do not take, since these cost a question to the solver, and more where the way does not seem to matter (`relevance`).
So a path goes straight through all that does not matter, by whatever inputs, and the solver is asked only where the
target lies the other way. Where a path turns out to be impossible, the search goes on from the nearest way not taken.

Ways that do not matter still leave conditions behind, which may stand against what does matter further on. Then inputs
are asked for that only do what matters since the current function (or one around it) was entered, and the path is made
once more from there with these, whichever ways they take in between. What is found is replayed; what is not found says
nothing.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mcveto.engines.order import Order
from mcveto.engines.queries import Model, Queries
from mcveto.engines.replay import replayed
from mcveto.engines.simulation.hints import Possible
from mcveto.engines.simulation.representatives import LONG_PATH, Fork, RunExecutor, freeze
from mcveto.engines.state import Calls, Loops, PathState, Place
from mcveto.logic import terms as t
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program
from mcveto.verdict import Verdict

Values = tuple[tuple[int, object], ...]
"""What is kept apart, by number; "?" is any value."""
Node = tuple[int, Calls | None, Values]
"""Program counter, expected returns, what is kept apart."""


class Anchor(NamedTuple):
    """A path as it was when a call was made, and the calls around it."""

    state: PathState
    around: Anchor | None
    nodes: frozenset[Node]


class Real(NamedTuple):
    """A path, or a way not taken, with the calls it is within, and the abstract states it may belong to."""

    item: PathState | Fork
    anchor: Anchor | None
    nodes: frozenset[Node]


COST_OF_QUESTION = 6
COST_OF_VISIT = 12
COST_OF_TURN = 4
COST_OF_DETOUR = 60
MOST_PATHS = 200_000
MOST_WAITING = 20_000
MOST_BLOCKS = 10_000_000
FIRST_BLOCKS = 2000
FIRST_FACTOR = 4
MOST_SEEDS = 6
MOST_COUNTED = 2000
MOST_ANCHORS = 4
MOST_NODES = 3000


class DirectedSearch:
    def __init__(
        self,
        program: Program,
        runner: RunExecutor,
        queries: Queries,
        order: Order,
        apart: Callable[[PathState, bool], Values],
        matters: Callable[[Place], bool],
        is_target: Callable[[int], bool],
        tell: Callable[[int], None],
    ) -> None:
        """`is_target`: whether a block is a target, or leads to one and nowhere else."""
        self._program = program
        self._runner = runner
        self._queries = queries
        self._order = order
        self._apart = apart
        self._matters = matters
        self._is_target = is_target
        self._tell = tell
        self._possible = Possible(queries, MOST_NODES)
        runner.matters = matters
        self._seeds: dict[int, int] = {}
        self._deadline = 0.0
        self._inputs: Model | None = None
        self._blocks = 0
        self._expected = 0
        self._most_blocks = MOST_BLOCKS
        self._pool: list[tuple[int, int, Real]] = []
        self._pushed = 0
        self._visits: dict[tuple[Node, Loops], int] = {}
        self._distances: dict[Node, int] = {}
        self._known: dict[tuple[int, Calls | None], list[Node]] = {}
        """Those that have a distance, by their place."""
        self._after: dict[Node, dict[Node, None]] = {}

    def run(
        self,
        first: PathState,
        edges: Sequence[tuple[Node, Node]],
        target: Node,
        seconds: float,
        most_blocks: int | None = None,
        least_blocks: int = 0,
        inputs: Model | None = None,
    ) -> Verdict | None:
        """A confirmed violation at the target, or None; of a search with a limit not more is expected than that a
        straight way is found, unless what comes otherwise is worth `least_blocks`. `inputs`: those to begin with."""
        self._deadline = time.monotonic() + seconds
        self._measure(edges, target)
        farthest = max(self._distances.values(), default=0)
        self._expected = FIRST_BLOCKS + FIRST_FACTOR * farthest
        if most_blocks is not None:
            self._most_blocks = min(max(self._expected, least_blocks), most_blocks)
            if self._most_blocks < farthest:
                return None
        self._runner.is_wanted = {pc for pc, _ in self._known}.__contains__
        start = self._runner.initial()
        self._inputs = inputs
        if inputs is not None:
            start.model = inputs
        start.calls = first.calls  # equal call strings are the same object only below the same root
        self._order.start(start)
        nodes = frozenset(self._known.get((start.pc, start.calls), ()))
        found = self._straight(Real(start, Anchor(_again(start), None, nodes), nodes))
        while found is None and self._pool and not self._is_over():
            real = heapq.heappop(self._pool)[2]
            found = self._straight(real) if isinstance(real.item, PathState) else self._other_way(real)
        return found

    def _is_over(self) -> bool:
        is_enough = self._pushed > MOST_PATHS or self._blocks > self._most_blocks
        return is_enough or time.monotonic() > self._deadline

    # Distances.

    def _measure(self, edges: Sequence[tuple[Node, Node]], target: Node) -> None:
        before: dict[Node, dict[Node, None]] = {}
        for source, node in edges:
            before.setdefault(node, {})[source] = None
        distances = self._distances = {target: 0}
        pending = deque([target])
        while pending:
            node = pending.popleft()
            for source in before.get(node, ()):
                if source not in distances:
                    distances[source] = distances[node] + 1
                    pending.append(source)
        for node in distances:
            self._known.setdefault(node[:2], []).append(node)
        for source, node in edges:
            if source in distances and node in distances:
                self._after.setdefault(source, {})[node] = None

    def _entered(self, sources: Iterable[Node], run: PathState) -> frozenset[Node]:
        """The abstract states that a path may belong to now: those that the ones before lead to, if there are any, as
        far as it agrees with them about what is kept apart. A path has one device where an abstract state has any, so
        that what it knows of the others says nothing about which of the abstract states is its own."""
        known = self._known.get((run.pc, run.calls), ())
        if not known:
            return frozenset()
        values = dict(self._apart(run, True))
        fitting = {node for node in known if _fits(values, node[2])}
        entered: set[Node] = set()
        pending = [*sources]
        while pending:
            # More may be kept apart than when an abstract state was come to: the same one goes on under another name.
            new = [node for node in self._after.get(pending.pop(), ()) if node in fitting and node not in entered]
            entered.update(new)
            pending += new
        return frozenset(entered or fitting)

    def _distance(self, nodes: Iterable[Node]) -> int | None:
        return min((self._distances[node] for node in nodes), default=None)

    # Paths.

    def _cost(self, place: Place, node: Node) -> int:
        """What it costs that a node was visited before, and that loops have made turns."""
        visits = self._visits[node, place.loops] = self._visits.get((node, place.loops), -1) + 1
        return COST_OF_VISIT * visits + COST_OF_TURN * sum(turns for _, turns in place.loops)

    def _wait(self, cost: int, item: Real) -> None:
        self._pushed += 1
        # The newest first: of equally good paths, the one at hand.
        heapq.heappush(self._pool, (cost, -self._pushed, item))
        if len(self._pool) > MOST_WAITING:
            # The worst are given up: each holds a whole memory. A sorted list is a heap.
            self._pool.sort()
            del self._pool[MOST_WAITING // 2 :]

    def _other_way(self, real: Real) -> Verdict | None:
        """Follows the way not taken, if there are inputs for it."""
        fork = real.item
        assert isinstance(fork, Fork) and fork.state.place is not None
        matters = self._matters(fork.state.place)
        possible = self._possible if matters else self._runner.possible
        found = possible.model(fork.before, fork.condition, fork.model)
        if isinstance(found, Model):
            fork.state.model = found
            return self._straight(real._replace(item=fork.state))
        return self._again_from(fork, real.anchor, fork.state.place.pc) if matters else None

    def _again_from(self, fork: Fork, anchor: Anchor | None, pc: int) -> Verdict | None:
        """With inputs for what matters alone, from the entry of a function around."""
        for _ in range(MOST_ANCHORS):
            if anchor is None or self._seeds.get(pc, 0) >= MOST_SEEDS:
                return None
            start = anchor.state
            known = set(start.path.terms)
            wanted = [term for term in fork.before.terms if term not in known and term not in self._runner.incidental]
            condition = t.conj([*wanted, fork.condition])
            found = self._possible.model(start.path, condition, start.model)
            if isinstance(found, Model):
                self._seeds[pc] = self._seeds.get(pc, 0) + 1
                seed = _again(start)
                seed.model = found
                return self._straight(Real(seed, anchor, anchor.nodes))
            anchor = anchor.around
        return None

    def _straight(self, real: Real) -> Verdict | None:
        """A path as its inputs lead it, as long as it can lead to the target, and until a loop begins another turn that
        seems farther from it than a way not taken: the same inputs would lead through such a loop for ever. Not so
        where a count ends the loop, whatever the inputs are: a device that is polled, and never ready."""
        row, targets = self._program.decoder.row, self._program.targets
        begun = self._pushed
        pushed: dict[int, int] = {}
        """What was waiting when a loop began its last turn: what waits since then may be better."""
        counting: set[int] = set()
        """Heads of loops that will end by themselves, as far as this turn tells."""
        while not self._is_over():
            state = real.item
            assert isinstance(state, PathState) and state.place is not None
            place = state.place
            self._tell(place.pc)
            if row.code_address(state.pc) in targets and not state.script.decisions:
                return self._confirmed(state)
            if place.loops and place.loops[-1][0] == place.pc:
                head, turns = place.loops[-1]
                is_counting = head in counting and turns < MOST_COUNTED
                counting.discard(head)
                is_new = self._pushed > pushed.get(head, begun)
                may_leave = turns and is_new and not is_counting and not self._is_as_told(real)
                if may_leave and self._is_farther(real, place):
                    return None
                pushed[head] = self._pushed
            ways = self._advance(state, real)
            if place.loops and not self._runner.forks and self._may_leave(place):
                counting.add(place.loops[-1][0])
            if isinstance(ways, Verdict):
                return ways
            if not ways:
                return None
            # Several only where a jump goes through a table.
            ways.sort(key=lambda way: (not self._is_as_told(way[1]), way[0]))
            for distance, other in ways[1:]:
                self._wait(distance + COST_OF_QUESTION, other)
            real = ways[0][1]
        return None

    def _is_as_told(self, real: Real) -> bool:
        """Whether a path still has the inputs to begin with, whatever others it has."""
        model = real.item.model
        if self._inputs is None or model is None or self._blocks >= self._expected:
            return False
        return all(model.values.get(variable) == value for variable, value in self._inputs.values.items())

    def _may_leave(self, place: Place) -> bool:
        """Whether a block is a test that ends the loop around it, other than in a violation."""
        function, head = self._order.function(place.function), place.loops[-1][0]
        following = function.successors(place.pc)
        ends = [to for to in following if head not in function.place(to)[1] and not self._is_target(to)]
        return len(following) > 1 and bool(ends)

    def _is_farther(self, real: Real, place: Place) -> bool:
        """Whether a path at the head of a loop is left, for now, for one that seems nearer to the target."""
        cost = (self._distance(real.nodes) or 0) + COST_OF_TURN * sum(turns for _, turns in place.loops)
        if not self._pool or self._pool[0][0] >= cost:
            return False
        self._wait(cost, real)
        return True

    def _advance(self, state: PathState, real: Real) -> Verdict | list[tuple[int, Real]]:
        """One block: the ways on from it, with their distances."""
        place, anchor = state.place, real.anchor
        assert place is not None
        source = place.pc
        node: Node = (source, state.calls, self._apart(state, True))
        here = self._distance(real.nodes) or 0
        self._blocks += 1
        result = self._runner.run(state)
        for lost in result.mismatches:
            found = self._confirmed(lost)
            if found is not None:
                return found
        best = here + 1
        ways: list[tuple[int, Real]] = []
        for transfer, run in result.successors:
            self._order.move(run, transfer, source)
            nodes = self._entered(real.nodes, run)
            around = anchor
            if transfer is Transfer.RETURN:
                around = anchor.around if anchor is not None else None
                if len(run.path.terms) > LONG_PATH and run.model is not None:
                    freeze(run, self._queries.table)
            elif transfer is Transfer.CALL:
                around = Anchor(_again(run), anchor, nodes)
            distance = self._distance(nodes)
            if distance is not None:
                ways.append((distance, Real(run, around, nodes)))
                best = min(best, distance)
        if self._runner.forks:
            # If the inputs at hand lead away from the target, the other way is the one that leads to it.
            cost = max(here - 1, 0) if best >= here else here + COST_OF_QUESTION
            cost += self._cost(place, node)
            if not self._matters(place):
                cost += COST_OF_DETOUR
            if not ways and self._is_as_told(real):
                cost = -COST_OF_QUESTION  # inputs that nothing was told of lead away: others come first
            for fork in self._runner.forks:
                self._wait(cost + COST_OF_QUESTION, Real(fork, anchor, real.nodes))
        return ways

    def _confirmed(self, run: PathState) -> Verdict | None:
        if run.model is None:
            return None
        found = replayed(self._program, run)
        return found if isinstance(found, Verdict) else None


def _fits(real: dict[int, object], abstract: Values) -> bool:
    """Whether a path may belong to an abstract state, by what is known of what is kept apart."""
    return all(value == "?" or real.get(number, value) in ("?", value) for number, value in abstract)


def _again(state: PathState) -> PathState:
    twin = state.fork(state.pc, dict(state.registers), state.memory.copy(), state.model)
    twin.key = state.key
    return twin
