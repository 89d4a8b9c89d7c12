"""Memory of terms: a chain of stores, with an index of the cells that are certain.

`chain` alone would say everything (TR1669 §3.4), but a run writes and reads the same stack cells thousands of times
and walking the chain for each read is quadratic. Writes at `base + constant` for one base at a time (the constants
themselves, or a symbolic stack pointer) are therefore kept in a dictionary by offset; a write through another base
may alias them all, so it empties the index. Reads answered by neither the index nor the image go to the chain.

Bytes of the image that cannot have changed read as constants: all of them until a write through a symbolic address,
and for ever where the region is not writable, because the write would have faulted.
"""

from __future__ import annotations

from ..logic import linear
from ..logic.terms import Term, concat, const, extract, load, memory, store
from .address_space import AddressSpace


class SymbolicMemory:
    def __init__(self, space: AddressSpace, name: str = "mem", at_entry: bool = True) -> None:
        """`at_entry` says whether `initial` is the memory at entry, whose image bytes are known, or any later one, of
        which only the bytes that no run can write are."""
        self._space = space
        self._big_endian = space.big_endian
        self.initial = memory(name, space.address_bits)
        self._chain = self.initial
        self._pending: list[tuple[Term, Term]] = []
        self._base = const(0, space.address_bits)
        self._cells: dict[int, tuple[Term, int]] = {}
        self._only_constant_writes = at_entry

    def copy(self) -> SymbolicMemory:
        twin = SymbolicMemory.__new__(SymbolicMemory)
        twin._space = self._space
        twin._big_endian = self._big_endian
        twin.initial = self.initial
        twin._chain = self._chain
        twin._pending = list(self._pending)
        twin._base = self._base
        twin._cells = dict(self._cells)
        twin._only_constant_writes = self._only_constant_writes
        return twin

    @property
    def term(self) -> Term:
        """The whole memory as one term over `initial`."""
        for address, value in self._pending:
            self._chain = store(self._chain, address, value, self._big_endian)
        self._pending.clear()
        return self._chain

    def load(self, address: Term, size: int) -> Term:
        base, offset = linear.without_constant(address), linear.constant_part(address)
        if base is not self._base:
            if base.op == "const":
                return self._assemble(offset, size, {})
            return load(self.term, address, size, self._big_endian)
        found = self._cells.get(offset)
        if found is not None and found[0].width == 8 * size:
            word, index = found
            if index == (size - 1 if self._big_endian else 0) and self._intact(word, offset, size):
                return word
        if base.op == "const":
            return self._assemble(offset, size, self._cells)
        mask = self._space.mask
        if all((offset + i) & mask in self._cells for i in range(size)):
            return self._assemble(offset, size, self._cells)
        return load(self.term, address, size, self._big_endian)

    def store(self, address: Term, value: Term) -> None:
        size = value.width // 8
        base, offset = linear.without_constant(address), linear.constant_part(address)
        if base is not self._base:
            self._cells.clear()
            self._base = base
        if base.op != "const":
            self._only_constant_writes = False
        self._pending.append((address, value))
        mask = self._space.mask
        for i in range(size):
            self._cells[(offset + i) & mask] = (value, size - 1 - i if self._big_endian else i)

    def _intact(self, word: Term, offset: int, size: int) -> bool:
        """Whether the bytes from `offset` on are all still those of one write of `word`."""
        mask = self._space.mask
        for i in range(1, size):
            index = size - 1 - i if self._big_endian else i
            if self._cells.get((offset + i) & mask) != (word, index):
                return False
        return True

    def _assemble(self, offset: int, size: int, cells: dict[int, tuple[Term, int]]) -> Term:
        addresses = [(offset + i) & self._space.mask for i in range(size)]
        parts = [self._byte(address, cells) for address in addresses]
        if not self._big_endian:
            parts.reverse()
        result = parts[0]
        for part in parts[1:]:
            result = concat(result, part)
        return result

    def _byte(self, address: int, cells: dict[int, tuple[Term, int]]) -> Term:
        cell = cells.get(address)
        if cell is not None:
            word, index = cell
            return extract(word, 8 * index + 7, 8 * index)
        where = const(address, self._space.address_bits)
        if self._only_constant_writes:
            known = self._space.initial_byte(address)
        else:
            known = None if self._space.writable(address) else self._space.initial_byte(address)
        if known is not None:
            return const(known, 8)
        return load(self.term, where, 1, self._big_endian)
