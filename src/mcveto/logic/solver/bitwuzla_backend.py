"""Bitwuzla: one persistent instance, assumptions for queries, a terminator for the time limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import bitwuzla
from bitwuzla import Kind

from mcveto.logic.solver.base import InProcessSolver
from mcveto.logic.solver.interface import Answer, MemoryModel, SolverError

WAITING = 3.0
"""How many times a query's limit it may take by the time of day, on a machine that is busy."""

_KINDS = {
    "=": Kind.EQUAL,
    "ite": Kind.ITE,
    "not": Kind.NOT,
    "and": Kind.AND,
    "or": Kind.OR,
    "bvadd": Kind.BV_ADD,
    "bvsub": Kind.BV_SUB,
    "bvneg": Kind.BV_NEG,
    "bvmul": Kind.BV_MUL,
    "bvudiv": Kind.BV_UDIV,
    "bvurem": Kind.BV_UREM,
    "bvsdiv": Kind.BV_SDIV,
    "bvsrem": Kind.BV_SREM,
    "bvand": Kind.BV_AND,
    "bvor": Kind.BV_OR,
    "bvxor": Kind.BV_XOR,
    "bvshl": Kind.BV_SHL,
    "bvlshr": Kind.BV_SHR,
    "bvashr": Kind.BV_ASHR,
    "bvult": Kind.BV_ULT,
    "bvule": Kind.BV_ULE,
    "bvslt": Kind.BV_SLT,
    "bvsle": Kind.BV_SLE,
    "concat": Kind.BV_CONCAT,
    "extract": Kind.BV_EXTRACT,
    "zero_extend": Kind.BV_ZERO_EXTEND,
    "sign_extend": Kind.BV_SIGN_EXTEND,
    "select": Kind.ARRAY_SELECT,
    "store": Kind.ARRAY_STORE,
}


class BitwuzlaTarget:
    """Builds Bitwuzla terms."""

    def __init__(self) -> None:
        self.manager = bitwuzla.TermManager()
        self._sorts: dict[int, Any] = {}

    def _sort(self, width: int) -> Any:
        found = self._sorts.get(width)
        if found is None:
            found = self._sorts[width] = self.manager.mk_bv_sort(width)
        return found

    def constant(self, value: int, width: int) -> Any:
        """A bit-vector constant."""
        if value >> 63:  # larger integers do not pass through the library's 64-bit signature
            return self.manager.mk_bv_value(self._sort(width), format(value, "x"), 16)
        return self.manager.mk_bv_value(self._sort(width), value)

    def boolean(self, value: bool) -> Any:
        """A Boolean constant."""
        return self.manager.mk_true() if value else self.manager.mk_false()

    def variable(self, name: str, width: int) -> Any:
        """A variable."""
        sort = self.manager.mk_bool_sort() if width == 1 else self._sort(width)
        return self.manager.mk_const(sort, name)

    def array(self, name: str, address_width: int) -> Any:
        """A memory."""
        return self.manager.mk_const(self.manager.mk_array_sort(self._sort(address_width), self._sort(8)), name)

    def apply(self, op: str, args: Sequence[Any], indices: tuple[int, ...] = ()) -> Any:
        """An operator by its SMT-LIB name."""
        return self.manager.mk_term(_KINDS[op], list(args), list(indices))


class BitwuzlaSolver(InProcessSolver):
    """The `Solver` protocol on Bitwuzla."""

    def __init__(self) -> None:
        target = BitwuzlaTarget()
        super().__init__(target)
        options = bitwuzla.Options()
        options.set(bitwuzla.Option.PRODUCE_MODELS, True)
        options.set(bitwuzla.Option.PRODUCE_UNSAT_ASSUMPTIONS, True)
        self._solver = bitwuzla.Bitwuzla(target.manager, options)
        self._limit: float | None = None
        self._began = (0.0, 0.0)
        """When the query began: by the time of day, and in processor time of this thread."""
        self._solver.configure_terminator(self._expired)

    def _expired(self) -> bool:
        """Whether the query has worked too long. What is decided should not depend on what else the machine does, as
        far as there is time for it."""
        if self._limit is None:
            return False
        since, worked = self._began
        waited = time.monotonic() - since
        # Asked often, and the processor time is dearer to ask for: only where it can matter.
        return waited > self._limit and (waited > WAITING * self._limit or time.thread_time() - worked > self._limit)

    def close(self) -> None:
        """Frees the formulas. The solver knows its terminator, which knows the solver: nobody else would."""
        self._solver.configure_terminator(None)
        super().close()
        del self._solver

    def _push(self) -> None:
        self._solver.push()

    def _pop(self) -> None:
        self._solver.pop()

    def _add(self, formula: Any) -> None:
        self._solver.assert_formula(formula)

    def _check(self, assumptions: list[Any], timeout: float | None) -> Answer:
        self._limit = timeout
        if timeout is not None:
            self._began = time.monotonic(), time.thread_time()
        result = self._solver.check_sat(*assumptions)
        if result == bitwuzla.Result.SAT:
            return "sat"
        return "unsat" if result == bitwuzla.Result.UNSAT else "unknown"

    def _value(self, expression: Any) -> int:
        return _number(self._solver.get_value(expression))

    def _array(self, expression: Any) -> MemoryModel:
        value = self._solver.get_value(expression)
        cells: dict[int, int] = {}
        while value.kind() == Kind.ARRAY_STORE:
            value, address, byte = value.children()
            cells.setdefault(_number(address), _number(byte))
        if value.kind() != Kind.CONST_ARRAY:
            raise SolverError(f"unexpected array value {value}")
        return MemoryModel(_number(value.children()[0]), cells)

    def _core(self, assumptions: list[Any]) -> list[bool]:
        needed = set(self._solver.get_unsat_assumptions())
        return [a in needed for a in assumptions]


def _number(value: Any) -> int:
    plain = value.value(10)
    return int(plain)
