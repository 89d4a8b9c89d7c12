"""The least and the greatest value a term can have, from its operators alone."""

from __future__ import annotations

from mcveto.logic.terms import Term

Range = tuple[int, int]
MAX_DEPTH = 24


def bounds(term: Term, depth: int = 0) -> Range:
    """Unsigned; (0, all ones) where nothing better is known."""
    top = (1 << term.width) - 1
    if term.op == "const":
        return term.data, term.data
    if depth > MAX_DEPTH:
        return 0, top
    if term.op == "zext":
        return bounds(term.args[0], depth + 1)
    if term.op == "concat":
        low = high = 0
        for part in term.args:
            least, greatest = bounds(part, depth + 1)
            low, high = low << part.width | least, high << part.width | greatest
        return low, high
    if term.op == "ite":
        one, other = bounds(term.args[1], depth + 1), bounds(term.args[2], depth + 1)
        return min(one[0], other[0]), max(one[1], other[1])
    if term.op == "and" and term.width > 1:
        return 0, min(bounds(part, depth + 1)[1] for part in term.args)
    if term.op == "extract" and term.data[1] == 0:
        least, greatest = bounds(term.args[0], depth + 1)
        return (least, greatest) if greatest <= top else (0, top)
    if term.op == "lshr":
        return 0, bounds(term.args[0], depth + 1)[1]
    if term.op == "urem" and term.args[1].op == "const" and term.args[1].data:
        return 0, int(term.args[1].data) - 1
    if term.op == "lin":
        return _sum(term, depth)
    return 0, top


def _sum(term: Term, depth: int) -> Range:
    top = (1 << term.width) - 1
    coefficients, constant = term.data
    low = high = constant
    for coefficient, part in zip(coefficients, term.args, strict=True):
        least, greatest = bounds(part, depth + 1)
        if coefficient > top >> 1:
            coefficient -= top + 1
            least, greatest = greatest, least
        low += coefficient * least
        high += coefficient * greatest
    # The same number of wraps everywhere, or nothing is known.
    turns = low >> term.width
    return (low & top, high & top) if turns == high >> term.width else (0, top)
