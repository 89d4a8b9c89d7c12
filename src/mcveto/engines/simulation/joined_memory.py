"""The memories of two states that meet, word by word where they differ.

What somebody may have written in one of the two states may have been written, and what was read through an address that
is not constant is still known if both know it. Where hundreds of ways meet one after the other, most words are anything
after the first few: such a word stays the variable that it is, and what the next state has there becomes part of it,
without a look at the values.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcveto.engines.memory import ByteOf, Cell, Value, united
from mcveto.engines.merge import _word
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.joined_values import JoinedValues
from mcveto.engines.simulation.meeting import Meeting
from mcveto.engines.state import PathState
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace


class JoinedMemory:
    def __init__(self, meeting: Meeting, values: JoinedValues) -> None:
        self._meeting = meeting
        self._values = values
        self._space = meeting.setting.space
        self.absorbed: list[tuple[Term, Value, Value]] = []
        self._mixed: list[Term] = []
        """Words of memory that are not just a variable."""

    def join(self) -> CoarseMemory:
        meeting, space = self._meeting, self._space
        first, second = meeting.first.memory, meeting.second.memory
        assert isinstance(first, CoarseMemory) and isinstance(second, CoarseMemory)
        result = second.copy()
        result.begin_epoch()
        if first.clouds != second.clouds:
            result.clouds = united([*first.clouds, *second.clouds])
        result.looked = {key: value for key, value in second.looked.items() if first.looked.get(key) == value}
        mine, others = first.cells, second.cells
        different: list[int] = []
        for one, two in mine.different(others):
            different += [where for where, cell in two.items() if (held := one.get(where)) is not cell and held != cell]
            different += [where for where in one if where not in two]
        done: set[int] = set()
        loose = frozenset() if meeting.is_loop else first.loose
        for where in sorted(different):
            if where in done:
                continue
            held = mine.get(where)
            if loose and isinstance(held, ByteOf) and held.word in loose:
                absorbed = self._absorb(held, where)
                if absorbed:
                    done.update(absorbed)
                    result.cells.update((at, mine[at]) for at in absorbed)
                    continue
            start, size = _extent(where, mine, others, space)
            done.update(range(start, start + size))
            a, b = first.load(start, size), second.load(start, size)
            value = self._values.value(a, b, 8 * size, ("memory", start, size))
            if isinstance(value, Term) and value in meeting.made:
                meeting.made[value] += 1
            elif isinstance(value, Term):
                self._mixed.append(value)
            for i in range(size):
                index = size - 1 - i if space.big_endian else i
                result.cells[(start + i) & space.mask] = (
                    value >> 8 * index & 0xFF if isinstance(value, int) else ByteOf(value, index)
                )
        return result

    def _absorb(self, held: ByteOf, where: int) -> range:
        """Where the word is of a variable that stands for anything: what the other state has there is part of it."""
        size = held.word.width // 8
        is_big_endian = self._space.big_endian
        start = where - (size - 1 - held.significance if is_big_endian else held.significance)
        cells = self._meeting.first.memory.cells
        for i in range(size):
            if cells.get(start + i) != ByteOf(held.word, size - 1 - i if is_big_endian else i):
                return range(0)
        is_recorded = self._meeting.setting.unknowns.is_recorded
        other = self._meeting.second.memory.load(start, size) if is_recorded else 0
        self.absorbed.append((held.word, held.word, other))
        return range(start, start + size)

    def note_loose(self, result: PathState) -> None:
        """Where hundreds of ways meet, most words are anything after the first few."""
        memory = result.memory
        assert isinstance(memory, CoarseMemory)
        if self._meeting.is_loop:
            return
        made = [name for name, uses in self._meeting.made.items() if uses == 1]
        terms = [*result.path.terms, *self._mixed, *(v for v in result.registers.values() if isinstance(v, Term))]
        table = self._meeting.setting.table
        memory.loose = frozenset(made).union(name for name, _, _ in self.absorbed).difference(*map(table.of, terms))


def _extent(where: int, mine: Mapping[int, Cell], others: Mapping[int, Cell], space: AddressSpace) -> tuple[int, int]:
    """The word that is joined as a whole; a byte, if both know the same of another byte of an aligned word and not
    all of it: a flag beside the beginning of a buffer."""
    a, b = mine.get(where), others.get(where)
    start, size = _word(where, a, b, space)
    if isinstance(a, ByteOf) or isinstance(b, ByteOf):
        return start, size
    sides = [(mine.get(at), others.get(at)) for at in range(start, start + size)]
    is_mixed = any(not isinstance(cell, int) for side in sides for cell in side)
    return (where, 1) if is_mixed and any(a is not None and a == b for a, b in sides) else (start, size)
