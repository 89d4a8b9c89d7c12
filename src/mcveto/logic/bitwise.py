"""Bitwise operators, and the Boolean ones they are at width 1.

Width 1: and/or are n-ary, flat up to FLATTEN_LIMIT arguments and sorted; xor is the negation of eq; every
comparison absorbs its negation, also in junctions of the other kind; a strict comparison and the equality of the
same operands fuse (`cf or zf`, `not cf and not zf`). Wider: constant masks become rows of pieces, so that masking,
shifting and or-ing fields together gives a concat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import mcveto.logic.choice as choice
import mcveto.logic.compare as compare
import mcveto.logic.linear as linear
import mcveto.logic.pieces as pieces
from mcveto.logic.node import FALSE, TRUE, Term, WidthError, const, intern, same_width

FLATTEN_LIMIT = 32
FUSE_LIMIT = 8  # in longer junctions, looking for pairs at every step would cost more than it brings
MASK_RUNS = 4  # a mask with more runs of ones and zeros than this stays an `and`
NEGATED = {"ult": "ule", "ule": "ult", "slt": "sle", "sle": "slt"}
COMPARISONS = frozenset(("eq", "ult", "ule", "slt", "sle"))


def bnot(a: Term) -> Term:
    """The complement of a; at width 1 its negation."""
    if a.width != 1:
        if a.width == 0:
            raise WidthError("a memory has no complement")
        return linear.complement(a)
    op = a.op
    if op == "const":
        return TRUE if a is FALSE else FALSE
    if op == "not":  # match not not a, result a
        return a.args[0]
    if op in NEGATED:
        # match not (a < b), result b <= a; match not (a <= b), result b < a. The operands of a finished
        # comparison are not simplified again: no other rule applies, and none may go deeper into them.
        x, y = a.args
        if y.op == "const":  # match not (a < k), result k-1 < a
            return intern(op, (const(y.data - 1, y.width), x), 1)
        if x.op == "const":  # match not (k < a), result a < k+1
            return intern(op, (y, const(x.data + 1, x.width)), 1)
        return intern(NEGATED[op], (y, x), 1)
    if op in ("and", "or") and len(a.args) <= 8 and all(x.op not in ("and", "or") for x in a.args):
        # match not (a and b), result not a or not b; one level only, or deep formulas would be rebuilt
        negated = [bnot(x) for x in a.args]
        return disj(negated) if op == "and" else conj(negated)
    return intern("not", (a,), 1)


def conj(terms: Iterable[Term]) -> Term:
    """The conjunction of Booleans."""
    return _junction(terms, "and", TRUE, FALSE)


def disj(terms: Iterable[Term]) -> Term:
    """The disjunction of Booleans."""
    return _junction(terms, "or", FALSE, TRUE)


def implies(a: Term, b: Term) -> Term:
    """not a or b."""
    return disj((bnot(a), b))


def _junction(terms: Iterable[Term], op: str, unit: Term, zero: Term) -> Term:
    flat: dict[Term, None] = {}
    for t in terms:
        if t.width != 1:
            raise WidthError(f"a Boolean is needed, not width {t.width}")
        if t is zero:
            return zero
        if t is unit:
            continue
        if t.op == op and len(t.args) + len(flat) <= FLATTEN_LIMIT:
            for x in t.args:
                flat[x] = None
        else:
            flat[t] = None
    if len(flat) <= 1:
        return next(iter(flat)) if flat else unit
    parts = flat
    for t in list(flat):
        # match a and not a, result false (and the dual)
        if (t.op == "not" and t.args[0] in parts) or (t.op in COMPARISONS and bnot(t) in parts):
            return zero
    fused = _resolved(parts, op) or _fuse(parts, op)
    if fused is not None:
        return _junction(fused, op, unit, zero)
    ordered = sorted(parts, key=_serial)
    while len(ordered) > FLATTEN_LIMIT:
        groups = [ordered[i : i + FLATTEN_LIMIT] for i in range(0, len(ordered), FLATTEN_LIMIT)]
        ordered = [g[0] if len(g) == 1 else intern(op, tuple(g), 1) for g in groups]
    return intern(op, tuple(ordered), 1)


def _serial(t: Term) -> int:
    return t.serial


def _resolved(parts: dict[Term, None], op: str) -> list[Term] | None:
    """Unit resolution and absorption with one argument that is a junction of the other kind."""
    dual = "or" if op == "and" else "and"
    for t in parts if len(parts) <= FUSE_LIMIT else ():
        if t.op != dual or len(t.args) > FUSE_LIMIT:
            continue
        others = [x for x in parts if x is not t]
        if any(x in parts for x in t.args):  # match a and (a or b), result a (and the dual)
            return others
        left = [x for x in t.args if x.op in ("and", "or") or bnot(x) not in parts]
        if len(left) < len(t.args):  # match a and (not a or b), result a and b (and the dual)
            return [*others, disj(left) if op == "and" else conj(left)]
    return None


def _fuse(parts: dict[Term, None], op: str) -> list[Term] | None:
    """Replace one pair (comparison, equality of its operands) by one comparison."""
    if len(parts) > FUSE_LIMIT:
        return None
    pair = _zero_or_one(parts, op)
    if pair is not None:
        return pair
    if not any(t.op not in ("ult", "slt", "ule", "sle") for t in parts):
        return None
    for t in parts:
        lt = compare.ult if t.op in ("ult", "ule") else compare.slt
        le = compare.ule if t.op in ("ult", "ule") else compare.sle
        if t.op in ("ult", "slt"):
            a, b = t.args
            if op == "or":  # match a < b or a = b, result a <= b
                equal = compare.eq(a, b)
                if equal in parts:
                    return [x for x in parts if x is not t and x is not equal] + [le(a, b)]
            elif b.op == "const":  # match a < k and a != k-1, result a < k-1
                below = const(b.data - 1, b.width)
                unequal = bnot(compare.eq(a, below))
                if unequal in parts:
                    return [x for x in parts if x is not t and x is not unequal] + [lt(a, below)]
            elif a.op == "const":  # match k < a and a != k+1, result k+1 < a
                above = const(a.data + 1, a.width)
                unequal = bnot(compare.eq(b, above))
                if unequal in parts:
                    return [x for x in parts if x is not t and x is not unequal] + [lt(above, b)]
        elif t.op in ("ule", "sle") and op == "and":  # match a <= b and a != b, result a < b
            unequal = bnot(compare.eq(t.args[0], t.args[1]))
            if unequal in parts:
                return [x for x in parts if x is not t and x is not unequal] + [lt(t.args[0], t.args[1])]
    return None


def _zero_or_one(parts: dict[Term, None], op: str) -> list[Term] | None:
    """`cmp x, 1; jbe` leaves x = 0 or x = 1."""
    for t in parts:
        equal = t.args[0] if t.op == "not" and op == "and" else t
        if equal.op != "eq" or (equal is t) != (op == "or"):
            continue
        x, zero = equal.args
        if zero.op == "const" and zero.data == 0 and zero.width > 1:
            # match x = 0 or x = 1, result x <u 2; match x != 0 and x != 1, result 1 <u x
            one = const(1, zero.width)
            other = compare.eq(x, one) if op == "or" else compare.ne(x, one)
            if other in parts:
                new = compare.ule(x, one) if op == "or" else compare.ult(one, x)
                return [y for y in parts if y is not t and y is not other] + [new]
    return None


def _runs(value: int, width: int) -> int:
    """How many runs of equal bits a constant has."""
    return ((value ^ (value >> 1)) & ((1 << (width - 1)) - 1)).bit_count() + 1


def _constant_row(value: int, width: int) -> list[Term]:
    parts: list[Term] = []
    top = width
    while top:
        bit = value >> (top - 1) & 1
        length = 1
        while length < top and value >> (top - 1 - length) & 1 == bit:
            length += 1
        parts.append(const(-bit, length))
        top -= length
    return parts


def _segments(op: str, a: Term, b: Term, width: int) -> Term | None:
    """The result as a row if in every aligned segment one side is all zeros or ones, or both are equal."""
    left, right = pieces.split(a), pieces.split(b)
    if b.op == "const":
        if _runs(b.data, width) > MASK_RUNS:
            return None
        right = _constant_row(b.data, width)
    if len(left) == 1 and len(right) == 1:
        return None
    result: list[Term] = []
    left.reverse()
    right.reverse()
    while left:
        x, y = left.pop(), right.pop()
        size = min(x.width, y.width)
        if x.width > size:
            left.append(pieces.extract(x, x.width - size - 1, 0))
            x = pieces.extract(x, x.width - 1, x.width - size)
        elif y.width > size:
            right.append(pieces.extract(y, y.width - size - 1, 0))
            y = pieces.extract(y, y.width - 1, y.width - size)
        segment = _absorb(op, x, y, size)
        if segment is None:
            return None
        result.append(segment)
    return pieces.row(result)


def _absorb(op: str, x: Term, y: Term, width: int) -> Term | None:
    if x is y:
        return const(0, width) if op == "xor" else x
    ones = (1 << width) - 1
    if x.op == "const":
        x, y = y, x
    if y.op != "const":
        return None
    k = y.data
    if x.op == "const":
        return const(x.data & k if op == "and" else x.data | k if op == "or" else x.data ^ k, width)
    if k == 0:  # match x and 0, result 0; x or 0, x xor 0, result x
        return y if op == "and" else x
    if k == ones and op != "xor":  # match x and ones, result x; x or ones, result ones
        return x if op == "and" else y
    return None


def _binary(op: str, a: Term, b: Term, width: int) -> Term:
    """Rules common to the three operators; b is the constant if one is."""
    if b.op == "const" and a.op == op and a.args[1].op == "const":
        # match (x op k) op l, result x op (k op l)
        k, mask = a.args[1].data, b.data
        folded = k & mask if op == "and" else k | mask if op == "or" else k ^ mask
        return OPERATORS[op](a.args[0], const(folded, width))
    if a.op == "zext" and b.op in ("zext", "const"):
        # match zext(x) op zext(y), result zext(x op y) at the wider of the two widths
        inner = b.args[0].width if b.op == "zext" else b.data.bit_length()
        size = max(a.args[0].width, inner)
        if size < width:
            low = OPERATORS[op](pieces.extract(a, size - 1, 0), pieces.extract(b, size - 1, 0))
            return pieces.zext(low, width)
    segmented = _segments(op, a, b, width)
    if segmented is not None:
        return segmented
    if b.op != "const" and a.serial > b.serial:
        a, b = b, a
    return intern(op, (a, b), width)


def _complementary(a: Term, b: Term) -> bool:
    """Is one the other's complement?"""
    if a.op == "lin" or b.op == "lin":
        return linear.distance(linear.complement(a), b) == 0
    return False


def band(a: Term, b: Term) -> Term:
    """Bitwise and."""
    width = same_width(a, b)
    if width == 1:
        return conj((a, b))
    if a is b:
        return a
    if a.op == "const":
        if b.op == "const":
            return const(a.data & b.data, width)
        a, b = b, a
    if b.op == "const":
        if b.data == 0:  # match a and 0, result 0
            return b
        if b.data == (1 << width) - 1:  # match a and ones, result a
            return a
    else:
        if b.op == "zext":
            a, b = b, a
        if _complementary(a, b):  # match a and ~a, result 0
            return const(0, width)
    if a.op == "zext":  # match zext(x) and y, result zext(x and y's low bits)
        inner = a.args[0]
        return pieces.zext(band(inner, pieces.extract(b, inner.width - 1, 0)), width)
    for x, y in ((a, b), (b, a)):
        bit = pieces.repeated_bit(x)
        if bit is not None:  # match sext(bit) and y, result ite(bit, y, 0)
            return choice.ite(bit, y, const(0, width))
    return _binary("and", a, b, width)


def bor(a: Term, b: Term) -> Term:
    """Bitwise or."""
    width = same_width(a, b)
    if width == 1:
        return disj((a, b))
    if a is b:
        return a
    if a.op == "const":
        if b.op == "const":
            return const(a.data | b.data, width)
        a, b = b, a
    if b.op == "const":
        if b.data == 0:  # match a or 0, result a
            return a
        if b.data == (1 << width) - 1:  # match a or ones, result ones
            return b
    elif _complementary(a, b):  # match a or ~a, result ones
        return const(-1, width)
    return _binary("or", a, b, width)


def bxor(a: Term, b: Term) -> Term:
    """Bitwise exclusive or."""
    width = same_width(a, b)
    if width == 1:  # match a xor b on Booleans, result not (a = b)
        return bnot(compare.eq(a, b))
    if a is b:  # match a xor a, result 0
        return const(0, width)
    if a.op == "const":
        if b.op == "const":
            return const(a.data ^ b.data, width)
        a, b = b, a
    if b.op == "const":
        if b.data == 0:  # match a xor 0, result a
            return a
        if b.data == (1 << width) - 1:  # match a xor ones, result ~a
            return linear.complement(a)
        if b.data == 1 << (width - 1):  # match a xor sign bit, result a + sign bit
            return linear.add(a, b)
    elif _complementary(a, b):  # match a xor ~a, result ones
        return const(-1, width)
    for x, y in ((a, b), (b, a)):
        if x.op == "xor" and y in x.args:  # match (x xor y) xor y, result x
            return x.args[1] if x.args[0] is y else x.args[0]
    return _binary("xor", a, b, width)


OPERATORS: dict[str, Callable[[Term, Term], Term]] = {"and": band, "or": bor, "xor": bxor}
