"""Runs that stand for an abstract state: exact paths with inputs that take them, kept short.

An abstract state may stand for machine states that no input leads to; a violation is told only for a path that some
input takes. So each abstract state carries a few such paths along. They need not be all: an access through a symbolic
address is made where the model makes it, a question that takes long is not asked for long, and when a path has become
long everything is fixed to what its inputs make of it. What is lost are paths, never their truth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.execute import Executor, Result, _cells, _choice
from mcveto.engines.memory import ByteOf, PathMemory, Value
from mcveto.engines.path import Key, KeyTable, Path
from mcveto.engines.queries import Model, Queries
from mcveto.engines.simulation.coarse_executor import MOST_ENTRIES
from mcveto.engines.simulation.hints import Possible
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.engines.state import Drawn, PathState, Place
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.interpreter import Step
from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec
from mcveto.machine.pcode import FreshOrigin, Instruction, Transfer
from mcveto.program.program import Program

LONG_PATH = 60
LONG_CONDITION = 120
WIDEST_STORE = 1 << 16
MOST_LATE = 200
MOST_CELLS = 24
MOST_CHOICES = 512
MOST_NODES = 120


class LateMemory(PathMemory):
    """Memory in which a store through a symbolic address is only made when somebody reads, or writes, near it.

    Most are never looked at again, and making one fixes what its address depends on."""

    __slots__ = ("late", "settle")

    def __init__(self, space: AddressSpace) -> None:
        super().__init__(space)
        self.late: tuple[tuple[Term, Value, int, int, int], ...] = ()
        """Address, value, size, and the bounds of what may be written."""
        self.settle: Callable[[LateMemory], None] = _nobody

    def copy(self) -> LateMemory:
        twin = LateMemory.__new__(LateMemory)
        twin._space, twin._big_endian = self._space, self._big_endian
        twin._mask, twin._width = self._mask, self._width
        twin.base, twin.clouds = self.base, self.clouds
        twin.cells, twin.dirty, twin.journal = dict(self.cells), {}, []
        twin.late, twin.settle = self.late, self.settle
        return twin

    def load(self, address: int, size: int) -> Value:
        self._look(address, size)
        return super().load(address, size)

    def store(self, address: int, value: Value, size: int) -> None:
        self._look(address, size)
        super().store(address, value, size)

    def _look(self, address: int, size: int) -> None:
        if any(low < address + size and address < high for _, _, _, low, high in self.late):
            self.settle(self)


def _nobody(memory: LateMemory) -> None:
    raise AssertionError("a memory without a path")


class Fork(NamedTuple):
    """A way that the inputs at hand do not take; whether others do is not known yet."""

    state: PathState
    before: Path
    condition: Term
    model: Model


class RunExecutor(Executor):
    def __init__(self, program: Program, queries: Queries) -> None:
        super().__init__(program, queries, eager=True)
        self.possible = Possible(queries, MOST_NODES)
        self._table_reads = 0
        self.forks: list[Fork] = []
        """The ways not taken in the block just executed."""
        self.incidental: dict[Term, None] = {}
        """Conjuncts that only say which way was taken where it does not matter, or where an access was made."""
        self.matters: Callable[[Place], bool] = lambda place: True
        self.is_wanted: Callable[[int], bool] = lambda pc: True
        """Whether a jump through a table is followed to a program counter."""
        # Entries of constant tables that were read in this block: the address, and every cell with its entry.
        self._read: dict[Term, tuple[Term, list[int], list[int]]] = {}
        self._pointers: set[Term] = set()
        self._code_words: dict[int, dict[int, int]] = {}
        """By region: words that are addresses of code."""

    def initial(self) -> PathState:
        state = super().initial()
        memory = state.memory = LateMemory(self._program.space)
        memory.settle = self._settle
        return state

    def _settle(self, memory: LateMemory) -> None:
        """Makes the stores that were put off, where the model makes them."""
        late, memory.late = memory.late, ()
        for address, value, size, _, _ in late:
            where = self._model().value(address)
            self._fix(address, where)
            memory.store(where, value, size)

    def _fix(self, address: Term, where: int) -> None:
        here = t.eq(address, t.const(where, address.width))
        self.incidental[here] = None
        self._state.path.add(here)

    def fresh(self, bits: int, origin: FreshOrigin, usual: Value) -> Value:
        """Named by how many were made before on this path: so the inputs of one path can be tried on another."""
        last = self._state.log
        number = 0 if not isinstance(last, Drawn) else int(str(last.variable.data).partition("!")[2]) + 1
        self._fresh_count = number
        return super().fresh(bits, origin, usual)

    def run(self, state: PathState) -> Result:
        self._read, self.forks = {}, []
        return super().run(state)

    def decide(self, condition: Term) -> bool:
        condition = self._settled(condition)
        if condition.op == "const":
            return condition is t.TRUE
        state, number = self._state, len(self._decisions)
        if number < len(self._script.decisions):
            way = self._script.decisions[number]
            state.path.add(condition if way else t.bnot(condition))
        elif state.path.holds(condition):
            way = True
        elif state.path.holds(t.bnot(condition)):
            way = False
        else:
            way = bool(self._model().value(condition))
            taken, other = (condition, t.bnot(condition)) if way else (t.bnot(condition), condition)
            before = state.path.copy()
            self._fork(other, not way, None)
            self.forks.append(Fork(self._result.again.pop(), before, other, self._model()))
            state.path.add(taken)
            if state.place is not None and not self.matters(state.place):
                self.incidental[taken] = None
            else:
                self.incidental.pop(taken, None)
        self._decisions.append(way)
        return way

    def _here(self, address: Term, size: int, needed: int) -> int:
        address = self._settled(address)
        self._assume(self._program.space.allowed(address, size, needed))
        where = self._model().value(address)
        self._fix(address, where)
        return where

    def load(self, address: Term, size: int) -> Value:
        memory, space = self._domain.memory, self._program.space
        bounds = bounds_of(address, self._state.path)
        region = space.region_at(bounds[0])
        if region is not None and bounds[1] + size <= region.end and region.permissions & READ:
            cells = _cells(address, bounds, MOST_ENTRIES)
            if 0 < len(cells) <= MOST_CHOICES:
                values = [as_term(memory.load(cell, size), 8 * size) for cell in cells]
                # Neighbours with the same content are one: most of a table is what it was at the start.
                starts = [i for i, value in enumerate(values) if not i or value is not values[i - 1]]
                if len(starts) <= MOST_CELLS:
                    return as_value(_choice(address, [cells[i] for i in starts], [values[i] for i in starts]))
            if cells and (size == self._row.address_bytes or not region.permissions & WRITE):
                self._table_reads += 1
                read = t.var(f"table!{self._table_reads}", 8 * size)
                entries = [memory.load(cell, size) for cell in cells]
                if all(isinstance(entry, int) for entry in entries):
                    numbers = [int(entry) for entry in entries]  # type: ignore[arg-type]
                    self._read[read] = (address, cells, numbers)
                    if size == self._row.address_bytes and all(map(self._is_code, numbers)):
                        self._pointers.add(read)  # It may be called later.
                    return read
        pointer = self._code_pointer(address, size)
        return memory.load(self._here(address, size, READ), size) if pointer is None else pointer

    def _code_pointer(self, address: Term, size: int) -> Term | None:
        """A pointer to code that is read from a table of constants at an address without bounds: all entries that
        lead to where a path is wanted, and the one that the inputs at hand read."""
        where = self._model().value(address)
        region = self._program.space.region_at(where)
        if size != self._row.address_bytes or region is None:
            return None
        words = self._code_words.get(region.start)
        if words is None:
            words = self._code_words[region.start] = self._find_code_words(region, size)
        if where not in words:
            return None
        memory = self._domain.memory
        # What has been written since is no constant.
        wanted = [
            cell
            for cell, entry in words.items()
            if (cell == where or self.is_wanted(entry)) and memory.load(cell, size) == entry
        ]
        if not 1 < len(wanted) <= MOST_CHOICES or where not in wanted:
            return None
        self._table_reads += 1
        read = t.var(f"table!{self._table_reads}", 8 * size)
        self._pointers.add(read)
        self._read[read] = (self._settled(address), wanted, [words[cell] for cell in wanted])
        return read

    def _find_code_words(self, region: RegionSpec, size: int) -> dict[int, int]:
        """The words of a region that are addresses of code at the start."""
        found: dict[int, int] = {}
        first = -region.start % size
        for offset in range(first, len(region.content) - size + 1, size):
            entry = int.from_bytes(region.content[offset : offset + size], "big" if self._row.big_endian else "little")
            if self._is_code(entry):
                found[region.start + offset] = entry
        return found

    def _is_code(self, entry: int) -> bool:
        region = self._program.space.region_at(self._row.code_address(entry)) if entry else None
        return region is not None and bool(region.permissions & EXECUTE)

    def store(self, address: Term, value: Value, size: int) -> None:
        memory = self._domain.memory
        address = self._settled(address)
        bounds = bounds_of(address, self._state.path)
        region = self._program.space.region_at(bounds[0])
        if (
            isinstance(memory, LateMemory)
            and bounds[1] - bounds[0] <= WIDEST_STORE
            and region is not None
            and bounds[1] + size <= region.end
            and region.permissions & WRITE
            and len(memory.late) < MOST_LATE
        ):
            memory.late = (*memory.late, (address, value, size, bounds[0], bounds[1] + size))
            return
        memory.store(self._here(address, size, WRITE), value, size)

    # Tables.

    def _settled(self, term: Term) -> Term:
        """The term with every entry of a table fixed to the one the model reads."""
        keys = self._queries.table.of(term)
        chosen = {read: self._entry(read) for read in self._read if read in keys}
        return Substitution(chosen).apply(term) if chosen else term

    def _entry(self, read: Term) -> Term:
        address, cells, entries = self._read[read]
        where = self._model().value(address)
        self._fix(address, where)
        return t.const(entries[cells.index(where)], read.width)

    def _leave(self, state: PathState, last: Instruction, step: Step) -> None:
        target = step.target
        if self._read:
            keys = self._queries.table.of(target) if isinstance(target, Term) else frozenset()
            used = [read for read in self._read if read in keys]
            if isinstance(target, Term) and len(used) == 1 and len(keys) == 1:
                if step.transfer is Transfer.CALL:
                    self._expect_return(state, last)
                self._each(state, target, used[0], step.transfer)
                return
            if not isinstance(target, Term) and len(self._read) == 1 and self._later(state, last, step):
                return
            chosen = {read: self._entry(read) for read in self._read}
            _replace(state, Substitution(chosen).apply)
            if isinstance(target, Term):
                step = Step(step.transfer, as_value(Substitution(chosen).apply(target)))
        super()._leave(state, last, step)

    def _later(self, state: PathState, last: Instruction, step: Step) -> bool:
        """One path for each entry that leads to where a path is wanted, of a pointer to code that is called later."""
        ((read, (address, cells, entries)),) = self._read.items()
        if read not in self._pointers:
            return False
        done: set[int] = set()
        for cell, entry in zip(cells, entries, strict=True):
            here = t.eq(address, t.const(cell, address.width))
            if entry in done or not self.is_wanted(entry):
                continue
            model = self.possible.model(state.path, here, state.model)
            if isinstance(model, Model):
                done.add(entry)
                taken = state.fork(state.pc, dict(state.registers), state.memory.copy(), model)
                taken.path.add(here)
                _replace(taken, Substitution({read: t.const(entry, read.width)}).apply)
                super()._leave(taken, last, step)
        return bool(done)

    def _each(self, state: PathState, target: Term, read: Term, transfer: Transfer) -> None:
        """One path for each entry of the table that a jump goes through."""
        address, cells, entries = self._read[read]
        done: set[int] = set()
        for cell, entry in zip(cells, entries, strict=True):
            goes = Substitution({read: t.const(entry, read.width)}).apply(target)
            if entry in done or not self.is_wanted(int(goes.data)):
                continue
            here = t.eq(address, t.const(cell, address.width))
            model = self.possible.model(state.path, here, state.model)
            if not isinstance(model, Model):
                continue
            done.add(entry)
            fixed = Substitution({read: t.const(entry, read.width)}).apply
            taken = state.fork(int(goes.data), dict(state.registers), state.memory.copy(), model)
            taken.path.add(here)
            _replace(taken, fixed)
            self._result.successors.append((transfer, taken))


def _replace(state: PathState, apply: Callable[[Term], Term]) -> None:
    for number, content in state.registers.items():
        if isinstance(content, Term):
            state.registers[number] = as_value(apply(content))
    cells = state.memory.cells
    for where, cell in cells.items():
        if type(cell) is ByteOf:
            word = apply(cell[0])
            if word is not cell[0]:
                cells[where] = word.data >> 8 * cell[1] & 0xFF if word.op == "const" else ByteOf(word, cell[1])


def freeze(state: PathState, table: KeyTable) -> None:
    """What depends on inputs becomes what the inputs make of it, except where it is an input itself: a mode that was
    set at the beginning is still open when it is asked for behind hundreds of handlers."""
    model = state.model
    assert model is not None
    value = model.value
    late = state.memory
    puts: tuple[tuple[Term, Value, int, int, int], ...] = ()
    if isinstance(late, LateMemory):
        puts, late.late = late.late, ()
    cells = state.memory.cells
    contents = {content for content in state.registers.values() if isinstance(content, Term)}
    contents |= {cell[0] for cell in cells.values() if type(cell) is ByteOf}
    contents |= {content for _, content, _, _, _ in puts if isinstance(content, Term)}
    complex_ones = {content for content in contents if not _is_input(content)}
    complex_ones |= {address for address, _, _, _, _ in puts}
    frozen = {key for term in complex_ones for key in table.of(term)}
    kept = _connected(state.path.terms, {key for term in contents for key in table.of(term)}, frozen, table)
    apply = Substitution(
        {key: t.const(value(key), key.width) for key in frozen if isinstance(key, Term) and key.op == "var"}
    ).apply

    def settled(content: Value) -> Value:
        if isinstance(content, int):
            return content
        return value(content) if content in complex_ones or not table.of(content).isdisjoint(frozen) else content

    for number, content in state.registers.items():
        state.registers[number] = settled(content)
    for address, content, size, _, _ in puts:
        PathMemory.store(late, value(address), settled(content), size)
    for where, cell in cells.items():
        if type(cell) is ByteOf:
            word = settled(cell[0])
            cells[where] = word >> 8 * cell[1] & 0xFF if isinstance(word, int) else ByteOf(word, cell[1])
    path = Path(table)
    memory = state.memory.base
    for place, byte in model.memory.items():
        path.add(t.eq(t.load(memory, t.const(place, memory.address_width), 1, False), t.const(byte, 8)))
    for variable, number in model.values.items():
        if "!" not in str(variable.data):
            path.add(t.eq(variable, t.const(number, variable.width)))
    for term in kept:
        now = apply(term)
        if now is not t.TRUE:
            path.add(now)
    state.path = path


def _connected(path: list[Term], open_keys: set[Key], frozen: set[Key], table: KeyTable) -> list[Term]:
    """The conjuncts about what stays open; where they are long or too many, what they speak of is frozen, too."""
    while True:
        kept = [term for term in path if not table.of(term) <= frozen and not table.of(term).isdisjoint(open_keys)]
        long = [term for term in kept if not t.are_short([term], LONG_CONDITION)]
        if not long and len(kept) <= LONG_PATH // 2:
            return kept
        before = len(frozen)
        frozen |= {key for term in long or kept[-len(kept) // 2 :] for key in table.of(term)}
        if len(frozen) == before:
            return kept


def _is_input(term: Term) -> bool:
    """An input, or a part of one."""
    while term.op in ("extract", "zext", "sext"):
        term = term.args[0]
    return term.op == "var" and "!" in str(term.data)
