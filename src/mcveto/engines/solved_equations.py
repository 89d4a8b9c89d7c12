"""Equations that a path has met, solved for one of their inputs: some conditions need no solver then.

Under 2*b - a - c = 0, what is said of a can be said of 2*b - c. Put into a condition, the normal form of sums shows
what follows from the equation by adding and multiplying: the distance of positions that move at three such speeds is a
number at every turn of a loop, and a solver that takes sums apart into bits need not find that out each time. This is
one step of Gaussian elimination modulo 2^w (Müller-Olm and Seidl, TOPLAS 2007, solve the general case): only an odd
factor has an inverse, so that an equation without one is left to the solver.

Neither the path nor the state is changed: states stay alike that were (see `subsume`). Equations of a single input are
left alone, the solver sees what they mean.
"""

from __future__ import annotations

from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.logic.linear import combine
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term


def solved(equation: Term) -> tuple[Term, Term] | None:
    """The last input that the equation determines by others, and its value."""
    if equation.op != "eq" or equation.args[0].width == 1:
        return None
    total = t.sub(*equation.args)
    if total.op != "lin" or len(total.args) < 2:
        return None
    atoms: list[tuple[Term, int]] = list(zip(total.args, total.data[0], strict=True))
    for atom, factor in sorted(atoms, key=lambda item: -item[0].serial):
        if atom.op != "var" or "!" not in str(atom.data) or not factor & 1:
            continue
        others = [(c, other) for other, c in atoms if other is not atom]
        if any(atom in t.free_variables([other]) for _, other in others):
            continue
        inverse = -pow(factor, -1, 1 << total.width)
        value = combine([(inverse * c, other) for c, other in others], inverse * total.data[1], total.width)
        return atom, value
    return None


def solve_new(state: PathState) -> None:
    """Solves the equations that were added to the path since the last time."""
    terms = state.path.terms
    for equation in terms[state.looked_at :]:
        found = solved(equation)
        if found is not None:
            state.equations = (*state.equations, (*found, equation))
    state.looked_at = len(terms)


def decided(state: PathState, condition: Term) -> tuple[bool, tuple[Term, ...]] | None:
    """What the equations alone say about a condition, and which of them."""
    used = []
    for variable, value, equation in state.equations:
        if variable in state.path.keys_of(condition):
            condition = substitute(condition, {variable: value})
            used.append(equation)
    return (condition is t.TRUE, tuple(used)) if condition.op == "const" else None
