"""Abstract states that meet become one, which says what both say.

A state stands for every machine state that some values of its variables make of it. Where two states differ, the joined
one has a fresh variable, the same one wherever the same two values meet (`meeting`), so that equal values stay equal.
Registers come first, then memory (`joined_values`, `joined_memory`), then what the joined state says of its variables
(`joined_paths`; also for what is taken from ESP). All of this only ever adds states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcveto.engines.domain import as_term
from mcveto.engines.memory import Value
from mcveto.engines.path import Path
from mcveto.engines.simulation.arrivals import joined_arrivals, settle
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.joined_memory import JoinedMemory
from mcveto.engines.simulation.joined_paths import JoinedPaths
from mcveto.engines.simulation.joined_values import JoinedValues, is_variable
from mcveto.engines.simulation.meeting import NO_TESTS, Meeting, Setting
from mcveto.engines.state import PathState
from mcveto.logic.substitute import Substitution


class Joins:
    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._executor = setting.executor
        self._layout = setting.program.decoder.layout
        self._table = setting.table
        self._covering = setting.covering
        self._paths = JoinedPaths(setting)

    def joined(
        self,
        first: PathState,
        second: PathState,
        is_loop: bool,
        guesses: bool = True,
        numbers: tuple[int, ...] = (),
        tests: Mapping[tuple[Value, Value], int] = NO_TESTS,
        tested: Collection[Value] | None = None,
    ) -> PathState:
        """`guesses`, `numbers`, `tests` and `tested`: see `Meeting`."""
        return self.of(Meeting(self._setting, first, second, is_loop, guesses, numbers, tests, tested))

    def of_both(self, meeting: Meeting) -> PathState | None:
        """The state that stands for both also in a loop, where guesses need to hold of the second only: a turn from the
        first has been followed to its end. None if that is not certain."""
        joined = self.of(meeting)
        named = [*((new, a) for (_, a, _), new in meeting.pairs.items()), *((new, a) for new, a, _ in meeting.indices)]
        at_first = Substitution({new: as_term(a, new.width) for new, a in named}).apply
        is_part = all(self._covering.implied(meeting.first, at_first(term)) for term in joined.path.terms)
        return joined if is_part else None

    def of(self, meeting: Meeting) -> PathState:
        """The state that stands for both that meet."""
        first, second = meeting.first, meeting.second
        settle(second)
        settle(first)
        values = JoinedValues(meeting)
        registers = self._registers(meeting, values)
        memories = JoinedMemory(meeting, values)
        result = PathState(
            first.pc, registers, memories.join(), Path(self._table), first.calls, second.model,
            self._executor.positions.joined(first.log, second.log), first.steps, place=second.place, key=second.key,
        )  # fmt: skip
        settle(second)  # what was read just now
        settle(first)
        values.counters.guess_bounds()
        for term in self._paths.conjuncts(meeting, self._live(result)):
            result.path.add(term)
        if self._executor.unknowns.is_recorded:
            named = [*((new, a, b) for (_, a, b), new in meeting.pairs.items()), *meeting.indices]
            result.arrivals = joined_arrivals(second, ((new, b) for new, _, b in [*named, *memories.absorbed]))
            if not meeting.is_loop:
                others = joined_arrivals(first, ((new, a) for new, a, _ in named))
                result.arrivals = (*others, *result.arrivals)
            self._forget_names(result)
        memories.note_loose(result)
        return result

    def _registers(self, meeting: Meeting, values: JoinedValues) -> dict[int, Value]:
        first, second = meeting.first, meeting.second
        pairs = {
            number: (self._covering.register(first, number), self._covering.register(second, number))
            for number in sorted(first.registers.keys() | second.registers.keys())
        }
        # Variables first: what was computed from them may then be said of what stands for them.
        order = sorted(pairs, key=lambda number: not all(map(is_variable, pairs[number])))
        live, cells = self._setting.live_registers(second), self._layout.cells
        result: dict[int, Value] = {}
        for number in order:
            a, b = pairs[number]
            is_dead = not live >> number & 1 and a is not b and a != b
            bits = cells[number].bits
            result[number] = meeting.anything(a, b, bits) if is_dead else values.value(a, b, bits, ("register", number))
        return result

    def _forget_names(self, result: PathState) -> None:
        """What an earlier join made, and nothing holds any longer, needs no name: where hundreds of ways meet one after
        the other, each would carry the names of all joins."""
        memory = result.memory
        assert isinstance(memory, CoarseMemory)
        unknowns, definitions = self._executor.unknowns, self._executor.remainders.definitions
        said = [*result.path.terms, *(term for key, entry in memory.looked.items() for term in (key[0], entry[0]))]
        live = self._live(result).union(*(self._table.of(term) for term in said))
        divided = [definitions[key][0] for key in live if key in definitions]
        live = live.union(*(self._table.of(term) for term in divided))
        result.arrivals = tuple(
            arrival._replace(
                names={
                    name: term for name, term in arrival.names.items() if name in live or name not in unknowns.origins
                }
            )
            for arrival in result.arrivals
        )

    def _live(self, state: PathState) -> frozenset[object]:
        """The variables that registers and cells mention."""
        table = self._table
        memory = state.memory
        assert isinstance(memory, CoarseMemory)
        keys: set[object] = {*memory.keys_of_cells(table)}
        for value in (*state.registers.values(), *memory.words_read()):
            if not isinstance(value, int):
                keys.update((value,) if value.op == "var" else table.of(value))
        return frozenset(keys)
