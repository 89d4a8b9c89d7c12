"""What formulas say about values, whatever these were computed from.

Of "912 < 187a + (b ^ c) and 187a + (b ^ c) < 5" it does not matter what is compared: no number is both. Here each side
of a comparison that is computed becomes a variable, the same one wherever the same value is; of a sum, all but the
constant does. Whatever makes the formulas true makes their outline true, with the values of the sides for the new
variables: if the outline is impossible, so are the formulas. The converse does not hold.

So a solver need not multiply to see that bounds exclude each other. After the over-approximations of Bryant, Kroening,
Ouaknine, Seshia, Strichman, Brady, "Deciding bit-vector arithmetic with abstraction" (TACAS 2007), without their
refinement: who needs more asks about the formulas themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term

_COMPARISONS = ("eq", "ult", "ule", "slt", "sle")
_PLAIN = ("var", "const")


def outline(formulas: Sequence[Term]) -> list[Term] | None:
    """The outline of all of them together; None if it is the formulas themselves."""
    values: dict[Term, Term] = {}
    sides: dict[Term, Term] = {}
    for comparison in t.postorder(list(formulas)):
        for side in comparison.args if comparison.op in _COMPARISONS else ():
            if side.op in _PLAIN or side.width == 1:
                continue
            constant = t.const(side.data[1] if side.op == "lin" else 0, side.width)
            computed = t.sub(side, constant)
            if computed.op not in _PLAIN:
                name = values.setdefault(computed, t.var(f"side{side.width}!{len(values)}", side.width))
                sides[side] = t.add(name, constant)
    return [Substitution(sides).apply(formula) for formula in formulas] if sides else None
