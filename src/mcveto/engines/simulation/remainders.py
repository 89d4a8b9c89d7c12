"""Remainders by constants get names: x - d * (x / d) becomes a variable less than d.

Drivers choose a device, a slot or a command by the remainder of something unknown. What compilers make of it is a
remainder again as soon as it is a term (`logic/granlund_montgomery.py`); here it gets a name, for what matters of it
is mostly that it is less than d, and a join of states keeps names. The same remainder of the same term has the same
name; otherwise the name says nothing but "less than d", which only adds states. So a name has a hidden definition,
which `Covering.covers` must respect.
"""

from __future__ import annotations

from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.logic import linear
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

_LARGEST_DIVISOR = 1 << 16


def has_remainder(term: Term) -> bool:
    """Whether a term is a remainder, a sum with one, or either with zeros above it; perhaps, if it is a sum with zeros
    above it: a remainder that was computed in half a word and shifted does not look like one."""
    inner = term.args[0] if term.op == "zext" else term
    if inner is not term and inner.op == "lin" and len(inner.args) > 1:
        return True
    atoms = inner.args if inner.op == "lin" else (inner,)
    return any(atom.op == "urem" or (atom.op == "zext" and atom.args[0].op == "urem") for atom in atoms)


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
        if term.op == "lin":
            for coefficient, atom in zip(term.data[0], term.args, strict=True):
                name = self._of(atom, bounds)
                if name is not None:
                    term = linear.combine(((1, term), (-coefficient, atom), (coefficient, name)), 0, term.width)
            return term, bounds
        if term.op == "zext" and term.args[0].op == "lin":
            return self._widened(term)
        return self._of(term, bounds) or term, bounds

    def _of(self, atom: Term, bounds: list[Term]) -> Term | None:
        """The name of a remainder, perhaps of a narrower number with zeros above it."""
        rest = atom.args[0] if atom.op == "zext" else atom
        if rest.op != "urem" or rest.args[1].op != "const" or not 0 < rest.args[1].data <= _LARGEST_DIVISOR:
            return None
        divisor: int = rest.args[1].data
        name = self.name(t.zext(rest.args[0], atom.width), divisor)
        bounds.append(t.ult(name, t.const(divisor, name.width)))
        return name

    def _widened(self, term: Term) -> tuple[Term, list[Term]]:
        """A multiple of a narrow remainder that fits, perhaps shifted to the left, with zeros above it: computed in
        half a word because the dividend is known to fit, then masked."""
        inner, shift = _unshifted(term.args[0])
        bounds: list[Term] = []
        atoms, factors, constant = linear.monomials(inner)
        if len(atoms) != 1 or constant:
            return term, bounds
        rest = atoms[0].args[0] if atoms[0].op == "zext" else atoms[0]
        if rest.op != "urem" or rest.args[1].op != "const" or factors[0] * (rest.args[1].data - 1) >> inner.width:
            return term, bounds
        name = self._of(t.zext(rest, term.width), bounds)
        return (term if name is None else t.mul(name, t.const(factors[0] << shift, term.width))), bounds

    def name(self, dividend: Term, divisor: int) -> Term:
        found = self._names.get((dividend, divisor))
        if found is None:
            found = self._names[dividend, divisor] = self._unknowns.fresh(dividend.width)
            self.definitions[found] = (dividend, divisor)
        return found


def _unshifted(term: Term) -> tuple[Term, int]:
    """(x, n) if the sum is x with n zeros behind it."""
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
