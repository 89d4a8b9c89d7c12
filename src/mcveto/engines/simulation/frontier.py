"""What one exploration has come to and what waits to be executed: of the whole program, or of one call for a summary.

The places that wait are a priority queue in the order of the code (`order`), so that all ways to a place have arrived
when it is executed (after ESP, as in `simulate`). No deviation: the paper's worklist, with what is known of its loops.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from mcveto.engines.memory import Value
from mcveto.engines.simulation.checkpoints import Key, Slot
from mcveto.engines.simulation.directed import Node, Values
from mcveto.engines.simulation.summaries import Replay
from mcveto.engines.state import Calls, PathState

MOST_COMPARED = 8


class Frontier:
    def __init__(self) -> None:
        self.slots: dict[Key, Slot] = {}
        self._pool: list[tuple[tuple[int, ...], int, Key]] = []
        """Names of places that wait, and of some that do not wait any longer."""
        self._added = 0
        self.edges: list[tuple[Node, Node]] = []
        self.replays: list[Replay] = []
        self.heads: dict[Key, tuple[PathState, int]] = {}
        """States at the heads of loops, with their number in the record."""
        self.joined: dict[Key, int] = {}
        self.entered: dict[Key, int] = {}
        """The instructions that had been executed when a head was executed last."""
        self.arrived: dict[Key, int] = {}
        """The same for when a loop was come to from outside."""
        self.compared: dict[tuple[int, Calls | None], dict[tuple[Value, Value], int]] = {}
        """Of loops, what blocks that may leave them have compared in a first turn; latest last."""
        self.tested: dict[tuple[int, Calls | None], set[Value]] = {}
        """What they have compared with anything in the last turn."""
        self.open: dict[str, None] = {}
        """Why nothing is proved."""

    def add(self, key: Key, slot: Slot) -> None:
        self._added += 1
        self.slots[key] = slot
        heapq.heappush(self._pool, (slot.state.key, self._added, key))

    def note_compared(self, head: int, calls: Calls | None, found: Mapping[tuple[Value, ...], int]) -> None:
        """What a block that can leave the loop has compared."""
        known = self.compared.setdefault((head, calls), {})
        for sides, bits in found.items():
            if len(sides) == 2:
                known.pop(sides, None)
                known[sides] = bits
        for sides in [*known][:-MOST_COMPARED]:
            del known[sides]

    def first_waiting(self) -> Key:
        while True:
            key = heapq.heappop(self._pool)[2]
            if key in self.slots:
                return key

    def drop_all(self) -> None:
        """Nothing waits."""
        self.slots, self._pool = {}, []

    def name_heads_again(self, values: Callable[[PathState], Values]) -> None:
        """A loop that was begun before something was kept apart is still the same loop: if its next turn did not find
        its first, the whole loop would be followed once more."""
        names = {where: (*where[:3], values(state)) for where, (state, _) in self.heads.items()}
        self.heads = {names[where]: head for where, head in self.heads.items()}
        for counts in (self.joined, self.entered, self.arrived):
            for where, name in names.items():
                if where in counts:
                    counts[name] = counts.pop(where)
