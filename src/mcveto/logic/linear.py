"""Linear normal form of sums, differences, negations and multiplications by constants.

A sum is one node `lin`: atoms sorted by serial, a coefficient each (mod 2^w, never 0), and a constant. So
a+4-a and 4 are the same term, the distance of two addresses is a subtraction, and x<<k, x*2^k and -x have
one form each. ~x is -x-1. A node holds at most MERGE_LIMIT monomials; a longer sum becomes an atom of the
next node, which keeps long chains linear in time (the constant always moves to the outermost node, so
constant distances are still seen).
"""

from __future__ import annotations

from collections.abc import Iterable

import mcveto.logic.bitwise as bitwise
import mcveto.logic.division_identity as division_identity
import mcveto.logic.granlund_montgomery as granlund_montgomery
import mcveto.logic.narrow_division as narrow_division
import mcveto.logic.pieces as pieces
from mcveto.logic.node import Term, const, intern, same_width, signed

MERGE_LIMIT = 32


def monomials(t: Term) -> tuple[tuple[Term, ...], tuple[int, ...], int]:
    """Atoms, coefficients and constant of any term."""
    if t.op == "lin":
        return t.args, t.data[0], t.data[1]
    if t.op == "const":
        return (), (), t.data
    return (t,), (1,), 0


def constant_part(t: Term) -> int:
    """The constant summand of a term."""
    if t.op == "lin":
        return int(t.data[1])
    return int(t.data) if t.op == "const" else 0


def without_constant(t: Term) -> Term:
    """The term minus its constant summand."""
    if t.op == "lin" and t.data[1]:
        return _node(t.args, t.data[0], 0, t.width)
    return const(0, t.width) if t.op == "const" else t


def _node(atoms: tuple[Term, ...], coefficients: tuple[int, ...], constant: int, width: int) -> Term:
    """A node from sorted non-zero monomials."""
    if not atoms:
        return const(constant, width)
    if len(atoms) == 1:
        coefficient = coefficients[0]
        # match 1*x + 0, result x
        if coefficient == 1 and constant == 0:
            return atoms[0]
        # match 1*(x + y) + c, result x + y + c
        if coefficient == 1 and atoms[0].op == "lin":
            return _add_constant(atoms[0], constant, width)
        # match 2^k*odd * zext(x[m:0]) where the bits above m are shifted out anyway, result 2^k*odd * x
        if not coefficient & 1:
            wider = _undo_truncation(atoms[0], coefficient, width)
            if wider is not atoms[0]:
                return combine(((coefficient, wider),), constant, width)
            # match 2^k*c * zext(x[w-1:k]) where the k low bits of x are 0, result c * x
            shifted = _undo_shift(atoms[0], coefficient, width)
            if shifted is not None:
                return combine((shifted,), constant, width)
    else:
        shorter = division_identity.shorter(atoms, coefficients, width)
        if shorter is not None:
            return combine(shorter, constant, width)
    return intern("lin", atoms, width, (coefficients, constant))


def _undo_truncation(atom: Term, coefficient: int, width: int) -> Term:
    if atom.op == "zext":
        inner = atom.args[0]
        shifted_out = (coefficient & -coefficient).bit_length() - 1
        if inner.op == "extract" and inner.data[1] == 0 and inner.width >= width - shifted_out:
            source: Term = inner.args[0]
            return source if source.width == width else atom
    return atom


def _undo_shift(atom: Term, coefficient: int, width: int) -> tuple[int, Term] | None:
    if atom.op != "zext" or atom.args[0].op != "extract":
        return None
    (high, low), source = atom.args[0].data, atom.args[0].args[0]
    if high != width - 1 or source.width != width or source.op != "lin" or coefficient % (1 << low):
        return None
    coefficients, constant = source.data
    return None if any(c % (1 << low) for c in (*coefficients, constant)) else (coefficient >> low, source)


def combine(summands: Iterable[tuple[int, Term]], constant: int, width: int) -> Term:
    """constant + the sum of coefficient * term, for terms of the given width (> 1)."""
    mask = (1 << width) - 1
    sums: dict[Term, int] = {}
    for coefficient, t in summands:
        atoms, coefficients, offset = monomials(t)
        constant += coefficient * offset
        if len(atoms) > 1 and _are_many(sums, atoms):
            base = without_constant(t)
            sums[base] = sums.get(base, 0) + coefficient
        else:
            for atom, c in zip(atoms, coefficients, strict=True):
                sums[atom] = sums.get(atom, 0) + coefficient * c
    kept = [(atom, c & mask) for atom, c in sums.items() if c & mask]
    kept.sort(key=_by_serial)
    while len(kept) > MERGE_LIMIT:
        head, kept = kept[:MERGE_LIMIT], kept[MERGE_LIMIT:]
        inner = _node(tuple(a for a, _ in head), tuple(c for _, c in head), 0, width)
        kept.append((inner, 1))
    return _node(tuple([a for a, _ in kept]), tuple([c for _, c in kept]), constant & mask, width)


def _are_many(sums: dict[Term, int], atoms: tuple[Term, ...]) -> bool:
    """Whether atoms would make a sum longer than a node; those that it has already do not."""
    return len(sums) + len(atoms) > MERGE_LIMIT and len(sums) + sum(x not in sums for x in atoms) > MERGE_LIMIT


def _by_serial(monomial: tuple[Term, int]) -> int:
    return monomial[0].serial


def _add_constant(t: Term, value: int, width: int) -> Term:
    if t.op == "lin":
        return _node(t.args, t.data[0], (t.data[1] + value) & ((1 << width) - 1), width)
    value &= (1 << width) - 1
    if value == 0:
        return t
    return intern("lin", (t,), width, ((1,), value))


def add(a: Term, b: Term) -> Term:
    """a + b mod 2^w."""
    width = same_width(a, b)
    if width == 1:  # match a + b on one bit, result a xor b
        return bitwise.bxor(a, b)
    if b.op == "const":
        return const(a.data + b.data, width) if a.op == "const" else _add_constant(a, b.data, width)
    if a.op == "const":
        return _add_constant(b, a.data, width)
    if a.op != "lin" and b.op != "lin" and a is not b:
        if granlund_montgomery.is_sign(a) or granlund_montgomery.is_sign(b):
            return combine(((1, a), (1, b)), 0, width)
        atoms = (a, b) if a.serial < b.serial else (b, a)
        return intern("lin", atoms, width, ((1, 1), 0))
    return combine(((1, a), (1, b)), 0, width)


def sub(a: Term, b: Term) -> Term:
    """a - b mod 2^w."""
    width = same_width(a, b)
    if width == 1:  # match a - b on one bit, result a xor b
        return bitwise.bxor(a, b)
    if a is b:
        return const(0, width)
    if b.op == "const":
        return const(a.data - b.data, width) if a.op == "const" else _add_constant(a, -b.data, width)
    if b.op == "mul":  # match x - x/y*y, result x rem y
        rest = narrow_division.remainder(a, b)
        if rest is not None:
            return rest
    if a.op != "lin" and b.op != "lin" and a.op != "const":
        ones = (1 << width) - 1
        if a.serial < b.serial:
            return intern("lin", (a, b), width, ((1, ones), 0))
        return intern("lin", (b, a), width, ((ones, 1), 0))
    known = distance(a, b)
    if known is not None:
        return const(known, width)
    return combine(((1, a), (-1, b)), 0, width)


def distance(a: Term, b: Term) -> int | None:
    """The constant (a - b) mod 2^w if the two differ by one, without building a term."""
    if a is b:
        return 0
    mask = (1 << a.width) - 1
    if a.op == "lin":
        if b.op == "lin":
            if a.args == b.args and a.data[0] == b.data[0]:
                return int(a.data[1] - b.data[1]) & mask
        elif len(a.args) == 1 and a.args[0] is b and a.data[0][0] == 1:
            return int(a.data[1])
        return None
    if b.op == "lin":
        if len(b.args) == 1 and b.args[0] is a and b.data[0][0] == 1:
            return -int(b.data[1]) & mask
        return None
    if a.op == "const" and b.op == "const":
        return int(a.data - b.data) & mask
    return None


def scale(a: Term, factor: int) -> Term:
    """factor * a mod 2^w for a constant factor."""
    width = a.width
    factor &= (1 << width) - 1
    if a.op == "const":
        return const(a.data * factor, width)
    if factor == 1:
        return a
    if factor == 0:
        return const(0, width)
    if width == 1:
        return a
    return combine(((factor, a),), 0, width)


def neg(a: Term) -> Term:
    """-a mod 2^w."""
    if a.width == 1:  # match -a on one bit, result a
        return a
    return scale(a, -1)


def complement(a: Term) -> Term:
    """~a for widths above 1, as -a - 1."""
    return combine(((-1, a),), -1, a.width)


def mul(a: Term, b: Term) -> Term:
    """a * b mod 2^w."""
    width = same_width(a, b)
    if width == 1:  # match a * b on one bit, result a and b
        return bitwise.band(a, b)
    if a.op == "const":
        return scale(b, a.data)
    if b.op == "const":
        return scale(a, b.data)
    # match (k*x + c) * (m*y + d), result (k*m) * (x*y) + (k*d)*x + (c*m)*y + c*d: one product as before, and what is
    # equal by the law of distribution is the same term
    if (constant_part(a) or constant_part(b)) and _is_single(a) and _is_single(b):
        (x, k, c), (y, m, d) = _single(a), _single(b)
        return combine(((k * m, mul(x, y)), (k * d, x), (c * m, y)), c * d, width)
    # match (k*x) * (l*y), result (k*l) * (x*y)
    factor = 1
    if a.op == "lin" and len(a.args) == 1 and a.data[1] == 0:
        factor, a = a.data[0][0], a.args[0]
    if b.op == "lin" and len(b.args) == 1 and b.data[1] == 0:
        factor, b = factor * b.data[0][0], b.args[0]
    if a.serial > b.serial:
        a, b = b, a
    return scale(intern("mul", (a, b), width), factor)


def _is_single(a: Term) -> bool:
    return a.op != "lin" or len(a.args) == 1


def _single(a: Term) -> tuple[Term, int, int]:
    """The atom, factor and constant of a term k*x + c."""
    return (a.args[0], a.data[0][0], a.data[1]) if a.op == "lin" else (a, 1, 0)


def udiv(a: Term, b: Term) -> Term:
    """Unsigned division; x / 0 is all ones (SMT-LIB)."""
    width = same_width(a, b)
    if width == 1:  # match a udiv b on one bit, result a or not b
        return bitwise.bor(a, bitwise.bnot(b))
    if b.op == "const":
        divisor = b.data
        if divisor == 0:  # match a udiv 0, result all ones
            return const(-1, width)
        if a.op == "const":
            return const(a.data // divisor, width)
        if divisor & (divisor - 1) == 0:  # match a udiv 2^k, result a >> k
            return pieces.shift_right(a, divisor.bit_length() - 1)
    narrow = narrow_division.unsigned("udiv", a, b)
    return intern("udiv", (a, b), width) if narrow is None else narrow


def urem(a: Term, b: Term) -> Term:
    """Unsigned remainder; x rem 0 is x (SMT-LIB)."""
    width = same_width(a, b)
    if width == 1:  # match a urem b on one bit, result a and not b
        return bitwise.band(a, bitwise.bnot(b))
    if b.op == "const":
        divisor = b.data
        if divisor == 0:  # match a urem 0, result a
            return a
        if a.op == "const":
            return const(a.data % divisor, width)
        if divisor == 1:  # match a urem 1, result 0
            return const(0, width)
        if divisor & (divisor - 1) == 0:  # match a urem 2^k, result the low k bits
            return pieces.zext(pieces.extract(a, divisor.bit_length() - 2, 0), width)
    narrow = narrow_division.unsigned("urem", a, b)
    return intern("urem", (a, b), width) if narrow is None else narrow


def divide_signed(x: int, y: int, width: int) -> int:
    """SMT-LIB bvsdiv on integers: truncating, x / 0 is -1 or 1."""
    x, y = signed(x, width), signed(y, width)
    if y == 0:
        return 1 if x < 0 else -1
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def remainder_signed(x: int, y: int, width: int) -> int:
    """SMT-LIB bvsrem on integers: the sign follows the dividend, x rem 0 is x."""
    x, y = signed(x, width), signed(y, width)
    if y == 0:
        return x
    remainder = abs(x) % abs(y)
    return -remainder if x < 0 else remainder


def sdiv(a: Term, b: Term) -> Term:
    """Signed division, truncating (SMT-LIB)."""
    width = same_width(a, b)
    if width == 1:  # match a sdiv b on one bit (values 0, -1), result a or not b
        return bitwise.bor(a, bitwise.bnot(b))
    if b.op == "const":
        if a.op == "const":
            return const(divide_signed(a.data, b.data, width), width)
        if b.data == 1:  # match a sdiv 1, result a
            return a
    narrow = narrow_division.signed_operands("sdiv", a, b)
    return intern("sdiv", (a, b), width) if narrow is None else narrow


def srem(a: Term, b: Term) -> Term:
    """Signed remainder with the sign of the dividend (SMT-LIB)."""
    width = same_width(a, b)
    if width == 1:  # match a srem b on one bit, result a and not b
        return bitwise.band(a, bitwise.bnot(b))
    if b.op == "const":
        if a.op == "const":
            return const(remainder_signed(a.data, b.data, width), width)
        if b.data == 0:  # match a srem 0, result a
            return a
        if b.data == 1:  # match a srem 1, result 0
            return const(0, width)
    narrow = narrow_division.signed_operands("srem", a, b)
    return intern("srem", (a, b), width) if narrow is None else narrow
