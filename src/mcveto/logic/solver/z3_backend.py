"""Z3 behind the same interface. Assumptions go through named literals: Z3's cores are sets of literals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from mcveto.logic.solver.base import InProcessSolver
from mcveto.logic.solver.interface import Answer, MemoryModel, SolverError

_BINARY: dict[str, Callable[..., Any]] = {
    "=": z3.Z3_mk_eq,
    "bvadd": z3.Z3_mk_bvadd,
    "bvsub": z3.Z3_mk_bvsub,
    "bvmul": z3.Z3_mk_bvmul,
    "bvudiv": z3.Z3_mk_bvudiv,
    "bvurem": z3.Z3_mk_bvurem,
    "bvsdiv": z3.Z3_mk_bvsdiv,
    "bvsrem": z3.Z3_mk_bvsrem,
    "bvand": z3.Z3_mk_bvand,
    "bvor": z3.Z3_mk_bvor,
    "bvxor": z3.Z3_mk_bvxor,
    "bvshl": z3.Z3_mk_bvshl,
    "bvlshr": z3.Z3_mk_bvlshr,
    "bvashr": z3.Z3_mk_bvashr,
    "bvult": z3.Z3_mk_bvult,
    "bvule": z3.Z3_mk_bvule,
    "bvslt": z3.Z3_mk_bvslt,
    "bvsle": z3.Z3_mk_bvsle,
    "select": z3.Z3_mk_select,
    "bvneg": z3.Z3_mk_bvneg,
    "not": z3.Z3_mk_not,
    "ite": z3.Z3_mk_ite,
    "store": z3.Z3_mk_store,
}


class Z3Target:
    """Builds Z3 expressions in a context of its own."""

    def __init__(self) -> None:
        self.context = z3.Context()
        self._ref = self.context.ref()
        self._sorts: dict[int, Any] = {}

    def _sort(self, width: int) -> Any:
        found = self._sorts.get(width)
        if found is None:
            found = self._sorts[width] = z3.BitVecSort(width, self.context)
        return found

    def _wrap(self, ast: Any) -> Any:
        return z3.ExprRef(ast, self.context)

    def constant(self, value: int, width: int) -> Any:
        """A bit-vector constant."""
        return self._wrap(z3.Z3_mk_numeral(self._ref, str(value), self._sort(width).ast))

    def boolean(self, value: bool) -> Any:
        """A Boolean constant."""
        return z3.BoolVal(value, self.context)

    def variable(self, name: str, width: int) -> Any:
        """A variable."""
        return z3.Bool(name, self.context) if width == 1 else z3.Const(name, self._sort(width))

    def array(self, name: str, address_width: int) -> Any:
        """A memory."""
        return z3.Const(name, z3.ArraySort(self._sort(address_width), self._sort(8)))

    def apply(self, op: str, args: Sequence[Any], indices: tuple[int, ...] = ()) -> Any:
        """An operator by its SMT-LIB name."""
        asts = [a.ast for a in args]
        function = _BINARY.get(op)
        if function is not None:
            return self._wrap(function(self._ref, *asts))
        if op == "and" or op == "or":
            array = (z3.Ast * len(asts))(*asts)
            make = z3.Z3_mk_and if op == "and" else z3.Z3_mk_or
            return self._wrap(make(self._ref, len(asts), array))
        if op == "concat":
            result = args[0]
            for a in args[1:]:
                result = self._wrap(z3.Z3_mk_concat(self._ref, result.ast, a.ast))
            return result
        if op == "extract":
            return self._wrap(z3.Z3_mk_extract(self._ref, indices[0], indices[1], asts[0]))
        if op == "zero_extend":
            return self._wrap(z3.Z3_mk_zero_ext(self._ref, indices[0], asts[0]))
        if op == "sign_extend":
            return self._wrap(z3.Z3_mk_sign_ext(self._ref, indices[0], asts[0]))
        raise SolverError(f"unknown operator {op}")


class Z3Solver(InProcessSolver):
    """The `Solver` protocol on Z3."""

    def __init__(self) -> None:
        self._target = Z3Target()
        super().__init__(self._target)
        self._solver = z3.Solver(ctx=self._target.context)
        # Literals by the expression they stand for, per scope: popping removes their definitions too.
        self._literals: list[dict[int, Any]] = [{}]
        self._names = 0
        self._model: Any = None

    def _push(self) -> None:
        self._solver.push()
        self._literals.append({})

    def _pop(self) -> None:
        self._solver.pop()
        self._literals.pop()

    def _add(self, formula: Any) -> None:
        z3.Z3_solver_assert(self._target.context.ref(), self._solver.solver, formula.ast)

    def _literal(self, formula: Any) -> Any:
        key = formula.get_id()
        for scope in self._literals:
            if key in scope:
                return scope[key]
        self._names += 1
        literal = z3.Bool(f"assume!{self._names}", self._target.context)
        self._add(self._target.apply("or", [self._target.apply("not", [literal]), formula]))
        self._literals[-1][key] = literal
        return literal

    def _check(self, assumptions: list[Any], timeout: float | None) -> Answer:
        literals = [self._literal(a) for a in assumptions]
        limit = 4294967295 if timeout is None else max(1, int(timeout * 1000))
        self._solver.set("timeout", limit)
        try:
            result = self._solver.check(*literals)
        except z3.Z3Exception as error:
            raise SolverError(f"z3: {error}") from error
        self._model = self._solver.model() if result == z3.sat else None
        if result == z3.sat:
            return "sat"
        return "unsat" if result == z3.unsat else "unknown"

    def _evaluate(self, expression: Any) -> Any:
        context, result = self._target.context, (z3.Ast * 1)()
        if not z3.Z3_model_eval(context.ref(), self._model.model, expression.ast, True, result):
            raise SolverError("z3 has no value for a term")
        return z3.z3._to_expr_ref(result[0], context)

    def _value(self, expression: Any) -> int:
        value = self._evaluate(expression)
        if z3.is_bv_value(value):
            return int(value.as_long())
        if z3.is_true(value) or z3.is_false(value):
            return int(z3.is_true(value))
        raise SolverError(f"z3 left {value} unevaluated")

    def _array(self, expression: Any) -> MemoryModel:
        value = self._evaluate(expression)
        cells: dict[int, int] = {}
        while z3.is_store(value):
            value, address, byte = value.children()
            cells.setdefault(address.as_long(), byte.as_long())
        if not z3.is_K(value):
            raise SolverError(f"unexpected array value {value}")
        return MemoryModel(value.children()[0].as_long(), cells)

    def _core(self, assumptions: list[Any]) -> list[bool]:
        names = {str(literal) for literal in self._solver.unsat_core()}
        return [str(self._literal(a)) in names for a in assumptions]
