"""What is kept apart: places whose values are part of where a state is, so that states that differ in them do not join.

A place is a cell of memory, a ghost, or a register within one function. It may have a few values; one with many is a
counter, and is joined like any other; so is a flag that does not matter now (`guards`). Which places these are, other
than the states of a property, is found while simulating; it decides how much is known, never what is true.
"""

from __future__ import annotations

from mcveto.engines.path import KeyTable
from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.engines.simulation.directed import Values
from mcveto.engines.simulation.guards import Flag, Guards
from mcveto.engines.state import PathState
from mcveto.logic.terms import Term
from mcveto.program.program import Program
from mcveto.property.typestate import state_cell

MOST_VALUES = 8

Item = tuple[object, ...]
"""("memory", address, size, function) or ("register", number, function); the function is None for all."""


class KeptApart:
    def __init__(self, program: Program) -> None:
        layout, row = program.decoder.layout, program.decoder.row
        (pointer,) = layout.named(row.stack_pointer)
        self.stack_pointer = pointer.cell.number
        added = {name for name, _ in row.extra}
        self._ghosts = {cell.number for cell in layout.cells if cell.name in added}
        self.states: tuple[int, ...] = ()
        """Registers that hold the states of automata."""
        first = program.registers.get(self.stack_pointer)
        self.stack = None if first is None else program.space.region_at(first - 1)
        self.items: dict[Item, int] = {}
        self.of: dict[int | None, list[tuple[int, Item]]] = {}
        """By function, None for all: what is kept apart there, with its number."""
        self._values: dict[Item, set[object]] = {}
        self.guards = Guards()
        for name in map(state_cell, range(len(added))):
            if name in added:
                self.states += (layout.by_name[name].number,)
                self.add(("register", self.states[-1], None))
        self.variables = tuple(sorted(self._ghosts.difference(self.states))) if self.states else ()
        """The other ghost registers: variables of automata, and what they remember."""
        self.has_states = bool(self.items)
        """Whether there are states of a property, which are kept apart from the beginning: they decide."""

    def add(self, item: Item) -> None:
        number = self.items[item] = len(self.items)
        self.of.setdefault(item[-1], []).append((number, item))  # type: ignore[arg-type]

    def values(self, state: PathState, is_real: bool = False) -> Values:
        """The values of what is kept apart, by number; those of real paths are compared, but not learned."""
        function = state.place.function if state.place is not None else 0
        values: list[tuple[int, object]] = [(-1, _known(state.registers.get(self.stack_pointer)))]
        guards, memory = self.guards, state.memory
        for owner in (None, function):
            for number, item in self.of.get(owner, ()):
                value: object
                if item[0] != "memory":
                    value = state.registers.get(item[1])  # type: ignore[call-overload]
                elif owner is None and guards.is_idle(item[1:3], state):  # type: ignore[arg-type]
                    value = "?"
                else:
                    value = memory.load(item[1], item[2])  # type: ignore[arg-type]
                values.append((number, self._few(item, value, is_real)))
        return tuple(values)

    def _few(self, item: Item, value: object, is_real: bool) -> object:
        if isinstance(value, Term) or value == "?":
            return "?"
        seen = self._values.setdefault(item, set())
        if len(seen) < MOST_VALUES and not is_real:
            seen.add(value)
        return value if value in seen else "?"

    def forgotten(self, state: PathState, unknowns: Unknowns, table: KeyTable) -> tuple[Item, int] | None:
        """What a join forgot and the way here depends on, latest first; and the number of its variable."""
        first = unknowns.first
        for term in reversed(state.path.terms):
            if term in unknowns.bounds:
                continue
            joined = sorted((v for v in table.of(term) if unknowns.origins_of(v)), key=lambda v: -v.serial)  # type: ignore[union-attr]
            for item in (self.place_of(origin) for variable in joined for origin in unknowns.origins_of(variable)):
                if item not in self.items or self.guards.has(flag_of(item)):
                    # What was joined there earlier would still be one state.
                    return item, min(number for other, number in first.items() if self.place_of(other) == item)
        return None

    def place_of(self, origin: Item) -> Item:
        """Globals and ghosts are the same in all functions."""
        if origin[0] == "memory" and not self.on_stack(origin[1]):
            return (*origin[:3], None)
        if origin[0] == "register" and origin[1] in self._ghosts:
            return (*origin[:2], None)
        return origin

    def on_stack(self, address: object) -> bool:
        assert isinstance(address, int)
        return self.stack is not None and self.stack.start <= address < self.stack.end


def flag_of(item: Item) -> Flag | None:
    """Where an item is, if it is in memory and the same in all functions."""
    kind, *where, function = item
    return tuple(where) if kind == "memory" and function is None else None  # type: ignore[return-value]


def changed(before: Values, after: Values) -> bool:
    """Whether something kept apart has another value; the stack pointer does not count."""
    old = dict(before)
    return any(number >= 0 and old.get(number, value) != value for number, value in after)


def _known(value: object) -> object:
    return "?" if isinstance(value, Term) else value
