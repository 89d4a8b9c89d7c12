"""Remainders by constants get names: x - d * (x / d) becomes a variable less than d.

Drivers choose a device, a slot or a command by the remainder of something unknown. Compilers divide by multiplying
with a rounded inverse (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994, §4);
what they make of a remainder has no bounds that could be read off it, and is hard for solvers. The same remainder of
the same term has the same name; otherwise the name says nothing but "less than d", which only adds states. So a name
has a hidden definition, which `Covering.covers` must respect.
"""

from __future__ import annotations

from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.logic import linear
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

_LARGEST_DIVISOR = 1 << 16


class Remainders:
    def __init__(self, unknowns: Unknowns) -> None:
        self._unknowns = unknowns
        self._names: dict[tuple[Term, int], Term] = {}
        self.definitions: dict[Term, tuple[Term, int]] = {}
        """Of every name: whose remainder it is, and by what."""

    def known(self, dividend: Term, divisor: int) -> Term | None:
        return self._names.get((dividend, divisor))

    def named(self, term: Term) -> tuple[Term, list[Term]]:
        """The term with names for its remainders, and the conditions that bound these."""
        bounds: list[Term] = []
        if term.op == "zext":
            return self._widened(term)
        if term.op != "lin":
            return term, bounds
        for coefficient, atom in zip(term.data[0], term.args, strict=True):
            for dividend, divisor in _quotients(atom):
                factor = -t.signed(coefficient, term.width)
                if divisor > _LARGEST_DIVISOR or factor % divisor:
                    continue
                factor //= divisor
                rest = linear.combine(((1, term), (-factor, dividend), (-coefficient, atom)), 0, term.width)
                if _atoms(rest) > _atoms(term) - 1 - _atoms(dividend):
                    continue
                name = self.name(dividend, divisor)
                bounds.append(t.ult(name, t.const(divisor, name.width)))
                term = linear.combine(((1, rest), (factor, name)), 0, term.width)
                break
            if term.op != "lin":
                break
        return term, bounds

    def _widened(self, term: Term) -> tuple[Term, list[Term]]:
        """A narrow remainder, perhaps shifted to the left, with zeros above it: computed in half a word because the
        dividend is known to fit, then masked."""
        inner, shift = _unshifted(term.args[0])
        if inner.op != "lin":
            return term, []
        for coefficient, atom in zip(inner.data[0], inner.args, strict=True):
            for dividend, divisor in _quotients(atom):
                factor = -t.signed(coefficient, inner.width)
                if divisor > _LARGEST_DIVISOR or factor % divisor:
                    continue
                factor //= divisor
                if factor <= 0 or factor * (divisor - 1) >= 1 << inner.width:
                    continue
                rest = linear.combine(((1, inner), (-factor, dividend), (-coefficient, atom)), 0, inner.width)
                if rest.op == "const" and not rest.data:
                    name = self.name(t.zext(dividend, term.width), divisor)
                    bound = t.ult(name, t.const(divisor, name.width))
                    return t.mul(name, t.const(factor << shift, term.width)), [bound]
        return term, []

    def name(self, dividend: Term, divisor: int) -> Term:
        found = self._names.get((dividend, divisor))
        if found is None:
            found = self._names[dividend, divisor] = self._unknowns.fresh(dividend.width)
            self.definitions[found] = (dividend, divisor)
        return found


def _unshifted(term: Term) -> tuple[Term, int]:
    """(x, n) if the term is x with n zeros behind it."""
    if term.op != "lin":
        return term, 0
    coefficients, constant = term.data
    every = constant
    for coefficient in coefficients:
        every |= coefficient
    shift = (every & -every).bit_length() - 1
    if not shift:
        return term, 0
    width = term.width - shift
    parts = [(c >> shift, t.extract(atom, width - 1, 0)) for c, atom in zip(coefficients, term.args, strict=True)]
    return linear.combine(tuple(parts), constant >> shift, width), shift


def _atoms(term: Term) -> int:
    return len(term.args) if term.op == "lin" else int(term.op != "const")


def _quotients(term: Term) -> list[tuple[Term, int]]:
    """Dividends and divisors, if the term is a quotient by a constant."""
    if term.op == "udiv" and term.args[1].op == "const" and term.args[1].data:
        return [(term.args[0], term.args[1].data)]
    part = term.args[0] if term.op == "zext" else term
    if part.op != "extract":
        return []
    (high, low), inner = part.data, part.args[0]
    if high != inner.width - 1:
        return []
    found = _scaled(inner)
    if found is None and inner.width == term.width:
        # ((x - h) / 2 + h) >> low, with h the upper half of x times a factor: a factor of one bit more.
        found = _averaged(inner)
        low += inner.width + 1
    if found is None:
        return []
    factor, dividend = found
    divisor = -(-(1 << low) // factor)
    excess = factor * divisor - (1 << low)
    if divisor < 2 or excess * ((1 << dividend.width) - 1) >= 1 << low or dividend.width > term.width:
        return []
    ways = [(t.zext(dividend, term.width), divisor)]
    if dividend.op == "extract" and dividend.data[0] == dividend.args[0].width - 1 == term.width - 1:
        # Even divisors: the dividend was halved first.
        ways.append((dividend.args[0], divisor << dividend.data[1]))
    return ways


def _scaled(term: Term) -> tuple[int, Term] | None:
    """(m, x) if the term is m * x, computed in so many bits that nothing is lost."""
    if term.op != "lin" or len(term.args) != 1 or term.data[1] or term.args[0].op != "zext":
        return None
    factor, x = term.data[0][0], term.args[0].args[0]
    return (factor, x) if factor << x.width <= 1 << term.width else None


def _averaged(term: Term) -> tuple[int, Term] | None:
    """(2^n + m, x) if the term is h + (x - h) / 2, h being the upper n bits of m * x."""
    if term.op != "lin" or len(term.args) != 2 or term.data != ((1, 1), 0):
        return None
    for upper, half in (term.args, term.args[::-1]):
        if upper.op != "extract" or half.op != "zext" or half.args[0].op != "extract":
            continue
        found = _scaled(upper.args[0])
        if found is None:
            continue
        factor, x = found
        if upper.data != (2 * x.width - 1, x.width) or upper.args[0].width != 2 * x.width:
            continue
        if half.args[0].data == (x.width - 1, 1) and half.args[0].args[0] is t.sub(x, upper):
            return (1 << x.width) + factor, x
    return None
