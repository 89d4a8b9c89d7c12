"""Craig interpolants of bit-vector conditions that contradict each other, from Bitwuzla.

McMillan's (CAV 2003) are computed on the bits and lifted to the words as far as that is easy. They are only proposals:
nothing depends on them being right. Bitwuzla's are experimental where arrays occur, so that conditions that speak of a
memory are refused, and Z3 has none for bit-vectors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from mcveto.logic import terms as t
from mcveto.logic.smtlib_parser import parse
from mcveto.logic.terms import Term

LONGEST = 20_000
"""Characters; a longer one is a list of bits that nobody can use."""


def interpolant(given: Sequence[Term], refuted: Sequence[Term], timeout: float) -> Term | None:
    """What follows from `given`, contradicts `refuted`, and speaks only of what both speak of.

    None if they do not contradict each other, or that is not found out in time, or the interpolant is too long."""
    import bitwuzla

    from mcveto.logic.lowering import Lowering
    from mcveto.logic.solver.bitwuzla_backend import BitwuzlaTarget

    if t.FALSE in given or t.FALSE in refuted:
        return t.FALSE if t.FALSE in given else t.TRUE
    leaves = t.free_variables([*given, *refuted])
    if any(leaf.width == 0 for leaf in leaves):
        return None
    target = BitwuzlaTarget()
    lowering = Lowering(target)
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_INTERPOLANTS, True)
    solver = bitwuzla.Bitwuzla(target.manager, options)
    until = time.monotonic() + timeout
    solver.configure_terminator(lambda: time.monotonic() > until)
    try:
        first = lowering.lower(t.conj(given))
        solver.assert_formula(first)
        solver.assert_formula(lowering.lower(t.conj(refuted)))
        if solver.check_sat() != bitwuzla.Result.UNSAT:
            return None
        text = str(solver.get_interpolant([first]))
    finally:
        solver.configure_terminator(None)
    if len(text) > LONGEST:
        return None
    try:
        return parse(text, {str(leaf.data): leaf for leaf in leaves})
    except ValueError:
        return None
