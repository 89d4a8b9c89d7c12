"""States ω = (ω_V, ω_M), and the values of terms and formulas in them (lecture, Definitions 1 and 2).

A term may be undefined: Mem(e) unless 0 ≤ e < U, a division by zero, and every term with an undefined part. A formula
with an undefined term is undefined too: ∧ and ∨ do not stop early.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcveto.whilelang.syntax import (
    Binary,
    Box,
    Compare,
    Connective,
    Formula,
    Limit,
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


class UndefinedValue(Exception):
    """A term or formula has no value; `kind` is memory or division."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(slots=True)
class State:
    """Variables and memory cells that are absent are 0."""

    variables: dict[str, int] = field(default_factory=dict)
    memory: dict[int, int] = field(default_factory=dict)

    def copy(self) -> State:
        return State(dict(self.variables), dict(self.memory))


def term_value(term: Term, state: State, theory: Theory, cells: int) -> int:
    """ω⟦e⟧; raises UndefinedValue."""
    match term:
        case Num(value):
            return theory.wrap(value)
        case Var(name):
            return state.variables.get(name, 0)
        case Limit():
            return cells
        case Unary(op, operand):
            return theory.unary(op, term_value(operand, state, theory, cells))
        case Binary(op, left, right):
            a = term_value(left, state, theory, cells)
            b = term_value(right, state, theory, cells)
            if b == 0 and op in ("/", "%"):
                raise UndefinedValue("division", f"{a} {op} 0")
            return theory.binary(op, a, b)
        case Read(MemVar(), index):
            at = term_value(index, state, theory, cells)
            if not 0 <= at < cells:
                raise UndefinedValue("memory", f"Mem({at}) is outside 0 ≤ i < {cells}")
            return state.memory.get(at, 0)
        case Read(Update(), _):
            raise TypeError("updated memories occur in derivations only")
    raise TypeError(type(term).__name__)


COMPARE = {
    "=": lambda a, b: a == b,
    "≠": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "≤": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "≥": lambda a, b: a >= b,
}


def formula_value(formula: Formula, state: State, theory: Theory, cells: int) -> bool:
    """ω ⊨ P; raises UndefinedValue where P is not defined in ω."""
    match formula:
        case Truth(value):
            return value
        case Compare(op, left, right):
            a = term_value(left, state, theory, cells)
            return bool(COMPARE[op](a, term_value(right, state, theory, cells)))
        case Not(body):
            return not formula_value(body, state, theory, cells)
        case Connective(op, left, right):
            p = formula_value(left, state, theory, cells)
            q = formula_value(right, state, theory, cells)
            return {"∧": p and q, "∨": p or q, "→": not p or q, "↔": p == q}[op]
        case Box():
            raise TypeError("a modality has no value in a single state")
