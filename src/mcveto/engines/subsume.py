"""States that can do no more than one that was explored before.

Two states at the same place are alike if their registers and memory are the same terms up to the names of inputs. If
the conjuncts of the path that speak of these inputs are, under the same renaming, at least those of the earlier state,
then every continuation of the later one is one of the earlier one. What else the path says is about inputs that the
state no longer depends on, and the earlier path has a model, so it can be met there too.

This ends loops whose state returns to what it was (locks, protocols, endless waiting), without a bound.
"""

from __future__ import annotations

from mcveto.engines.memory import ByteOf
from mcveto.engines.queries import Queries
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

# A state that mentions more terms than this is not compared.
MAX_TERMS = 400


class Visited:
    def __init__(self, queries: Queries, memory: Term) -> None:
        self._queries = queries
        self._memory = memory
        self._known: dict[tuple[object, ...], list[frozenset[Term]]] = {}

    def covers(self, state: PathState) -> bool:
        """Whether an earlier state covers this one; to be asked only of states whose path has a model."""
        signature = self._signature(state)
        if signature is None:
            return False
        return any(earlier <= signature[1] for earlier in self._known.get(signature[0], ()))

    def remember(self, state: PathState) -> None:
        """The state is about to be explored."""
        signature = self._signature(state)
        if signature is not None:
            self._known.setdefault(signature[0], []).append(signature[1])

    def _signature(self, state: PathState) -> tuple[tuple[object, ...], frozenset[Term]] | None:
        """(what the state is, what its path says about it), both with new names for inputs."""
        shape: list[object] = [state.pc, state.frames]
        values: list[Term] = []
        for number, value in sorted(state.registers.items()):
            shape.append((number, value if isinstance(value, int) else None))
            if not isinstance(value, int):
                values.append(value)
        memory = state.memory
        for address in sorted(memory.cells):
            cell = memory.cells[address]
            if isinstance(cell, ByteOf):
                shape.append((address, None, cell.index))
                values.append(cell.word)
            else:
                shape.append((address, cell))
        shape.append(memory.clouds)
        if memory.clouds:
            # What may be anywhere in a cloud is in the array; it is compared as it is.
            values.append(memory.base)
            shape.append(tuple(sorted(memory.dirty)))
        if len(values) > MAX_TERMS:
            return None
        # Bytes of the entry memory are part of every state.
        about = state.path.about([*values, self._memory])
        substitution = Substitution(_names([*values, *sorted(about, key=lambda term: term.serial)]))
        shape.extend(substitution.apply(value) for value in values)
        return tuple(shape), frozenset(substitution.apply(term) for term in about)


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
