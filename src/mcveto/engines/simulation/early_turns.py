"""A long turn of the outermost loop is begun again with what its first part has shown.

The loop of a driver calls hundreds of handlers. If all of them are followed from the state before the first request,
all are followed again from what they have left behind. But a few handlers leave behind most of what all do: the fields
of devices that any of them sets. So after some instructions what has been done so far goes on to the end of the turn,
before what waits, and meets the state at the head: the loop is begun again from there, and what still waits is dropped.

What is dropped has come through the head in this turn (`Slot.passed`), and every state that has left the head in this
turn is part of one that is begun again: so every machine state that is dropped is come to again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from mcveto.engines.simulation.checkpoints import Key, Slot, again
from mcveto.engines.simulation.join import Joins
from mcveto.engines.simulation.meeting import Meeting, Setting
from mcveto.engines.state import PathState, Place

# Instructions of a turn before it is begun again, and how many times as many the next time.
FIRST_PART = 3000
GROWTH = 4
LONGEST_PART = 20_000
Prefix = tuple[int, ...]
"""Where a loop and its turn are in the order of all places."""
# Blocks that are executed to come to the end of a turn.
MOST_HURRIED = 300


def outermost(state: PathState) -> Prefix | None:
    """The loop and its turn, if the state is at the head of a loop that is within no other."""
    place = state.place
    if place is None or len(place.loops) != 1 or place.loops[0][0] != place.pc:
        return None
    caller: Place | None = place.caller
    while caller is not None:
        if caller.loops:
            return None
        caller = caller.caller
    return state.key[:-2]


def head_of(key: Key) -> Key:
    """How the head of an outermost loop is called that waits by this name."""
    return (*key[1:3], (), key[3])


class Turn(NamedTuple):
    """A turn of an outermost loop that is being followed."""

    number: int
    """Of all turns that were begun: what has come through the head in another one is not of this one, even if that loop
    and its turn had the same place in the order."""
    prefix: Prefix
    left: tuple[PathState, ...]
    """The states that have left the head in it."""
    due: float
    """How many instructions will have been executed when it is begun again."""
    part: float
    """And how many of these in this turn."""

    @property
    def next_head(self) -> Prefix:
        return (*self.prefix[:-1], self.prefix[-1] + 1, 0, -1)

    def is_around(self, state: PathState) -> bool:
        return state.key[: len(self.prefix)] == self.prefix

    def has(self, slot: Slot) -> bool:
        """Whether what waits is within the loop and has come through the head in this turn."""
        return slot.passed == self.number and self.is_around(slot.state)


class EarlyTurns:
    def __init__(self, setting: Setting, joins: Joins) -> None:
        self._setting = setting
        self._joins = joins
        self.turn: Turn | None = None
        self._turns = 0
        self._waiting: dict[Key, PathState] | None = None
        """What waited for the next turn when the hurry to the end of this one began."""
        self._hurried = 0

    def enter(self, prefix: Prefix, state: PathState, instructions: int) -> int:
        """A state leaves the head; the number of the turn."""
        turn = self.turn
        if turn is not None and turn.prefix == prefix:
            self.turn = turn._replace(left=(*turn.left, state))
            return turn.number
        # A turn that has come to its end by itself has shown everything.
        is_next = turn is not None and turn.prefix[:-1] == prefix[:-1]
        part = math.inf if is_next else FIRST_PART
        self._turns += 1
        self.turn = Turn(self._turns, prefix, (state,), instructions + part, part)
        return self._turns

    def is_later(self, state: PathState) -> bool:
        """Whether a state is in a later turn than the first: what is called there is called again."""
        return self.turn is not None and self.turn.prefix[-1] > 0 and self.turn.is_around(state)

    def restore(self, turn: Turn | None) -> None:
        self.turn, self._waiting = turn, None

    def hurried(self, slots: Mapping[Key, Slot], instructions: int) -> Key | None:
        """What is executed next to come to the end of the turn; None if there is no hurry (any longer)."""
        turn = self.turn
        if turn is None or instructions < turn.due:
            return None
        if self._waiting is None:
            self._waiting, self._hurried = self._arrived(slots), 0
        elif self.has_arrived(slots):
            return None
        inside = [key for key, slot in slots.items() if turn.has(slot)]
        self._hurried += 1
        if not inside or self._hurried > MOST_HURRIED:
            self.postpone(instructions)
            return None
        return max(inside, key=lambda key: slots[key].state.key)

    def _arrived(self, slots: Mapping[Key, Slot]) -> dict[Key, PathState]:
        """What waits for the next turn."""
        assert self.turn is not None
        head = self.turn.next_head
        return {key: slot.state for key, slot in slots.items() if slot.state.key == head}

    def has_arrived(self, slots: Mapping[Key, Slot]) -> bool:
        """Whether something has come to the end of the turn since the hurry began."""
        waited = self._waiting
        return waited is not None and any(waited.get(key) is not state for key, state in self._arrived(slots).items())

    def states_again(self, heads: Mapping[Key, PathState], slots: Mapping[Key, Slot]) -> dict[Key, PathState]:
        """States at the head, in the next turn, that stand for all that has left it in this turn and for what waits for
        the next one by the same names; none if that is not certain, or nothing new has arrived."""
        turn = self.turn
        assert turn is not None
        gone = {id(state) for state in turn.left}
        left = {where: again(state) for where, state in heads.items() if id(state) in gone}
        if len(left) != len(turn.left):  # another state has had the same name since
            return {}
        is_new = False
        for key, state in self._arrived(slots).items():
            where = head_of(key)
            if where not in left or self._setting.covering.covers(heads[where], state) is not None:
                continue
            is_new = True
            meeting = Meeting(self._setting, heads[where], state, is_loop=True, guesses=False)
            both = self._joins.of_both(meeting) if where[0] in slots[key].marks else None
            if both is None:
                return {}
            left[where] = both
        for state in left.values():
            assert state.place is not None
            state.place = state.place._replace(loops=((state.place.pc, turn.prefix[-1] + 1),))
            state.key = turn.next_head
        return {(turn.next_head, *where[:2], where[3]): state for where, state in left.items()} if is_new else {}

    def postpone(self, instructions: int) -> None:
        """The turn is followed for longer."""
        assert self.turn is not None
        part = self._longer()
        self.restore(self.turn._replace(due=instructions + part, part=part))

    def begin_again(self, instructions: int) -> None:
        """Everything that has left the head in this turn leaves it in the next one, as part of something else."""
        assert self.turn is not None
        part = self._longer()
        self._turns += 1
        self.restore(Turn(self._turns, self.turn.next_head[:-2], (), instructions + part, part))

    def _longer(self) -> float:
        assert self.turn is not None
        part = self.turn.part * GROWTH
        return part if part <= LONGEST_PART else math.inf
