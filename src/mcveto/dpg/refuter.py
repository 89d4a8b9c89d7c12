"""Refutes formulas over one state, knowing the bytes that no run can change.

A formula may read memory through an address that is not constant, e.g. a jump table. Bytes of the image that cannot be
written have their values in every state, but asserting all of them each time would drown the solver. They are asserted
when a model gets one wrong. Leaving some out can only make more satisfiable, so "unsat" needs no more of them.
"""

from __future__ import annotations

import itertools

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import Solver, make_solver
from mcveto.logic.terms import Term, free_variables
from mcveto.program.program import Program

MAX_ROUNDS = 200
# Seconds of the first turns: where one solver needs long, the other often does not.
FIRST_TURNS = (0.3, 2.0)
WINDOW = 256


class Refuter:
    """Asks z3 first and bitwuzla where z3 cannot decide. About the entry state, all bytes of the image are known."""

    def __init__(self, program: Program, timeout: float, at_entry: bool = False) -> None:
        self._space = program.space
        self._at_entry = at_entry
        self._timeout = timeout
        self._memory = t.memory("mem", program.space.address_bits)
        self._solvers = (make_solver("z3"), make_solver("bitwuzla"))
        self._facts: dict[int, Term] = {}

    def check(self, *literals: Term) -> str:
        """ "unsat" from the first solver that can decide, else what the last one said. Each is asked shortly before one
        is given all the time, first then the one that found the proof: what z3 does not decide in the first turns, most
        often claims about all cells of an array, it seldom decides later."""
        answer = "unknown"
        turns = [*itertools.product(FIRST_TURNS, self._solvers), *((self._timeout, it) for it in self._solvers[::-1])]
        for seconds, solver in turns:
            answer = self._ask(solver, literals, min(seconds, self._timeout))
            if answer != "unknown":
                break
        return answer

    def _ask(self, solver: Solver, literals: tuple[Term, ...], seconds: float) -> str:
        reads_memory = self._memory in free_variables(list(literals))
        for _ in range(MAX_ROUNDS):
            solver.push()
            try:
                for literal in literals:
                    solver.add(literal)
                for fact in self._facts.values() if reads_memory else ():
                    solver.add(fact)
                answer = solver.check((), seconds)
                if answer != "sat" or not reads_memory:
                    return answer
                misread = self._misread(solver, literals)
            finally:
                solver.pop()
            if not misread:
                return answer
            for address in misread:
                self._learn(address)
        return "unknown"

    def _misread(self, solver: Solver, literals: tuple[Term, ...]) -> list[int]:
        """Addresses of fixed bytes that the formula reads and the model has wrong."""
        values = {variable: solver.value(variable) for variable in free_variables(list(literals)) if variable.width}
        model = solver.model_memory(self._memory)
        wrong: dict[int, None] = {}

        def byte(_: Term, address: int) -> int:
            known = self._known(address)
            guessed = model.byte(address)
            if known is not None and known != guessed:
                wrong[address] = None
            return guessed

        evaluator = Evaluator(lambda variable: values.get(variable, 0), byte)
        for literal in literals:
            evaluator.value(literal)
        return list(wrong)

    def _learn(self, address: int) -> None:
        start = address & ~(WINDOW - 1)
        for where in range(start, start + WINDOW):
            known = self._known(where)
            if known is not None and where not in self._facts:
                cell = t.load(self._memory, t.const(where, self._space.address_bits), 1, False)
                self._facts[where] = t.eq(cell, t.const(known, 8))

    def _known(self, address: int) -> int | None:
        if self._at_entry:
            return self._space.initial_byte(address)
        fixed = self._space.fixed_bytes(address, 1)
        return None if fixed is None else fixed[0]
