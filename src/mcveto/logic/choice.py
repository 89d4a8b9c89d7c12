"""if-then-else, on bit-vectors, Booleans and memories."""

from __future__ import annotations

import mcveto.logic.bitwise as bitwise
import mcveto.logic.compare as compare
import mcveto.logic.pieces as pieces
from mcveto.logic.node import FALSE, TRUE, Term, WidthError, intern


def ite(c: Term, a: Term, b: Term) -> Term:
    """a where c holds, else b."""
    width = a.width
    if c.width != 1 or width != b.width or a.address_width != b.address_width:
        raise WidthError(f"ite of widths {c.width}, {width}, {b.width}")
    if c is TRUE or a is b:  # match ite(true, a, b) or ite(c, a, a), result a
        return a
    if c is FALSE:  # match ite(false, a, b), result b
        return b
    if _is_negative(c):  # match ite(not c, a, b), result ite(c, b, a)
        c, a, b = bitwise.bnot(c), b, a
    if a.op == "ite" and a.args[0] is c:  # match ite(c, ite(c, x, y), b), result ite(c, x, b)
        a = a.args[1]
    if b.op == "ite" and b.args[0] is c:  # match ite(c, a, ite(c, x, y)), result ite(c, a, y)
        b = b.args[2]
    if a is b:
        return a
    if width == 1:
        return _boolean(c, a, b)
    if a.op == "const" and b.op == "const":
        k, condition = (b.data, bitwise.bnot(c)) if a.data == 0 else (a.data, c)
        if a.data == 0 or b.data == 0:
            if k == 1:  # match ite(c, 1, 0), result zext(c); ite(c, 0, 1), result zext(not c)
                return pieces.zext(condition, width)
            if k == (1 << width) - 1:  # match ite(c, -1, 0), result sext(c); ite(c, 0, -1), result sext(not c)
                return pieces.sext(condition, width)
    elif "zext" in (a.op, b.op) and a.op in ("zext", "const") and b.op in ("zext", "const"):
        # match ite(c, zext(x), zext(y)), result zext(ite(c, x, y)) at the wider of the two widths
        size = max(_significant(a), _significant(b))
        if size < width:
            return pieces.zext(ite(c, pieces.extract(a, size - 1, 0), pieces.extract(b, size - 1, 0)), width)
    return intern("ite", (c, a, b), width, None, a.address_width)


def _is_negative(c: Term) -> bool:
    """Of a condition and its negation one is the positive form: < rather than <=, x < k rather than k < x."""
    return c.op in ("not", "ule", "sle") or (c.op in ("ult", "slt") and c.args[0].op == "const")


def _significant(t: Term) -> int:
    return t.args[0].width if t.op == "zext" else max(1, int(t.data).bit_length())


def _boolean(c: Term, a: Term, b: Term) -> Term:
    if c.op == "and":  # match ite(a and c, a, b), result ite(a and c, true, b); ite(not a and c, a, b) likewise
        a = _told(a, c, TRUE)
    elif c.op == "or":  # match ite(b or c, a, b), result ite(b or c, a, false); ite(not b or c, a, b) likewise
        b = _told(b, c, FALSE)
    if a is TRUE or a is c:  # match ite(c, true, b), result c or b
        return bitwise.disj((c, b))
    if b is FALSE or b is c:  # match ite(c, a, false), result c and a
        return bitwise.conj((c, a))
    if a is FALSE:  # match ite(c, false, b), result not c and b
        return bitwise.conj((bitwise.bnot(c), b))
    if b is TRUE:  # match ite(c, a, true), result not c or a
        return bitwise.disj((bitwise.bnot(c), a))
    if (a.op == "not" and a.args[0] is b) or (b.op == "not" and b.args[0] is a):
        return compare.eq(c, a)  # match ite(c, a, not a), result c = a
    return intern("ite", (c, a, b), 1)


def _told(t: Term, c: Term, value: Term) -> Term:
    """A Boolean where each of the arguments of c has the same value, as far as they tell."""
    if t in c.args:
        return value
    return bitwise.bnot(value) if t.op not in ("and", "or") and bitwise.bnot(t) in c.args else t


def constant_branches(t: Term) -> tuple[Term, int, int] | None:
    """(c, k, l) if t is ite(c, k, l) with constant branches."""
    if t.op == "ite" and t.args[1].op == "const" and t.args[2].op == "const":
        return t.args[0], t.args[1].data, t.args[2].data
    return None
