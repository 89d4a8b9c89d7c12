"""The least and the greatest value a term can have, from its operators and from comparisons with constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from mcveto.logic.terms import Term

Range = tuple[int, int]
MAX_DEPTH = 24


def limits(literals: Iterable[Term]) -> dict[Term, int]:
    """The greatest value of what literals say to be less than a constant, or to have zeros in front."""
    found: dict[Term, int] = {}
    for literal in literals:
        limit = _limit(literal)
        if limit is not None:
            term, greatest = limit
            found[term] = min(greatest, found.get(term, greatest))
    return found


def _limit(literal: Term) -> tuple[Term, int] | None:
    if literal.op not in ("ult", "eq"):
        return None
    term, other = literal.args
    if literal.op == "eq" and term.op == "const":
        term, other = other, term
    if other.op != "const":
        return None
    if literal.op == "ult":
        return (term, int(other.data) - 1) if other.data else None
    is_front = term.op == "extract" and term.data[0] == term.args[0].width - 1 and other.data == 0
    return (term.args[0], (1 << term.data[1]) - 1) if is_front else None


def decided(literal: Term) -> bool | None:
    """Whether a comparison holds whatever its variables are; None if it depends on them, as far as bounds tell."""
    if literal.op == "not":
        found = decided(literal.args[0])
        return None if found is None else not found
    if literal.op not in ("ult", "eq") or literal.args[0].width < 2:
        return None
    (low, high), (least, greatest) = map(bounds, literal.args)
    if literal.op == "ult" and high < least:
        return True
    is_apart = high < least or greatest < low
    return False if (greatest <= low if literal.op == "ult" else is_apart) else None


def bounds(term: Term, depth: int = 0, greatest_of: Mapping[Term, int] = MappingProxyType({})) -> Range:
    """Unsigned; (0, all ones) where nothing better is known."""
    top = (1 << term.width) - 1
    if term.op == "const":
        return term.data, term.data
    if term in greatest_of:
        return 0, greatest_of[term]
    if depth > MAX_DEPTH:
        return 0, top
    if term.op == "zext":
        return bounds(term.args[0], depth + 1, greatest_of)
    if term.op == "concat":
        low = high = 0
        for part in term.args:
            least, greatest = bounds(part, depth + 1, greatest_of)
            low, high = low << part.width | least, high << part.width | greatest
        return low, high
    if term.op == "ite":
        one, other = bounds(term.args[1], depth + 1, greatest_of), bounds(term.args[2], depth + 1, greatest_of)
        return min(one[0], other[0]), max(one[1], other[1])
    if term.op == "and" and term.width > 1:
        return 0, min(bounds(part, depth + 1, greatest_of)[1] for part in term.args)
    if term.op == "extract" and term.data[1] == 0:
        least, greatest = bounds(term.args[0], depth + 1, greatest_of)
        return (least, greatest) if greatest <= top else (0, top)
    if term.op == "lshr":
        return 0, bounds(term.args[0], depth + 1, greatest_of)[1]
    if term.op == "urem" and term.args[1].op == "const" and term.args[1].data:
        return 0, int(term.args[1].data) - 1
    if term.op == "lin":
        return _sum(term, depth, greatest_of)
    return 0, top


def _sum(term: Term, depth: int, greatest_of: Mapping[Term, int]) -> Range:
    top = (1 << term.width) - 1
    coefficients, constant = term.data
    low = high = constant
    for coefficient, part in zip(coefficients, term.args, strict=True):
        least, greatest = bounds(part, depth + 1, greatest_of)
        if coefficient > top >> 1:
            coefficient -= top + 1
            least, greatest = greatest, least
        low += coefficient * least
        high += coefficient * greatest
    # The same number of wraps everywhere, or nothing is known.
    turns = low >> term.width
    return (low & top, high & top) if turns == high >> term.width else (0, top)
