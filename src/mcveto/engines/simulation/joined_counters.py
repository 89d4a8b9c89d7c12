"""What has grown by a constant in one turn of a loop: joined into its value before, so many turns later.

All that counts in a loop is told by the same variable, the number of the turn (`turns`, with where this comes from).
The first join at the head of a loop finds what counts, and by how much; the next ones find the turn again in what they
made. What the turn was decided by, numbers in the text of the loop, and what a count began with suggest bounds of the
counters; those that hold of the later state are said of the joined one, and dropped by the next join if they do not
hold there.
"""

from __future__ import annotations

from typing import cast

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import Value
from mcveto.engines.simulation.checkpoints import run_of
from mcveto.engines.simulation.joined_bounds import counts_slowly, enclose
from mcveto.engines.simulation.joined_places import may_be_place
from mcveto.engines.simulation.meeting import FLAG, Meeting, Where
from mcveto.engines.simulation.turns import (
    compared_otherwise,
    counted,
    guesses,
    narrowed,
    renamed,
    starts,
    step_between,
    thresholds,
)
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.memory import EXECUTE

# Bits of what most programs count with.
WORD = 32
# Bytes that a pointer moves in one turn.
WIDEST_STEP = 1 << 20
# Turns that a bound of a loop is guessed for.
MOST_TURNS = 1 << 20


class JoinedCounters:
    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self._setting = meeting.setting
        self._run = run_of(meeting.second) if meeting.is_loop else None
        self._turn_of: dict[int, Term] = {}
        self._counters: dict[Term, tuple[Term, int]] = {}
        self._began: list[tuple[Term, int]] = []
        self._limits: list[tuple[Term, int, Value, Value, int]] = []
        """Of a turn, by how much something counts and what it was compared with, so many turns ago."""

    def value(self, a: Value, b: Value, bits: int, where: Where) -> Value | None:
        """A value that grew by a constant in this turn: so many turns of it. Numbers outside the stack get variables of
        their own, because states may have to be kept apart by them."""
        if bits not in (WORD, self._setting.address_bits):
            return None
        later = self._setting.turns.later(a, b, bits, self._run)
        if later is not None:
            turn, now = later
            self._meeting.origin(where)
            return renamed(a, turn, self._next_turn(turn, now))
        is_number = isinstance(a, int) and not may_be_place(a, self._setting.space)
        if is_number and not self._is_local(where):
            return None
        narrow = narrowed(a, b)
        if bits > WORD and is_number and isinstance(b, int) and max(cast(int, a), b) >> WORD == 0:
            narrow = a, b, WORD
        if narrow is not None and narrow[2] == WORD:
            found = self._first_turns(narrow[0], narrow[1], WORD, where)
            return as_value(t.zext(as_term(found, WORD), bits)) if found is not None else None
        return self._first_turns(a, b, bits, where)

    def has_turns(self, a: Value, b: Value, where: Where) -> bool:
        """Whether two numbers are told by the number of the turn there, also where the same two, elsewhere, are not."""
        return isinstance(a, int) and isinstance(b, int) and self._is_local(where)

    def _is_local(self, where: Where) -> bool:
        return where[0] == "register" or self._setting.on_stack(where[1])

    def of_ways(self, a: Value, b: Value, where: Where) -> Value | None:
        """Two ways that meet within a loop and count alike, as states that were kept apart at its head: so many turns,
        of either way."""
        met = self._setting.turns.met(a, b)
        if met is None:
            return None
        start, mine, other, step = met
        self._meeting.origin(where)
        turn = self._next_turn(mine, other)
        return as_value(t.add(start, t.mul(turn, t.const(step, turn.width))))

    def _next_turn(self, turn: Term, now: Term) -> Term:
        """What stands for two turns."""
        pair = (turn.width, turn, now)
        pairs = self._meeting.pairs
        if pair not in pairs:
            unknowns = self._setting.unknowns
            pairs[pair] = unknowns.fresh(turn.width)
            turns = self._setting.turns
            turns.add(pairs[pair], turns.run_of(turn))
            turns.ends[pairs[pair]] = turns.ends.get(turn, frozenset()) | turns.ends.get(now, frozenset())
            unknowns.shared[pairs[pair]] = [
                *dict.fromkeys([*unknowns.shared.get(turn, []), *unknowns.shared.get(now, [])])
            ]
        return pairs[pair]

    def _first_turns(self, a: Value, b: Value, bits: int, where: Where) -> Value | None:
        step = step_between(a, b, bits)
        if step is None or abs(step) > WIDEST_STEP or self._is_code(a):
            return None
        turn = self._turn(bits)
        origin = self._meeting.origin(where)
        if isinstance(a, int) and isinstance(b, int) and max(a, b) < FLAG:
            self._setting.unknowns.shared[turn].append(origin)
        size = t.const(abs(step), bits)
        self._counters.setdefault(t.mul(turn, size), (size, 1))
        if step < 0:
            self._began += [(start, abs(step)) for start in starts(as_term(a, bits))]
        self._note_last(a, b, step, bits, turn)
        found = counted(a, turn, step, bits)
        if isinstance(found, Term):
            self._counters.setdefault(found, (as_term(b, bits), step))
            enclose(self._meeting, found, a, b, bits, self._meeting.guesses or counts_slowly(a, b))
        return found

    def _note_last(self, a: Value, b: Value, step: int, bits: int, turn: Term) -> None:
        """The number of the last turn, if the first one compared what counts here, as it was then or had been counted
        already, with something at a constant distance."""
        meeting = self._meeting
        if not (meeting.guesses or counts_slowly(a, b)):
            return
        place = meeting.first.place
        before = place.loops[-1][1] if place is not None and place.loops else 0
        """Turns since the comparison."""
        perhaps: set[int] = set()
        for (one, other), width in reversed([*meeting.tests.items()]):
            if width != bits:
                continue
            if isinstance(one, int) and isinstance(other, int) and isinstance(a, Term):
                perhaps.add(abs(one - other) // abs(step) - before)
            for counter, limit in ((one, other), (other, one)):
                behind, distance = step_between(counter, a, bits), step_between(counter, limit, bits)
                if behind not in (before * step, (before - 1) * step):
                    continue
                if distance is None:
                    self._limits.append((turn, step, counter, limit, before))
                    continue
                last = -(-abs(distance) // abs(step)) - before if distance * step > 0 else 0
                if 0 < last <= MOST_TURNS:
                    self._note_end(turn, last)
                    return
        # A pointer that nobody knows: what was compared may be how far it has come.
        for last in sorted(perhaps):
            if 0 < last <= MOST_TURNS:
                self._note_end(turn, last)

    def _note_end(self, turn: Term, last: int) -> None:
        self._meeting.bounds.append(t.ule(turn, t.const(last, turn.width)))
        ends = self._setting.turns.ends
        ends[turn] = ends.get(turn, frozenset()) | {last}

    def _is_code(self, value: Value) -> bool:
        """Whether a number is the address of code: what a call left behind, and no count."""
        region = self._setting.space.region_at(value) if isinstance(value, int) else None
        return region is not None and bool(region.permissions & EXECUTE)

    def _turn(self, bits: int) -> Term:
        """The number of the turn, in so many bits."""
        found = self._turn_of.get(bits)
        if found is None:
            found = self._turn_of[bits] = self._setting.unknowns.fresh(bits)
            self._setting.turns.add(found, self._run)
            self._meeting.indices.append((found, 0, 1))
            self._counters[found] = t.const(1, bits), 1
            self._setting.unknowns.shared[found] = []
        return found

    def guess_bounds(self) -> None:
        """Bounds of all counters that were found, as far as bounds are guessed at all."""
        meeting = self._meeting
        if not self._counters or not meeting.guesses:
            return
        known = {*meeting.first.path.terms}
        recent = [term for term in reversed(meeting.second.path.terms) if term not in known]
        counters = [(new, *now) for new, now in self._counters.items()]
        said = [guess for bits in self._turn_of for guess in guesses(counters, recent, bits)]
        others = compared_otherwise(counters, recent)
        meeting.bounds += thresholds(counters, (number for number in meeting.numbers if number not in others))
        for turn in self._turn_of.values():
            for start, step in self._began:
                if start.width <= turn.width:
                    if start.op == "const":
                        ends = self._setting.turns.ends
                        ends[turn] = ends.get(turn, frozenset()) | {start.data // step}
                    size, wide = t.const(step, turn.width), t.zext(start, turn.width)
                    said.append((t.ult(t.mul(turn, size), wide), t.ult(size, wide)))
        for turn, step, counter, limit, before in self._limits:
            first, last = (as_term(value, turn.width) for value in ((counter, limit) if step > 0 else (limit, counter)))
            size = t.const(abs(step), turn.width)
            left = t.sub(t.sub(last, first), t.mul(size, t.const(before, turn.width)))
            said.append((t.ule(t.mul(turn, size), left), t.ule(size, left)))
            # What is left may be less than nothing, for all that its bounds tell.
            path = meeting.second.path
            most = (bounds_of(last, path)[1] - bounds_of(first, path)[0]) // abs(step) - before
            if 0 < most <= MOST_TURNS:
                meeting.bounds.append(t.ule(turn, t.const(most, turn.width)))
        implied = self._setting.covering.implied
        meeting.bounds += [guess for guess, told in dict(said).items() if implied(meeting.second, told)]
        if len(self._turn_of) > 1:
            narrow, wide = sorted(self._turn_of.values(), key=lambda turn: turn.width)
            meeting.bounds.append(t.eq(wide, t.zext(narrow, wide.width)))
