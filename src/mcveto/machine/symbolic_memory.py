"""Memory of terms: a chain of stores, with an index of the cells that are certain.

`chain` alone would say everything (TR1669 §3.4), but a run writes and reads the same stack cells thousands of times
and walking the chain for each read is quadratic. Writes at `base + constant` for one base at a time (the constants
themselves, or a symbolic stack pointer) are therefore kept in a dictionary by offset; a write through another base
may alias them all, so it empties the index. Reads answered by neither the index nor the image go to the chain.

Snapshots are cheap: `copy` freezes the cells written since the last one into a layer that both memories share, and
layers are merged so that there are never more than logarithmically many.

Bytes of the image that cannot have changed read as constants: all of them until a write through a symbolic address,
and for ever where the region is not writable, because the write would have faulted.
"""

from __future__ import annotations

from ..logic import linear
from ..logic.terms import Term, concat, const, extract, load, memory, store
from .address_space import AddressSpace

Cells = dict[int, tuple[Term, int]]


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
        self._layers: tuple[Cells, ...] = ()
        self._cells: Cells = {}
        self._only_constant_writes = at_entry

    def copy(self) -> SymbolicMemory:
        self._freeze()
        twin = type(self).__new__(type(self))
        twin._space = self._space
        twin._big_endian = self._big_endian
        twin.initial = self.initial
        twin._chain = self._chain
        twin._pending = list(self._pending)
        twin._base = self._base
        twin._layers = self._layers
        twin._cells = {}
        twin._only_constant_writes = self._only_constant_writes
        return twin

    def at_start(self) -> SymbolicMemory:
        """The memory before anything was written."""
        name, _ = self.initial.data
        return SymbolicMemory(self._space, name)

    @property
    def term(self) -> Term:
        """The whole memory as one term over `initial`."""
        for address, value in self._pending:
            self._chain = store(self._chain, address, value, self._big_endian)
        self._pending.clear()
        return self._chain

    def reads(self, size: int, big_endian: bool) -> bool:
        """Whether `load` is a load of that byte order."""
        return size == 1 or big_endian == self._big_endian

    def load(self, address: Term, size: int) -> Term:
        base, offset = linear.without_constant(address), linear.constant_part(address)
        if base is not self._base:
            if base.op == "const":
                return self._assemble(offset, size, False)
            return load(self.term, address, size, self._big_endian)
        found = self._find(offset)
        if found is not None and found[0].width == 8 * size:
            word, index = found
            if index == (size - 1 if self._big_endian else 0) and self._intact(word, offset, size):
                return word
        if base.op == "const":
            return self._assemble(offset, size, True)
        mask = self._space.mask
        if all(self._find((offset + i) & mask) is not None for i in range(size)):
            return self._assemble(offset, size, True)
        return load(self.term, address, size, self._big_endian)

    def store(self, address: Term, value: Term) -> None:
        size = value.width // 8
        base, offset = linear.without_constant(address), linear.constant_part(address)
        if base is not self._base:
            self._cells = {}
            self._layers = ()
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
            if self._find((offset + i) & mask) != (word, index):
                return False
        return True

    def _find(self, offset: int) -> tuple[Term, int] | None:
        """The last write to a cell of the current base: the word and which of its bytes."""
        found = self._cells.get(offset)
        if found is None:
            for layer in reversed(self._layers):
                found = layer.get(offset)
                if found is not None:
                    break
        return found

    def _freeze(self) -> None:
        """Makes the cells written since the last snapshot a shared layer, merging layers of similar size."""
        if not self._cells:
            return
        newest, layers = self._cells, list(self._layers)
        while layers and len(layers[-1]) <= 2 * len(newest):
            newest = {**layers.pop(), **newest}
        self._layers = (*layers, newest)
        self._cells = {}

    def _assemble(self, offset: int, size: int, indexed: bool) -> Term:
        addresses = [(offset + i) & self._space.mask for i in range(size)]
        parts = [self._byte(address, indexed) for address in addresses]
        if not self._big_endian:
            parts.reverse()
        result = parts[0]
        for part in parts[1:]:
            result = concat(result, part)
        return result

    def _byte(self, address: int, indexed: bool) -> Term:
        cell = self._find(address) if indexed else None
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
