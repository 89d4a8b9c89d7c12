"""What a value tells about the index that it was chosen by.

A call through the operations of one of many devices goes to a driver, and most drivers have one device: where it goes
says which device it is for. The address was read from a table whose address was read from another, each by an index of
few values. These are put in one after the other: those with which the term cannot be one of the values that it has are
out. For a variable that was itself read from a table, that says which of its cells it was read from, and so on.

What is told follows from what is known already, so that it is true whatever the term is.
"""

from __future__ import annotations

from collections.abc import Callable

from mcveto.engines.path import Path
from mcveto.engines.simulation.value_ranges import values_of
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

# Values of an index, and nodes that are looked at for all of them.
MOST_VALUES = 256
MOST_NODES = 100_000

Table = tuple[Term, list[int], list[int]]
"""An address with its possible values, and what is there."""


class Narrowing:
    """Of a path: what values of its terms tell. `table_of` says of a variable from where it was read."""

    def __init__(self, path: Path, table_of: Callable[[Term], Table | None]) -> None:
        self._path = path
        self._table_of = table_of
        self._outcomes: dict[Term, dict[Term, dict[int, frozenset[int]]]] = {}
        """Of a term, for each value of each of its indices: what it can be then; nothing if that is not known."""

    def told(self, term: Term, allowed: frozenset[int]) -> dict[Term, list[int]]:
        """What variables and their parts can be if the term is one of these values, where that is less than the path
        says."""
        found: dict[Term, list[int]] = {}
        pending = [(term, allowed)]
        while pending:
            term, allowed = pending.pop()
            for index, outcomes in self._outcomes_of(term).items():
                left = [value for value, possible in outcomes.items() if not possible or possible & allowed]
                if index in found or len(left) == len(outcomes):
                    continue
                found[index] = left
                table = self._table_of(index)
                if table is not None:
                    address, cells, entries = table
                    read = frozenset(cell for cell, entry in zip(cells, entries, strict=True) if entry in left)
                    pending.append((address, read))
        return found

    def _outcomes_of(self, term: Term) -> dict[Term, dict[int, frozenset[int]]]:
        known = self._outcomes.get(term)
        if known is None:
            known = self._outcomes[term] = {}
            terms = t.postorder([term])
            for index in filter(_is_index, terms):
                values = values_of(index, self._path, MOST_VALUES)
                if len(values) > 1 and len(values) * len(terms) <= MOST_NODES:
                    known[index] = {value: self._possible(term, index, value) for value in values}
        return known

    def _possible(self, term: Term, index: Term, value: int) -> frozenset[int]:
        rest = Substitution({index: t.const(value, index.width)}).apply(term)
        return frozenset(values_of(rest, self._path, MOST_VALUES))


def _is_index(term: Term) -> bool:
    return term.op == "var" or (term.op == "extract" and term.args[0].op == "var")
