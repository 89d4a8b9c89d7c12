"""Where the arrays of a program are, and up to where they may be filled: what `cells` makes claims about.

A step that stores a word at base + s*i, i a cell or register, makes base an array of stride s. If s is less than the
size of the word, i counts bytes or is a pointer, and that size is the stride. An array begins at the lowest address at
which a run was seen to store, or before, where the first turn of a loop stores at fixed addresses. It may be filled up
to

- where a step stores next;
- what takes the place of the index: a length or an end, those first that an index is compared with;
- what a pointer comes to when as many words follow as a cell or register says: loops that count down;
- a number of the program.

What is not behind the beginning in some sample is none of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mcveto.dpg.graph import Witness
from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.candidates import thresholds
from mcveto.dpg.strengthen.places import value_at
from mcveto.dpg.strengthen.system import System
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_ARRAYS = 6
MAX_ENDS = 4
MAX_SAMPLES = 12
# Samples in which the beginning of an array is looked for.
MAX_BEGINNINGS = 60
LARGEST_ARRAY = 1 << 16
# Words that one turn of a loop passes.
MAX_UNROLLED = 16


@dataclass(frozen=True)
class Access:
    """A word of `size` bytes at base + factor * index, one of an array of words that are `stride` bytes apart."""

    base: int
    factor: int
    index: Term
    size: int
    big_endian: bool

    @property
    def stride(self) -> int:
        return max(self.factor, self.size)

    @property
    def is_pointer(self) -> bool:
        """Whether the index is where the array is, not where in it."""
        return self.factor == 1 and abs(t.signed(self.base, self.index.width)) < LARGEST_ARRAY

    @property
    def counted(self) -> Term:
        """What the index is an extension of."""
        return self.index.args[0] if self.index.op in ("sext", "zext") else self.index

    def at(self, index: Term) -> Term:
        bits = index.width
        return t.add(t.const(self.base, bits), t.mul(t.const(self.factor, bits), index))

    @property
    def address(self) -> Term:
        return self.at(self.index)

    def like_index(self, place: Term) -> Term:
        """Another place, extended as the index is."""
        if self.index.op == "sext":
            return t.sext(place, self.index.width)
        return t.zext(place, self.index.width) if self.index.op == "zext" else place


Places = dict[Access, dict[Location | None, None]]
"""Accesses, with the cut points behind which they are made."""


@dataclass(frozen=True)
class Array:
    first: int
    stride: int
    size: int
    big_endian: bool

    @property
    def kind(self) -> tuple[int, int, bool]:
        return self.stride, self.size, self.big_endian


class Arrays:
    def __init__(self, system: System) -> None:
        self._system = system
        self._bits = system.program.space.address_bits
        self._limits: dict[Access, frozenset[Term]] = {}
        self._fixed = {
            int(address.data) + at
            for step in system.all_steps()
            for address, value, _ in step.state.writes()
            if address.op == "const"
            for at in range(value.width // 8)
        }
        self._written, self._read = self._cell_by_cell(*accesses(system))
        self.written = self._grouped(self._written)
        self.read = self._grouped(self._read)

    def _cell_by_cell(self, written: Places, read: Places) -> tuple[Places, Places]:
        """The accesses, those of several cells at once as accesses of the first one: words that are moved together, in
        an unrolled loop or by a vector instruction, are cells where something else accesses them one by one."""
        extents = {
            access: extent
            for found in (written, read)
            for access, sources in found.items()
            if (extent := self._extent(access, sources)) is not None
        }

        def cell(access: Access) -> Access:
            low, high = extents.get(access, (0, -1))
            sizes = [
                other.stride
                for other, (first, last) in extents.items()
                if other.stride < access.size
                and other.big_endian == access.big_endian
                and first - access.size <= high
                and low <= last + access.size
            ]
            return replace(access, size=min(sizes)) if sizes and access.factor == 1 else access

        result: list[Places] = []
        for found in (written, read):
            split: Places = {}
            for access, sources in found.items():
                split.setdefault(cell(access), {}).update(sources)
            result.append(split)
        return result[0], result[1]

    def _grouped(self, found: Places) -> dict[Array, list[Access]]:
        groups: dict[Array, list[Access]] = {}
        reaches: dict[Array, int] = {}
        for access, sources in found.items():
            if any(_is_next(access, other) for other, others in found.items() if others == sources):
                continue
            extent = self._extent(access, sources)
            if extent is not None:
                array = Array(extent[0], access.stride, access.size, access.big_endian)
                groups.setdefault(array, []).append(access)
                reaches[array] = max(reaches.get(array, 0), extent[1])
        for array, longer in itertools.permutations(list(groups), 2):
            # What one loop leaves over, another may go on with.
            if (
                array.kind == longer.kind
                and longer.first < array.first <= reaches[longer] + MAX_UNROLLED * array.stride
            ):
                groups[longer] += [access for access in groups[array] if access.is_pointer]
        return dict(list(groups.items())[:MAX_ARRAYS])

    def _extent(self, access: Access, sources: Iterable[Location | None]) -> tuple[int, int] | None:
        """The lowest and highest address at which words are accessed, by the values of the index before they are, if
        there are any, or anywhere."""
        system, space = self._system, self._system.program.space
        near = [witness for cut in sources if cut in system.cuts for witness in system.samples.visits[cut]]
        anywhere = [witness for cut in system.cuts for witness in system.samples.visits[cut][:2]]
        address = access.address
        lowest = 0 if access.is_pointer else access.base
        values = [value_at(address, witness) for witness in near[:MAX_BEGINNINGS] or anywhere]
        values = [value for value in values if space.writable(value) and value >= lowest]
        if not values:
            return None
        first = min(values)
        while self._fixed.issuperset(range(first - access.stride, first - access.stride + access.size)):
            first -= access.stride
        return first, max(values)

    def others(self, array: Array) -> list[int]:
        """How far away arrays of the same kind are."""
        found = [other for other in (*self.written, *self.read) if other.kind == array.kind]
        return sorted({other.first - array.first for other in found} - {0})

    def passed(self, array: Array) -> Term:
        """Up to where the array is filled while it is."""
        return self.written[array][0].address

    def accessed(self, cut: Location) -> list[Term]:
        """The addresses at which the next turn behind a cut point reads and writes."""
        found = [access for places in (self._written, self._read) for access, cuts in places.items() if cut in cuts]
        return list(dict.fromkeys(access.address for access in found if access.address.width == self._bits))

    def lengths(self, array: Array) -> list[int]:
        """How many bytes of an array the program may fill, by the numbers that it compares with, and at most."""
        numbers = {n * array.stride for n in own_numbers(self._system, self._bits)}
        return sorted({n for n in numbers if 0 < n < LARGEST_ARRAY} | {LARGEST_ARRAY})

    def ends(self, array: Array, cut: Location, places: Sequence[Term]) -> list[Term]:
        """The addresses at which the part of an array may end that is filled at a cut point."""
        samples = self._system.samples.visits[cut][-MAX_SAMPLES:]
        proposed = dict.fromkeys(end for end in self._proposed(array, cut, places) if end.width == self._bits)
        found = [end for end in proposed if all(_is_behind(array, end, witness) for witness in samples)]
        return [*found[:MAX_ENDS], *self._numbered(array)]

    def _proposed(self, array: Array, cut: Location, places: Sequence[Term]) -> Iterator[Term]:
        writing = self.written[array]
        here = [access for access in writing if cut in self._written[access]]
        yield from (access.address for access in writing if access in here or not access.is_pointer)
        for is_limit in (True, False):
            for access in writing:
                limits = self._compared_with(access)
                for place in places:
                    if (place in limits) == is_limit and place.width == access.counted.width:
                        yield place if access.is_pointer else access.at(access.like_index(place))
            moving = [access for access in (*self._read, *here) if access.is_pointer and access.stride == array.stride]
            for access in moving:
                behind = cut in self._read.get(access, ()) or access in here
                for place in places if behind and is_limit else ():
                    if place.width == access.index.width and place is not access.index:
                        yield t.add(access.address, t.mul(t.const(array.stride, place.width), place))

    def _numbered(self, array: Array) -> list[Term]:
        """The end by the greatest number that the program compares an index with."""
        bases = [access.base for access in self.written[array] if not access.is_pointer]
        numbers = [n for n in own_numbers(self._system, self._bits) if 0 < n * array.stride <= LARGEST_ARRAY]
        if self._bits > 32:
            numbers += [n for n in own_numbers(self._system, 32) if 0 < n * array.stride <= LARGEST_ARRAY]
        return [t.const(bases[0] + array.stride * max(numbers), self._bits)] if bases and numbers else []

    def _compared_with(self, access: Access) -> frozenset[Term]:
        """The places that the index is compared with by some step: what is filled up to there, ends there."""
        found = self._limits.get(access)
        if found is None:
            mentioned = [set(t.postorder([literal])) for step in self._system.all_steps() for literal in step.guard]
            together = set().union(*(terms for terms in mentioned if access.counted in terms))
            found = self._limits[access] = frozenset(together)
        return found


def _is_next(access: Access, other: Access) -> bool:
    """Whether it is a later one of the words that one turn of an unrolled loop passes."""
    if (access.index, access.factor, access.size) != (other.index, other.factor, other.size):
        return False
    apart = t.signed((access.base - other.base) % (1 << access.index.width), access.index.width)
    return 0 < apart <= MAX_UNROLLED * access.stride and apart % access.stride == 0


def _is_behind(array: Array, end: Term, witness: Witness) -> bool:
    return 0 <= value_at(end, witness) - array.first <= LARGEST_ARRAY


def own_numbers(system: System, width: int) -> list[int]:
    """The numbers that the program compares with, without their neighbours."""
    near = set(thresholds(system).get(width, ()))
    half = 1 << (width - 1)
    return sorted(n for n in near if {n - 1, n + 1} <= near and -half <= n < half)


def accesses(system: System) -> tuple[Places, Places]:
    """The words that steps write and read at addresses that vary."""
    written: Places = {}
    read: Places = {}
    for step in system.all_steps():
        for address, value, big_endian in step.state.writes():
            found = _access(address, value.width // 8, big_endian)
            if found is not None:
                written.setdefault(found, {})[step.source] = None
        for term in t.postorder([*step.guard, *(value for _, value, _ in step.state.writes())]):
            if term.op == "load":
                found = _access(term.args[1], *term.data)
                if found is not None:
                    read.setdefault(found, {})[step.source] = None
    return written, read


def _access(address: Term, size: int, big_endian: bool) -> Access | None:
    factor, base = 1, 0
    if address.op == "lin" and len(address.args) == 1:
        ((factor,), base), address = address.data, address.args[0]
    if size & (size - 1) or not 0 < factor <= 64 or factor & (factor - 1) or address.op == "const":
        return None
    index = _index(address)
    # Words that are written side by side are one write.
    return (
        None if index is None else Access(base, factor, index, size if factor == 1 else min(size, factor), big_endian)
    )


def _index(term: Term) -> Term | None:
    """An index as it is at a cut point: of a word that is read behind writes which may miss it, the word itself."""
    if term.op in ("sext", "zext"):
        inner = _index(term.args[0])
        return None if inner is None else (t.sext if term.op == "sext" else t.zext)(inner, term.width)
    if term.op == "load" and term.args[1].op == "const":
        return t.load(t.base_of(term.args[0]), term.args[1], *term.data)
    stored = any(part.op == "store" for part in t.postorder([term]))
    return None if stored or any("!" in str(leaf.data) for leaf in t.free_variables([term]) if leaf.width) else term
