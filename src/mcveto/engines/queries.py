"""Questions about paths: is there an input that goes on this way, and which?

Every answer "no" is kept with the conjuncts that suffice for it, so that a proof can be checked again by another
solver. Bytes of the image are not part of a question; a model that reads one through a symbolic address and has it
wrong is refused, the bytes around it are added as facts, and the question is asked again. Leaving facts out can only
make more satisfiable, so that "no" never depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum

from mcveto.engines.path import KeyTable, Path
from mcveto.limits import give_back_memory
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import MemoryModel, Solver, make_solver
from mcveto.logic.terms import Term
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program

MAX_FACT_ROUNDS = 100
FACT_WINDOW = 256
# A question in this process is as long as the solver's memory of earlier ones; it starts anew now and then.
QUESTIONS_PER_SOLVER = 3000
# After so many, what solvers have left behind is given back to the system.
QUESTIONS_PER_RETURN = 300


class No(Enum):
    """Why there is no model."""

    UNSAT = "unsat"
    UNKNOWN = "unknown"


class Model:
    """Values for all that the program leaves open, and of every term under them."""

    def __init__(
        self,
        values: dict[Term, int],
        memory: dict[int, int],
        known: Callable[[int], int | None],
        otherwise: Callable[[int], int],
    ) -> None:
        """`known` are the bytes of the image, `otherwise` those that neither it nor the model determines."""
        self.values = values
        self.memory = memory
        self._known = known
        self._otherwise = otherwise
        self._evaluator = Evaluator(self._variable, self._byte)
        self.value = self._evaluator.value

    def _variable(self, variable: Term) -> int:
        return self.values.get(variable, 0)

    def _byte(self, _: Term, address: int) -> int:
        known = self._known(address)
        if known is None:
            known = self.memory.get(address)
        return self._otherwise(address) if known is None else known


class Queries:
    def __init__(
        self, program: Program, deadline: float, query_seconds: float, per_solver: int = QUESTIONS_PER_SOLVER
    ) -> None:
        """`per_solver`: questions until a solver is replaced by a new one, which knows nothing of the old formulas."""
        self._program = program
        self._per_solver = per_solver
        self._deadline = deadline
        self._query_seconds = query_seconds
        self._memory = t.memory("mem", program.space.address_bits)
        self.table = KeyTable(self._memory)
        self._started_solver: Solver | None = None
        self._otherwise = program.choices(InputSource(()), 0).byte
        self._facts: dict[int, Term] = {}
        self.refuted: dict[frozenset[Term], None] = {}
        """Conjunctions that have no model: what was left out was left out because of them."""
        self._bounds: dict[tuple[Term, int, frozenset[Term]], tuple[int, int] | None] = {}
        self._no_model: dict[frozenset[Term], frozenset[Term]] = {}
        self.used: set[Term] = set()
        """Conjuncts that sufficed for a "no", until somebody takes them."""
        self.count = 0
        self._given_back = 0
        self.got_stuck = False
        """Whether a question was given up for lack of time."""

    @property
    def _solver(self) -> Solver:
        """Started when the first question comes: many programs are followed without one."""
        if self._started_solver is None:
            self._started_solver = make_solver("auto")
            for fact in self._facts.values():
                self._started_solver.add(fact)
        return self._started_solver

    def any_input(self) -> Model:
        """Values for a path that says nothing."""
        return Model({}, {}, self._program.space.initial_byte, self._otherwise)

    @property
    def facts(self) -> tuple[Term, ...]:
        return tuple(self._facts.values())

    def model(self, path: Path, wanted: Sequence[Term], base: Model | None) -> Model | No:
        """A model of the path and `wanted`; `base` is one of the path alone, if known."""
        relevant = path.terms if base is None else path.about(wanted)
        formula = list(dict.fromkeys([*relevant, *wanted]))
        for term in formula:
            if term is t.FALSE:
                return No.UNSAT
        formula = [term for term in formula if term is not t.TRUE]
        key = frozenset(formula)
        if key in self._no_model:
            self.used |= self._no_model[key]
            return No.UNSAT
        for _ in range(MAX_FACT_ROUNDS):
            budget = min(self._query_seconds, self._deadline - time.monotonic())
            if budget <= 0:
                return No.UNKNOWN
            self._renew()
            self.count += 1
            answer = self._solver.check(formula, budget)
            if answer == "unsat":
                core = self._no_model[key] = frozenset(self._solver.core())
                self.refuted[core] = None
                self.used |= core
                return No.UNSAT
            if answer == "unknown":
                self.got_stuck = True
                return No.UNKNOWN
            found = self._read(formula, base)
            if found is not None:
                return found
        return No.UNKNOWN

    def _read(self, formula: list[Term], base: Model | None) -> Model | None:
        """The solver's model, or None if it has bytes of the image wrong (which are then known as facts)."""
        keys = KeyTable._union([self.table.of(term) for term in formula])
        values = dict(base.values) if base is not None else {}
        bytes_used = dict(base.memory) if base is not None else {}
        mentions = False
        for key in keys:
            if isinstance(key, int) or key is self._memory:
                mentions = True
            else:
                values[key] = self._solver.value(key)
        guessed = self._solver.model_memory(self._memory) if mentions else MemoryModel(0)
        wrong: list[int] = []
        initial = self._program.space.initial_byte

        def byte(_: Term, address: int) -> int:
            known = initial(address)
            value = guessed.byte(address)
            if known is None:
                bytes_used[address] = value
                return value
            if known != value and address not in self._facts:
                wrong.append(address)
            return known

        evaluator = Evaluator(lambda variable: values.get(variable, 0), byte)
        holds = [evaluator.value(term) for term in formula] if mentions else [1]
        if not all(holds):
            for address in wrong:
                self._learn(address)
            return None
        return Model(values, bytes_used, initial, self._otherwise)

    def _learn(self, address: int) -> None:
        start = address & ~(FACT_WINDOW - 1)
        for where in range(start, start + FACT_WINDOW):
            known = self._program.space.initial_byte(where)
            if known is not None and where not in self._facts:
                cell = t.load(self._memory, t.const(where, self._program.space.address_bits), 1, False)
                fact = self._facts[where] = t.eq(cell, t.const(known, 8))
                self._solver.add(fact)

    def _renew(self) -> None:
        if self.count % self._per_solver == self._per_solver - 1 and self._started_solver is not None:
            self._started_solver.close()
            self._started_solver = None
            if self.count >= self._given_back + QUESTIONS_PER_RETURN:
                self._given_back = self.count
                give_back_memory()

    def bounds(self, path: Path, term: Term, base: Model, widest: int) -> tuple[int, int] | None:
        """The least and greatest value of a term, if they are at most `widest` apart and can be found."""
        # A block may go through the same pointer again and again.
        key = term, widest, frozenset(path.about([term]))
        if key not in self._bounds:
            self._bounds[key] = self._new_bounds(path, term, base, widest)
        return self._bounds[key]

    def _new_bounds(self, path: Path, term: Term, base: Model, widest: int) -> tuple[int, int] | None:
        here = base.value(term)
        greatest = self._extreme(path, term, base, here, widest, 1)
        if greatest is None:
            return None
        least = self._extreme(path, term, base, here, widest, -1)
        if least is None or greatest - least > widest:
            return None
        return least, greatest

    def _extreme(self, path: Path, term: Term, base: Model, here: int, widest: int, sign: int) -> int | None:
        top = (1 << term.width) - 1
        reached = here
        beyond = here + sign * (widest + 1)
        # A value is known at `reached`, none from `beyond` on.
        if 0 <= beyond <= top and not self._none_beyond(path, term, base, beyond - sign, sign):
            return None
        beyond = min(max(beyond, -1), top + 1)
        step = 16
        while abs(beyond - reached) > 1:
            probe = reached + sign * min(step, (abs(beyond - reached) - 2) // 2)
            found = self.model(path, [_past(term, probe, sign)], base)
            if found is No.UNKNOWN:
                return None
            if found is No.UNSAT:
                beyond, step = probe + sign, max(step // 4, 1)
            else:
                assert isinstance(found, Model)
                reached, step = found.value(term), step * 4
        return reached

    def _none_beyond(self, path: Path, term: Term, base: Model, limit: int, sign: int) -> bool:
        return self.model(path, [_past(term, limit, sign)], base) is No.UNSAT


def _past(term: Term, limit: int, sign: int) -> Term:
    bound = t.const(limit, term.width)
    return t.ult(bound, term) if sign > 0 else t.ult(term, bound)
