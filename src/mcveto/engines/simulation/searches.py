"""Searches for an input that reaches what seems to be reached (`directed`): how often, how far, and for how long.

What an abstract state seems to reach is either a violation or something that was forgotten. Before anything is done
again, a search is worth a part of what that would cost: a glance for a straight way, a search of its own for each new
place, and a longer one for all of them before everything is begun anew. No deviation from a paper: none says when to
stop looking.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from mcveto.dpg.location import Blocks
from mcveto.engines.order import Order
from mcveto.engines.path import KeyTable
from mcveto.engines.queries import Queries
from mcveto.engines.simulation.apart import KeptApart
from mcveto.engines.simulation.coarse_executor import CoarseExecutor
from mcveto.engines.simulation.directed import MOST_BLOCKS, DirectedSearch, Node
from mcveto.engines.simulation.relevance import Relevance
from mcveto.engines.simulation.representatives import RunExecutor
from mcveto.engines.state import PathState, Place
from mcveto.program.program import Program
from mcveto.verdict import Verdict

QUERY_SECONDS = 0.6
MOST_SEARCHES = 6
MOST_GLANCES = 20
# Instructions that are executed again, so many of which are as dear as a block of a search. A search has a part of the
# time of the turn, or of so much of all that is left.
GLANCE = 2
# A search for an input is worth such a part of what was executed: at first, and before all is done once more.
SHORT_SEARCH = 8
LONG_SEARCH = 2
SHARE_OF_SEARCH = 0.5
SHARE_OF_GLANCE = 0.1
# Of all time: where nothing is to be found, a glance at every doubt would leave none.
SHARE_OF_ALL_GLANCES = 0.2
LEAST_SHARE = 0.02

Edges = list[tuple[Node, Node]]


class Searches:
    def __init__(
        self,
        program: Program,
        code: Blocks,
        executor: CoarseExecutor,
        order: Order,
        apart: KeptApart,
        relevance: Relevance,
        table: KeyTable,
        matters: Callable[[Place], bool],
        tell: Callable[[int], None],
        deadline: float,
        questions_per_solver: int,
    ) -> None:
        self._program = program
        self._executor = executor
        self._order, self._apart, self._relevance = order, apart, relevance
        self._table = table
        self._branch_matters, self._tell = matters, tell
        self._deadline = deadline
        self.queries = Queries(program, deadline, QUERY_SECONDS, questions_per_solver)
        self._runner = RunExecutor(program, self.queries)
        self._runner.recorder.give_up()  # paths to a violation only
        self._runner.share(code, executor)
        self._made = 0
        self._glances = 0
        self._glanced = 0.0

    def begin(self, first: PathState) -> None:
        self._first = first
        self._begun = time.monotonic()

    def forget(self) -> None:
        """All is begun anew, and may be searched for again."""
        self._made = 0

    def glance(
        self, state: PathState, node: Node, edges: Callable[[], Edges], cost: int, until: float
    ) -> Verdict | None:
        """Where much would be done again, so many instructions, a straight way to the target is looked for first."""
        left = SHARE_OF_ALL_GLANCES * (self._deadline - self._begun) - self._glanced
        if self._glances >= MOST_GLANCES or left <= 0:
            return None
        self._glances += 1
        started = time.monotonic()
        seconds = min(left, self._seconds(SHARE_OF_GLANCE, until))
        found = self._search(state, node, edges(), seconds, cost // GLANCE)
        self._glanced += time.monotonic() - started
        return found

    def at(
        self, state: PathState, node: Node, edges: Callable[[], Edges], until: float, is_thorough: bool
    ) -> Verdict | None:
        """A search for a place that was not come to before; the first few."""
        self._made += 1
        if self._made > MOST_SEARCHES:
            return None
        least = self._executor.instructions // (SHORT_SEARCH * GLANCE)
        seconds = self._seconds(SHARE_OF_SEARCH, until)
        return self._search(state, node, edges(), seconds, None if is_thorough else MOST_BLOCKS, least)

    def longer(
        self, doubtful: Iterable[tuple[PathState, Node]], edges: Callable[[], Edges], until: float
    ) -> Verdict | None:
        """No target was easier: what is worth less than doing all once more is tried for each of them."""
        for state, node in doubtful:
            least = self._executor.instructions // (LONG_SEARCH * GLANCE)
            seconds = self._seconds(SHARE_OF_SEARCH, until)
            found = self._search(state, node, edges(), seconds, MOST_BLOCKS, least)
            if found is not None:
                return found
        return None

    def _seconds(self, share: float, until: float) -> float:
        """A turn that is nearly over must not be the reason that nothing is found: nobody looks twice."""
        now = time.monotonic()
        return share * max(until - now, LEAST_SHARE * (self._deadline - now))

    def _search(
        self, state: PathState, node: Node, edges: Edges, seconds: float, most_blocks: int | None, least: int = 0
    ) -> Verdict | None:
        search = DirectedSearch(
            self._program, self._runner, self.queries, self._order, self._apart.values, self._branch_matters,
            self._relevance.is_target, self._tell,
        )  # fmt: skip
        executor = self._executor
        inputs = executor.positions.agreeing(state, self._table, self.queries, executor.meaning)
        return search.run(self._first, edges, node, seconds, most_blocks, least, inputs)
