"""States that can do no more than one that was explored before.

Two states at the same place are alike if their registers and memory are the same terms up to the names of inputs. If
the conjuncts of the path that speak of these inputs are, under the same renaming, at least those of the earlier state,
then every continuation of the later one is one of the earlier one. What else the path says is about inputs that the
state no longer depends on, and the earlier path has a model, so it can be met there too.

This ends loops whose state returns to what it was (locks, protocols, endless waiting), without a bound. Terms are only
compared where everything that is known of two states is equal already: most states differ in a counter.
"""

from __future__ import annotations

from typing import NamedTuple

from mcveto.engines.memory import ByteOf
from mcveto.engines.path import Path
from mcveto.engines.queries import Queries
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

# A state that mentions more terms than this is not compared.
MAX_TERMS = 400
# After so many visits of a place that nothing covered, only every second one is compared, then every fourth, …
PATIENCE = 64


class Signature(NamedTuple):
    """A state under new names for inputs, what its path says about it, and the inputs in the order of the names."""

    values: tuple[Term, ...]
    conjuncts: frozenset[Term]
    inputs: tuple[Term, ...]


class Covering(NamedTuple):
    """The number that was given with the earlier state, and its inputs with those that they stand for."""

    number: int
    renaming: tuple[tuple[Term, Term], ...]


class _Described(NamedTuple):
    """What is known of a state, the terms of what is not, and its path."""

    known: tuple[object, ...]
    values: tuple[Term, ...]
    path: tuple[Term, ...]


class Visited:
    def __init__(self, queries: Queries, memory: Term) -> None:
        self._queries = queries
        self._memory = memory
        self._seen: dict[tuple[object, ...], list[tuple[int, _Described | Signature]]] = {}
        self._visits: dict[int, int] = {}
        self._last = _Described((), (), ())

    def is_due(self, state: PathState) -> bool:
        """Whether the state is worth comparing: at the head of a loop, and there less and less often.

        A loop that returns to an earlier state is noticed later then, but it is. A recursive call is never a state
        that was seen, because it must return to another place.
        """
        place = state.place
        if place is None or not place.loops or place.loops[-1][0] != place.pc:
            return False
        visits = self._visits[state.pc] = self._visits.get(state.pc, 0) + 1
        return visits % (1 << (visits // PATIENCE).bit_length()) == 0 or visits < PATIENCE

    def covers(self, state: PathState) -> Covering | None:
        """The earlier state that covers this one; to be asked only of states whose path has a model."""
        described = self._last = _describe(state)
        earlier = self._seen.get(described.known)
        if not earlier or len(described.values) > MAX_TERMS:
            return None
        later = self._signature(described)
        for at, (number, item) in enumerate(earlier):
            if isinstance(item, _Described):
                item = self._signature(item)
                earlier[at] = number, item
            if item.values == later.values and item.conjuncts <= later.conjuncts:
                self._visits[state.pc] = 0
                return Covering(number, tuple(zip(item.inputs, later.inputs, strict=False)))
        return None

    def remember(self, number: int) -> None:
        """The state that was just asked about is going to be explored, as the node of this number."""
        described = self._last
        if len(described.values) <= MAX_TERMS:
            self._seen.setdefault(described.known, []).append((number, described))

    def _signature(self, described: _Described) -> Signature:
        """What the state is and what its path says about it, both with new names for inputs."""
        # Bytes of the entry memory are part of every state.
        about = Path(self._queries.table, described.path).about([*described.values, self._memory])
        ordered = [*described.values, *sorted(about, key=lambda term: term.serial)]
        names = _names(ordered)
        rename = Substitution(names).apply
        values = tuple(rename(value) for value in described.values)
        return Signature(values, frozenset(rename(term) for term in about), tuple(names))


def _describe(state: PathState) -> _Described:
    known: list[object] = [state.pc, state.calls]
    values: list[Term] = []
    for number, value in sorted(state.registers.items()):
        if isinstance(value, int):
            known.append((number, value))
        else:
            known.append(number)
            values.append(value)
    memory = state.memory
    for address in sorted(memory.cells):
        cell = memory.cells[address]
        known.append((address, *cell[1:]) if isinstance(cell, ByteOf) else (address, "=", cell))
        if isinstance(cell, ByteOf) and not (values and values[-1] is cell.word):
            known.append("word")
            values.append(cell.word)
    known.append(memory.clouds)
    if memory.clouds:
        # What may be anywhere in a cloud is in the array; it is compared as it is.
        values.append(memory.base)
        known.append(tuple(sorted(memory.dirty)))
    return _Described(tuple(known), tuple(values), tuple(state.path.terms))


def _names(values: list[Term]) -> dict[Term, Term]:
    """New names for the inputs, in the order they occur."""
    renaming: dict[Term, Term] = {}
    seen: set[Term] = set()
    for value in values:
        stack = [value]
        while stack:
            term = stack.pop()
            if term in seen:
                continue
            seen.add(term)
            if term.op == "var" and "!" in str(term.data):
                renaming[term] = t.var(f"state!{len(renaming)}:{term.width}", term.width)
            stack.extend(term.args)
    return renaming
