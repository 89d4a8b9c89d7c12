"""Which input it is: the inputs of an abstract state that every path to it reads at the same position.

A driver reads its configuration at the beginning, and hundreds of handlers later a mistake shows if one bit of it is
set. A real path that has gone that far with other inputs is of no use: the bit was decided at its first blocks, and all
that came after rests on it. But the abstract state knows the bit, and if all paths have read the same number of inputs
before that one, it is known which of the inputs of a real path it is. So a search for a real path begins with inputs
that agree with what the abstract state says of them (`agreeing`). That is a guess, as everything about a path that is
not yet followed: what is found is replayed.

The count is kept in the log of a state: it is that of the last input read, or `LOST` where ways met that had read a
different number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcveto.engines.path import KeyTable, Path
from mcveto.engines.queries import Model, No, Queries
from mcveto.engines.state import Drawn, Joined, Log, PathState
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

LOST = Joined(t.TRUE, None, None)


class Positions:
    def __init__(self) -> None:
        self._of: dict[Term, int] = {}

    def note(self, before: Log, made: Log) -> Log:
        """The log of a state that had `before` and has read an input since."""
        if isinstance(before, Joined):
            return before
        assert isinstance(made, Drawn)
        self._of[made.variable] = self._count(before)
        return made._replace(before=None)  # the count is enough

    def joined(self, first: Log, second: Log) -> Log:
        if isinstance(first, Joined) or isinstance(second, Joined):
            return LOST
        return second if self._count(first) == self._count(second) else LOST

    def _count(self, log: Log) -> int:
        return self._of[log.variable] + 1 if isinstance(log, Drawn) else 0

    def agreeing(
        self, state: PathState, table: KeyTable, queries: Queries, meaning: Callable[[Term], Term | None]
    ) -> Model | None:
        """Inputs of a real path that agree with what an abstract state says of those whose positions are known, and of
        names for what was made of them: `meaning` tells what a name stands for, if that is known."""
        said: dict[Term, None] = {}
        for term in state.path.terms:
            names = [key for key in table.of(term) if key not in self._of]
            meanings = [meaning(name) if isinstance(name, Term) else None for name in names]
            told = [found for found in meanings if found is not None and table.of(found) <= {*names, *self._of}]
            if table.of(term) and len(told) == len(names):
                said |= dict.fromkeys([term, *told])
        if not said:
            return None
        path = Path(table)
        for term in said:
            path.add(term)
        found = queries.model(path, (), None)
        if isinstance(found, No):
            return None
        base = queries.any_input()
        values = {self._real(key): found.value(key) for key in self._inputs(said, table)}
        return Model({**base.values, **values}, base.memory, base._known, base._otherwise)

    def _inputs(self, said: Iterable[Term], table: KeyTable) -> list[Term]:
        keys = {key for term in said for key in table.of(term) if isinstance(key, Term) and key in self._of}
        return sorted(keys, key=lambda variable: variable.serial)

    def _real(self, variable: Term) -> Term:
        """What a real path calls it (see `representatives`)."""
        return t.var(f"{str(variable.data).partition('!')[0]}!{self._of[variable]}", variable.width)
