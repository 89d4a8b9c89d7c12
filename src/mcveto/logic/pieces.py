"""Extraction, concatenation, extension and shifts by constants: terms as rows of pieces.

Machine code cuts words into bytes and flags and glues them together again; the point of these rules is that
gluing undoes cutting. Two of them carry the weight:
- an extraction is pushed inwards only where that cannot hide where it came from: low bits of sums and
  bitwise operators, single bits (PowerPC packs compare results into 4-bit fields), byte-aligned parts of
  loads, and pieces that are constant anyway;
- `merge` joins two neighbours whenever re-cutting their common source gives exactly these two, however the
  extraction was simplified meanwhile.
A row never ends in zeros: a shifted value is 2^k * x, see `linear`.
"""

from __future__ import annotations

from collections.abc import Sequence

import mcveto.logic.bitwise as bitwise
import mcveto.logic.choice as choice
import mcveto.logic.compare as compare
import mcveto.logic.division_identity as division_identity
import mcveto.logic.granlund_montgomery as granlund_montgomery
import mcveto.logic.linear as linear
import mcveto.logic.memory as memory
import mcveto.logic.narrow_division as narrow_division
from mcveto.logic.node import Term, WidthError, const, intern, same_width, signed

FUEL = 4  # how many operators deep an extraction is pushed; bounds both time and recursion
PUSH_MONOMIALS = 8
NESTING = 12  # rules that cut while cutting get no more fuel beyond this
_nesting = 0


def power_of_two_multiple(t: Term) -> tuple[Term, int] | None:
    """(x, k) if t is 2^k * x with k > 0."""
    if t.op == "lin" and len(t.args) == 1 and t.data[1] == 0:
        coefficient = t.data[0][0]
        if coefficient & (coefficient - 1) == 0:
            return t.args[0], coefficient.bit_length() - 1
    return None


def repeated_bit(t: Term) -> Term | None:
    """The Boolean b if t is b sign-extended, i.e. -1 * zext(b)."""
    if t.op == "lin" and len(t.args) == 1 and t.data[1] == 0 and t.data[0][0] == (1 << t.width) - 1:
        atom = t.args[0]
        if atom.op == "zext" and atom.args[0].width == 1:
            return atom.args[0]
    return None


def extract(a: Term, hi: int, lo: int) -> Term:
    """Bits hi..lo of a."""
    if not 0 <= lo <= hi < a.width:
        raise WidthError(f"bits {hi}..{lo} of a term of width {a.width}")
    global _nesting
    _nesting += 1
    try:
        return _extract(a, hi, lo, FUEL if _nesting <= NESTING else 0)
    finally:
        _nesting -= 1


def _extract(a: Term, hi: int, lo: int, fuel: int) -> Term:
    width = hi - lo + 1
    if width == a.width:  # match a[w-1:0], result a
        return a
    op = a.op
    if op == "var":
        return _cut(a, hi, lo)
    if op == "const":
        return const(a.data >> lo, width)
    if op == "extract":  # match a[h:l][hi:lo], result a[hi+l:lo+l]
        return _extract(a.args[0], hi + a.data[1], lo + a.data[1], fuel)
    if op == "zext":
        inner = a.args[0]
        if hi < inner.width:  # match zext(x)[hi:lo] inside x, result x[hi:lo]
            return _extract(inner, hi, lo, fuel)
        if lo >= inner.width:  # match zext(x)[hi:lo] above x, result 0
            return const(0, width)
        return zext(_extract(inner, inner.width - 1, lo, fuel), width)
    if op == "sext":
        inner = a.args[0]
        if hi < inner.width:  # match sext(x)[hi:lo] inside x, result x[hi:lo]
            return _extract(inner, hi, lo, fuel)
        if lo == 0:  # match sext(x)[hi:0], result a narrower sext(x)
            return sext(inner, width)
        if width == 1:  # match one bit of sext(x) above x, result the sign of x
            return _extract(inner, inner.width - 1, inner.width - 1, fuel)
    elif op == "concat":
        return _extract_row(a, hi, lo, fuel)
    elif op == "lin":
        found = _extract_linear(a, hi, lo, fuel)
        if found is None and lo:
            found = granlund_montgomery.quotient(a, hi, lo)
        if found is not None:
            return found
    elif op == "mul":
        x, y = a.args
        extensions = ("zext", "sext", "concat")
        if lo == 0 and fuel and x.op in extensions and y.op in extensions:
            # match (ext(x) * ext(y))[hi:0], result ext(x)[hi:0] * ext(y)[hi:0]
            return linear.mul(_extract(x, hi, 0, fuel - 1), _extract(y, hi, 0, fuel - 1))
    elif op in ("udiv", "urem", "sdiv", "srem"):
        most = division_identity.largest(a)
        if most is not None and not most >> hi:  # match (x rem c)[hi:lo] above the bits of c, result with zeros there
            bits = most.bit_length()
            return zext(_extract(a, bits - 1, lo, fuel), width) if lo < bits else const(0, width)
        if lo == 0 and fuel:
            found = narrow_division.low_bits(a, hi)
            if found is not None:
                return found
    elif op in ("and", "or", "xor"):
        found = _extract_bitwise(a, hi, lo, fuel)
        if found is not None:
            return found
    elif op == "load":
        if lo % 8 == 0 and width % 8 == 0:  # match load(m, p)[8j+7:8i], result a narrower load
            return memory.narrow_load(a, lo // 8, width // 8)
    elif op == "lzcount":
        inner = a.args[0]
        if 1 << lo > inner.width:  # match lzcount(x)[hi:lo] above the width of x, result 0
            return const(0, width)
        if 1 << lo == inner.width:  # match lzcount(x)[hi:k] where x has 2^k bits, result zext(x = 0)
            return zext(compare.eq(inner, const(0, inner.width)), width)
    elif op == "ite":
        c, x, y = a.args
        if x.op == "const" and y.op == "const":  # match ite(c, k, l)[hi:lo], result ite(c, k[hi:lo], l[hi:lo])
            return choice.ite(c, const(x.data >> lo, width), const(y.data >> lo, width))
        if width == 1 and fuel and (_known(x, hi, lo) is not None or _known(y, hi, lo) is not None):
            # match one bit of ite(c, x, y) with a known bit in a branch, result ite(c, x[i], y[i])
            return choice.ite(c, _extract(x, hi, lo, fuel - 1), _extract(y, hi, lo, fuel - 1))
        if width == 1 and fuel and _has_bit(x, hi, fuel - 1) and _has_bit(y, hi, fuel - 1):
            # match one bit of ite(c, x, y) that is a piece of both branches, result ite(c, x[i], y[i])
            return choice.ite(c, _extract(x, hi, lo, fuel - 1), _extract(y, hi, lo, fuel - 1))
    return _cut(a, hi, lo)


def _has_bit(a: Term, index: int, fuel: int) -> bool:
    """Whether one bit of a term is a term of its own in it: a flag in a row of flags."""
    if a.width == 1 or a.op == "const":
        return True
    if a.op == "zext":
        return index >= a.args[0].width or _has_bit(a.args[0], index, fuel)
    if a.op == "concat":
        top = a.width
        for piece in a.args:
            top -= piece.width
            if index >= top:
                return _has_bit(piece, index - top, fuel)
    return a.op == "ite" and fuel > 0 and all(_has_bit(x, index, fuel - 1) for x in a.args[1:])


def _cut(a: Term, hi: int, lo: int) -> Term:
    if lo == hi == a.width - 1:  # match the top bit of a, result a <s 0
        return intern("slt", (a, const(0, a.width)), 1)
    return intern("extract", (a,), hi - lo + 1, (hi, lo))


def _extract_row(a: Term, hi: int, lo: int, fuel: int) -> Term:
    # match concat(..)[hi:lo], result the concatenation of the parts of the pieces it covers
    parts: list[Term] = []
    top = a.width
    for piece in a.args:
        bottom = top - piece.width
        if bottom <= hi and top > lo:
            parts.append(_extract(piece, min(hi, top - 1) - bottom, max(lo, bottom) - bottom, fuel))
        top = bottom
    return parts[0] if len(parts) == 1 else row(parts)


def _extract_linear(a: Term, hi: int, lo: int, fuel: int) -> Term | None:
    width = hi - lo + 1
    shifted = power_of_two_multiple(a)
    if shifted is not None:
        x, k = shifted
        if hi < k:  # match (2^k * x)[hi:lo] below k, result 0
            return const(0, width)
        if lo >= k:  # match (2^k * x)[hi:lo] above k, result x[hi-k:lo-k]
            return _extract(x, hi - k, lo - k, fuel)
        return row([_extract(x, hi - k, 0, fuel), const(0, k - lo)])
    bit = repeated_bit(a)
    if bit is not None:  # match sext(b)[hi:lo], result sext(b)
        return sext(bit, width)
    coefficients, constant = a.data
    if not any(c & ((2 << hi) - 1) for c in coefficients):  # match (2^k*x + 2^k*y + c)[hi:lo] below k, result c[hi:lo]
        return const(constant >> lo, width)
    if not fuel or len(a.args) > PUSH_MONOMIALS or any(x.op == "lin" for x in a.args):
        return None
    mask = (1 << a.width) - 1
    if width == 1 and coefficients == (mask,) and constant == mask:  # match (~x)[i], result not x[i]
        return bitwise.bnot(_extract(a.args[0], hi, lo, fuel - 1))
    if lo and len(a.args) == 1 and a.args[0].op == "zext" and not coefficients[0] & coefficients[0] - 1:
        # match (2^k*zext(x) + c)[hi:lo] above k, result (zext(x) + (c >> k))[hi-k:lo-k]
        zeros = min(coefficients[0].bit_length() - 1, lo)
        rest = a.width - zeros
        above = _extract(a.args[0], rest - 1, 0, fuel - 1)
        if rest == 1:  # match (2^(w-1)*zext(x) + c)[w-1], result x[0] ^ (c >> (w-1))
            return bitwise.bxor(above, const(constant >> zeros & 1, 1))
        if zeros:
            inner = linear.combine(((coefficients[0] >> zeros, above),), constant >> zeros, rest)
            return _extract(inner, hi - zeros, lo - zeros, fuel - 1)
    if lo:
        return None
    # match (k*x + l*y + c)[hi:0], result k*x[hi:0] + l*y[hi:0] + c
    low = [(c, _extract(x, hi, 0, fuel - 1)) for c, x in zip(coefficients, a.args, strict=True)]
    if width > 1:
        return linear.combine(low, constant, width)
    result = const(constant, 1)
    for c, x in low:
        if c & 1:
            result = bitwise.bxor(result, x)
    return result


def _extract_bitwise(a: Term, hi: int, lo: int, fuel: int) -> Term | None:
    if not fuel:
        return None
    x, y = a.args
    if lo and hi > lo:
        # match (x op y)[hi:lo] where one side is all zeros or ones there, result that or the other side
        for one, other in ((x, y), (y, x)):
            known = _known(one, hi, lo)
            if known == 0:
                return const(0, hi - lo + 1) if a.op == "and" else _extract(other, hi, lo, fuel - 1)
            if known == (1 << (hi - lo + 1)) - 1 and a.op != "xor":
                return const(-1, hi - lo + 1) if a.op == "or" else _extract(other, hi, lo, fuel - 1)
        return None
    # match (x op y)[hi:0] or one bit of x op y, result the operator on the parts
    operator = bitwise.OPERATORS[a.op]
    return operator(_extract(x, hi, lo, fuel - 1), _extract(y, hi, lo, fuel - 1))


def _known(t: Term, hi: int, lo: int) -> int | None:
    """The value of bits hi..lo if it is plain to see that they are constant."""
    mask = (1 << (hi - lo + 1)) - 1
    if t.op == "const":
        return int(t.data >> lo) & mask
    if t.op == "zext":
        inner = t.args[0]
        if lo >= inner.width:
            return 0
        return _known(inner, hi, lo) if hi < inner.width else None
    if t.op == "concat":
        top = t.width
        for piece in t.args:
            bottom = top - piece.width
            if bottom <= lo and hi < top:
                return int(piece.data >> (lo - bottom)) & mask if piece.op == "const" else None
            top = bottom
        return None
    shifted = power_of_two_multiple(t)
    if shifted is not None and hi < shifted[1]:
        return 0
    return None


def split(t: Term) -> list[Term]:
    """The pieces of t, most significant first; [t] if it is not a row."""
    if t.op == "concat":
        return list(t.args)
    if t.op == "zext":
        inner = t.args[0]
        return [const(0, t.width - inner.width), *split(inner)]
    shifted = power_of_two_multiple(t)
    if shifted is not None:
        x, k = shifted
        return [*split(_extract(x, t.width - 1 - k, 0, FUEL)), const(0, k)]
    return [t]


def concat(hi: Term, lo: Term) -> Term:
    """hi and lo side by side, hi in the more significant bits."""
    if hi.width == 0 or lo.width == 0:
        raise WidthError("a memory cannot be concatenated")
    if hi.op == "const":
        if lo.op == "const":
            return const(hi.data << lo.width | lo.data, hi.width + lo.width)
        if hi.data == 0:
            return zext(lo, hi.width + lo.width)
    return row([hi, lo])


def row(parts: Sequence[Term]) -> Term:
    """The concatenation of terms given most significant first."""
    joined: list[Term] = []
    width = 0
    for part in parts:
        width += part.width
        for piece in split(part):
            merged: Term | None = piece
            while joined and merged is not None:
                piece = merged
                merged = merge(joined[-1], piece)
                if merged is not None:
                    joined.pop()
            joined.append(piece if merged is None else merged)
    if len(joined) == 1:
        return joined[0]
    last = joined[-1]
    if last.op == "const" and last.data == 0:  # match concat(x, 0_k), result 2^k * zext(x)
        return linear.scale(zext(row(joined[:-1]), width), 1 << last.width)
    first = joined[0]
    if first.op == "const" and not first.data >> (first.width - 1):
        # match concat(0_k, x), result zext(x)
        significant = first.data.bit_length()
        rest = joined[1:] if significant == 0 else [const(first.data, significant), *joined[1:]]
        return zext(rest[0] if len(rest) == 1 else intern("concat", tuple(rest), sum(p.width for p in rest)), width)
    return intern("concat", tuple(joined), width)


def _source(t: Term) -> tuple[Term, int, int] | None:
    """Where a piece was cut from: term, hi, lo."""
    if t.op == "extract":
        return t.args[0], t.data[0], t.data[1]
    if t.op == "slt" and t.args[1].op == "const" and t.args[1].data == 0:
        top = t.args[0].width - 1
        return t.args[0], top, top
    return None


def merge(left: Term, right: Term) -> Term | None:
    """One term for two neighbouring pieces, or None."""
    if left.op == "const" and right.op == "const":
        return const(left.data << right.width | right.data, left.width + right.width)
    from_left, from_right = _source(left), _source(right)
    if from_left is not None:
        # match x[h:l] ++ r where r is x[l-1:l-n] (possibly simplified), result x[h:l-n]
        x, hi, lo = from_left
        if from_right is not None and from_right[0] is x:
            return extract(x, hi, from_right[2]) if lo == from_right[1] + 1 else None
        if right.width <= lo and extract(x, lo - 1, lo - right.width) is right:
            return extract(x, hi, lo - right.width)
    if from_right is not None:
        # match l ++ x[h:lo] where l is x[h+n:h+1] (possibly simplified), result x[h+n:lo]
        x, hi, lo = from_right
        if hi + left.width < x.width:
            if extract(x, hi + left.width, hi + 1) is left:
                return extract(x, hi + left.width, lo)
            # match l ++ (x udiv c)[h:lo] where l is (x udiv 2^(h+1)*c)[n-1:0], result (x udiv c)[h+n:lo]
            if x.op == "udiv" and extract(shift_right(x, hi + 1), left.width - 1, 0) is left:
                return extract(x, hi + left.width, lo)
    if left.op == "load" and right.op == "load":
        return memory.join_loads(left, right)
    bit = repeated_bit(left) if left.width > 1 else left
    if bit is not None and bit.op != "const" and bit is (repeated_bit(right) if right.width > 1 else right):
        # match sext(b) ++ sext(b), result sext(b)
        return sext(bit, left.width + right.width)
    return None


def zext(a: Term, width: int) -> Term:
    """a with zeros in front, up to the given width."""
    if width <= a.width:
        if width == a.width and width:
            return a
        raise WidthError(f"zext of width {a.width} to {width}")
    op = a.op
    if op == "const":
        return const(a.data, width)
    if op == "zext":  # match zext(zext(x)), result zext(x)
        return zext(a.args[0], width)
    if op == "lin":
        shifted = power_of_two_multiple(a)
        if shifted is not None:  # match zext(2^k * x), result 2^k * zext(x[..:0])
            return row([const(0, width - a.width), a])
    elif op == "ite" and a.args[1].op == "const" and a.args[2].op == "const":
        return choice.ite(a.args[0], const(a.args[1].data, width), const(a.args[2].data, width))
    elif op == "extract":
        whole = _whole_quotient(a)
        if whole is not None and whole.width <= width:
            return zext(whole, width)
    elif op == "memory" or op == "store" or a.width == 0:
        raise WidthError("a memory cannot be extended")
    return intern("zext", (a,), width)


def _whole_quotient(a: Term) -> Term | None:
    """match (x op c)[hi:lo] with zeros above hi, for op a quotient or with lo = 0 a remainder, result (x op c) >> lo"""
    (hi, lo), source = a.data, a.args[0]
    most = division_identity.largest(source)
    if most is None or most >> hi + 1 or (lo and source.op == "urem"):
        return None
    return shift_right(source, lo)


def sext(a: Term, width: int) -> Term:
    """a with copies of its sign in front, up to the given width."""
    if width <= a.width:
        if width == a.width and width:
            return a
        raise WidthError(f"sext of width {a.width} to {width}")
    if a.width == 0:
        raise WidthError("a memory cannot be extended")
    op = a.op
    if op == "const":
        return const(signed(a.data, a.width), width)
    if a.width == 1:  # match sext(b), result -zext(b)
        return linear.neg(zext(a, width))
    if op == "zext":  # match sext(zext(x)), result zext(x)
        return zext(a.args[0], width)
    if op == "sext":  # match sext(sext(x)), result sext(x)
        a = a.args[0]
    elif op == "lin":
        bit = repeated_bit(a)
        if bit is not None:
            return sext(bit, width)
    elif op == "concat":
        first = a.args[0]
        if first.op == "const" and not first.data >> (first.width - 1):
            return zext(a, width)
    elif op == "ite" and a.args[1].op == "const" and a.args[2].op == "const":
        return choice.ite(a.args[0], sext(a.args[1], width), sext(a.args[2], width))
    return intern("sext", (a,), width)


def shift_right(a: Term, amount: int) -> Term:
    """a >> amount for a constant amount below the width, zeros coming in."""
    if amount == 0:
        return a
    inner = a.args[0] if a.op == "zext" else a
    if inner.op == "udiv" and inner.args[1].op == "const" and inner.args[1].data:
        # match (x udiv c) >> k, result x udiv 2^k*c
        x, divisor = inner.args[0], inner.args[1].data << amount
        return const(0, a.width) if divisor >> x.width else zext(linear.udiv(x, const(divisor, x.width)), a.width)
    return zext(_extract(a, a.width - 1, amount, FUEL), a.width)


def shl(a: Term, b: Term) -> Term:
    """a << b; 0 once b reaches the width."""
    width = same_width(a, b)
    if width == 1:  # match a << b on one bit, result a and not b
        return bitwise.band(a, bitwise.bnot(b))
    if b.op == "const":
        return const(0, width) if b.data >= width else linear.scale(a, 1 << b.data)
    if a.op == "const" and a.data == 0:  # match 0 << b, result 0
        return a
    return intern("shl", (a, b), width)


def lshr(a: Term, b: Term) -> Term:
    """a >> b with zeros coming in; 0 once b reaches the width."""
    width = same_width(a, b)
    if width == 1:  # match a >> b on one bit, result a and not b
        return bitwise.band(a, bitwise.bnot(b))
    if b.op == "const":
        return const(0, width) if b.data >= width else shift_right(a, b.data)
    if a.op == "const" and a.data == 0:  # match 0 >> b, result 0
        return a
    return intern("lshr", (a, b), width)


def ashr(a: Term, b: Term) -> Term:
    """a >> b with the sign coming in; all sign once b reaches the width."""
    width = same_width(a, b)
    if width == 1:  # match a >>s b on one bit, result a
        return a
    if b.op == "const":  # match a >>s k, result sext(a[w-1:k])
        return sext(_extract(a, width - 1, min(b.data, width - 1), FUEL), width)
    if a.op == "const" and a.data in (0, (1 << width) - 1):  # match 0 or -1 >>s b, result the same
        return a
    return intern("ashr", (a, b), width)


def popcount(a: Term, width: int) -> Term:
    """The number of ones in a, mod 2^width."""
    if a.width < 1 or width < 1:
        raise WidthError("popcount needs positive widths")
    if a.op == "const":
        return const(a.data.bit_count(), width)
    if a.op == "zext":  # match popcount(zext(x)), result popcount(x)
        return popcount(a.args[0], width)
    if a.width == 1:  # match popcount(b), result zext(b)
        return zext(a, width)
    return intern("popcount", (a,), width)


def lzcount(a: Term, width: int) -> Term:
    """The number of zeros in front of the first one of a (its width if it is 0), mod 2^width."""
    if a.width < 1 or width < 1:
        raise WidthError("lzcount needs positive widths")
    if a.op == "const":
        return const(a.width - a.data.bit_length(), width)
    if a.width == 1:  # match lzcount(b), result zext(not b)
        return zext(bitwise.bnot(a), width)
    return intern("lzcount", (a,), width)
