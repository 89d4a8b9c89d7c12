"""Two states that meet, and the variables that stand for what they hold.

Where the values of two states differ, the joined state has a fresh variable: the same one wherever the same two values
meet, so that equal values stay equal. What each of the two states has in its place is written down, for proofs, and so
is what the joined state may say of it. Of a place that a join changed it is known which function that was in: it may
have to be kept apart later.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from types import MappingProxyType

from mcveto.engines.memory import Value
from mcveto.engines.path import KeyTable
from mcveto.engines.simulation.coarse_executor import CoarseExecutor
from mcveto.engines.simulation.covering import Covering
from mcveto.engines.simulation.liveness import Liveness
from mcveto.engines.simulation.turns import Turns
from mcveto.engines.state import PathState
from mcveto.logic.terms import Term
from mcveto.program.program import Program

# What may be a flag is less than this.
FLAG = 16
NO_TESTS: Mapping[tuple[Value, Value], int] = MappingProxyType({})
Where = tuple[object, ...]
"""A register, or a word of memory with its address and size."""


class Setting:
    """What all meetings of states of one program have in common."""

    def __init__(
        self,
        program: Program,
        executor: CoarseExecutor,
        table: KeyTable,
        turns: Turns,
        covering: Covering,
        flags: Container[object],
        liveness: Liveness | None = None,
    ) -> None:
        """`flags`: the bytes that decide about a target. `liveness`: which registers somebody reads; if it is not told,
        all are."""
        self.program = program
        self.space = program.space
        self.address_bits = program.decoder.row.address_bits
        self.executor = executor
        self.unknowns = executor.unknowns
        self.table = table
        self.turns = turns
        self.covering = covering
        self._flags = flags
        self._liveness = liveness
        (pointer,) = program.decoder.layout.named(program.decoder.row.stack_pointer)
        first = program.registers.get(pointer.cell.number)
        self._stack = None if first is None else program.space.region_at(first - 1)

    def on_stack(self, address: object) -> bool:
        assert isinstance(address, int)
        return self._stack is not None and self._stack.start <= address < self._stack.end

    def live_registers(self, state: PathState) -> int:
        """Those that may still be read, as bits."""
        if self._liveness is None:
            return -1
        if state.place is not None:
            return self._liveness.live_at(state.place)
        activation = self.executor.activation
        first = activation.general.state.place if activation is not None else None
        return -1 if first is None else self._liveness.live_behind(first.function)

    def is_flag(self, where: Where) -> bool:
        return where[0] == "memory" and where[1] in self._flags


class Meeting:
    def __init__(
        self,
        setting: Setting,
        first: PathState,
        second: PathState,
        is_loop: bool,
        guesses: bool = True,
        numbers: tuple[int, ...] = (),
        tests: Mapping[tuple[Value, Value], int] = NO_TESTS,
        tested: Collection[Value] | None = None,
    ) -> None:
        """`guesses`: whether bounds of all that a loop changes are guessed, not only of what counts slowly; a wrong
        guess costs a turn. `numbers`: what the loop's end compares something with; `tests`: what was compared there in
        its first turn, and how wide that is; `tested`: what was compared there at all, None if nobody knows."""
        self.setting = setting
        self.first, self.second, self.is_loop = first, second, is_loop
        self.guesses = guesses
        self.numbers = numbers
        self.tests = tests
        self._tested = tested
        self.pairs: dict[tuple[int, Value, Value], Term] = {}
        self.indices: list[tuple[Term, Value, Value]] = []
        """Variables that stand for what no register and no cell of the two states holds by itself."""
        self.moved: dict[Term, tuple[Term, Value, Value]] = {}
        """By how much something has moved in this turn of a loop, where that is no number: what stands for it, and its
        two values."""
        self.bounds: list[Term] = []
        self.made: dict[Term, int] = {}
        """New variables, and for how many words of memory they stand."""

    def fresh(self, bits: int, where: Where) -> Term:
        origin = self.origin(where)
        unknowns = self.setting.unknowns
        found = unknowns.fresh(bits)
        self.made[found] = 0
        unknowns.origins[found] = origin
        return found

    def anything(self, a: Value, b: Value, bits: int) -> Term:
        """A variable of its own, of which nothing is said: nobody will look at it."""
        found = self.setting.unknowns.fresh(bits)
        if self.setting.unknowns.is_recorded:
            self.indices.append((found, a, b))
        return found

    def origin(self, where: Where) -> tuple[object, ...]:
        """The place, as one of a function, which differs from now on."""
        place = self.second.place
        origin = (*where, place.function if place is not None else 0)
        unknowns = self.setting.unknowns
        unknowns.first.setdefault(origin, unknowns.count)
        return origin

    def may_end(self, new: Term, *values: Value) -> bool:
        """Whether a loop may end where a variable comes to a number: whether these values, or what was in the same
        place since, were compared there, by themselves. Of a sum of two that count, neither ends at that number."""
        if self._tested is None:
            return True
        table, origins = self.setting.table, self.setting.unknowns.origins
        tested = [table.of(value) for value in self._tested if isinstance(value, Term)]
        keys = {key for of in tested if len(of) == 1 for key in of}
        if any(key in keys for value in values if isinstance(value, Term) for key in table.of(value)):
            return True
        place = origins.get(new)
        return place is not None and any(origins.get(key) == place for key in keys if isinstance(key, Term))
