"""Questions about states at a cut point, asked as assumptions of one persistent solver.

Bytes of the image that no run can change are facts everywhere, and all bytes of the image are facts in the entry
state; they are added only when a model got one wrong that matters, and for all equal ones around it at once where a
question reads through an address that may be any of them. Where a question reads memory at constant
addresses only, every byte is a variable of its own: that is what bit-vector solvers are fastest at.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial

from mcveto.dpg.strengthen.quantified import loads_that_vary, word_of_equal_bytes
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


class _Context:
    """A solver that was told what holds at a point of the program; more may become known, never less."""

    def __init__(self, make: Callable[[], Solver]) -> None:
        self._make = make
        self._asserted: dict[Term, None] = {}
        self.solver = make()

    def tell(self, known: Mapping[Term, Term]) -> Solver:
        """The solver with `known` asserted: what to assert for each thing known."""
        asserted = self._asserted
        if asserted.keys() != known.keys():
            if not asserted.keys() <= known.keys():
                self.solver = self._make()
                asserted.clear()
            for term, form in known.items():
                if term not in asserted:
                    asserted[term] = None
                    self.solver.add(form)
        return self.solver


class Queries:
    def __init__(
        self, program: Program, remaining: Callable[[], float], make: Callable[[], Solver] = make_solver
    ) -> None:
        self._program = program
        self._remaining = remaining
        self._make = make
        self._solver = make()
        self._contexts: dict[tuple[Hashable, bool], _Context] = {}
        self._memory = t.memory("mem", program.space.address_bits)
        self._flat: dict[Term, Term | None] = {}
        self._leaves: dict[Term, frozenset[Term]] = {}
        self._bytes: dict[int, Term] = {}
        self.facts: dict[int, Term] = {}
        """What is known of bytes that no run can change."""
        self.needed_facts: dict[Term, None] = {}
        """Those of them that refuted something since they were last forgotten."""
        self._entry_facts: dict[int, Term] = {}
        self._entry_ranges: dict[Term, None] = {}
        """What is known of words of the entry state whose address varies."""
        self.count = 0

    def ask(
        self,
        literals: Iterable[Term],
        at_entry: bool = False,
        timeout: float = 2.0,
        where: Hashable = None,
        known: Mapping[Term, None] | None = None,
        with_model: bool = True,
    ) -> Answer:
        """A model of the conjunction, or a core; None if the solver cannot decide in time.

        What is `known` at `where` is asserted once instead of assumed each time, and left out of cores. Without
        `with_model` a model may be empty.
        """
        wanted = list(dict.fromkeys(literal for literal in literals if literal is not t.TRUE))
        for literal in wanted:
            if literal is t.FALSE:
                return Unsat({literal})
        context = known or {}
        for _ in range(MAX_FACT_ROUNDS):
            if self._remaining() <= 0:
                raise OutOfTime
            self.count += 1
            forms = self._forms([*wanted, *context])
            is_flat = forms is not None
            if forms is None:
                forms = {term: term for term in (*wanted, *context)}
            asked = [forms[literal] for literal in wanted]
            facts = [] if is_flat else self._facts_to_tell(at_entry)
            solver = self._solver
            if context:
                kept = self._contexts.get((where, is_flat))
                if kept is None:
                    kept = self._contexts[where, is_flat] = _Context(self._make)
                solver = kept.tell({term: forms[term] for term in context})
            answer = solver.check((*asked, *facts), max(0.05, min(timeout, self._remaining())))
            if answer == "unsat":
                core = set(solver.core())
                if not at_entry:
                    self.needed_facts.update((fact, None) for fact in facts if fact in core)
                return Unsat({literal for literal in wanted if forms[literal] in core})
            if answer == "unknown":
                return None
            if is_flat and not with_model:
                return Model({}, lambda address: 0)
            mentioned = self._leaves_of([*asked, *(forms[term] for term in context)])
            values = {leaf: solver.value(leaf) for leaf in mentioned if leaf.width}
            if is_flat:
                return Model(values, partial(self._flat_byte, values))
            model = solver.model_memory(self._memory) if self._memory in mentioned else MemoryModel(0)
            wrong, found = self._checked([*wanted, *context], values, model, at_entry)
            if not wrong:
                return found
            for address in wrong:
                if not at_entry or not self._learn_range(address, [*wanted, *context], found):
                    self._learn(address, at_entry)
        return None

    def _facts_to_tell(self, at_entry: bool) -> list[Term]:
        return [*self._entry_facts.values(), *self._entry_ranges] if at_entry else list(self.facts.values())

    def _forms(self, terms: Sequence[Term]) -> dict[Term, Term] | None:
        """Every term with the bytes it reads as variables; None if one reads memory in another way."""
        found: dict[Term, Term] = {}
        for term in terms:
            flat = self._flattened(term)
            if flat is None:
                return None
            found[term] = flat
        return found

    def refutes(
        self,
        literals: Iterable[Term],
        at_entry: bool = False,
        timeout: float = 2.0,
        where: Hashable = None,
        known: Mapping[Term, None] | None = None,
    ) -> bool:
        """Whether the conjunction is known to be unsatisfiable."""
        return isinstance(self.ask(literals, at_entry, timeout, where, known, with_model=False), Unsat)

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

    def _learn_range(self, address: int, terms: Sequence[Term], model: Model) -> bool:
        """What the bytes around an address, all the same at entry, say of the words that are read there; whether it is
        more than was known. One byte after the other, a question about any cell of an array would take as many rounds
        as it has cells."""
        around, byte = self._program.space.uniform_range(address), self._program.space.initial_byte(address)
        if around is None or byte is None:
            return False
        before = len(self._entry_ranges)
        for load in loads_that_vary(terms):
            if t.base_of(load.args[0]) is self._memory:
                at = load.args[1]
                first = model.value(at)
                if around[0] <= first <= address < first + load.data[0] <= around[1]:
                    self._entry_ranges[word_of_equal_bytes(self._memory, at, around, byte, load)] = None
        return len(self._entry_ranges) > before

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
