"""Linear algebra modulo 2^w: row spaces in Howell form.

The vectors over Z/2^w that the rows of a matrix span are a module, not a vector space: 2 has no inverse, and 2·x = 0
has solutions other than 0. Gaussian elimination therefore does not decide membership. A matrix is in Howell form if

- it is in echelon form, every leading entry is a power of two and the entries above it are smaller;
- every vector of the row space whose first k entries are zero is spanned by the rows that begin after column k.

Equal row spaces have equal Howell forms. The second property makes "all vectors that vanish in these columns" a
selection of rows, and with it kernels, intersections and projections (Howell 1986; Elder, Lim, Sharma, Andersen, Reps,
"Abstract domains of affine relations", §2; Müller-Olm and Seidl, "Analysis of modular arithmetic", §3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Vector = tuple[int, ...]


class RowSpace:
    """A submodule of (Z/2^bits)^columns. `insert` makes it larger; nothing makes it smaller."""

    __slots__ = ("_canonical", "_mask", "_rows", "bits", "columns")

    def __init__(self, bits: int, columns: int, rows: Iterable[Sequence[int]] = ()) -> None:
        self.bits = bits
        self.columns = columns
        self._mask = (1 << bits) - 1
        self._rows: dict[int, list[int]] = {}
        self._canonical = True
        for row in rows:
            self.insert(row)

    def copy(self) -> RowSpace:
        twin = RowSpace(self.bits, self.columns)
        twin._rows = {column: list(row) for column, row in self._rows.items()}
        twin._canonical = self._canonical
        return twin

    def insert(self, row: Sequence[int]) -> bool:
        """Adds a generator; whether the space has grown."""
        assert len(row) == self.columns
        mask, grown = self._mask, False
        waiting = [[entry & mask for entry in row]]
        while waiting:
            vector = waiting.pop()
            for column in range(self.columns):
                entry = vector[column]
                if not entry:
                    continue
                rank = _trailing_zeros(entry)
                known = self._rows.get(column)
                if known is not None and known[column] <= 1 << rank:
                    _subtract(vector, entry // known[column], known, column, mask)
                    continue
                inverse = pow(entry >> rank, -1, 1 << self.bits)
                leader = [x * inverse & mask for x in vector]
                self._rows[column] = leader
                grown = True
                if rank:
                    # The leader's multiple that vanishes in this column must be spanned by later rows.
                    waiting.append([x << (self.bits - rank) & mask for x in leader])
                if known is None:
                    break
                vector = known
                _subtract(vector, known[column] >> rank, leader, column, mask)
        if grown:
            self._canonical = False
        return grown

    def rows(self) -> list[Vector]:
        """The rows of the Howell form, by leading column."""
        if not self._canonical:
            columns = sorted(self._rows)
            for number, column in enumerate(columns):
                row = self._rows[column]
                for later in columns[number + 1 :]:
                    other = self._rows[later]
                    _subtract(row, row[later] // other[later], other, later, self._mask)
            self._canonical = True
        return [tuple(self._rows[column]) for column in sorted(self._rows)]

    def __contains__(self, row: Sequence[int]) -> bool:
        vector = [entry & self._mask for entry in row]
        for column in range(self.columns):
            entry = vector[column]
            if not entry:
                continue
            known = self._rows.get(column)
            if known is None or entry % known[column]:
                return False
            _subtract(vector, entry // known[column], known, column, self._mask)
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowSpace):
            return NotImplemented
        return (self.bits, self.columns, self.rows()) == (other.bits, other.columns, other.rows())

    __hash__ = None  # type: ignore[assignment]  # grows

    def __iter__(self) -> Iterator[Vector]:
        return iter(self.rows())

    def __le__(self, other: RowSpace) -> bool:
        """Whether every vector of this space is one of the other."""
        return all(row in other for row in self._rows.values())

    def joined(self, other: RowSpace) -> RowSpace:
        """The sum of two spaces: the least space that contains both."""
        result = self.copy()
        for row in other._rows.values():
            result.insert(row)
        return result

    def vanishing(self, count: int) -> RowSpace:
        """The vectors whose first `count` entries are zero, without those entries."""
        result = RowSpace(self.bits, self.columns - count)
        result._rows = {column - count: row[count:] for column, row in self._rows.items() if column >= count}
        result._canonical = self._canonical
        return result

    def projected(self, kept: Sequence[int]) -> RowSpace:
        """The images of all vectors under the projection onto the columns `kept`, in that order."""
        return RowSpace(self.bits, len(kept), ([row[column] for column in kept] for row in self._rows.values()))

    def annihilated_by(self, form: Sequence[int]) -> RowSpace:
        """The vectors v with form · v = 0."""
        extended = RowSpace(
            self.bits, self.columns + 1, ([dot(form, row, self._mask), *row] for row in self._rows.values())
        )
        return extended.vanishing(1)

    def met(self, other: RowSpace) -> RowSpace:
        """The intersection of two spaces."""
        both = RowSpace(self.bits, 2 * self.columns)
        for row in self._rows.values():
            both.insert([*row, *row])
        for row in other._rows.values():
            both.insert([*row, *([0] * self.columns)])
        return both.vanishing(self.columns)

    def annihilator(self) -> RowSpace:
        """The forms f with f · v = 0 for every vector v of the space; its own annihilator is the space again."""
        generators = self.rows()
        extended = RowSpace(self.bits, len(generators) + self.columns)
        for column in range(self.columns):
            unit = [int(other == column) for other in range(self.columns)]
            extended.insert([*(row[column] for row in generators), *unit])
        return extended.vanishing(len(generators))


def dot(form: Sequence[int], vector: Sequence[int], mask: int) -> int:
    return sum(x * y for x, y in zip(form, vector, strict=True) if x and y) & mask


def _subtract(vector: list[int], factor: int, row: Sequence[int], start: int, mask: int) -> None:
    """vector -= factor · row, whose entries before `start` are zero."""
    if factor:
        for column in range(start, len(vector)):
            entry = row[column]
            if entry:
                vector[column] = (vector[column] - factor * entry) & mask


def _trailing_zeros(value: int) -> int:
    return (value & -value).bit_length() - 1
