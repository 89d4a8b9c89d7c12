"""One block of an abstract state: like a path's, but bounds are read off terms, and what is undecided is possible.

Reads of a constant table through an index stay symbolic until a jump goes to what was read: then there is one successor
for each entry of the table that the index can name, without asking for one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from mcveto.engines.domain import PathDomain, as_term, as_value
from mcveto.engines.execute import Cut, Executor, _cells, _choice
from mcveto.engines.memory import PathMemory, Value
from mcveto.engines.queries import Model, No, Queries
from mcveto.engines.record import Accesses
from mcveto.engines.simulation import choices
from mcveto.engines.simulation.arrivals import CoarseRecorder
from mcveto.engines.simulation.coarse_memory import CoarseMemory, Unknowns
from mcveto.engines.simulation.exit_tests import COMPARES
from mcveto.engines.simulation.frames import OUTSIDE, Frames, Unfit
from mcveto.engines.simulation.hints import Possible
from mcveto.engines.simulation.masks import Masks
from mcveto.engines.simulation.narrowing import MOST_VALUES, Narrowing, Table
from mcveto.engines.simulation.pointers import Pointers
from mcveto.engines.simulation.positions import Positions
from mcveto.engines.simulation.remainders import Remainders, has_remainder
from mcveto.engines.simulation.value_ranges import bounds_of, is_excluded, places_of, values_of
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.faults import Fault
from mcveto.machine.memory import EXECUTE, READ, WRITE
from mcveto.machine.pcode import FreshOrigin, Instruction, Transfer
from mcveto.program.program import Program

if TYPE_CHECKING:
    from mcveto.engines.simulation.activation import Activation

FEW_CELLS = 32
# Addresses, of a few, that an access cannot be to.
MOST_DENIED = 4
MOST_ENTRIES = 8192
MOST_NODES = 400
MOST_PLACES = 2048
MOST_LISTED = 1024
MOST_TARGETS = 512
# Bytes that a store may be spread over to be worth asking where exactly.
WIDEST_ASKED = 1 << 12
LONGEST_CONDITION = 60
# Values of an index that a jump tells: which device it is for.
MOST_TOLD = 16
NOTHING_TOLD: Mapping[Term, list[int]] = MappingProxyType({})


class CoarseDomain(PathDomain):
    """The values of abstract states: remainders have names."""

    def apply(self, opcode: str, arguments: tuple[Value, ...], input_bits: int, output_bits: int) -> Value:
        value = super().apply(opcode, arguments, input_bits, output_bits)
        if opcode in COMPARES:
            assert isinstance(self._decisions, CoarseExecutor)
            one, other = arguments
            if isinstance(one, int) and isinstance(other, int):
                self._decisions.masks.note_comparison(one, other)
            if self._decisions.tested is not None:
                self._decisions.tested.update(arguments)
            if self._decisions.compared is not None:
                self._decisions.compared[arguments] = input_bits
        if isinstance(value, int):
            if opcode == "INT_AND":
                one, other = arguments
                if isinstance(one, int) and isinstance(other, int):
                    assert isinstance(self._decisions, CoarseExecutor)
                    self._decisions.masks.note_number(one, other)
            return value
        if has_remainder(value):
            assert isinstance(self._decisions, CoarseExecutor)
            return as_value(self._decisions.renamed(value))
        return value

    def load(self, address: Value, size: int) -> Value:
        executor = self._decisions
        assert isinstance(executor, CoarseExecutor)
        if executor.deciding and isinstance(address, int) and executor._instruction.pc in executor.deciding:
            executor.decided.update(range(address, address + size))
        value = super().load(address, size)
        if isinstance(address, int) and isinstance(value, int):
            executor.masks.note_held(address, value)
        return value

    def store(self, address: Value, value: Value, size: int) -> None:
        if isinstance(address, int) and isinstance(value, Term):
            executor = self._decisions
            assert isinstance(executor, CoarseExecutor)
            # What was tested may be stored instead of the number that it is.
            path = executor._state.path
            low, high = bounds_of(value, path) if value.op == "var" else (0, 1)
            value = low if low == high else choices.settled(value, path)
        elif isinstance(address, int) and isinstance(value, int):
            assert isinstance(self._decisions, CoarseExecutor)
            self._decisions.masks.note_store(address, value)
        super().store(address, value, size)


class CoarseExecutor(Executor):
    def __init__(self, program: Program, queries: Queries, unknowns: Unknowns) -> None:
        super().__init__(program, queries, eager=True)
        self.unknowns = unknowns
        self.remainders = Remainders(unknowns)
        self.pointers = Pointers(
            program.space, self._row.address_bytes, lambda address: self.are_behind_calls((address,))
        )
        self.masks = Masks(queries.table)
        self._domain = CoarseDomain(program.decoder.layout, program.space, self)
        self.possible = Possible(queries, MOST_NODES)
        self.matters: Callable[[PathState], bool] = lambda state: True
        """Whether it is worth asking which ways the branch of a state's block can go."""
        self.asks_all: Callable[[PathState], bool] = lambda state: False
        """Whether everything about a state's block is asked of the solver."""
        self.note_store: Callable[[PathState, Term, Sequence[tuple[int, int]], bool], None] = lambda *told: None
        """Is told of stores to unknown places: the address, which bytes they can touch, and whether that has bounds."""
        self._tables: dict[Term, Table] = {}
        self._lists: dict[Term, Term] = {}
        """Of what was read from a table of code: which entries it can be."""
        self.forked = False
        """Whether the block just executed could go several ways."""
        self.recorder: CoarseRecorder = CoarseRecorder(unknowns)
        self.watched: Accesses | None = None
        """What the next block reads, if somebody wants to know."""
        self.deciding: frozenset[int] = frozenset()
        """The instructions of the next block whose loads decide about a target; and which bytes they load."""
        self.decided: set[int] = set()
        self.decided_among: set[int] = set()
        """The same where an address can be one of a few."""
        self.compared: dict[tuple[Value, ...], int] | None = None
        self.tested: set[Value] | None = None
        """What the next block compares, and how wide; and all values that it compares, if somebody wants to know."""
        self._behind_calls: set[int] = set()
        self.positions = Positions()
        self.states: tuple[int, ...] = ()
        self.variables: tuple[int, ...] = ()
        """The registers that hold the states of automata, and their variables."""
        self.activation: Activation | None = None
        """The call that is followed for a summary."""
        self.frames: Frames | None = None

    def meaning(self, name: Term) -> Term | None:
        """What a name stands for, if it is an entry of a table or a remainder."""
        definition = self.remainders.definitions.get(name)
        if definition is not None:
            return t.eq(name, t.urem(definition[0], t.const(definition[1], name.width)))
        read = self._tables.get(name)
        if read is None:
            return None
        address, cells, entries = read
        return t.disj(
            [
                t.conj([t.eq(address, t.const(cell, address.width)), t.eq(name, t.const(entry, name.width))])
                for cell, entry in zip(cells, entries, strict=True)
            ]
        )

    def is_table(self, value: Term) -> bool:
        """Whether more is known of a value than the path says."""
        return value in self._tables or value in self._lists

    def initial(self) -> PathState:
        state = super().initial()
        state.memory = self._new_memory()
        return state

    def _new_memory(self) -> PathMemory:
        return CoarseMemory(self._program.space, self.unknowns)

    # Decisions.

    def decide(self, condition: Term) -> bool:
        state, number = self._state, len(self._decisions)
        if number < len(self._script.decisions):
            way = self._script.decisions[number]
            state.path.add(condition if way else t.bnot(condition))
        elif state.path.holds(condition):
            way = True
        elif state.path.holds(t.bnot(condition)):
            way = False
        elif is_excluded(condition, state.path):
            way = False
            state.path.add(t.bnot(condition))
        elif is_excluded(t.bnot(condition), state.path):
            way = True
            state.path.add(condition)
        else:
            opposite = t.bnot(condition)
            yes: Model | No | None = None
            no: Model | No | None = None
            if number or self.matters(state):
                yes = self.possible.model(state.path, condition, state.model)
                no = self.possible.model(state.path, opposite, state.model)
            if yes is No.UNSAT and no is No.UNSAT:
                raise Cut
            way = yes is not No.UNSAT
            if way and no is not No.UNSAT:
                self.forked = True
                self._fork(opposite, False, no if isinstance(no, Model) else state.model)
            # Said even if the path implies it: a join keeps what both paths say, not what both imply.
            state.path.add(condition if way else opposite)
            found = yes if way else no
            state.model = found if isinstance(found, Model) else state.model
        self._decisions.append(way)
        return way

    def _decide_states(self) -> None:
        """Automata that may follow this lock or wait for another, or move if it is the one they follow: a branch like
        any other, so that states which are kept apart by it have one each."""
        registers = self._domain.registers
        for number in self.states:
            condition = choices.first_condition(registers.get(number, 0))
            while condition is not None:
                said = Substitution({condition: t.TRUE if self.decide(condition) else t.FALSE}).apply
                for other in (number, *self.variables):
                    value = registers.get(other)
                    if isinstance(value, Term):
                        registers[other] = as_value(said(value))
                condition = choices.first_condition(registers[number])

    def feasible(self, state: PathState) -> bool:
        return True

    def _model(self) -> Model:
        model = self._state.model
        return model if model is not None else self._queries.any_input()

    def _assume(self, condition: Term) -> None:
        if condition is t.TRUE:
            return
        found = self.possible.model(self._state.path, condition, self._state.model)
        if found is No.UNSAT:
            raise Cut
        if isinstance(found, Model):
            self._state.model = found
        self._state.path.add(condition)

    def fresh(self, bits: int, origin: FreshOrigin, usual: Value) -> Value:
        state = self._state
        before = state.log
        value = super().fresh(bits, origin, usual)
        state.log = self.positions.note(before, state.log)
        if self.activation is not None:
            self.activation.reads_inputs = True
        if isinstance(value, Term) and state.arrivals and self.unknowns.is_recorded:
            (arrival,) = state.arrivals
            number = arrival.drawn + 1
            names = {**arrival.names, value: t.var(f"fresh!{number}.{bits}", bits)}
            state.arrivals = (arrival._replace(names=names, drawn=number),)
        return value

    def _begin_node(self, state: PathState, block: tuple[Instruction, ...]) -> Accesses | None:
        self.masks.begin_block()
        accesses = super()._begin_node(state, block)
        if self.watched is not None:
            if accesses is None:
                accesses = self._domain.accesses = self.watched
            else:
                self.watched = accesses
        return accesses

    def _begin_last(self) -> None:
        super()._begin_last()
        self._arrivals_before = self._state.arrivals

    def _fork(self, condition: Term, way: bool, model: Model | None) -> None:
        super()._fork(condition, way, model)
        self._result.again[-1].arrivals = self._arrivals_before

    # Memory.

    @property
    def _accesses(self) -> Accesses | None:
        accesses = self._domain.accesses
        assert accesses is None or isinstance(accesses, Accesses)
        return accesses

    def _bounded(self, address: Term, size: int, needed: int) -> tuple[int, int] | None:
        """Bounds of an address within one region; None if it can be anywhere that allows the access."""
        bounds = bounds_of(address, self._state.path)
        region = self._program.space.region_at(bounds[0])
        if region is not None and bounds[1] + size <= region.end and region.permissions & needed:
            return bounds
        few = self._few_places(address, size, needed)
        if few is not None:
            return few
        allowed = self._program.space.allowed(address, size, needed)
        self._not_foreign(address, allowed)
        self._assume(allowed)
        bounds = bounds_of(address, self._state.path)
        region = self._program.space.region_at(bounds[0])
        if region is not None and bounds[1] + size <= region.end and region.permissions & needed:
            return bounds
        # One of a few pointers, or null: where the access is not allowed, the run has ended.
        values = values_of(address, self._state.path, MOST_LISTED)
        values = [value for value in values if self._permits(value, size, needed)]
        if len(values) == 1:
            self._state.path.add(t.eq(address, t.const(values[0], address.width)))
        region = self._program.space.region_at(values[0]) if values else None
        return (values[0], values[-1]) if region is not None and values[-1] + size <= region.end else None

    def _few_places(self, address: Term, size: int, needed: int) -> tuple[int, int] | None:
        """The bounds of one of a few pointers, or null, without asking the solver; None if that does not tell."""
        values = values_of(address, self._state.path, FEW_CELLS)
        denied = [value for value in values if not self._permits(value, size, needed)]
        if len(denied) == len(values) or len(denied) > MOST_DENIED:
            return None
        spans = self._program.undetermined.foreign_ranges()
        if any(low <= value < high for value in denied for low, high in spans):
            return None
        left = [value for value in values if value not in denied]
        region = self._program.space.region_at(left[0])
        if region is None or left[-1] + size > region.end:
            return None
        for value in denied:  # there the run has ended
            self._state.path.add(t.bnot(t.eq(address, t.const(value, address.width))))
        if len(left) == 1:
            self._state.path.add(t.eq(address, t.const(left[0], address.width)))
        return left[0], left[-1]

    def _permits(self, address: int, size: int, needed: int) -> bool:
        try:
            self._program.space.check(address, size, needed)
        except Fault:
            return False
        return True

    def load(self, address: Term, size: int) -> Value:
        memory = self._domain.memory
        assert isinstance(memory, CoarseMemory)
        framed = self._framed(address)
        if framed is not None:
            if self._accesses is not None:
                self._accesses.load(framed, size)
            return memory.load(framed, size)
        bounds = self._bounded(address, size, READ)
        if bounds is None:
            return memory.read_unknown(address, size)
        if (
            self.activation is not None
            and self.frames is not None
            and self.frames.forbids(bounds[0], bounds[1] - bounds[0] + size)
        ):
            # Stores to the frame would not be seen to change what is read here.
            raise Unfit
        accesses = self._accesses
        known = memory.known_at(address, size)
        if known is not None:
            if accesses is not None and known[0] not in accesses.made:
                accesses.looked.add(known[0])
            return as_value(known[1])
        cells = self._few_cells(address, bounds, FEW_CELLS)
        if cells:
            if self.deciding and self._instruction.pc in self.deciding:
                self.decided_among.update(at for cell in cells for at in range(cell, cell + size))
            if accesses is not None:
                for cell in cells:
                    accesses.load(cell, size)
            if len(cells) == 1:
                return memory.load(cells[0], size)
            values = [as_term(memory.load(cell, size), 8 * size) for cell in cells]
            return as_value(self._cell_chosen(address, cells, values))
        if accesses is not None:
            accesses.made.add((address, size))
        value = memory.load_within(address, size, *bounds)
        region = self._program.space.region_at(bounds[0])
        if region is not None and value not in self._tables:
            entries = self._entries(address, bounds, size, not region.permissions & WRITE)
            if entries:
                if self.activation is not None and region.permissions & WRITE:
                    raise Unfit
                self._tables[value] = (address, [cell for cell, _ in entries], [entry for _, entry in entries])
                distinct = sorted({entry for _, entry in entries})
                if len(distinct) <= MOST_LISTED and all(self.is_code(entry) for entry in distinct):
                    self._lists[value] = t.disj([t.eq(value, t.const(entry, value.width)) for entry in distinct])
                elif len(distinct) <= MOST_VALUES and self.pointers.are_all(distinct):
                    self._lists[value] = self.pointers.listing(value, distinct)
        if accesses is not None and value in self._tables and region is not None and region.permissions & WRITE:
            for cell in self._tables[value][1]:  # what is known of the value, is known because of these
                accesses.load(cell, size)
        if value in self._lists:
            self._state.path.add(self._lists[value])
        return value

    def _expect_return(self, state: PathState, last: Instruction) -> None:
        super()._expect_return(state, last)
        assert state.calls is not None
        self._behind_calls.add(state.calls.address)

    def are_behind_calls(self, addresses: Iterable[int]) -> bool:
        """Whether calls return to one of these."""
        return any(self._row.code_address(address) in self._behind_calls for address in addresses)

    def is_code(self, address: int) -> bool:
        region = self._program.space.region_at(self._row.code_address(address))
        return region is not None and bool(region.permissions & EXECUTE)

    def _few_cells(self, address: Term, bounds: tuple[int, int], most: int) -> list[int]:
        values = values_of(address, self._state.path, most)
        return [value for value in values if bounds[0] <= value <= bounds[1]] or _cells(address, bounds, most)

    def _entries(self, address: Term, bounds: tuple[int, int], size: int, is_fixed: bool) -> list[tuple[int, int]]:
        """The cells of a table that can be read, with their contents; none if it is no table, or not one of addresses
        and can be written."""
        if not is_fixed and size != self._row.address_bytes:
            return []
        found: list[tuple[int, int]] = []
        cells = values_of(address, self._state.path, MOST_ENTRIES) or _cells(address, bounds, MOST_ENTRIES)
        for cell in cells:
            entry = self._domain.memory.load(cell, size)
            if not isinstance(entry, int):
                return []
            if not is_fixed and not self.is_code(entry) and not self.pointers.are_all((entry,)):
                return []
            found.append((cell, entry))
        return found

    def _framed(self, address: Term) -> int | None:
        """The cell of the frame that an address means, in a call that is followed for a summary."""
        return None if self.activation is None or self.frames is None else self.frames.cell(address)

    def store(self, address: Term, value: Value, size: int) -> None:
        memory = self._domain.memory
        framed = self._framed(address)
        if framed is not None:
            if self._accesses is not None:
                self._accesses.store(framed, size)
            memory.store(framed, value, size)
            return
        bounds = self._bounded(address, size, WRITE)
        if bounds is not None and self.asks_all(self._state):
            bounds = self._closest(address, bounds)
        cells = self._few_cells(address, bounds, choices.MOST_PLACES) if bounds is not None else []
        if len(cells) == 1:
            if self._accesses is not None:
                self._accesses.store(cells[0], size)
            memory.store(cells[0], value, size)
            return
        if self._accesses is not None:
            self._accesses.made.add((address, size))
        if self._memory_before is None:
            self._memory_before = memory.undone()
        assert isinstance(memory, CoarseMemory)
        path = self._state.path

        def misses(other: Term, extent: int) -> bool:
            """Both go by the same unknown, at a distance."""
            low, high = bounds_of(t.sub(address, other), path)
            return extent <= low and high + size <= 1 << address.width

        are_flags = self._are_flags(cells, value, size)
        if are_flags or self._are_pointers(cells, value, size):
            if self._accesses is not None:
                for cell in cells:
                    self._accesses.store_perhaps(cell, size)
            stored = as_term(value, 8 * size)
            chosen = [cell for cell in cells if are_flags and isinstance(memory.load(cell, size), Term)]
            memory.store_chosen(address, stored, cells, misses)
            for cell in chosen:
                # A lock that is given back by another name is free again: then that is all there is to know.
                now = memory.load(cell, size)
                if isinstance(now, Term) and choices.is_choice(now) and self._is_always(now, stored):
                    memory.put(cell, stored)
            return
        regions = self._program.space.regions
        wide = [(region.start, region.end) for region in regions if region.permissions & WRITE]
        ranges = [(bounds[0], bounds[1] + size)] if bounds is not None else wide
        if bounds is not None:
            low, high = ranges[0]
            places = places_of(address, size, path, MOST_PLACES)
            ranges = [(max(a, low), min(b, high)) for a, b in places if a < high and low < b] or ranges
        self.note_store(self._state, address, ranges, bounds is not None)
        if self.activation is not None:
            if bounds is None:
                raise Unfit
            self.activation.note_store(address, size, tuple(ranges))
        memory.store_within(address, as_term(value, 8 * size), ranges, misses)

    def _closest(self, address: Term, bounds: tuple[int, int]) -> tuple[int, int]:
        """The least and greatest address, if the solver tells; else the bounds that were read off: n & ~1 of an odd n
        that is at most 32 is at most 30, not 32, where something else may lie."""
        path = self._state.path
        if bounds[1] - bounds[0] > WIDEST_ASKED:
            return bounds
        base = self.possible.model(path, t.ule(address, t.const(bounds[1], address.width)), self._state.model)
        if not isinstance(base, Model):
            return bounds
        exact = self._queries.bounds(path, address, base, WIDEST_ASKED)
        if exact is None or exact == bounds:
            return bounds
        path.add(t.ule(address, t.const(exact[1], address.width)))
        path.add(t.ule(t.const(exact[0], address.width), address))
        return exact

    def _is_always(self, term: Term, value: Term) -> bool:
        path, model = self._state.path, self._state.model
        return self.possible.model(path, t.bnot(t.eq(term, value)), model) is No.UNSAT

    def _are_flags(self, cells: list[int], value: Value, size: int) -> bool:
        """Whether a store of a value to one of these cells leaves each with one of a few constants."""
        if not self._is_one_of_few(value) or not self._are_apart(cells, size):
            return False
        return all(self._is_one_of_few(self._domain.memory.load(cell, size)) for cell in cells)

    def _is_one_of_few(self, value: Value) -> bool:
        """Whether a value is one of a few constants: by conditions, or as a join left it, by its bounds."""
        if choices.is_choice(value):
            return True
        assert isinstance(value, Term)
        if not t.are_short([value], choices.MOST_NODES):
            return False
        return bool(values_of(value, self._state.path, choices.MOST_CHOICES))

    def _are_pointers(self, cells: list[int], value: Value, size: int) -> bool:
        """The same for pointers that are null or one of a few addresses."""
        if size != self._row.address_bytes or not self._are_apart(cells, size):
            return False
        path, memory = self._state.path, self._domain.memory
        return self.pointers.is_short(value, path) and all(
            self.pointers.is_short(memory.load(cell, size), path) for cell in cells
        )

    def _are_apart(self, cells: list[int], size: int) -> bool:
        """Whether cells are few, do not overlap and are known."""
        memory = self._domain.memory
        assert isinstance(memory, CoarseMemory)
        if not 1 < len(cells) <= choices.MOST_PLACES or any(map(memory.is_open, cells)):
            return False
        return all(there - before >= size for before, there in pairwise(cells))

    def _cell_chosen(self, address: Term, cells: list[int], values: list[Term]) -> Term:
        """The value of the cell that the address names, by its index if it has one."""
        if address.op == "lin" and len(address.args) == 1:
            (coefficient,), constant = address.data
            (index,) = address.args
            places = [(cell - constant) // coefficient for cell in cells]
            limit = 1 << address.width
            if all(
                place >= 0 and coefficient * place + constant == cell < limit
                for place, cell in zip(places, cells, strict=True)
            ):
                return _choice(index, places, values)
        return _choice(address, cells, values)

    # Remainders.

    def renamed(self, term: Term) -> Term:
        """A sum with names for its remainders."""
        term, bounds = self.remainders.named(term)
        memory = self._domain.memory
        assert isinstance(memory, CoarseMemory)
        for bound in bounds:
            self._state.path.add(bound)
            if not self.unknowns.is_recorded:
                continue
            name = bound.args[0]
            dividend, divisor = self.remainders.definitions[name]
            memory.introduced[name] = t.urem(dividend, t.const(divisor, dividend.width))
        return term

    # Jumps.

    def _not_foreign(self, address: Term, allowed: Term) -> None:
        read = self._read_from_table(address)
        if read is not None:
            entries = dict.fromkeys(self._tables[read][2])
            if all(Substitution({read: t.const(entry, read.width)}).apply(allowed) is t.TRUE for entry in entries):
                return
        super()._not_foreign(address, allowed)

    def _read_from_table(self, target: Term) -> Term | None:
        """What was read from a table, if nothing else decides where a jump goes."""
        keys = self._queries.table.of(target)
        (key,) = keys if len(keys) == 1 else (None,)
        return key if isinstance(key, Term) and key in self._tables else None

    def _enumerate(self, state: PathState, target: Term, transfer: Transfer) -> None:
        values = values_of(target, state.path, MOST_TARGETS)
        if values:
            self.forked = self.forked or len(values) > 1
            narrowing = Narrowing(state.path, lambda name: self._table_now(name, state))
            for value in values:
                told = narrowing.told(target, frozenset((value,))) if len(values) > 1 else NOTHING_TOLD
                self._go(state, value, t.eq(target, t.const(value, target.width)), transfer, told)
            return
        read = self._read_from_table(target)
        if self.activation is not None and read is None:
            raise Unfit
        if read is None:
            state.model = None
            found = self._queries.model(state.path, (), None)
            if isinstance(found, No):
                if found is No.UNKNOWN:
                    self._gap("the solver ran out of time")
                return
            state.model = found
            super()._enumerate(state, target, transfer)
            return
        address, cells, entries = self._tables[read]
        places: dict[int, list[Term]] = {}
        is_there = self._table_now(read, state) is not None
        if is_there and self._accesses is not None and (address, read.width // 8) not in self._accesses.made:
            self._accesses.looked.add((address, read.width // 8))
        for cell, entry in zip(cells, entries, strict=True):
            places.setdefault(entry, []).append(t.eq(address, t.const(cell, address.width)))
        self.forked = self.forked or len(places) > 1
        for entry, ways in places.items():
            goes = Substitution({read: t.const(entry, read.width)}).apply(target)
            # If the index is no longer what was read with, the entry can be any.
            here = t.disj(ways) if is_there else t.TRUE
            assert goes.op == "const"
            self._go(state, goes.data, here, transfer)

    def _table_now(self, name: Term, state: PathState) -> Table | None:
        """From where something was read, if the index is still what it was read with."""
        table = self._tables.get(name)
        memory = state.memory
        assert isinstance(memory, CoarseMemory)
        known = memory.looked.get((table[0], name.width // 8)) if table is not None else None
        return table if known is not None and known[0] is name else None

    def _return(self, state: PathState, target: Value) -> None:
        if self.activation is not None and state.calls is self.activation.general.root:
            assert self.frames is not None
            if isinstance(target, int) or t.free_variables([target]) != [self.frames.back]:
                raise Unfit
            self.activation.returns.add(target)
            state.pc, state.calls = OUTSIDE, None
            self._result.successors.append((Transfer.RETURN, state))
            return
        super()._return(state, target)

    def _single(self, state: PathState) -> tuple[Instruction, ...]:
        if self.activation is not None:
            raise Unfit
        return super()._single(state)

    def _go(
        self, state: PathState, pc: int, here: Term, transfer: Transfer, told: Mapping[Term, list[int]] = NOTHING_TOLD
    ) -> None:
        """One way of a jump, if its condition is possible; a long one is not remembered. It tells something about the
        indices that decide where it goes."""
        if not all(told.values()):
            return
        model = self.possible.model(state.path, here, state.model)
        if model is No.UNSAT:
            return
        taken = state.fork(pc, dict(state.registers), state.memory.copy(), state.model)
        if isinstance(model, Model):
            taken.model = model
        if t.are_short([here], LONGEST_CONDITION):
            taken.path.add(here)
        for index, values in told.items():
            if len(values) <= MOST_TOLD:
                taken.path.add(t.disj([t.eq(index, t.const(value, index.width)) for value in values]))
        known = {index: t.const(values[0], index.width) for index, values in told.items() if len(values) == 1}
        if known and not self.unknowns.is_recorded:
            put = Substitution(known)
            for number, value in taken.registers.items():
                if isinstance(value, Term):
                    taken.registers[number] = as_value(put.apply(value))
        self._result.successors.append((transfer, taken))
