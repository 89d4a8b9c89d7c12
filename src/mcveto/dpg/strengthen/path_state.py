"""The state along a path of blocks, over the state at the path's start.

A path starts in a state of which some registers and bytes are known to be constant and the rest are variables. Taking
an outcome of a block substitutes: the outcome's terms speak of the state before the block, which are terms over the
start. Fresh values are numbered along the path, in the order in which a run makes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcveto.dpg.location import ANY, Location
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.state import SymbolicState
from mcveto.logic import terms as t
from mcveto.logic.substitute import rebuild
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.registers import RegisterLayout
from mcveto.machine.symbolic_memory import SymbolicMemory
from mcveto.program.program import Program


class KnownBytes(AddressSpace):
    """The address space as seen from a point of the program where some writable bytes are known."""

    def __init__(self, space: AddressSpace, known: Mapping[int, int]) -> None:
        super().__init__(space.regions, space.address_bits, space.big_endian)
        self._known = known

    def initial_byte(self, address: int) -> int | None:
        found = self._known.get(address)
        if found is None and not self.writable(address):
            found = super().initial_byte(address)
        return found


class PathState(SymbolicState):
    """`fresh_before` fresh values were made on the way here."""

    def __init__(
        self, layout: RegisterLayout, registers: dict[int, Term], memory: SymbolicMemory, mem: Term, fresh_before: int
    ) -> None:
        super().__init__(layout, registers, memory, mem)
        self.fresh_before = fresh_before

    def _variable(self, variable: Term) -> Term:
        name = str(variable.data)
        if self.fresh_before and "!" in name:
            prefix, _, number = name.partition("!")
            return t.var(f"{prefix}!{int(number) + self.fresh_before}", variable.width)
        return super()._variable(variable)

    def _rebuilt(self, term: Term, arguments: tuple[Term, ...]) -> Term:
        """A read that got past all writes meets what is known at the start."""
        result = rebuild(term, arguments)
        if result.op == "load" and result.args[0] is self._mem and result.args[1].op == "const":
            at_start = self._memory.at_start()
            if at_start.reads(*result.data):
                return at_start.load(result.args[1], result.data[0])
        return result

    def after(self, outcome: Outcome, arrived: Location, live: Collection[int], pointers: tuple[int, int]) -> PathState:
        """The state behind `outcome` at `arrived`; a register written that is not `live` becomes a value of its own."""
        layout = self._layout
        registers = dict(self._registers)
        for variable, value in outcome.state.items():
            if variable is not self._mem:
                cell = layout.by_name[str(variable.data)]
                if cell.number in live:
                    registers[cell.number] = t.zext(self.value(value), cell.bits)
                else:
                    registers[cell.number] = t.var(f"dead {cell.name}", cell.bits)
        for number, pointer in zip(pointers, (arrived.stack_pointer, arrived.frame_pointer), strict=True):
            if pointer != ANY:
                registers[number] = t.const(pointer, layout.cells[number].bits)
        memory = self._memory.copy()
        for address, value, big_endian in stores_of(outcome.memory, self._mem):
            _write(memory, self.value(address), self.value(value), big_endian)
        return type(self)(layout, registers, memory, self._mem, self.fresh_before + len(outcome.fresh))

    def writes(self) -> list[tuple[Term, Term, bool]]:
        """Address, value and byte order of the writes on the way here, oldest first."""
        return stores_of(self._memory.term, self._mem)

    def writes_through_pointers(self) -> bool:
        """Whether some write on the way here went to an address that is not constant."""
        return any(address.op != "const" for address, _, _ in self.writes())

    def through(self, behind: PathState) -> PathState:
        """The state behind a further path that starts here; `behind` speaks of its start."""
        registers = dict(self._registers)
        for number, value in behind._registers.items():
            registers[number] = self.value(value)
        memory = self._memory.copy()
        for address, value, big_endian in stores_of(behind._memory.term, self._mem):
            _write(memory, self.value(address), self.value(value), big_endian)
        return PathState(self._layout, registers, memory, self._mem, self.fresh_before + behind.fresh_before)


def stores_of(memory: Term, base: Term) -> list[tuple[Term, Term, bool]]:
    """The writes a memory term makes on top of `base`, oldest first."""
    found: list[tuple[Term, Term, bool]] = []
    while memory is not base:
        assert memory.op == "store"
        before, address, value = memory.args
        found.append((address, value, memory.data))
        memory = before
    return found[::-1]


def _write(memory: SymbolicMemory, address: Term, value: Term, big_endian: bool) -> None:
    size = value.width // 8
    if memory.reads(size, big_endian):
        memory.store(address, value)
        return
    for i in range(size):
        index = size - 1 - i if big_endian else i
        memory.store(t.add(address, t.const(i, address.width)), t.extract(value, 8 * index + 7, 8 * index))


def state_at(
    program: Program,
    location: Location,
    pointers: tuple[int, int],
    registers: Mapping[int, int],
    known: Mapping[int, int],
) -> PathState:
    """Any state at a location whose registers and bytes have the values given."""
    layout = program.decoder.layout
    values = {number: t.const(value, layout.cells[number].bits) for number, value in registers.items()}
    for number, value in zip(pointers, (location.stack_pointer, location.frame_pointer), strict=True):
        if value != ANY:
            values[number] = t.const(value, layout.cells[number].bits)
    memory = SymbolicMemory(KnownBytes(program.space, known), "mem")
    return PathState(layout, values, memory, memory.initial, 0)


def entry_state(program: Program) -> PathState:
    """The states the program starts in."""
    from mcveto.machine.concolic import Assignment

    domain = program.concolic_with(Assignment()).domain
    memory = SymbolicMemory(program.space, "mem")
    return PathState(program.decoder.layout, dict(domain.registers), memory, memory.initial, 0)
