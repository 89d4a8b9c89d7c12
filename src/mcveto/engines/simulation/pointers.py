"""Pointers that are null or one of a few addresses: the device of a request in a queue, a slot of a table.

Before the first request comes, a slot holds null; afterwards it holds the device that some request was for. Where the
two meet, a variable that stands for anything would make every later store through it a store to anywhere. So it stands
for null or one of the addresses, which the path lists (`value_ranges` reads such lists). In a loop, a list that is not
complete after the first turn may grow a few times; what grows longer is no set of objects but a pointer that moves,
except where it becomes twice as long at once: the index of a pool is known in the first turn, and any one afterwards.
Unless words of memory hold what is new: who walks along a list of objects comes to all of them, one in each turn, so
that all of them are taken in as soon as the list grows. An access through null is not allowed, and ends the run: what
remains are the addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import gcd

from mcveto.engines.domain import as_value
from mcveto.engines.memory import PathMemory, Value
from mcveto.engines.path import Path
from mcveto.engines.simulation.value_ranges import listing, values_of
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import EXECUTE

MOST_LISTED = 1024
MOST_GROWN = 8
MOST_NODES = 80
# Different words of memory that are looked at.
MOST_SLOTS = 64
# No object is in the first page, so that null and small numbers are none.
FIRST_PAGE = 0x1000


class Pointers:
    def __init__(
        self, space: AddressSpace, address_bytes: int, is_behind_call: Callable[[int], bool] = lambda address: True
    ) -> None:
        """`is_behind_call`: whether a call returns to an address of code."""
        self._space = space
        self._is_behind_call = is_behind_call
        self._bytes = address_bytes
        self._listed: set[Term] = set()
        """Variables that a join made for pointers: whether it is worth looking for a list."""

    def values(self, value: Value, path: Path) -> frozenset[int] | None:
        """The addresses, and perhaps null, that a value can be; None if it can be something else."""
        if isinstance(value, int):
            found = [value]
        elif value.op == "lin" or self._may_be(value):
            found = values_of(value, path, MOST_LISTED)
        else:
            return None
        return frozenset(found) if found and self.are_all(found) else None

    def are_all(self, values: Iterable[int]) -> bool:
        """Whether these are addresses of objects, or null."""
        return all(map(self._is_pointer, values))

    def _is_pointer(self, value: int) -> bool:
        if value < FIRST_PAGE:
            return not value
        region = self._space.region_at(value)
        # What calls leave behind are no functions to call: lists of them would grow with every caller.
        return region is not None and not (region.permissions & EXECUTE and self._is_behind_call(value))

    def may_meet(self, a: Value, b: Value) -> bool:
        """Whether one of two values is null, or may have been a pointer before."""
        return any(value == 0 or (isinstance(value, Term) and self._may_be(value)) for value in (a, b))

    def _may_be(self, term: Term) -> bool:
        return term.op == "ite" or term in self._listed

    def together(
        self, a: Value, b: Value, paths: tuple[Path, Path], is_loop: bool, memory: PathMemory | None = None
    ) -> list[int] | None:
        """What stands for both can be one of these; `memory` is that of the later state."""
        first = self.values(a, paths[0])
        second = self.values(b, paths[1]) if first is not None else None
        if first is None or second is None:
            return None
        both = first | second
        is_grown = is_loop and len(first) > 1 and not second <= first
        if is_grown and memory is not None:
            held = self._held(memory, first - {0}, paths[1])
            if second - first <= held | {0}:
                both, is_grown = both | held, False
            if len(both) >= 2 * len(first):
                is_grown = False
        return sorted(both) if len(both) <= (MOST_GROWN if is_grown else MOST_LISTED) else None

    def says_list(self, condition: Term, names: Mapping[Term, Term], path: Path) -> bool:
        """Whether a condition is such a list, and what its variable is called now can be nothing else."""
        listed = listing(condition) if condition.op == "or" else None
        if listed is None or listed[0] not in self._listed:
            return False
        found = self.values(as_value(names.get(listed[0], listed[0])), path)
        return found is not None and found <= listed[1]

    def _held(self, memory: PathMemory, objects: frozenset[int], path: Path) -> frozenset[int]:
        """Addresses that words of memory hold, of what may be objects of one array with these: at the same distances,
        without gaps beyond them."""
        start = min(objects)
        distance, region = gcd(*(value - start for value in objects)), self._space.region_at(start)
        if region is None or distance < self._bytes:
            return frozenset()
        found: set[int] = {*objects}
        terms: dict[Term, None] = {}
        cells = memory.cells
        for at, cell in cells.items():
            if at % self._bytes:
                continue
            if not isinstance(cell, int):
                if cell.word.width == 8 * self._bytes and self._may_be(cell.word):
                    terms[cell.word] = None
            elif all(isinstance(cells.get(at + i), int) for i in range(1, self._bytes)):
                word = memory.load(at, self._bytes)
                assert isinstance(word, int)
                found.add(word)
        for term in [*terms][:MOST_SLOTS]:
            found |= self.values(term, path) or set()
        ends = [start, max(objects)]
        for end, step in ((0, -distance), (1, distance)):
            while ends[end] + step in found and region.start <= ends[end] + step < region.end:
                ends[end] += step
        return frozenset(found.intersection(range(ends[0], ends[1] + 1, distance)))

    def rename(self, variable: Term, new: Term) -> None:
        """Another variable stands for the same kind of thing."""
        if variable in self._listed:
            self._listed.add(new)

    def listing(self, variable: Term, values: list[int]) -> Term:
        """Says of a variable that it is one of these values."""
        self._listed.add(variable)
        return t.disj([t.eq(variable, t.const(value, variable.width)) for value in values])

    def is_short(self, value: Value, path: Path) -> bool:
        """Whether a pointer can be part of a choice between pointers."""
        if isinstance(value, Term) and not t.are_short([value], MOST_NODES):
            return False
        return self.values(value, path) is not None
