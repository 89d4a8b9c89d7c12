"""Regular expressions over stack symbols, kept small by the laws of ∅, ε, union and star.

Just enough to annotate a B-graph: building, printing, and reading words by derivatives (Brzozowski, JACM 11, 1964).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Expression:
    """`kind` is one of ∅, ε, symbol, union, sequence, star; parts are ordered, those of a union each once."""

    kind: str
    symbol: int = -1
    parts: tuple[Expression, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it denotes no word at all (the constructors remove ∅ from inside)."""
        return self.kind == "∅"


EMPTY = Expression("∅")
EPSILON = Expression("ε")


def single(symbol: int) -> Expression:
    return Expression("symbol", symbol)


def union(left: Expression, right: Expression) -> Expression:
    parts: dict[Expression, None] = {}
    for side in (left, right):
        parts.update(dict.fromkeys(side.parts if side.kind == "union" else (side,)))
    parts.pop(EMPTY, None)
    # ε ∪ r r* is r*.
    for part in list(parts):
        loop = _loop(part)
        if loop is not None and EPSILON in parts:
            parts = {loop if item == part else item: None for item in parts if item != EPSILON}
    # r ∪ r* is r*, and so is ε ∪ r*.
    for part in [part for part in parts if part.kind == "star"]:
        parts.pop(part.parts[0], None)
        parts.pop(EPSILON, None)
    if not parts:
        return EMPTY
    if len(parts) == 1:
        return next(iter(parts))
    # a x ∪ a y is a (x ∪ y).
    heads = {_factors(part)[:1] for part in parts}
    if len(heads) == 1 and () not in heads:
        ((first,),) = heads
        rests = [reduce(sequence, _factors(part)[1:], EPSILON) for part in parts]
        return sequence(first, reduce(union, rests))
    return Expression("union", parts=tuple(parts))


def _loop(part: Expression) -> Expression | None:
    """r* if the part is r r* or r* r."""
    if part.kind == "sequence":
        for loop, rest in ((part.parts[-1], part.parts[:-1]), (part.parts[0], part.parts[1:])):
            if loop.kind == "star" and _factors(loop.parts[0]) == rest:
                return loop
    return None


def sequence(left: Expression, right: Expression) -> Expression:
    if left.is_empty or right.is_empty:
        return EMPTY
    factors = (*_factors(left), *_factors(right))
    # r* r* is r*.
    kept: list[Expression] = []
    for factor in factors:
        if not (kept and factor.kind == "star" and kept[-1] == factor):
            kept.append(factor)
    if not kept:
        return EPSILON
    return kept[0] if len(kept) == 1 else Expression("sequence", parts=tuple(kept))


def star(inner: Expression) -> Expression:
    if inner.kind in ("∅", "ε"):
        return EPSILON
    if inner.kind == "star":
        return inner
    if inner.kind == "union" and EPSILON in inner.parts:
        return star(reduce(union, (part for part in inner.parts if part != EPSILON), EMPTY))
    return Expression("star", parts=(inner,))


def _factors(expression: Expression) -> tuple[Expression, ...]:
    if expression.kind == "ε":
        return ()
    return expression.parts if expression.kind == "sequence" else (expression,)


def is_nullable(expression: Expression) -> bool:
    """Whether the empty word belongs to the language."""
    match expression.kind:
        case "ε" | "star":
            return True
        case "union":
            return any(map(is_nullable, expression.parts))
        case "sequence":
            return all(map(is_nullable, expression.parts))
    return False


def derivative(expression: Expression, symbol: int) -> Expression:
    """The words w for which `symbol` w belongs to the language."""
    match expression.kind:
        case "symbol":
            return EPSILON if expression.symbol == symbol else EMPTY
        case "union":
            return reduce(union, (derivative(part, symbol) for part in expression.parts), EMPTY)
        case "star":
            return sequence(derivative(expression.parts[0], symbol), expression)
        case "sequence":
            head, rest = expression.parts[0], reduce(sequence, expression.parts[1:], EPSILON)
            through = sequence(derivative(head, symbol), rest)
            return union(through, derivative(rest, symbol)) if is_nullable(head) else through
    return EMPTY


def accepts(expression: Expression, word: Sequence[int]) -> bool:
    return is_nullable(reduce(derivative, word, expression))


def reverse(expression: Expression) -> Expression:
    parts = tuple(map(reverse, expression.parts))
    return Expression(expression.kind, expression.symbol, parts[::-1] if expression.kind == "sequence" else parts)


def expression_text(expression: Expression, names: Sequence[str]) -> str:
    match expression.kind:
        case "symbol":
            return names[expression.symbol]
        case "union":
            return " ∪ ".join(expression_text(part, names) for part in expression.parts)
        case "sequence":
            return " ".join(
                f"({expression_text(part, names)})" if part.kind == "union" else expression_text(part, names)
                for part in expression.parts
            )
        case "star":
            (inner,) = expression.parts
            text = expression_text(inner, names)
            return f"{text}*" if inner.kind == "symbol" else f"({text})*"
    return expression.kind
