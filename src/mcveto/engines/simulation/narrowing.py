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


def narrowed(
    term: Term, allowed: frozenset[int], path: Path, table_of: Callable[[Term], Table | None]
) -> dict[Term, list[int]]:
    """What variables and their parts can be if the term is one of these values, where that is less than the path says;
    `table_of` says of a variable from where it was read."""
    found: dict[Term, list[int]] = {}
    pending = [(term, allowed)]
    while pending:
        term, allowed = pending.pop()
        terms = t.postorder([term])
        for index in terms:
            if index in found or not _is_index(index):
                continue
            values = values_of(index, path, MOST_VALUES)
            if len(values) < 2 or len(values) * len(terms) > MOST_NODES:
                continue
            left = [value for value in values if _can_be(term, index, value, allowed, path)]
            if len(left) == len(values):
                continue
            found[index] = left
            table = table_of(index)
            if table is not None:
                address, cells, entries = table
                pending.append(
                    (address, frozenset(c for c, entry in zip(cells, entries, strict=True) if entry in left))
                )
    return found


def _is_index(term: Term) -> bool:
    return term.op == "var" or (term.op == "extract" and term.args[0].op == "var")


def _can_be(term: Term, index: Term, value: int, allowed: frozenset[int], path: Path) -> bool:
    rest = Substitution({index: t.const(value, index.width)}).apply(term)
    values = values_of(rest, path, MOST_VALUES)
    return not values or not allowed.isdisjoint(values)
