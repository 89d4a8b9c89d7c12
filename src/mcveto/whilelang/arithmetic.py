"""Rules ℤ and ℤ_M: is a sequent of arithmetic valid? Asked of Z3, the one solver here that knows both theories.

A formula counts as true only where all its terms are defined (lecture, Definition 2), on either side of ⊢. Reading an
updated memory is the solver's theory of arrays, whose two axioms are [*]1 and [*]2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mcveto.whilelang.sequents import Sequent
from mcveto.whilelang.state import State
from mcveto.whilelang.syntax import (
    Binary,
    Box,
    Compare,
    Connective,
    Formula,
    Limit,
    Memory,
    MemVar,
    Not,
    Num,
    Read,
    Term,
    Truth,
    Unary,
    Update,
    Var,
)
from mcveto.whilelang.theory import Theory

DEFAULT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """valid, refuted by an assignment, or unknown."""

    kind: Literal["valid", "refuted", "unknown"]
    values: dict[str, int]
    memory: dict[int, int]

    def state(self, variables: list[str]) -> State:
        """The initial state the assignment describes."""
        return State({name: self.values.get(name, 0) for name in variables}, dict(self.memory))


class Arithmetic:
    """Decides sequents in one theory with one memory bound."""

    def __init__(self, theory: Theory, cells: int, seconds: float = DEFAULT_SECONDS) -> None:
        self._theory = theory
        self._cells = cells
        self._seconds = seconds
        self.queries = 0

    def decide(self, sequent: Sequent, *more: Formula) -> Answer:
        """Whether the sequent is valid, under further assumptions."""
        encoder = _Encoder(self._theory, self._cells)
        constraints = [encoder.holds(item) for item in (*sequent.assumptions, *more)]
        constraints.append(encoder.z3.Not(encoder.holds(sequent.goal)))
        return self._ask(encoder, constraints)

    def satisfying(self, formulas: list[Formula]) -> Answer:
        """An assignment that makes all formulas true (as `refuted`), or `valid` if their negation is."""
        encoder = _Encoder(self._theory, self._cells)
        return self._ask(encoder, [encoder.holds(item) for item in formulas])

    def _ask(self, encoder: _Encoder, constraints: list[Any]) -> Answer:
        self.queries += 1
        z3 = encoder.z3
        solver = z3.Solver()
        solver.set("timeout", max(1, int(self._seconds * 1000)))
        solver.add(*constraints)
        answer = solver.check()
        if answer == z3.unsat:
            return Answer("valid", {}, {})
        if answer != z3.sat:
            return Answer("unknown", {}, {})
        return Answer("refuted", *encoder.assignment(solver.model()))


class _Encoder:
    """Terms and formulas as expressions of Z3: integers, or bit-vectors."""

    def __init__(self, theory: Theory, cells: int) -> None:
        import z3

        self.z3 = z3
        self._theory = theory
        self._cells = cells
        self._sort = z3.IntSort() if theory.bits is None else z3.BitVecSort(theory.bits)
        self._variables: dict[str, Any] = {}
        self._indices: dict[int, Any] = {}

    def holds(self, formula: Formula) -> Any:
        """The formula is defined and true."""
        if isinstance(formula, Connective) and formula.lazy:
            left, right = self.holds(formula.left), self.holds(formula.right)
            return self.z3.And(left, right) if formula.op == "∧" else self.z3.Implies(left, right)
        demands: list[Any] = []
        truth = self._formula(formula, demands)
        return self.z3.And(*demands, truth)

    def assignment(self, model: Any) -> tuple[dict[str, int], dict[int, int]]:
        """The variables' values, and the initial memory at every index the formulas speak of."""
        values = {name: self._number(model, item) for name, item in self._variables.items()}
        memory: dict[int, int] = {}
        initial = self._memory(MemVar(), [])
        for index in self._indices.values():
            at = self._number(model, index)
            if 0 <= at < self._cells:
                memory[at] = self._number(model, self.z3.Select(initial, index))
        return values, memory

    def _number(self, model: Any, expression: Any) -> int:
        value = model.eval(expression, model_completion=True)
        number = int(value.as_long())
        return number if self._theory.bits is None else self._theory.wrap(number)

    def _constant(self, value: int) -> Any:
        z3 = self.z3
        return z3.IntVal(value) if self._theory.bits is None else z3.BitVecVal(value, self._theory.bits)

    def _formula(self, formula: Formula, demands: list[Any]) -> Any:
        z3 = self.z3
        match formula:
            case Truth(value):
                return z3.BoolVal(value)
            case Compare(op, left, right):
                return self._compare(op, self._term(left, demands), self._term(right, demands))
            case Not(body):
                return z3.Not(self._formula(body, demands))
            case Connective(op, left, right):
                p, q = self._formula(left, demands), self._formula(right, demands)
                return {
                    "∧": lambda: z3.And(p, q),
                    "∨": lambda: z3.Or(p, q),
                    "→": lambda: z3.Implies(p, q),
                    "↔": lambda: p == q,
                }[op]()
            case Box():
                raise TypeError("a verification condition has no modality")

    def _compare(self, op: str, a: Any, b: Any) -> Any:
        z3 = self.z3
        if op in ("=", "≠"):
            return a == b if op == "=" else a != b
        if self._theory.bits is not None and not self._theory.signed:
            return {"<": z3.ULT, "≤": z3.ULE, ">": z3.UGT, "≥": z3.UGE}[op](a, b)
        return {"<": lambda: a < b, "≤": lambda: a <= b, ">": lambda: a > b, "≥": lambda: a >= b}[op]()

    def _term(self, term: Term, demands: list[Any]) -> Any:
        match term:
            case Num(value):
                return self._constant(value)
            case Var(name):
                if name not in self._variables:
                    self._variables[name] = self.z3.Const(name, self._sort)
                return self._variables[name]
            case Limit():
                return self._constant(self._cells)
            case Unary(op, operand):
                value = self._term(operand, demands)
                return -value if op == "-" else ~value
            case Binary(op, left, right):
                a, b = self._term(left, demands), self._term(right, demands)
                if op in ("/", "%"):
                    demands.append(b != self._constant(0))
                return self._operators()[op](a, b)
            case Read(memory, index):
                return self.z3.Select(self._memory(memory, demands), self._index(index, demands))
        raise TypeError(type(term).__name__)

    def _index(self, index: Term, demands: list[Any]) -> Any:
        at = self._term(index, demands)
        demands.append(self._compare("≤", self._constant(0), at))
        demands.append(self._compare("<", at, self._constant(self._cells)))
        self._indices[at.get_id()] = at
        return at

    def _memory(self, memory: Memory, demands: list[Any]) -> Any:
        updates: list[Update] = []
        while isinstance(memory, Update):
            updates.append(memory)
            memory = memory.memory
        result = self.z3.Const(f"{memory.name}[]", self.z3.ArraySort(self._sort, self._sort))
        for update in reversed(updates):
            at = self._index(update.index, demands)
            result = self.z3.Store(result, at, self._term(update.value, demands))
        return result

    def _operators(self) -> dict[str, Callable[[Any, Any], Any]]:
        z3 = self.z3
        common: dict[str, Callable[[Any, Any], Any]] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
        }
        if self._theory.bits is None:
            # Z3's integer division leaves a remainder that is never negative.
            return common | {
                "/": lambda a, b: z3.If(a >= 0, a / b, -((-a) / b)),
                "%": lambda a, b: z3.If(a >= 0, a % b, -((-a) % b)),
            }
        signed = self._theory.signed
        return common | {
            "/": lambda a, b: a / b if signed else z3.UDiv(a, b),
            "%": lambda a, b: z3.SRem(a, b) if signed else z3.URem(a, b),
            "&": lambda a, b: a & b,
            "|": lambda a, b: a | b,
            "^": lambda a, b: a ^ b,
            "<<": lambda a, b: a << b,
            ">>": lambda a, b: a >> b if signed else z3.LShR(a, b),
        }
