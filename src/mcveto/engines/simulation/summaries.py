"""Summaries of calls: what was found out about a call once is used again where a call is of the same kind.

ESP summarises functions by the state of the property at entry and exit (Das, Lerner, Seigle, PLDI 2002, §4); here the
key is all that the call depends on. A call is followed from a general state (`activation`). Another call of that
function is an instance of it if every register and cell that the first depended on is an instance of what was there,
within the same bounds. Then it ends in the instances of the states in which the first ended, and whatever it cannot
have written is as before. Variables that the first call made stand for anything and get new names every time.

A call in which a target seems to be reached, or something is not understood, has no summary: it is followed each time.
So does a call of a function in which something is kept apart, or all branches are asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import ByteOf, Cell, Value, united
from mcveto.engines.path import Path
from mcveto.engines.queries import No
from mcveto.engines.simulation.activation import Activation, General
from mcveto.engines.simulation.apart import Item
from mcveto.engines.simulation.coarse_executor import CoarseExecutor
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.directed import Node, Values
from mcveto.engines.simulation.elements import element_of, index_of
from mcveto.engines.simulation.frames import OUTSIDE, Frames, Unfit
from mcveto.engines.simulation.positions import LOST
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.engines.state import Calls, PathState
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.symbolic import initial_register
from mcveto.program.program import Program

MOST_OF_FUNCTION = 6
MOST_FAILURES = 2
LONGEST_WAIT = 256
FEWEST_BLOCKS = 3
LARGEST_FLAG = 15

Range = tuple[int, int]


@dataclass
class Exit:
    """One way in which a call ends: what it makes of what it may write, and what is known of that."""

    node: Node
    registers: dict[int, Value]
    cells: dict[int, Cell | None]
    """None: nothing is known of it."""
    path: tuple[Term, ...]
    made: tuple[Term, ...]
    """Variables that do not stand for something at the entry that matters."""


class Replay(NamedTuple):
    """A summary was used for a call: from which node, and where each of its ends went."""

    source: Node
    calls: Calls
    summary: Summary
    ends: tuple[Node, ...]


@dataclass
class Summary:
    function: int
    root: Calls
    functions: frozenset[int]
    registers: dict[int, Value]
    """What the call depends on, in general."""
    words: dict[tuple[int, int], Value]
    bytes: dict[int, Cell]
    bounds: dict[Term, Range]
    lists: dict[Term, frozenset[int]]
    written: frozenset[int]
    stored: frozenset[int]
    stores: tuple[tuple[Term, int, tuple[Range, ...]], ...]
    ranges: tuple[Range, ...]
    below: int
    """How far down the stack something may have been written."""
    above: int
    """And how far up."""
    returns: frozenset[Term]
    exits: list[Exit]
    first: Node
    reads_inputs: bool = False
    uses: int = 0
    edges: list[tuple[Node, Node]] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)

    def tells(self, item: Item) -> bool:
        """Whether the call depends on the value of a place, or changes it."""
        if item[0] == "register":
            return item[1] in self.registers or item[1] in self.written
        start, size = item[1], item[2]
        assert isinstance(start, int) and isinstance(size, int)
        return self.may_change(start, size) or any(start <= cell < start + size for cell in self.bytes)

    def may_change(self, start: int, size: int) -> bool:
        if any(start <= cell < start + size for cell in self.stored):
            return True
        return any(low < start + size and start < high for low, high in self.ranges)


class Summaries:
    def __init__(self, program: Program, executor: CoarseExecutor, frames: Frames) -> None:
        self._program = program
        self._executor = executor
        self._frames = frames
        self._layout = program.decoder.layout
        self._of: dict[int, list[Summary]] = {}
        self._failures: dict[int, int] = {}
        self._waits: dict[int, tuple[int, int]] = {}
        """Of functions that were met: how many calls are to be followed before a summary is made, and how many the
        next time: one of a function whose calls are all different would be made in vain."""
        self._loose: set[int] = set()
        """Cells that were found to differ between calls."""
        self._limits: dict[int, int] = {}
        """Of words that were found to differ, and are small numbers: what they are at most."""
        self._flags: set[int] = set()
        """Cells that are kept apart: it matters what they are."""
        self.unused: frozenset[int] = frozenset()
        """Registers that nobody had used before a call that depends on them: most functions only save them."""

    # Which calls.

    def is_due(self, function: int, is_called_again: bool = False) -> bool:
        """Whether a summary is to be made: a function that is called once needs none. `is_called_again`: it is known
        that it will be called a second time."""
        if self._failures.get(function, 0) >= MOST_FAILURES:
            return False
        left, length = self._waits.get(function, (0 if is_called_again else 1, 0))
        self._waits[function] = (left - 1, length)
        return left <= 0

    @property
    def met(self) -> frozenset[int]:
        """Functions that were called."""
        return frozenset(self._waits)

    def back(self, met: frozenset[int]) -> None:
        """What is called once more, because a part of the simulation is done again, is called for the first time."""
        self._waits = {function: wait for function, wait in self._waits.items() if function in met}

    def failed(self, function: int) -> None:
        self._failures[function] = self._failures.get(function, 0) + 1

    def drop(self, is_stale: Callable[[Summary], bool]) -> None:
        for function, known in self._of.items():
            self._of[function] = [summary for summary in known if not is_stale(summary)]

    def kept_apart(self, item: Item) -> None:
        """States that differ in this must not have been joined."""
        owner = item[-1]
        if owner is not None:
            self.drop(lambda summary: owner in summary.functions)
        elif item[0] == "memory":
            start, size = item[1], item[2]
            assert isinstance(start, int) and isinstance(size, int)
            self._flags.update(range(start, start + size))
            self.drop(lambda summary: summary.may_change(start, size))
        else:
            self.drop(lambda summary: item[1] in summary.written)

    # Making one.

    def general(self, state: PathState, idle: set[int]) -> General | None:
        """The general state of a call; None if its stack is nowhere. `idle`: cells that are kept apart, but not now."""
        pointer = state.registers.get(self._frames.pointer)
        if self._frames.base is None or pointer is None or not self._frames.is_placed(pointer):
            return None
        assert state.place is not None
        # Where that failed, too little may have been known.
        is_strict = state.place.function in self._failures
        flags = self._flags - idle
        loose = () if is_strict else self._loose - flags
        limits = {} if is_strict else {word: most for word, most in self._limits.items() if word not in flags}
        executor = self._executor
        return General(
            self._program, self._frames, executor.unknowns, executor.pointers, executor.masks, state, loose, limits,
            self.unused,
        )  # fmt: skip

    def add(self, activation: Activation, first: Node) -> Summary:
        general = activation.general
        registers, cells = activation.live()
        words: dict[tuple[int, int], Value] = {}
        numbers: dict[int, Cell] = {}
        used = {self._frames.frame, self._frames.back}
        for cell in sorted(cells):
            home = general.homes.get(cell)
            if home is not None:
                words[home] = general.memory.load(*home)
            elif (cell in general.memory.cells or not general.memory.unknown(cell)) and (
                self._program.space.writable(cell) or self._frames.above(cell) is not None
            ):
                numbers[cell] = general.memory.byte(cell)
        if not registers <= general.registers.keys():
            self.unused |= registers - general.registers.keys()
            raise Unfit
        patterns = {number: general.registers[number] for number in sorted(registers)}
        for value in [*patterns.values(), *words.values()]:
            if isinstance(value, Term):
                used.update(t.free_variables([value]))
        ranges = united(reach for ranges in activation.stores.values() for reach in ranges)
        above = (self._frames.above(cell) for cell in activation.stored)
        offsets = [0, *(offset for offset in above if offset is not None)]
        summary = Summary(
            general.function,
            general.root,
            frozenset(activation.functions),
            patterns,
            words,
            numbers,
            {v: bounds for v, bounds in general.variables.items() if bounds is not None and v in used},
            {v: values for v, values in general.lists.items() if v in used},
            frozenset(activation.written),
            frozenset(activation.stored),
            tuple((*key, ranges) for key, ranges in activation.stores.items()),
            ranges,
            min(offsets),
            max(offsets) + 1,
            frozenset(activation.returns),
            [],
            first,
            activation.reads_inputs,
        )
        for node, state in activation.exits.items():
            summary.exits.append(self._exit(activation, summary, used, node, state))
        known = self._of.setdefault(general.function, [])
        if known:
            length = self._waits.get(general.function, (0, 0))[1]
            length = 0 if known[0].uses > 1 else min(2 * length + 1, LONGEST_WAIT)
            self._waits[general.function] = (length, length)
        known.insert(0, summary)
        del known[MOST_OF_FUNCTION:]
        return summary

    def _exit(self, activation: Activation, summary: Summary, used: set[Term], node: Node, state: PathState) -> Exit:
        general, frames = activation.general, self._frames
        registers = {number: self._register(state, number) for number in sorted(summary.written)}
        memory = state.memory
        assert isinstance(memory, CoarseMemory)
        cells: dict[int, Cell | None] = {}
        for where in sorted(summary.stored):
            if (frames.above(where) or 0) >= 0:
                # What nobody has written yet is as the file has it, and known.
                cells[where] = memory.cells.get(where) if memory.is_open(where) else memory.byte(where)
        said = tuple(term for term in state.path.terms if term not in general.said)
        terms = [*said, *(value for value in registers.values() if isinstance(value, Term))]
        terms += [cell.word for cell in cells.values() if isinstance(cell, ByteOf)]
        # What stood for something at the entry that does not matter may be anything, too.
        made = sorted(
            {v for v in t.free_variables(terms) if v.op == "var"} - used, key=lambda variable: variable.serial
        )
        if any(self._executor.is_table(variable) for variable in made):
            raise Unfit
        return Exit(node, registers, cells, said, tuple(made))

    def _register(self, state: PathState, number: int) -> Value:
        found = state.registers.get(number)
        return initial_register(self._layout, self._layout.cells[number]) if found is None else found

    def note(self, activation: Activation, state: PathState, summary: Summary, names: dict[Term, Term]) -> None:
        """The call is part of another one that is followed for a summary."""
        pointer = state.registers[self._frames.pointer]
        kept = [cell for cell in summary.stored if (self._frames.above(cell) or 0) >= 0]
        needed = {*summary.bytes, *(start + i for start, size in summary.words for i in range(size))}
        loaded = {self._at(cell, pointer) for cell in needed}
        stored = {self._at(cell, pointer) for cell in kept}
        visited = activation.at((state.pc, state.calls))
        visited.add(set(summary.registers), set(summary.written - summary.registers.keys()), loaded, stored - loaded)
        activation.functions |= summary.functions
        activation.reads_inputs |= summary.reads_inputs
        activation.written |= summary.written
        activation.stored |= stored
        if summary.below:
            activation.stored.update(range(self._frames.at(pointer, summary.below), self._frames.at(pointer, 0)))
        apply = Substitution(names).apply
        for address, size, ranges in summary.stores:
            activation.note_store(apply(address), size, ranges)

    # Using one.

    def fitting(self, state: PathState, function: int) -> tuple[Summary, dict[Term, Term]] | None:
        """A summary of which a call is an instance, and what the variables of its entry stand for."""
        known = self._of.get(function)
        for index, summary in enumerate(known or ()):
            names = self._instance(state, summary)
            if names is not None:
                assert known is not None
                # What fitted once will fit again.
                summary.uses += 1
                known.insert(0, known.pop(index))
                return summary, names
        return None

    def _instance(self, state: PathState, summary: Summary) -> dict[Term, Term] | None:
        frames, bits = self._frames, self._frames.bits
        pointer = state.registers.get(frames.pointer)
        if pointer is None or not frames.is_placed(pointer) or state.calls is None:
            return None
        if not frames.has_room(pointer, summary.below, summary.above):
            return None
        back = t.const(state.calls.address, bits)
        if any(Substitution({frames.back: back}).apply(target) is not back for target in summary.returns):
            return None
        names = {frames.frame: as_term(pointer, bits), frames.back: back}

        def match(general: Value, value: Value, width: int) -> bool:
            if isinstance(general, int):
                return isinstance(value, int) and general == value
            if general.op == "var":
                term = as_term(value, width)
                return names.setdefault(general, term) is term
            if general.op == "zext":
                whole = as_term(value, width)
                term = t.extract(whole, general.args[0].width - 1, 0)
                return t.zext(term, width) is whole and names.setdefault(general.args[0], term) is term
            if frames.frame in general.args:
                return Substitution({frames.frame: names[frames.frame]}).apply(general) is as_term(value, width)
            element = element_of(general)
            assert element is not None
            index = index_of(value, *element, width)
            if index is None:
                return False
            term = as_term(index, width)
            return names.setdefault(general.args[0], term) is term

        for number, general in summary.registers.items():
            if not match(general, self._register(state, number), self._layout.cells[number].bits):
                return None
        memory = state.memory
        for where, cell in summary.bytes.items():
            if memory.byte(self._at(where, pointer)) != cell:
                width = bits // 8
                self._loosen(where & -width, width, memory.load(self._at(where & -width, pointer), width), state.path)
                return None
        for (start, size), word in summary.words.items():
            if not match(word, memory.load(self._at(start, pointer), size), 8 * size):
                return None
        for variable, (low, high) in summary.bounds.items():
            least, greatest = bounds_of(names[variable], state.path)
            if least < low or high < greatest:
                for (start, size), word in summary.words.items():
                    if word is variable:
                        self._loosen(start, size, as_value(names[variable]), state.path)
                return None
        for variable, values in summary.lists.items():
            found = self._executor.pointers.values(as_value(names[variable]), state.path)
            if found is None or not found <= values:
                return None
        return names

    def _loosen(self, start: int, size: int, value: Value, path: Path) -> None:
        """What a word is differs between calls: nothing is asked of it but that it stays within its mask, or that it
        is as small as flags are."""
        most = self._executor.masks.at_most(value)
        if most is None:
            high = value if isinstance(value, int) else bounds_of(value, path)[1]
            most = (1 << max(high.bit_length(), 1)) - 1 if high <= LARGEST_FLAG else None
        if most is None or 8 * size != self._frames.bits:
            self._loose.update(range(start, start + size))
        elif most > self._limits.get(start, -1):
            self._limits[start] = most

    def _at(self, where: int, pointer: Value) -> int:
        """Where a cell of the summary is in a state with this stack pointer."""
        above = self._frames.above(where)
        return where if above is None else self._frames.at(pointer, above)

    def ends(self, state: PathState, summary: Summary, names: dict[Term, Term]) -> list[PathState | None]:
        """The states after the call, still without their place in the order; None for a way that it cannot end."""
        # Whether it matters how it ends: what is kept apart is the stack pointer, and then the rest.
        is_asked = len({way.node[2][1:] for way in summary.exits}) > 1
        return [self._end(state, summary, names, way, is_asked) for way in summary.exits]

    def _end(
        self, state: PathState, summary: Summary, names: dict[Term, Term], way: Exit, is_asked: bool
    ) -> PathState | None:
        assert state.calls is not None
        pointer = state.registers[self._frames.pointer]
        caller = state.place.caller if state.place is not None else None
        apply = self._renaming(names, way, pointer, caller.function if caller is not None else 0)
        registers = dict(state.registers)
        for number, value in way.registers.items():
            registers[number] = value if isinstance(value, int) else as_value(apply(value))
        memory = state.memory.copy()
        assert isinstance(memory, CoarseMemory)
        self._forget(state, memory, summary, names, pointer)
        for where, cell in way.cells.items():
            to = self._at(where, pointer)
            if cell is None:
                memory.forget(to, to + 1)
                continue
            if isinstance(cell, ByteOf):
                word = apply(cell.word)
                cell = _byte(word, cell.significance)
            memory.cells[to] = cell
        end = state.fork(state.calls.address, registers, memory, state.model)
        end.calls = state.calls.parent
        if summary.reads_inputs:
            end.log = LOST
        unknowns = self._executor.unknowns
        for term in way.path:
            said = apply(term)
            if said is not t.TRUE:
                if is_asked and term not in unknowns.bounds and self._is_denied(end, said):
                    return None
                end.path.add(said)
                if term in unknowns.bounds:
                    unknowns.bounds.add(said)
        return end

    def _is_denied(self, state: PathState, condition: Term) -> bool:
        if state.path.holds(t.bnot(condition)):
            return True
        return self._executor.possible.model(state.path, condition, state.model) is No.UNSAT

    def _renaming(self, names: dict[Term, Term], way: Exit, pointer: Value, caller: int) -> Callable[[Term], Term]:
        unknowns, remainders = self._executor.unknowns, self._executor.remainders
        renamed = dict(names)
        for variable in way.made:
            definition = remainders.definitions.get(variable)
            if definition is not None and renamed.keys() >= set(t.free_variables([definition[0]])):
                dividend = Substitution(renamed).apply(definition[0])
                if dividend.op != "const":
                    renamed[variable] = remainders.name(dividend, definition[1])
                    continue
            new = renamed[variable] = unknowns.fresh(variable.width)
            self._executor.pointers.rename(variable, new)
            self._executor.masks.rename(variable, new)
            origin = unknowns.origins.get(variable)
            if origin is not None:
                if origin[0] == "memory":
                    assert isinstance(origin[1], int)
                    origin = (origin[0], self._at(origin[1], pointer), *origin[2:])
                if origin[-1] == 0:  # made where ways back met: that is in the function that called
                    origin = (*origin[:-1], caller)
                unknowns.first.setdefault(origin, unknowns.count)
                unknowns.origins[new] = origin
        return Substitution(renamed).apply

    def _forget(
        self, state: PathState, memory: CoarseMemory, summary: Summary, names: dict[Term, Term], pointer: Value
    ) -> None:
        """Nothing is known any longer of what the call may have written."""
        path = state.path
        apply = Substitution(names).apply
        for address, size, ranges in summary.stores:
            here = apply(address)

            def misses(other: Term, extent: int, here: Term = here, size: int = size) -> bool:
                low, high = bounds_of(t.sub(here, other), path)
                return extent <= low and high + size <= 1 << here.width

            memory.forget_read(ranges, misses)
        memory.forget_cells(summary.ranges)
        for start, end in _runs(summary.stored, self._frames.above):
            to = self._at(start, pointer)
            memory.forget_read([(to, to + end - start)])
        if summary.below:
            low, high = self._frames.at(pointer, summary.below), self._frames.at(pointer, 0)
            memory.forget(low, high)


def _byte(word: Term, significance: int) -> Cell:
    if word.op == "const":
        return int(word.data) >> 8 * significance & 0xFF
    return ByteOf(word, significance)


def _runs(cells: Iterable[int], above: Callable[[int], int | None]) -> list[Range]:
    """Bytes that follow each other, without those below the frame."""
    return list(united((cell, cell + 1) for cell in cells if (above(cell) or 0) >= 0))


def edges_of(replays: Iterable[Replay], items: Mapping[Item, int]) -> list[tuple[Node, Node]]:
    """What happens within calls for which a summary was used, as if they had been followed. Of what is kept apart
    (`items`), a summary tells only the values of what it depends on or changes; the rest is as before the call."""
    found: list[tuple[Node, Node]] = []
    done: set[tuple[int, Calls, Values]] = set()
    pending = [(replay, replay.source, replay.calls, replay.ends) for replay in replays]
    while pending:
        replay, source, calls, ends = pending.pop()
        summary = replay.summary
        told = {number for item, number in items.items() if summary.tells(item)}
        others = {number: value for number, value in source[2] if number >= 0 and number not in told}
        moved: dict[Calls, Calls] = {summary.root: calls}
        places = {way.node: end for way, end in zip(summary.exits, ends, strict=True)}

        def rebased(
            node: Node,
            moved: dict[Calls, Calls] = moved,
            places: dict[Node, Node] = places,
            others: dict[int, object] = others,
            told: set[int] = told,
        ) -> Node:
            end = places.get(node)
            if end is not None:
                return end
            # Before the call, a place may not have been kept apart yet.
            values = tuple(
                (number, others.get(number, value))
                for number, value in node[2]
                if number < 0 or number in told or number in others
            )
            return (node[0], _moved(node[1], moved), values)

        found.append((source, rebased(summary.first)))
        key = (id(summary), calls, tuple(others.items()))
        is_new = key not in done
        found += [(rebased(a), rebased(b)) for a, b in summary.edges if is_new or b in places]
        if not is_new:
            continue
        done.add(key)
        for inner in summary.replays:
            around = _moved(inner.calls, moved)
            assert around is not None
            pending.append((inner, rebased(inner.source), around, tuple(rebased(end) for end in inner.ends)))
    return found


def _moved(calls: Calls | None, moved: dict[Calls, Calls]) -> Calls | None:
    if calls is None:
        return None
    found = moved.get(calls)
    if found is None:
        parent = _moved(calls.parent, moved)
        assert parent is not None
        found = moved[calls] = parent.push(calls.address)
    return found


def outside(values: Values) -> Node:
    """The node of states that have returned."""
    return (OUTSIDE, None, values)
