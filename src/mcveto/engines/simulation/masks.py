"""What values are at most because they were masked, whatever a path says of them.

The index of a ring is masked whenever it moves. After a few turns a path says that it is at most 2, because so many
requests have come; in the next turn it is 3, and then again 0. Where turns meet, bounds must come to rest, so what
grows is given the bound of its mask, which is the one that holds; what was never masked gets a wide one. What a first
turn masks and stores is a number still, so that masks are noted for places in memory as well, and so are numbers that
something is compared with beside a load or store of it. These are guesses for where a guess is due: what is said of a
state still has to hold of all that it stands for.
"""

from __future__ import annotations

from mcveto.engines.domain import as_value
from mcveto.engines.memory import Value
from mcveto.engines.path import KeyTable, Path
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.logic.terms import Term

MOST = 0xFFFF
# Of less, nobody makes an index.
NARROWEST = 3
# Less than this may be a choice between numbers.
WIDE = 7


class Masks:
    def __init__(self, table: KeyTable) -> None:
        self._nothing = Path(table)
        self._most: dict[Term, int] = {}
        self._numbers: dict[int, int] = {}
        """What numbers were masked with in the block that is executed."""
        self._places: dict[int, int] = {}
        """Of words of memory, what a number was masked with before it was stored there."""
        self._held: dict[int, list[int]] = {}
        """Numbers that this block has read or stored, and where."""
        self._compared: dict[int, int] = {}
        """Numbers that this block has compared, and with what."""
        self._limits: dict[int, int] = {}
        """Of words of memory, the greatest number that what they hold was compared with."""

    def at_most(self, *values: Value) -> int | None:
        """In steps, so that bounds come to rest; None if that is much."""
        most, pending = 0, [*values]
        while pending:
            value = pending.pop()
            if isinstance(value, int):
                most = max(most, value)
            elif value.op == "ite":
                pending += [as_value(part) for part in value.args[1:]]
            elif value.op == "var":
                most = max(most, self._most.get(value, MOST + 1))
            else:
                most = max(most, bounds_of(value, self._nothing)[1])
            if most > MOST:
                return None
        return (1 << most.bit_length()) - 1

    def note(self, variable: Term, most: int | None) -> None:
        """A variable stands for something that is at most so much."""
        if most is not None and most <= MOST:
            self._most[variable] = most

    def begin_block(self) -> None:
        self._numbers.clear()
        self._held.clear()
        self._compared.clear()

    def note_number(self, one: int, other: int) -> None:
        """Two numbers are combined, bit by bit: one of them may be a mask."""
        most = max((mask for mask in (one, other) if NARROWEST <= mask <= MOST and not mask & (mask + 1)), default=0)
        if most:
            self._numbers[one & other] = most

    def note_comparison(self, one: int, other: int) -> None:
        for number, limit in ((one, other), (other, one)):
            if NARROWEST <= limit <= MOST:
                places = self._held.get(number, ())
                if number:
                    self._compared[number] = limit
                elif len({*places}) > 1:  # much is 0 at first: nobody knows which of them was compared
                    continue
                for address in places:
                    self._note_limit(address, limit)

    def note_held(self, address: int, number: int) -> None:
        self._held.setdefault(number, []).append(address)
        limit = self._compared.get(number)
        if limit is not None:
            self._note_limit(address, limit)

    def _note_limit(self, address: int, limit: int) -> None:
        self._limits[address] = max(limit, self._limits.get(address, 0))

    def note_store(self, address: int, number: int) -> None:
        self.note_held(address, number)
        most = self._numbers.get(number)
        if most is not None:
            self._places[address] = max(most, self._places.get(address, 0))

    def of_place(self, address: object, is_number: bool) -> int | None:
        """What is in a word at most, if it was masked when it was stored; or else, if it was a number before the loop
        (`is_number`), what it was compared with."""
        if not isinstance(address, int):
            return None
        return self._places.get(address, self._limits.get(address) if is_number else None)

    def rename(self, variable: Term, new: Term) -> None:
        """Another variable stands for the same kind of thing."""
        self.note(new, self._most.get(variable))
