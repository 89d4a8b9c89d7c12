"""A target that an abstract state seems to reach: is it a violation, or was something forgotten?

Cheapest first: what a join forgot is kept apart from then on; every branch of the functions around is asked about; a
real path is looked for (`searches`); and if nothing of that helps for some targets, the simulation begins anew, first
without summaries, then with every branch asked about. Where much would be done again, a glance for an input comes
first.

ESP (as in `simulate`) is told what to track; that it is found in what seems to go wrong is counterexample-guided
refinement (Clarke, Grumberg, Jha, Lu, Veith, CAV 2000). Deviation: it does not begin anew each time, but goes back to a
checkpoint (`checkpoints`).
"""

from __future__ import annotations

from collections.abc import Collection

from mcveto.engines.path import KeyTable
from mcveto.engines.simulation.apart import Item, KeptApart, flag_of
from mcveto.engines.simulation.asking import Asking, Doubt
from mcveto.engines.simulation.certain_loops import CertainLoops
from mcveto.engines.simulation.checkpoints import Checkpoints, Key, Refined, addresses
from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.engines.simulation.directed import Node
from mcveto.engines.simulation.frontier import Frontier
from mcveto.engines.simulation.searches import Edges, Searches
from mcveto.engines.simulation.since_change import flags_of, places_since_change
from mcveto.engines.simulation.summaries import Summaries, edges_of
from mcveto.engines.state import PathState
from mcveto.verdict import Verdict

FEW_HITS = 3
MOST_APART = 500
MOST_DOUBTFUL = 3


class Doubts:
    def __init__(
        self,
        apart: KeptApart,
        unknowns: Unknowns,
        table: KeyTable,
        asking: Asking,
        searches: Searches,
        summaries: Summaries,
        checkpoints: Checkpoints,
        frontier: Frontier,
        loops: CertainLoops,
    ) -> None:
        self._apart, self._unknowns, self._table = apart, unknowns, table
        self._asking, self._searches = asking, searches
        self._summaries, self._checkpoints = summaries, checkpoints
        self._frontier = frontier
        self._loops = loops
        self._hits: dict[Key, int] = {}
        self.open: dict[Key, tuple[PathState, Node]] = {}
        """Targets that seem to be reached, and no input was found that does; as they were come to last."""
        self.trusts_summaries = True
        self.asks_all = False
        """Whether every branch is asked about; if a target seems to be reached even then, nobody knows."""

    def begin(self, first: PathState) -> None:
        self._first = first

    def about(self, state: PathState, node: Node, until: float) -> Verdict | None:
        """A violation, or None if the target is left open; raises `Refined` where something is to be done again."""
        place: Key = (state.pc, tuple(addresses(state.calls)))
        if place in self.open:
            self.open[place] = state, node
            return None
        heads = self._loops.behind(state, self._table)
        if heads:
            serial = self.run_loops(heads)
            found = self._glance(state, node, serial, until) if self._checkpoints.is_far_back(serial) else None
            if found is not None:
                return found
            raise Refined(serial)
        self._hits[place] = self._hits.get(place, 0) + 1
        if self._hits[place] <= FEW_HITS and len(self._apart.items) < MOST_APART:
            forgotten = self._apart.forgotten(state, self._unknowns, self._table)
            if forgotten is not None:
                item, serial = forgotten
                if self._checkpoints.is_far_back(serial):
                    found = self._ask_nearby(state, node, place, until)  # much less is done again
                    if found is None:
                        found = self._glance(state, node, serial, until)
                    if found is not None:
                        return found
                self.keep_apart(item)
                raise Refined(serial)
        found = self._ask_nearby(state, node, place, until)
        if found is None:
            found = self._searches.at(state, node, self._edges, until, self.asks_all)
        if found is not None or self.asks_all:
            return found
        self.open[place] = state, node  # another target may be easier
        return self.at_end(until) if len(self.open) > MOST_DOUBTFUL else None

    def at_end(self, until: float) -> Verdict | None:
        """Nothing is left to follow, or too much is in doubt: a violation; None if nothing is in doubt."""
        if not self.open:
            return None
        found = self._searches.longer(self.open.values(), self._edges, until)
        if found is not None:
            return found
        self._from_the_start()
        raise Refined(0)

    def keep_apart(self, item: Item) -> None:
        if item in self._apart.items:
            self._apart.guards.free(flag_of(item))
        else:
            self._apart.add(item)
        self._summaries.kept_apart(item)

    def run_loops(self, heads: Collection[int]) -> int:
        """These loops are run from now on, since before the variable that is returned."""
        functions = self._loops.functions(heads)
        self._summaries.drop(lambda summary: not functions.isdisjoint(summary.functions))
        return self._loops.run(heads)

    def _edges(self) -> Edges:
        """All steps of the simulation, with those within calls for which a summary was used."""
        return [*self._frontier.edges, *edges_of(self._frontier.replays, self._apart.items)]

    def _from_the_start(self) -> None:
        """What seems to be reached was not: once more, with every loop run that ends whatever the inputs are; then with
        every call followed, because a summary may have lost what makes a target unreachable; if that was done already,
        with every branch asked about."""
        joined = self._loops.left()
        if joined:
            self.run_loops(joined)
        elif self.trusts_summaries and self._frontier.replays:
            self.trusts_summaries = False
            self._asking.functions.clear()
        else:
            self.asks_all = True
            self._summaries.drop(lambda summary: True)
        self.open.clear()
        self._hits.clear()
        self._searches.forget()

    def _glance(self, state: PathState, node: Node, serial: int, until: float) -> Verdict | None:
        """A look for an input, before all since a variable was made is done again."""
        return self._searches.glance(state, node, self._edges, self._checkpoints.cost(serial), until)

    def _ask(self, doubt: Doubt | None, state: PathState, node: Node, hit: Key, until: float) -> Verdict | None:
        """From now on asks about every branch of these functions; nothing if there is none. Where that is far back, an
        input that is found at a glance saves it."""
        if doubt is None:
            return None
        if self._checkpoints.is_far_back(doubt.serial):
            found = self._glance(state, node, doubt.serial, until)
            if found is not None:
                return found
        functions = doubt.functions
        self._asking.functions |= functions
        self._summaries.drop(lambda summary: not functions.isdisjoint(summary.functions))
        del self._hits[hit]
        raise Refined(doubt.serial)

    def _ask_nearby(self, state: PathState, node: Node, hit: Key, until: float) -> Verdict | None:
        if self.asks_all:
            return None
        found = self._ask(self._asking.around(state), state, node, hit, until)
        if found is not None:
            return found
        number_of = {number for number, _ in self._apart.of.get(None, ())}
        first = flags_of(self._apart.values(self._first), number_of)
        if flags_of(node[2], number_of) != first:
            places = places_since_change(node, self._edges(), number_of)
            return self._ask(self._asking.since_change(state, places), state, node, hit, until)
        return None
