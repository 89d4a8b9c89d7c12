"""Questions about states at a cut point, asked as assumptions of one persistent solver.

Bytes of the image that no run can change are facts everywhere, and all bytes of the image are facts in the entry
state; they are added only when a model got one wrong that matters. Where a question reads memory at constant
addresses only, every byte is a variable of its own: that is what bit-vector solvers are fastest at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import MemoryModel, Solver, make_solver
from mcveto.logic.substitute import rebuild
from mcveto.logic.terms import Term
from mcveto.program.program import Program

MAX_FACT_ROUNDS = 60
FACT_WINDOW = 64


class OutOfTime(Exception):
    """The deadline of the search has passed."""


class Model:
    """Values of everything a satisfiable question mentions; what it does not mention is zero."""

    def __init__(self, values: dict[Term, int], byte: Callable[[int], int]) -> None:
        self.values = values
        self._evaluator = Evaluator(lambda variable: values.get(variable, 0), lambda _, address: byte(address))
        self.byte = byte

    def value(self, term: Term) -> int:
        return self._evaluator.value(term)


class Unsat:
    """`core` are assumptions that suffice."""

    def __init__(self, core: set[Term]) -> None:
        self.core = core


Answer = Model | Unsat | None


class Queries:
    def __init__(self, program: Program, remaining: Callable[[], float], solver: Solver | None = None) -> None:
        self._program = program
        self._remaining = remaining
        self._solver = solver or make_solver("auto")
        self._memory = t.memory("mem", program.space.address_bits)
        self._flat: dict[Term, Term | None] = {}
        self._leaves: dict[Term, frozenset[Term]] = {}
        self._bytes: dict[int, Term] = {}
        self.facts: dict[int, Term] = {}
        """What is known of bytes that no run can change."""
        self._entry_facts: dict[int, Term] = {}
        self.count = 0

    def ask(self, literals: Iterable[Term], at_entry: bool = False, timeout: float = 2.0) -> Answer:
        """A model of the conjunction, or a core; None if the solver cannot decide in time."""
        wanted = list(dict.fromkeys(literal for literal in literals if literal is not t.TRUE))
        for literal in wanted:
            if literal is t.FALSE:
                return Unsat({literal})
        for _ in range(MAX_FACT_ROUNDS):
            if self._remaining() <= 0:
                raise OutOfTime
            self.count += 1
            flat = [self._flattened(literal) for literal in wanted]
            is_flat = all(item is not None for item in flat)
            asked: list[Term] = [item for item in flat if item is not None] if is_flat else wanted
            facts = [] if is_flat else list((self._entry_facts if at_entry else self.facts).values())
            answer = self._solver.check((*asked, *facts), max(0.05, min(timeout, self._remaining())))
            if answer == "unsat":
                core = set(self._solver.core())
                return Unsat({literal for literal, item in zip(wanted, asked, strict=True) if item in core})
            if answer == "unknown":
                return None
            values = {leaf: self._solver.value(leaf) for leaf in self._leaves_of(asked) if leaf.width}
            if is_flat:
                return Model(values, lambda address: self._flat_byte(values, address))
            model = self._solver.model_memory(self._memory) if self._memory in self._leaves_of(asked) else MemoryModel(0)
            wrong, found = self._checked(wanted, values, model, at_entry)
            if not wrong:
                return found
            for address in wrong:
                self._learn(address, at_entry)
        return None

    def refutes(self, literals: Iterable[Term], at_entry: bool = False, timeout: float = 2.0) -> bool:
        """Whether the conjunction is known to be unsatisfiable."""
        return isinstance(self.ask(literals, at_entry, timeout), Unsat)

    def _flat_byte(self, values: dict[Term, int], address: int) -> int:
        known = self._known(address, False)
        return values.get(self._byte(address), 0) if known is None else known

    def _known(self, address: int, at_entry: bool) -> int | None:
        space = self._program.space
        return space.initial_byte(address) if at_entry or not space.writable(address) else None

    def _checked(
        self, wanted: Sequence[Term], values: dict[Term, int], model: MemoryModel, at_entry: bool
    ) -> tuple[list[int], Model]:
        wrong: list[int] = []
        facts = self._entry_facts if at_entry else self.facts

        def byte(address: int) -> int:
            known = self._known(address, at_entry)
            guessed = model.byte(address)
            if known is None:
                return guessed
            if known != guessed and address not in facts:
                wrong.append(address)
            return known

        found = Model(values, byte)
        return ([] if all(found.value(term) for term in wanted) else wrong), found

    def _learn(self, address: int, at_entry: bool) -> None:
        start = address & ~(FACT_WINDOW - 1)
        facts = self._entry_facts if at_entry else self.facts
        for where in range(start, start + FACT_WINDOW):
            known = self._known(where, at_entry)
            if known is not None and where not in facts:
                cell = t.load(self._memory, t.const(where, self._program.space.address_bits), 1, False)
                facts[where] = t.eq(cell, t.const(known, 8))

    def _byte(self, address: int) -> Term:
        found = self._bytes.get(address)
        if found is None:
            found = self._bytes[address] = t.var(f"byte {address:#x}", 8)
        return found

    def _leaves_of(self, terms: Sequence[Term]) -> set[Term]:
        found: set[Term] = set()
        for term in terms:
            leaves = self._leaves.get(term)
            if leaves is None:
                leaves = self._leaves[term] = frozenset(t.free_variables([term]))
            found |= leaves
        return found

    def _flattened(self, root: Term) -> Term | None:
        """The term with bytes at constant addresses as variables; None if it reads memory in another way."""
        done = self._flat
        if root in done:
            return done[root]
        for term in t.postorder([root]):
            if term in done:
                continue
            if term.op == "load" and term.args[0] is self._memory and term.args[1].op == "const":
                done[term] = self._word(term)
            elif term.width == 0:
                done[term] = None
            else:
                arguments = [done[x] for x in term.args]
                plain = tuple(x for x in arguments if x is not None)
                if len(plain) < len(arguments):
                    done[term] = None
                else:
                    done[term] = term if plain == term.args else rebuild(term, plain)
        return done[root]

    def _word(self, load: Term) -> Term:
        size, big_endian = load.data
        mask = self._program.space.mask
        address = load.args[1].data
        parts = []
        for i in range(size):
            where = (address + i) & mask
            known = None if self._program.space.writable(where) else self._program.space.initial_byte(where)
            parts.append(self._byte(where) if known is None else t.const(known, 8))
        if not big_endian:
            parts.reverse()
        result = parts[0]
        for part in parts[1:]:
            result = t.concat(result, part)
        return result
