"""The low bits of a term that are the same whatever its variables are: so elements of arrays keep their distance."""

from __future__ import annotations

from functools import lru_cache

from mcveto.logic.terms import Term

LowBits = tuple[int, int]
"""How many bits are known, and what they are."""
_DEPTH = 10
_NOTHING = (0, 0)


def low_bits(term: Term) -> LowBits:
    """(count, bits): every value of the term ends with these."""
    return _known(term, _DEPTH)


def aligned(low: int, high: int, known: LowBits) -> tuple[int, int]:
    """Bounds moved inwards to values that end with the bits that are known; as they were if there are none."""
    step = 1 << known[0]
    first = low + (known[1] - low) % step
    last = high - (high - known[1]) % step
    return (first, last) if first <= last else (low, high)


@lru_cache(maxsize=1 << 15)
def _known(term: Term, depth: int) -> LowBits:
    if term.op == "const":
        return term.width, term.data
    if not depth:
        return _NOTHING
    parts = [_known(part, depth - 1) for part in term.args] if term.op in _OPERATORS else []
    match term.op:
        case "lin":
            return _sum(term, parts)
        case "zext" | "sext":
            return parts[0]
        case "concat":
            return _joined(term, parts)
        case "extract":
            count, bits = parts[0]
            low = term.data[1]
            return (min(count - low, term.width), (bits >> low) & ((1 << term.width) - 1)) if count > low else _NOTHING
        case "ite":
            return _common(parts[1], parts[2])
        case "and" | "or" | "xor":
            return _bitwise(term.op, parts)
    return _NOTHING


_OPERATORS = frozenset({"lin", "zext", "sext", "concat", "extract", "ite", "and", "or", "xor"})


def _sum(term: Term, parts: list[LowBits]) -> LowBits:
    coefficients, constant = term.data
    count, bits = term.width, constant
    for coefficient, (known, value) in zip(coefficients, parts, strict=True):
        zeros = (coefficient & -coefficient).bit_length() - 1
        count = min(count, known + zeros)
        bits += coefficient * value
    return count, bits & ((1 << count) - 1)


def _joined(term: Term, parts: list[LowBits]) -> LowBits:
    count = bits = 0
    for part, (known, value) in zip(reversed(term.args), reversed(parts), strict=True):
        bits |= value << count
        count += known
        if known < part.width:
            break
    return count, bits


def _common(one: LowBits, other: LowBits) -> LowBits:
    count = min(one[0], other[0])
    different = (one[1] ^ other[1]) & ((1 << count) - 1)
    if different:
        count = (different & -different).bit_length() - 1
    return count, one[1] & ((1 << count) - 1)


def _bitwise(op: str, parts: list[LowBits]) -> LowBits:
    """Bit by bit from below; a bit that decides the result alone is enough."""
    count = bits = 0
    decides = {"and": 0, "or": 1}.get(op)
    for place in range(max(known for known, _ in parts)):
        there = [value >> place & 1 for known, value in parts if known > place]
        if decides in there:
            bit = decides
        elif len(there) < len(parts):
            break
        else:
            bit = sum(there) & 1 if op == "xor" else there[0]
        assert bit is not None
        bits |= bit << place
        count += 1
    return count, bits
