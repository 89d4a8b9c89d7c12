"""Bytes of the image in questions to a solver.

An image is too large to be part of every question. So the solver guesses what memory holds; that is compared with
the image afterwards, and where they are wrong and that matters, these bytes (and their neighbours) become facts before
the question is asked again. Leaving facts out can only make more satisfiable, so "unsat" needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import MemoryModel
from mcveto.logic.terms import Term
from mcveto.program.program import Program

WINDOW = 64


class ImageFacts:
    """`at_entry`: memory is that at entry; otherwise at any time, so that only what no run can write is known."""

    def __init__(self, program: Program, at_entry: bool = True) -> None:
        self._space = program.space
        self._at_entry = at_entry
        self.memory = t.memory("mem", program.space.address_bits)
        self._facts: dict[int, Term] = {}

    @property
    def terms(self) -> Iterable[Term]:
        return self._facts.values()

    def compare(
        self, formula: Sequence[Term], values: dict[Term, int], model: MemoryModel
    ) -> tuple[list[int], dict[int, int]]:
        """(addresses whose byte in the model is not the image's, if that makes the formula false; the bytes that are
        nobody's but the model's)."""
        wrong, used, holds = self.evaluate(formula, values, model)
        return ([] if all(holds) else wrong), used

    def evaluate(
        self, formula: Sequence[Term], values: dict[Term, int], model: MemoryModel
    ) -> tuple[list[int], dict[int, int], list[int]]:
        """The same whether it matters or not, and the values that the terms have in truth."""
        wrong: list[int] = []
        used: dict[int, int] = {}

        def byte(_: Term, address: int) -> int:
            known = self._byte(address)
            guessed = model.byte(address)
            if known is None:
                used[address] = guessed
                return guessed
            if known != guessed and address not in self._facts:
                wrong.append(address)
            return known

        evaluator = Evaluator(lambda variable: values.get(variable, 0), byte)
        return wrong, used, [evaluator.value(term) for term in formula]

    def learn(self, addresses: Iterable[int]) -> list[Term]:
        """Makes facts of bytes and their neighbours; the new ones."""
        new: list[Term] = []
        for address in addresses:
            start = address & ~(WINDOW - 1)
            for where in range(start, start + WINDOW):
                known = self._byte(where)
                if known is not None and where not in self._facts:
                    cell = t.load(self.memory, t.const(where, self._space.address_bits), 1, False)
                    self._facts[where] = t.eq(cell, t.const(known, 8))
                    new.append(self._facts[where])
        return new

    def _byte(self, address: int) -> int | None:
        if self._at_entry:
            return self._space.initial_byte(address)
        fixed = self._space.fixed_bytes(address, 1)
        return None if fixed is None else fixed[0]
