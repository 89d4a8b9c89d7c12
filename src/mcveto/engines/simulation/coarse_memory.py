"""The memory of an abstract state: cells at constant addresses, and ranges of which nothing is known.

A store through an address that is only bounded makes the bytes within its bounds unknown. What is read from an unknown
place is a fresh variable, remembered until somebody may have written there: two reads of one place agree, also those of
two states that have a way in common and have neither made it unknown nor met others since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mcveto.engines.memory import ByteOf, Cell, PathMemory, Value, is_within, united
from mcveto.engines.path import KeyTable
from mcveto.engines.record import NOW
from mcveto.engines.simulation.pages import Cells
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace

# Ranges that became unknown one after the other.
MOST_RANGES = 32
ANY = "any!"


class Unknowns:
    """Makes variables that stand for anything; `origins` says what the joins made them for."""

    def __init__(self) -> None:
        self.count = 0
        self.origins: dict[Term, tuple[object, ...]] = {}
        self.shared: dict[Term, list[tuple[object, ...]]] = {}
        """Places that the number of a turn stands for, among others."""
        self.first: dict[tuple[object, ...], int] = {}
        """How many there were when a join first made something else of a place."""
        self.bounds: set[Term] = set()
        """What joins guessed about them, and no branch decided."""
        self.read: dict[tuple[int, int, int], Term] = {}
        """What stands for the content of unknown places; by when they became unknown, address and size."""
        self.places: dict[Term, tuple[int, int]] = {}
        """Where that is."""
        self._epochs = 0
        self.is_recorded = True
        """Whether memories write down what they read and store, for a proof."""

    def origins_of(self, variable: object) -> list[tuple[object, ...]]:
        found = self.origins.get(variable)  # type: ignore[call-overload]
        return [found] if found is not None else self.shared.get(variable, [])  # type: ignore[call-overload]

    def new_epoch(self) -> int:
        self._epochs += 1
        return self._epochs

    def fresh(self, bits: int) -> Term:
        self.count += 1
        return t.var(f"{ANY}{self.count}", bits)

    @staticmethod
    def number_of(variable: Term) -> int | None:
        """How many there were with this one, if it is one of these."""
        name = str(variable.data)
        return int(name[len(ANY) :]) if name.startswith(ANY) else None


class CoarseMemory(PathMemory):
    __slots__ = ("_epoch", "_later", "_now_before", "introduced", "looked", "loose", "now", "start", "unknowns")

    def __init__(self, space: AddressSpace, unknowns: Unknowns) -> None:
        super().__init__(space)
        self.unknowns = unknowns
        self.cells: Cells = Cells()
        self._epoch = unknowns.new_epoch()
        self._later: tuple[tuple[int, int, int], ...] = ()
        """Ranges that became unknown later, with their epochs, newest first: what is at a place that nobody has looked
        at is the same until the next one."""
        self.looked: dict[tuple[Term, int], tuple[Term, int, int]] = {}
        """What was read through an address that is not constant, and from within which bounds."""
        self.start = t.memory(NOW, space.address_bits)
        self.now = self._now_before = self.start
        """What was stored since the state left or reached its node, to the memory `start`."""
        self.introduced: dict[Term, Term] = {}
        """Variables for what was read since then, with what that was."""
        self.loose: frozenset[Term] = frozenset()
        """Variables that a join made, each for one word, and of which nothing else is said: what the next join makes of
        these words is the same. Nobody has seen them yet; neither copies nor what is executed has any."""

    def copy(self) -> CoarseMemory:
        twin = CoarseMemory.__new__(CoarseMemory)
        twin._space, twin._big_endian = self._space, self._big_endian
        twin._mask, twin._width = self._mask, self._width
        twin.base, twin.clouds = self.base, self.clouds
        twin.cells, twin.dirty, twin.journal = self.cells.copy(), {}, []
        twin.unknowns, twin.looked = self.unknowns, dict(self.looked)
        twin._epoch, twin._later = self._epoch, self._later
        twin.start, twin.now, twin._now_before = self.start, self.now, self._now_before
        twin.introduced = dict(self.introduced)
        twin.loose = frozenset()
        return twin

    @property
    def is_big_endian(self) -> bool:
        return self._big_endian

    def begin(self) -> None:
        super().begin()
        self._now_before = self.now
        self.loose = frozenset()

    def undone(self) -> PathMemory:
        twin = super().undone()
        assert isinstance(twin, CoarseMemory)
        twin.now = self._now_before
        return twin

    def read_unknown(self, address: Term, size: int) -> Term:
        """A variable for what is at an address."""
        variable = self.unknowns.fresh(8 * size)
        if self.unknowns.is_recorded:
            self.introduced[variable] = t.load(self.now, address, size, self._big_endian)
        return variable

    def _read_place(self, address: int, size: int) -> Term:
        if self.unknowns.is_recorded:
            return self.read_unknown(self._at(address), size)
        epochs = (epoch for low, high, epoch in self._later if low < address + size and address < high)
        key = next(epochs, self._epoch), address, size
        found = self.unknowns.read.get(key)
        if found is None:
            found = self.unknowns.read[key] = self.unknowns.fresh(8 * size)
            self.unknowns.places[found] = address, size
        return found

    def _at(self, address: int) -> Term:
        return t.const(address, self._width)

    def unknown(self, address: int) -> bool:
        return is_within(address, address + 1, self.clouds)

    def is_open(self, address: int) -> bool:
        return address not in self.cells and self.unknown(address)

    def load(self, address: int, size: int) -> Value:
        if size == 1 or not self.clouds or address in self.cells:
            return super().load(address, size)
        places = [(address + i) & self._mask for i in range(size)]
        if all(place not in self.cells and self.unknown(place) for place in places):
            word = self._read_place(address, size)
            for i, place in enumerate(places):
                self.cells[place] = ByteOf(word, size - 1 - i if self._big_endian else i)
            return word
        return super().load(address, size)

    def byte(self, address: int) -> Cell:
        cell = self.cells.get(address)
        if cell is None and self.unknown(address):
            cell = self.cells[address] = ByteOf(self._read_place(address, 1), 0)
        return super().byte(address) if cell is None else cell

    def store(self, address: int, value: Value, size: int) -> None:
        cells, mask, journal = self.cells, self._mask, self.journal
        concrete = isinstance(value, int)
        if self.unknowns.is_recorded:
            word = t.const(value, 8 * size) if isinstance(value, int) else value
            self.now = t.store(self.now, self._at(address), word, self._big_endian)
        for i in range(size):
            where = (address + i) & mask
            index = size - 1 - i if self._big_endian else i
            journal.append((where, cells.get(where)))
            cells[where] = value >> 8 * index & 0xFF if concrete else ByteOf(value, index)  # type: ignore
        if self.looked:
            self._forget(address, address + size)

    def load_within(self, address: Term, size: int, low: int, high: int) -> Term:
        """A read somewhere between two addresses (the greatest is `high`)."""
        known = self.looked.get((address, size))
        if known is None:
            known = self.looked[address, size] = (self.read_unknown(address, size), low, high + size)
        return known[0]

    def known_at(self, address: Term, size: int) -> tuple[tuple[Term, int], Term] | None:
        """What is known to be at an address that is not constant, and by which read or store: also if that was of a
        wider word around it."""
        if not self.looked:
            return None
        known = self.looked.get((address, size))
        if known is not None:
            return (address, size), known[0]
        wider = 2 * size
        while wider <= self._width // 8:
            for before in range(0, wider, size):
                around = t.sub(address, t.const(before, self._width)), wider
                known = self.looked.get(around)
                if known is not None:
                    low = 8 * (wider - size - before if self._big_endian else before)
                    return around, t.extract(known[0], low + 8 * size - 1, low)
            wider *= 2
        return None

    def store_within(
        self,
        address: Term,
        value: Term,
        ranges: Sequence[tuple[int, int]],
        misses: Callable[[Term, int], bool] = lambda address, size: False,
    ) -> None:
        """A store that touches only bytes of these ranges; it cannot be undone. `misses` says whether it certainly
        does not touch what was read through another address."""
        self.forget_cells(ranges)
        if self.unknowns.is_recorded:
            self.now = t.store(self.now, address, value, self._big_endian)
        self.forget_read(ranges, misses)
        if ranges:
            self.looked[address, value.width // 8] = (
                value,
                min(low for low, _ in ranges),
                max(high for _, high in ranges),
            )
        self.journal.clear()

    def store_chosen(
        self, address: Term, value: Term, cells: Sequence[int], misses: Callable[[Term, int], bool]
    ) -> None:
        """A store to one of a few cells that do not overlap: each holds the value if the address says so, else what it
        held. It cannot be undone."""
        size = value.width // 8
        if self.unknowns.is_recorded:
            self.now = t.store(self.now, address, value, self._big_endian)
        for cell in cells:
            old = self.load(cell, size)
            before = t.const(old, value.width) if isinstance(old, int) else old
            here = t.eq(address, self._at(cell))
            self.put(cell, t.ite(here, value, Substitution({here: t.FALSE}).apply(before)))
        self.forget_read([(cell, cell + size) for cell in cells], misses)
        self.looked[address, size] = (value, cells[0], cells[-1] + size)
        self.journal.clear()

    def put(self, cell: int, value: Term) -> None:
        """What a cell holds is written in another way."""
        size = value.width // 8
        for i in range(size):
            index = size - 1 - i if self._big_endian else i
            self.cells[cell + i] = value.data >> 8 * index & 0xFF if value.op == "const" else ByteOf(value, index)

    def forget_cells(self, ranges: Sequence[tuple[int, int]]) -> None:
        """The cells of these ranges may have any content."""
        cells = self.cells
        if sum(high - low for low, high in ranges) <= len(cells):
            for low, high in ranges:
                for where in range(low, high):
                    cells.discard(where)
        else:
            for where in [where for where in cells if any(low <= where < high for low, high in ranges)]:
                del cells[where]
        if any(not is_within(low, high, self.clouds) for low, high in ranges):
            self.clouds = united([*self.clouds, *ranges])
        self._become_unknown(ranges)

    def begin_epoch(self) -> None:
        """What is at any place that nobody has looked at gets another name from now on. Where states meet it must: one
        may remember by the old name what was there before, the other what is there now."""
        self._epoch, self._later = self.unknowns.new_epoch(), ()

    def _become_unknown(self, ranges: Sequence[tuple[int, int]]) -> None:
        epoch = self.unknowns.new_epoch()
        older = (item for item in self._later if not any(low <= item[0] and item[1] <= high for low, high in ranges))
        self._later = (*((low, high, epoch) for low, high in ranges), *older)
        if len(self._later) > MOST_RANGES:
            self.begin_epoch()

    def forget_read(
        self,
        ranges: Sequence[tuple[int, int]],
        misses: Callable[[Term, int], bool] = lambda address, size: False,
    ) -> None:
        """What was read from these ranges may no longer be there, except where `misses` says so."""
        hit = [
            key
            for key, (_, low, high) in self.looked.items()
            if any(low < end and start < high for start, end in ranges) and not misses(*key)
        ]
        for key in hit:
            del self.looked[key]

    def forget(self, start: int, end: int) -> None:
        self.forget_cells([(start, end)])
        self._forget(start, end)

    def _forget(self, start: int, end: int) -> None:
        stale = [key for key, (_, low, high) in self.looked.items() if low < end and start < high]
        for key in stale:
            del self.looked[key]

    def words(self) -> Iterator[Term]:
        """Every term that a cell is part of, and what was read through unknown addresses."""
        for page in self.cells.pages.values():
            yield from page.words()
        yield from self.words_read()

    def words_read(self) -> Iterator[Term]:
        for (address, _), (value, _, _) in self.looked.items():
            yield address
            yield value

    def keys_of_cells(self, table: KeyTable) -> frozenset[object]:
        """What the cells depend on."""
        return frozenset().union(*(page.keys_of(table) for page in self.cells.pages.values()))
