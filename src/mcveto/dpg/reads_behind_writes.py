"""How much a solver has to compare: every word that is read behind writes which may have changed it, with each of them.

A path through a loop over an array reads a word a turn behind all the words written so far. With some hundred turns
these are hundreds of thousands of pairs, and a solver spends more on setting them up than its time limit says: it looks
at its clock only between the steps of the search.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcveto.logic import terms as t
from mcveto.logic.terms import Term


class ReadsBehindWrites:
    def __init__(self) -> None:
        self._reads: dict[Term, tuple[Term, ...]] = {}
        self._writes: dict[Term, int] = {}

    def pairs(self, formula: Iterable[Term]) -> int:
        """The pairs of a word that is read and a write before it."""
        reads = {load for term in formula for load in self._reads_of(term)}
        return sum(self._writes_before(load.args[0]) for load in reads)

    def _reads_of(self, root: Term) -> tuple[Term, ...]:
        found = self._reads.get(root)
        if found is None:
            loads = [term for term in t.postorder([root]) if term.op == "load" and term.args[0].op == "store"]
            found = self._reads[root] = tuple(loads)
        return found

    def _writes_before(self, memory: Term) -> int:
        passed = []
        while memory.op == "store" and memory not in self._writes:
            passed.append(memory)
            memory = memory.args[0]
        count = self._writes.get(memory, 0)
        for store in reversed(passed):
            count += 1
            self._writes[store] = count
        return count
