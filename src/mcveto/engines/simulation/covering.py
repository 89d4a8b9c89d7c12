"""When one abstract state says no more than another: every machine state of the one is one of the other.

A state that is an instance of one that was executed need not be executed. What the variables of the earlier one are in
the later one is found by matching values, cell by cell; then its path must say of them what the earlier path says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import accumulate

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import ByteOf, Value, is_within
from mcveto.engines.merge import _word
from mcveto.engines.path import KeyTable, Path
from mcveto.engines.simulation.choices import all_taken, settled
from mcveto.engines.simulation.coarse_executor import CoarseExecutor
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.elements import element_of, index_of
from mcveto.engines.simulation.turns import Turns
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.symbolic import initial_register
from mcveto.program.program import Program


class Covering:
    def __init__(self, program: Program, executor: CoarseExecutor, table: KeyTable, turns: Turns) -> None:
        self._program = program
        self._executor = executor
        self._layout = program.decoder.layout
        self._table = table
        self._turns = turns

    def register(self, state: PathState, number: int) -> Value:
        found = state.registers.get(number)
        return initial_register(self._layout, self._layout.cells[number]) if found is None else found

    def implied(self, state: PathState, term: Term) -> bool:
        from mcveto.engines.queries import No

        if term is t.TRUE or state.path.holds(term) or _is_within_bounds(term, state.path):
            return True
        opposite = t.bnot(term)
        return self._executor.possible.model(state.path, opposite, state.model) is No.UNSAT

    def covers(self, old: PathState, new: PathState, rigid: Collection[Term] = ()) -> dict[Term, Term] | None:
        """If every machine state of the new one is one of the old one, what the old one's variables are in it: it is
        an instance, and its path says whatever the old path says of that instance. Variables that are `rigid` stand
        for themselves."""
        names: dict[Term, Term] = {}
        later: list[tuple[Term, Value, int]] = []
        tables = self._executor._tables

        def match(a: Value, b: Value, bits: int) -> bool:
            before = b
            if a is not b:
                b = all_taken(b, new.path)
            if isinstance(a, int):
                return settled(b, new.path) == a
            if a.op == "zext" and a.args[0].op in ("concat", "var"):
                whole = as_term(b, bits)
                width = a.args[0].width
                if t.extract(whole, bits - 1, width) is not t.const(0, bits - width):
                    return False
                a, b, bits = a.args[0], as_value(t.extract(whole, width - 1, 0)), width
                before = b
            if a.op == "lin" and isinstance(b, Term) and b.op == "lin" and a.data == b.data and len(a.args) == 1:
                # What was shifted, or is counted from somewhere: what was shifted then, where it is in pieces.
                row, other = a.args[0], b.args[0]
                if row.op == "concat" or (row.op == "zext" and row.args[0].op == "concat"):
                    return match(row, as_value(other), row.width)
            if a.op == "concat":
                cuts = accumulate(part.width for part in reversed(a.args))
                pieces = zip(reversed(a.args), cuts, strict=True)
                whole = as_term(b, a.width)
                cut = [(part, t.extract(whole, end - 1, end - part.width)) for part, end in pieces]
                return all(match(part, as_value(piece), part.width) for part, piece in cut)
            element = element_of(a)
            if element is not None and a.args[0].op == "var" and a.args[0] not in tables:
                index = index_of(b, *element, bits)
                if index is not None:
                    a, b = a.args[0], index
                    before = b
            if a.op != "var" or a in tables:
                # What the path decides may still stand in the earlier value as a choice.
                turn = self._turns.later(a, b, bits) or self._turns.later(a, before, bits)
                if turn is not None and (turn[0] in rigid or names.setdefault(*turn) is not turn[1]):
                    return False
                later.append((a, b, bits))
                return True
            term = as_term(b, bits)
            if term is not a and a in rigid:
                return False
            return names.setdefault(a, term) is term

        for number in old.registers.keys() | new.registers.keys():
            a, b = self.register(old, number), self.register(new, number)
            if not match(a, b, self._layout.cells[number].bits):
                return None
        mine, others = old.memory, new.memory
        assert isinstance(mine, CoarseMemory) and isinstance(others, CoarseMemory)
        known = mine.clouds
        if others.clouds != known and any(not is_within(low, high, known) for low, high in others.clouds):
            return None
        if any(others.looked.get(key) != entry for key, entry in mine.looked.items()):
            return None
        space = self._program.space
        done: set[int] = set()
        alike: set[Term] = set()
        # Where nothing was written since, words are as they were; and many others are, and stand at many places.
        for page in mine.cells.shared(others.cells):
            for word in page.words():
                if word not in alike and not match(word, word, word.width):
                    return None
                alike.add(word)
        pages = mine.cells.different(others.cells)
        for where in sorted(address for one, two in pages for address in one.keys() | two.keys()):
            if where in done:
                continue
            a_cell, b_cell = mine.cells.get(where), others.cells.get(where)
            if a_cell is None and mine.unknown(where):
                continue
            if isinstance(a_cell, int) and a_cell == b_cell:
                continue
            start, size = _word(where, a_cell, b_cell, space)
            done.update(range(start, start + size))
            if isinstance(a_cell, ByteOf) and size == a_cell.word.width // 8:
                cells = [(mine.cells.get(at), others.cells.get(at)) for at in range(start, start + size)]
                if all(isinstance(a, ByteOf) and a.word is a_cell.word and a == b for a, b in cells):
                    if a_cell.word not in alike and not match(a_cell.word, a_cell.word, a_cell.word.width):
                        return None
                    alike.add(a_cell.word)
                    continue
            if not match(mine.load(start, size), others.load(start, size), 8 * size):
                return None
        replace = Substitution({a: b for a, b in names.items() if a is not b}).apply
        for a_term, b, bits in later:
            if any(key in names and names[key] is not key for key in self._table.of(a_term)):
                a_term = replace(a_term)
            if a_term is not as_term(b, bits) and all_taken(a_term, new.path) != b:
                return None
        if any(name in tables and names.get(name, name) is not name for name in names):
            return None
        for (address, _), (value, _, _) in mine.looked.items():
            if any(names.get(key, key) is not key for key in (*self._table.of(address), *self._table.of(value))):  # type: ignore[arg-type]
                return None
        if not self._respects_remainders(old, [a_term for a_term, _, _ in later], names, replace):
            return None
        says_list = self._executor.pointers.says_list
        said, renamed = set(new.path.terms), {name for name, now in names.items() if now is not name}
        for term in old.path.terms:
            if term in said and self._table.of(term).isdisjoint(renamed):
                continue
            if not says_list(term, names, new.path) and not self.implied(new, replace(term)):
                return None
        return names

    def _respects_remainders(
        self, old: PathState, words: list[Term], names: dict[Term, Term], replace: Callable[[Term], Term]
    ) -> bool:
        """Whether every name of a remainder stands for the remainder of what its dividend stands for: also one that
        only the path or a part of `words` mentions, and that stands for itself."""
        definitions, table = self._executor.remainders.definitions, self._table
        if not definitions:
            return True
        told = {key for term in old.path.terms for key in table.of(term)}
        pending: list[object] = [*names, *told, *(key for word in words for key in table.of(word))]
        seen: set[object] = set()
        while pending:
            name = pending.pop()
            if name in seen or name not in definitions:
                continue
            seen.add(name)
            assert isinstance(name, Term)
            dividend, divisor = definitions[name]
            pending.extend(table.of(dividend))
            now, stands_for = names.get(name, name), replace(dividend)
            if now is name and stands_for is dividend:
                continue
            if now is self._executor.remainders.known(stands_for, divisor):
                continue
            keys = table.of(dividend)
            # If nothing else speaks of the dividend, it is whatever has this remainder.
            if dividend.op != "var" or dividend in names or dividend in told or keys & names.keys():
                return False
            if sum(1 for other, _ in definitions.values() if other is dividend) > 1:
                return False
            if now.op != "const" or now.data >= divisor:
                return False
        return True


def _is_within_bounds(term: Term, path: Path) -> bool:
    """Whether bounds that are read off terms say what a comparison with a number says: most do, and need no solver."""
    if term.op != "ult":
        return False
    less, greater = term.args
    if greater.op == "const":
        return bounds_of(less, path)[1] < int(greater.data)
    return less.op == "const" and bounds_of(greater, path)[0] > int(less.data)
