"""One call for all of its kind: the state at its entry made general, and what of it the call depends on.

Registers and cells that hold something unknown get variables that stand for anything like it: the bounds of a small
number or an address stay, and so do the form start + size * index and the addresses that a pointer can be. Numbers stay
numbers; the stack pointer and the
return address are variables (see `frames`), and so is what the calling convention says a function only keeps.

While the call is followed from there, it is written down what every block reads and writes. By a pass backwards, that
gives what of the entry matters (`record` does the same for certificates). What may be written at all counts as read at
the end, unless it is certainly written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcveto.engines.domain import as_value
from mcveto.engines.memory import ByteOf, Cell, Value, united
from mcveto.engines.path import Path
from mcveto.engines.record import Accesses
from mcveto.engines.simulation.coarse_memory import CoarseMemory, Unknowns
from mcveto.engines.simulation.elements import element_of
from mcveto.engines.simulation.frames import OUTSIDE, REACH, Frames, Unfit
from mcveto.engines.simulation.masks import Masks
from mcveto.engines.simulation.pointers import Pointers
from mcveto.engines.simulation.positions import LOST
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.engines.state import Calls, PathState
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.symbolic import initial_register
from mcveto.program.frame_layout import CALLEE_SAVED
from mcveto.program.program import Program

if TYPE_CHECKING:
    from mcveto.engines.simulation.directed import Node

NARROW = 0xFFFF
# Bits of a register that holds the outcome of a comparison.
FLAGS = 8
Where = tuple[int, Calls | None]


class Footprint(Accesses):
    """What a block reads, and what it writes certainly or perhaps."""

    def __init__(self, frames: Frames) -> None:
        super().__init__()
        self._frames = frames
        self.maybe_written: set[int] = set()
        self.maybe_stored: set[int] = set()

    def write_register(self, number: int) -> None:
        self.maybe_written.add(number)
        super().write_register(number)

    def load(self, address: int, size: int) -> None:
        if self._frames.forbids(address, size):
            raise Unfit
        super().load(address, size)

    def load_anywhere(self) -> None:
        raise Unfit

    def store(self, address: int, size: int) -> None:
        if self._frames.forbids(address, size):
            raise Unfit
        self.maybe_stored.update(range(address, address + size))
        super().store(address, size)

    def store_perhaps(self, address: int, size: int) -> None:
        super().store_perhaps(address, size)
        self.maybe_stored.update(range(address, address + size))


@dataclass
class Visited:
    """A place within the call: what is read there, what is certainly overwritten, and what comes next."""

    read: set[int] = field(default_factory=set)
    written: set[int] | None = None
    loaded: set[int] = field(default_factory=set)
    stored: set[int] | None = None
    following: set[Where] = field(default_factory=set)

    def add(self, read: set[int], written: set[int], loaded: set[int], stored: set[int]) -> None:
        self.read |= read
        self.loaded |= loaded
        self.written = set(written) if self.written is None else self.written & written
        self.stored = set(stored) if self.stored is None else self.stored & stored


class General:
    """The general state at the entry of a call."""

    def __init__(
        self,
        program: Program,
        frames: Frames,
        unknowns: Unknowns,
        pointers: Pointers,
        masks: Masks,
        state: PathState,
        loose: Collection[int],
        limits: Mapping[int, int],
        unused: Collection[int],
    ) -> None:
        """`loose`: cells of which nothing is to be known; `limits`: words of which it is to be known only what they are
        at most; `unused`: registers that the state need not have."""
        assert state.calls is not None and state.place is not None
        self._program, self._frames, self._unknowns = program, frames, unknowns
        self._pointers, self._masks = pointers, masks
        self._path = state.path
        self._back = state.calls.address
        self.pointer = state.registers[frames.pointer]
        self.function = state.place.function
        self.entry = state.pc
        self.root = Calls(OUTSIDE)
        self._known: dict[Term, Value] = {}
        self.variables: dict[Term, tuple[int, int] | None] = {frames.frame: None, frames.back: None}
        """All that stand for something at the entry, with their bounds if it matters."""
        self.lists: dict[Term, frozenset[int]] = {}
        """Of those that are pointers: what they can be."""
        self.homes: dict[int, tuple[int, int]] = {}
        """Of bytes of a word that is a term: where it starts, and its size."""
        layout, row = program.decoder.layout, program.decoder.row
        saved = {p.cell.number for name in CALLEE_SAVED.get(row.name, ()) for p in layout.named(name)}
        self.registers: dict[int, Value] = {}
        held = dict(state.registers)
        for number in sorted(unused):
            if number not in held:
                held[number] = as_value(initial_register(layout, layout.cells[number]))
        for number, value in held.items():
            bits = layout.cells[number].bits
            self.registers[number] = self._fresh(bits, None) if number in saved else self._general(value, bits)
        memory = state.memory
        assert isinstance(memory, CoarseMemory)
        self.memory = self._memory(memory, loose)
        self._limit(memory, {word: most for word, most in limits.items() if word not in loose})
        path = Path(state.path._table)
        for variable, bounds in self.variables.items():
            if bounds is not None:
                path.add(t.ule(t.const(bounds[0], variable.width), variable))
                path.add(t.ule(variable, t.const(bounds[1], variable.width)))
        for variable, values in self.lists.items():
            path.add(pointers.listing(variable, sorted(values)))
        self.said = frozenset(path.terms)
        self.state = PathState(
            state.pc, dict(self.registers), self.memory.copy(), path, self.root, None, LOST, state.steps
        )

    def _fresh(self, bits: int, bounds: tuple[int, int] | None) -> Term:
        variable = self._unknowns.fresh(bits)
        self.variables[variable] = bounds
        if bounds is not None:
            self._masks.note(variable, bounds[1])
        return variable

    def _general(self, value: Value, bits: int) -> Value:
        is_address = bits == self._frames.bits
        offset = self._frames.offset(value, self.pointer) if is_address else None
        if offset is not None:
            return self._frames.place(offset)
        if isinstance(value, int):
            return self._frames.back if is_address and value == self._back else value
        known = self._known.get(value)
        if known is None:
            element = element_of(value)
            if element is not None and is_address:
                index = self._atom(value.args[0])
                known = as_value(t.add(t.mul(index, t.const(element[0], bits)), t.const(element[1], bits)))
            elif value.op == "zext" and bits <= FLAGS:
                known = t.zext(self._atom(value.args[0]), bits)
            else:
                known = self._atom(value)
            self._known[value] = known
        return known

    def _is_pointer(self, value: Value) -> bool:
        """Whether a value differs between calls, but not in what it points to."""
        return isinstance(value, Term) and self._pointers.values(value, self._path) is not None

    def _atom(self, term: Term) -> Term:
        bounds: tuple[int, int] | None = None
        if term.width == self._frames.bits:
            low, high = bounds_of(term, self._path)
            region = self._program.space.region_at(low)
            if high - low <= NARROW or (region is not None and high < region.end):
                bounds = (low, high)
            values = self._pointers.values(term, self._path) if bounds is None else None
            if values is not None:
                variable = self._fresh(term.width, None)
                self.lists[variable] = values
                return variable
        return self._fresh(term.width, bounds)

    def _memory(self, memory: CoarseMemory, loose: Collection[int]) -> CoarseMemory:
        frames, space = self._frames, self._program.space
        assert frames.base is not None
        general = CoarseMemory(space, self._unknowns)
        here = frames.at(self.pointer, 0)
        low, high = (
            (frames.stack.start, frames.stack.end)
            if isinstance(self.pointer, int) and frames.stack is not None
            else (frames.base - REACH, frames.base + REACH)
        )
        general.clouds = tuple(cloud for cloud in memory.clouds if not (cloud[0] < high and low < cloud[1]))
        outside = [cloud for cloud in memory.clouds if cloud[0] < high and low < cloud[1]]
        for start, end in outside:
            general.clouds += tuple((a, b) for a, b in ((start, min(end, low)), (max(start, high), end)) if a < b)
        # Nothing is known of what is not said below: neither of the frame, nor of frames around it.
        general.clouds = united([*general.clouds, (frames.base - REACH, frames.base + REACH)])
        if loose:
            general.clouds = united([*general.clouds, *((where, where + 1) for where in loose)])
        width = frames.bits // 8
        done: set[int] = set()
        for where, cell in memory.cells.items():
            is_stack = low <= where < high
            if where in done or (is_stack and not here <= where < here + REACH):
                continue
            if isinstance(cell, int) and not is_stack:
                if where not in loose:
                    general.cells[where] = cell
                continue
            start, size = _word(where, cell, space.big_endian) if isinstance(cell, ByteOf) else (where, width)
            if isinstance(cell, int) and where % width:
                start = where & -width
            parts = [memory.cells.get(start + i) for i in range(size)]
            if not _is_whole(parts, space.big_endian, isinstance(cell, int)) or (is_stack and start < here):
                start, size = where, 1
            held = memory.load(start, size)
            if not is_stack and all(start + i in loose for i in range(size)) and not self._is_pointer(held):
                continue
            value = self._general(held, 8 * size)
            done.update(range(start, start + size))
            to = frames.base + start - here if is_stack else start
            if is_stack and to + size > frames.base + REACH:
                continue
            for i in range(size):
                index = size - 1 - i if space.big_endian else i
                if isinstance(value, int):
                    general.cells[to + i] = value >> 8 * index & 0xFF
                else:
                    general.cells[to + i] = ByteOf(value, index)
                    self.homes[to + i] = (to, size)
        return general

    def _limit(self, memory: CoarseMemory, limits: Mapping[int, int]) -> None:
        """Words that are small numbers, and others in other calls."""
        width = self._frames.bits // 8
        for start, most in limits.items():
            held = memory.load(start, width)
            if (held if isinstance(held, int) else bounds_of(held, self._path)[1]) > most:
                continue
            variable = self._fresh(self._frames.bits, (0, most))
            for i in range(width):
                index = width - 1 - i if self._program.space.big_endian else i
                self.memory.cells[start + i] = ByteOf(variable, index)
                self.homes[start + i] = (start, width)


def _word(where: int, cell: ByteOf, is_big_endian: bool) -> tuple[int, int]:
    size = cell.word.width // 8
    return where - (size - 1 - cell.significance if is_big_endian else cell.significance), size


def _is_whole(parts: list[Cell | None], is_big_endian: bool, is_number: bool) -> bool:
    """Whether bytes are all of one word, or all numbers."""
    if is_number:
        return all(isinstance(part, int) for part in parts)
    size, first = len(parts), parts[0]
    if not isinstance(first, ByteOf):
        return False
    return all(part == (first.word, size - 1 - i if is_big_endian else i) for i, part in enumerate(parts))


class Activation:
    """A call that is followed from a general state."""

    def __init__(self, general: General, frames: Frames) -> None:
        self.general = general
        self._frames = frames
        self.visited: dict[Where, Visited] = {}
        self.functions: set[int] = {general.function}
        self.written: set[int] = set()
        self.stored: set[int] = set()
        """What may be written, numbers of registers and addresses."""
        self.stores: dict[tuple[Term, int], tuple[tuple[int, int], ...]] = {}
        """Stores through addresses that are not constant, and the bytes that they may touch."""
        self.returns: set[Term] = set()
        """Where it returns to, in terms of the return address: machines leave out some bits."""
        self.exits: dict[Node, PathState] = {}
        self.reads_inputs = False

    def footprint(self) -> Footprint:
        return Footprint(self._frames)

    def executed(self, where: Where, function: int, made: Footprint) -> None:
        self.functions.add(function)
        self.at(where).add(made.read, made.written, made.loaded, made.stored)
        self.written |= made.maybe_written
        self.stored |= made.maybe_stored

    def at(self, where: Where) -> Visited:
        found = self.visited.get(where)
        if found is None:
            found = self.visited[where] = Visited()
        return found

    def goes(self, source: Where, to: Where) -> None:
        self.at(source).following.add(to)

    def note_store(self, address: Term, size: int, ranges: tuple[tuple[int, int], ...]) -> None:
        if any(self._frames.forbids(low, high - low) for low, high in ranges):
            raise Unfit
        self.stores[address, size] = united([*self.stores.get((address, size), ()), *ranges])

    def live(self) -> tuple[set[int], set[int]]:
        """The registers and cells whose content at the entry matters."""
        general = self.general
        # Frames below are gone at the end.
        kept = {cell for cell in self.stored if (self._frames.above(cell) or 0) >= 0}
        end: Where = (OUTSIDE, None)
        self.at(end).read, self.at(end).loaded = set(self.written), kept
        before: dict[Where, list[Where]] = {}
        for where, visited in self.visited.items():
            for following in visited.following:
                before.setdefault(following, []).append(where)
        registers = {where: set(visited.read) for where, visited in self.visited.items()}
        cells = {where: set(visited.loaded) for where, visited in self.visited.items()}
        pending = list(self.visited)
        while pending:
            where = pending.pop()
            for source in before.get(where, ()):
                visited = self.visited[source]
                more = registers[where] - (visited.written or set()) - registers[source]
                others = cells[where] - (visited.stored or set()) - cells[source]
                if more or others:
                    registers[source] |= more
                    cells[source] |= others
                    pending.append(source)
        first: Where = (general.entry, general.root)
        return registers.get(first, set()), cells.get(first, set())
