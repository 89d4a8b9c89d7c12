"""Candidates about all cells of an array: what a loop has made of the part that it has passed.

At every cut point the cells of an array from its beginning up to where it may be filled (`arrays`) are a segment. Of
its contents is proposed what holds in all samples: one value, an affine function of the index, bounds, that some number
is not among them, an order relation to the index or to a cell (the maximum so far), equality with the same cell of
another array (after a copy); of the cell behind it, one value (the end of a text); of the segment itself, that it is
not longer than the program's numbers say and that the next access is not behind it. At a cut point that no run has come
to, because it is behind a long loop, what is proposed is what the array was like elsewhere.

Cf. Gopan, Reps, Sagiv, "A framework for numeric analysis of array operations" (POPL 2005), which folds segments into
summary cells; here the segments are guessed from runs and the claim is about one cell of which nothing is known
(`quantified`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mcveto.dpg.graph import Witness
from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.arrays import LARGEST_ARRAY, MAX_SAMPLES, Array, Arrays, own_numbers
from mcveto.dpg.strengthen.places import value_at
from mcveto.dpg.strengthen.quantified import any_cell
from mcveto.dpg.strengthen.system import System
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term

MAX_CANDIDATES = 40
MAX_COMPARED = 6
MAX_LENGTHS = 2


@dataclass(frozen=True)
class _Cell:
    """A cell of a segment in a sample."""

    address: int
    value: int
    witness: Witness


def all_cells(system: System, arrays: Arrays, cut: Location, places: Sequence[Term], exact: bool) -> list[Term]:
    """Candidates for one cut point: what the cells are (`exact`), or what they are related to."""
    samples = system.samples.visits[cut][-MAX_SAMPLES:]
    bits = system.program.space.address_bits
    found: dict[Term, None] = {}
    for array in arrays.written:
        others = arrays.others(array)
        for end in arrays.ends(array, cut, places):
            if exact:
                found.update(dict.fromkeys(_behind(array, end, samples)))
                found.update(dict.fromkeys(_inside(arrays, array, end, cut, samples)))
            segment = _Segment(array, t.const(array.first, bits), end, bits)
            cells = [cell for witness in samples for cell in segment.cells(witness)]
            if not samples:
                passed = _Segment(array, segment.start, arrays.passed(array), bits)
                elsewhere = [witness for found in system.samples.visits.values() for witness in found[-MAX_SAMPLES:]]
                cells = [cell for witness in elsewhere for cell in passed.cells(witness)]
            if cells:
                claims = _values(segment, cells, others) if exact else _orders(system, segment, cells, places)
                for claim in claims:
                    found[t.disj([t.bnot(segment.condition), claim])] = None
    return [candidate for candidate in found if candidate.op != "const"][:MAX_CANDIDATES]


class _Segment:
    def __init__(self, array: Array, start: Term, end: Term, bits: int) -> None:
        self.array, self.start, self.end = array, start, end
        self.cell = any_cell(bits)
        self.offset = t.sub(self.cell, start)
        aligned = t.eq(t.band(self.offset, t.const(array.stride - 1, bits)), t.const(0, bits))
        # With a bound that is a number, cells elsewhere are excluded without a question.
        near = t.ult(self.offset, t.const(LARGEST_ARRAY, bits))
        self.condition = t.conj([near, t.ult(self.offset, t.sub(end, start)), aligned])

    def holding(self, claims: Iterable[Term], cells: Sequence[_Cell]) -> Iterator[Term]:
        """The claims that are true of all of these cells."""
        for claim in claims:
            said = ((substitute(claim, {self.cell: t.const(cell.address, self.cell.width)}), cell) for cell in cells)
            if all(value_at(term, cell.witness) for term, cell in said):
                yield claim

    def content(self, delta: int = 0) -> Term:
        memory = t.memory("mem", self.cell.width)
        address = t.add(self.cell, t.const(delta, self.cell.width))
        return t.load(memory, address, self.array.size, self.array.big_endian)

    def index(self, width: int) -> Term:
        """The number of the cell in the segment."""
        found = t.lshr(self.offset, t.const(self.array.stride.bit_length() - 1, self.offset.width))
        return t.extract(found, width - 1, 0) if found.width > width else t.zext(found, width)

    def cells(self, witness: Witness) -> list[_Cell]:
        """Some cells of the segment in a sample: its first, middle and last ones."""
        array, bits = self.array, self.cell.width
        start, end = self.start.data, value_at(self.end, witness)
        count = (end - start) // array.stride
        if not 0 < count * array.stride <= LARGEST_ARRAY:
            return []
        memory = t.memory("mem", bits)
        chosen = sorted({0, 1, count // 2, count - 2, count - 1} & set(range(count)))
        found = []
        for at in chosen:
            address = start + at * array.stride
            word = t.load(memory, t.const(address, bits), array.size, array.big_endian)
            found.append(_Cell(address, value_at(word, witness), witness))
        return found


def _values(segment: _Segment, cells: Sequence[_Cell], others: Sequence[int]) -> Iterator[Term]:
    """What the cells hold: one value, a function of the index, the same as another array."""
    word = segment.content()
    if len({cell.value for cell in cells}) == 1:
        yield t.eq(word, t.const(cells[0].value, word.width))
    else:
        yield from _affine(segment, word, cells)
    yield from segment.holding((t.eq(word, segment.content(delta)) for delta in others), cells)


def _behind(array: Array, end: Term, samples: Sequence[Witness]) -> Iterator[Term]:
    """That the cell behind a segment has one value: how texts end."""
    if end.op == "const":
        return
    word = t.load(t.memory("mem", end.width), end, array.size, array.big_endian)
    values = {value_at(word, witness) for witness in samples}
    if len(values) == 1:
        yield t.eq(word, t.const(values.pop(), word.width))


def _inside(arrays: Arrays, array: Array, end: Term, cut: Location, samples: Sequence[Witness]) -> Iterator[Term]:
    """That a segment is no longer than it can be, and that what is accessed next is not behind it: loops that count
    down compare their counter, not the pointer that goes with it."""
    if end.op != "lin" or len(end.args) == 1 or not samples:
        return  # a pointer or an index has bounds of its own
    start = t.const(array.first, end.width)
    length = t.sub(end, start)
    longest = max(value_at(length, witness) for witness in samples)
    claims = [t.ule(length, t.const(n, end.width)) for n in arrays.lengths(array) if n >= longest][:MAX_LENGTHS]
    claims += [t.ule(t.sub(address, start), length) for address in arrays.accessed(cut) if address is not end]
    yield from (claim for claim in claims if all(value_at(claim, witness) for witness in samples))


def _orders(system: System, segment: _Segment, cells: Sequence[_Cell], places: Sequence[Term]) -> Iterator[Term]:
    """What is above and below all the cells, and what none of them is."""
    word = segment.content()
    width = word.width
    signed = [t.signed(cell.value, width) for cell in cells]
    own = own_numbers(system, width)
    for limit in [n for n in sorted({0, *own}) if n >= max(signed)][:1]:
        yield t.sle(word, t.const(limit, width))
    for limit in [n for n in sorted({0, *own}) if n <= min(signed)][-1:]:
        yield t.sle(t.const(limit, width), word)
    for number in [n for n in (0, *own[:1]) if n not in signed]:
        yield t.ne(word, t.const(number, width))
    index = segment.index(width)
    claims = [t.ult(index, word), t.ule(index, word), t.slt(index, word), t.sle(word, index)]
    for place in places[:MAX_COMPARED]:
        if place.width >= width:
            low = t.extract(place, width - 1, 0)
            claims += [t.sle(word, low), t.sle(low, word)]
    yield from segment.holding(claims, cells)


def _affine(segment: _Segment, word: Term, cells: Sequence[_Cell]) -> Iterator[Term]:
    """word = a*k + b for the k-th cell of the array."""
    stride, width = segment.array.stride, word.width
    start = segment.start.data
    points = sorted({((cell.address - start) // stride, cell.value) for cell in cells})
    (at, value), *rest = points
    other = next((point for point in rest if point[0] == at + 1), None)
    if other is None:
        return
    mask = (1 << width) - 1
    factor = (other[1] - value) & mask
    added = (value - factor * at) & mask
    if all((factor * k + added) & mask == v for k, v in points):
        yield t.eq(word, t.add(t.mul(t.const(factor, width), segment.index(width)), t.const(added, width)))
