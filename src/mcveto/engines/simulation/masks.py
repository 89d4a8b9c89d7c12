"""What values are at most because they were masked, whatever a path says of them.

The index of a ring is masked whenever it moves. After a few turns a path says that it is at most 2, because so many
requests have come; in the next turn it is 3, and then again 0. Where turns meet, bounds must come to rest, so what
grows is given the bound of its mask, which is the one that holds; what was never masked gets a wide one. These are
guesses for where a guess is due: what is said of a state still has to hold of all that it stands for.
"""

from __future__ import annotations

from mcveto.engines.domain import as_value
from mcveto.engines.memory import Value
from mcveto.engines.path import KeyTable, Path
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.logic.terms import Term

MOST = 0xFFFF


class Masks:
    def __init__(self, table: KeyTable) -> None:
        self._nothing = Path(table)
        self._most: dict[Term, int] = {}

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

    def rename(self, variable: Term, new: Term) -> None:
        """Another variable stands for the same kind of thing."""
        self.note(new, self._most.get(variable))
