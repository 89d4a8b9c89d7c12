"""States along a path whose memory knows the range of every store.

A store into a table, `table[x & 255]`, has an address that is not constant, but one that its operators bound. It leaves
everything outside these bounds as it was. Terms do not see that: for them a load behind such a store asks whether two
addresses are equal. Here loads at constant addresses pass stores that cannot reach them.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcveto.dpg.location import ANY, Location
from mcveto.dpg.strengthen.path_state import KnownBytes, PathState
from mcveto.engines.cegar.bounds import bounds
from mcveto.logic import linear
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.symbolic_memory import SymbolicMemory
from mcveto.program.program import Program

# Larger ranges are treated like any address.
MAX_RANGE = 4096
_UNCERTAIN = t.var("what a store may have written", 8)


class BoundedMemory(SymbolicMemory):
    """Keeps its index of cells over a store with a small range; the cells in the range are uncertain."""

    def store(self, address: Term, value: Term) -> None:
        if address.op == "const" or self._base.op != "const" or linear.without_constant(address) is self._base:
            super().store(address, value)
            return
        low, high = bounds(address)
        size = value.width // 8
        if high - low > MAX_RANGE or high + size - 1 > self._space.mask:
            super().store(address, value)
            return
        self._pending.append((address, value))
        for where in range(low, high + size):
            self._cells[where] = (_UNCERTAIN, 0)

    def _find(self, offset: int) -> tuple[Term, int] | None:
        found = super()._find(offset)
        return None if found is not None and found[0] is _UNCERTAIN else found

    def _byte(self, address: int, indexed: bool) -> Term:
        found = super()._find(address) if indexed else None
        if found is not None and found[0] is _UNCERTAIN:
            return t.load(self.term, t.const(address, self._space.address_bits), 1, self._big_endian)
        return super()._byte(address, indexed)


class BoundedState(PathState):
    def _rebuilt(self, term: Term, arguments: tuple[Term, ...]) -> Term:
        result = super()._rebuilt(term, arguments)
        if result.op != "load" or result.args[0].op != "store" or result.args[1].op != "const":
            return result
        size, big_endian = result.data
        chain = result.args[0]
        while chain.op == "store" and _apart(chain, result.args[1].data, size):
            chain = chain.args[0]
        if chain is result.args[0]:
            return result
        found = t.load(chain, result.args[1], size, big_endian)
        if found.op == "load" and found.args[0] is self._mem:
            at_start = self._memory.at_start()
            if at_start.reads(size, big_endian):
                return at_start.load(found.args[1], size)
        return found


def _apart(store: Term, address: int, size: int) -> bool:
    """Whether a store cannot reach the bytes from `address` on."""
    low, high = bounds(store.args[1])
    last = high + store.args[2].width // 8 - 1
    return last < 1 << store.address_width and (last < address or address + size - 1 < low)


def bounded_state(
    program: Program,
    location: Location,
    pointers: tuple[int, int],
    registers: Mapping[int, int],
    known: Mapping[int, int],
) -> BoundedState:
    """Any state at a location whose registers and bytes have the values given."""
    layout = program.decoder.layout
    values = {number: t.const(value, layout.cells[number].bits) for number, value in registers.items()}
    for number, value in zip(pointers, (location.stack_pointer, location.frame_pointer), strict=True):
        if value != ANY:
            values[number] = t.const(value, layout.cells[number].bits)
    memory = BoundedMemory(KnownBytes(program.space, known), "mem")
    return BoundedState(layout, values, memory, memory.initial, 0)


def bounded_entry(program: Program) -> BoundedState:
    """The states the program starts in."""
    from mcveto.machine.concolic import Assignment

    domain = program.concolic_with(Assignment()).domain
    space: AddressSpace = program.space
    memory = BoundedMemory(space, "mem")
    return BoundedState(program.decoder.layout, dict(domain.registers), memory, memory.initial, 0)
