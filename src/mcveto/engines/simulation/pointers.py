"""Pointers that are null or one of a few addresses: the device of a request in a queue, a slot of a table.

Before the first request comes, a slot holds null; afterwards it holds the device that some request was for. Where the
two meet, a variable that stands for anything would make every later store through it a store to anywhere. So it stands
for null or one of the addresses, which the path lists (`value_ranges` reads such lists). In a loop, a list that is not
complete after the first turn may grow a few times; what grows longer is no set of objects but a pointer that moves. An
access through null is not allowed, and ends the run: what remains are the addresses.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcveto.engines.memory import Value
from mcveto.engines.path import Path
from mcveto.engines.simulation.value_ranges import values_of
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import EXECUTE

MOST_LISTED = 1024
MOST_GROWN = 8
MOST_NODES = 80
# No object is in the first page, so that null and small numbers are none.
FIRST_PAGE = 0x1000


class Pointers:
    def __init__(self, space: AddressSpace) -> None:
        self._space = space
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
        # Addresses of code are what calls leave behind: lists of them would grow with every caller.
        return region is not None and not region.permissions & EXECUTE

    def may_meet(self, a: Value, b: Value) -> bool:
        """Whether one of two values is null, or may have been a pointer before."""
        return any(value == 0 or (isinstance(value, Term) and self._may_be(value)) for value in (a, b))

    def _may_be(self, term: Term) -> bool:
        return term.op == "ite" or term in self._listed

    def together(self, a: Value, b: Value, paths: tuple[Path, Path], is_loop: bool) -> list[int] | None:
        """What stands for both can be one of these."""
        first = self.values(a, paths[0])
        second = self.values(b, paths[1]) if first is not None else None
        if first is None or second is None:
            return None
        both = first | second
        is_grown = is_loop and len(first) > 1 and not second <= first
        if len(both) > (MOST_GROWN if is_grown else MOST_LISTED) or not any(both):
            return None
        return sorted(both)

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
        if isinstance(value, Term) and len(t.postorder([value])) > MOST_NODES:
            return False
        return self.values(value, path) is not None
