"""Everything a client needs to build terms.

All constructors simplify; the rules are in the module of each family. What they promise: the result denotes
the same value as the operator's definition (SMT-LIB's QF_ABV, with the machine's carry flags and word
accesses on top), work per call is bounded, and nothing recurses to the depth of its operands.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcveto.logic.bitwise import band, bnot, bor, bxor, conj, disj, implies
from mcveto.logic.choice import ite
from mcveto.logic.compare import carry, eq, ne, sborrow, scarry, sle, slt, ule, ult
from mcveto.logic.linear import add, mul, neg, sdiv, srem, sub, udiv, urem
from mcveto.logic.memory import base_of, load, store
from mcveto.logic.node import FALSE, TRUE, Term, WidthError, const, memory, signed, var
from mcveto.logic.pieces import ashr, concat, extract, lshr, lzcount, popcount, sext, shl, zext

__all__ = [
    "FALSE",
    "TRUE",
    "Term",
    "WidthError",
    "add",
    "are_short",
    "ashr",
    "band",
    "base_of",
    "bnot",
    "bor",
    "bxor",
    "carry",
    "concat",
    "conj",
    "const",
    "disj",
    "eq",
    "extract",
    "free_variables",
    "implies",
    "ite",
    "load",
    "lshr",
    "lzcount",
    "memory",
    "mul",
    "ne",
    "neg",
    "popcount",
    "postorder",
    "sborrow",
    "scarry",
    "sdiv",
    "sext",
    "shl",
    "signed",
    "sle",
    "slt",
    "srem",
    "store",
    "sub",
    "udiv",
    "ule",
    "ult",
    "urem",
    "var",
    "zext",
]


def postorder(roots: Iterable[Term]) -> list[Term]:
    """Every term reachable from the roots once, arguments before the terms that use them."""
    seen: set[Term] = set()
    order: list[Term] = []
    for root in roots:
        stack: list[tuple[Term, bool]] = [(root, False)]
        while stack:
            t, done = stack.pop()
            if done:
                order.append(t)
            elif t not in seen:
                seen.add(t)
                stack.append((t, True))
                stack.extend([(x, False) for x in reversed(t.args) if x not in seen])
    return order


def are_short(roots: Iterable[Term], most: int) -> bool:
    """Whether at most so many different terms are reachable from the roots; looks at no more than one beyond."""
    seen: set[Term] = set()
    pending = list(roots)
    while pending:
        t = pending.pop()
        if t not in seen:
            seen.add(t)
            if len(seen) > most:
                return False
            pending.extend(t.args)
    return True


def free_variables(terms: Iterable[Term]) -> list[Term]:
    """The variables and memories that occur in the terms, sorted by name."""
    seen: set[Term] = set()
    found: list[Term] = []
    stack = list(terms)
    while stack:
        t = stack.pop()
        if t not in seen:
            seen.add(t)
            if t.op == "var" or t.op == "memory":
                found.append(t)
            stack.extend(t.args)
    return sorted(found, key=lambda t: (t.op, t.data if t.op == "var" else t.data[0], t.width, t.address_width))
