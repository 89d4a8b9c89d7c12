"""Edges of a graph whose nodes are split again and again: a split costs a copy per neighbouring family, not per edge.

All nodes that were split off one node, directly or through others, are a family. The edges between two families are a
matrix of bytes, one row for each source and one column for each target: a split copies a row and a column, however
many edges they hold. Where a location ends as a thousand parts, its edges cost a byte each instead of entries in two
hash tables, and a split moves them at memory speed.

Neighbours are listed family by family in the order in which the families became neighbours, within a family by age.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import compress

_FIRST_WIDTH = 4


class _Matrix:
    """Rows are stored one after the other, `width` bytes each, of which the first `columns` are in use."""

    __slots__ = ("cells", "columns", "width")

    def __init__(self, rows: int, columns: int) -> None:
        self.columns = columns
        self.width = max(_FIRST_WIDTH, columns)
        self.cells = bytearray(rows * self.width)

    def row(self, number: int) -> bytearray:
        start = number * self.width
        return self.cells[start : start + self.columns]

    def column(self, number: int) -> bytearray:
        return self.cells[number :: self.width]

    def repeat_row(self, number: int) -> None:
        """Adds a row at the end that equals the given one."""
        start = number * self.width
        self.cells += self.cells[start : start + self.width]

    def repeat_column(self, number: int) -> None:
        """Adds a column at the end that equals the given one."""
        if self.columns == self.width:
            self._widen()
        self.cells[self.columns :: self.width] = self.cells[number :: self.width]
        self.columns += 1

    def _widen(self) -> None:
        old, width = self.cells, self.width
        padding = bytes(width)
        self.cells = bytearray().join(
            part for at in range(0, len(old), width) for part in (old[at : at + width], padding)
        )
        self.width = 2 * width


class _Family:
    __slots__ = ("after", "before", "members")

    def __init__(self, first: int) -> None:
        self.members = [first]
        self.after: dict[_Family, _Matrix] = {}
        """The families to which edges lead, with those edges; rows are members of this family."""
        self.before: dict[_Family, _Matrix] = {}


class SplitEdges:
    """A set of edges between nodes, which are integers."""

    def __init__(self) -> None:
        self._place: dict[int, tuple[_Family, int]] = {}
        """The family of a node, and which member of it the node is."""

    def add(self, source: int, target: int) -> bool:
        """Whether the edge was not there."""
        family, row = self._family(source)
        other, column = self._family(target)
        matrix = family.after.get(other)
        if matrix is None:
            matrix = family.after[other] = other.before[family] = _Matrix(len(family.members), len(other.members))
        cell = row * matrix.width + column
        if matrix.cells[cell]:
            return False
        matrix.cells[cell] = 1
        return True

    def remove(self, source: int, target: int) -> bool:
        """Whether the edge was there."""
        if not self.has(source, target):
            return False
        family, row = self._place[source]
        other, column = self._place[target]
        matrix = family.after[other]
        matrix.cells[row * matrix.width + column] = 0
        return True

    def has(self, source: int, target: int) -> bool:
        here, there = self._place.get(source), self._place.get(target)
        if here is None or there is None:
            return False
        matrix = here[0].after.get(there[0])
        return matrix is not None and bool(matrix.cells[here[1] * matrix.width + there[1]])

    def split(self, node: int, twin: int) -> None:
        """Makes the new node `twin` a copy of `node`, with the same edges; an edge to itself becomes all four."""
        family, number = self._family(node)
        assert twin not in self._place
        self._place[twin] = (family, len(family.members))
        family.members.append(twin)
        for matrix in family.after.values():
            matrix.repeat_row(number)
        for matrix in family.before.values():
            matrix.repeat_column(number)

    def successors(self, node: int) -> list[int]:
        found: list[int] = []
        place = self._place.get(node)
        if place is not None:
            for other, matrix in place[0].after.items():
                found.extend(compress(other.members, matrix.row(place[1])))
        return found

    def predecessors(self, node: int) -> list[int]:
        found: list[int] = []
        place = self._place.get(node)
        if place is not None:
            for other, matrix in place[0].before.items():
                found.extend(compress(other.members, matrix.column(place[1])))
        return found

    def count_predecessors(self, node: int) -> int:
        found = self._place.get(node)
        if found is None:
            return 0
        family, number = found
        return sum(matrix.column(number).count(1) for matrix in family.before.values())

    def _family(self, node: int) -> tuple[_Family, int]:
        found = self._place.get(node)
        if found is None:
            found = self._place[node] = (_Family(node), 0)
        return found


class Predecessors(Set[int]):
    """The sources of edges to a node, as they are whenever it is looked at."""

    def __init__(self, edges: SplitEdges, node: int) -> None:
        self._edges = edges
        self._node = node

    def __contains__(self, source: object) -> bool:
        return isinstance(source, int) and self._edges.has(source, self._node)

    def __iter__(self) -> Iterator[int]:
        return iter(self._edges.predecessors(self._node))

    def __len__(self) -> int:
        return self._edges.count_predecessors(self._node)
