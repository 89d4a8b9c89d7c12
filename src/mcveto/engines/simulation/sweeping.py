"""Terms that nobody holds any more are given back.

A simulation of large code builds millions of terms; seven of ten are held by nothing but their table, and by what is
remembered of each (which variables it has). States, checkpoints and refuted ways hold the others. Whenever there are
twice as many as were left the last time, and some more, all that nobody holds is given back: what that costs is a
constant part of what building them did.
"""

from __future__ import annotations

from mcveto.engines.path import KeyTable
from mcveto.limits import give_back_memory
from mcveto.logic.node import sweep, table_size

# Terms of which it is not worth while.
FEW = 200_000


class Sweeping:
    def __init__(self, *tables: KeyTable) -> None:
        """`tables`: what is remembered of terms, and can be found again."""
        self._tables = tables
        self._next = table_size() + FEW

    def if_due(self) -> None:
        if table_size() < self._next:
            return
        for table in self._tables:
            table.forget()
        sweep()
        give_back_memory()
        self._next = 2 * table_size() + FEW
