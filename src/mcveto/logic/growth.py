"""Values that grow by what grows: variables as polynomials of the number of turns, exact modulo 2^width.

A variable that grows by a constant is a polynomial of degree one in the turn, one that grows by such a variable (a sum
of numbers) of degree two, and so on. A polynomial of degree d is given by its first d + 1 forward differences, because
its value at turn n is the sum of difference j times n over j (Newton); that holds modulo 2^width, whatever wraps
around. The sum of a polynomial over the turns before has the differences of that polynomial behind its own start.

Used where a loop is skipped (`machine.acceleration`): what no condition of the loop reads may grow like that. Closed
forms of such sums are the easy part of recurrence solving (Kovács, TACAS 2008, calls them Gosper-summable); here they
are never symbolic, since the state is a concrete one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.node import Term

HIGHEST_DEGREE = 6

# Forward differences: the value at turn 0, how it grows, how that grows, …
Differences = tuple[int, ...]


def value_at(differences: Differences, turn: int, width: int) -> int:
    return sum(part * math.comb(turn, j) for j, part in enumerate(differences)) % (1 << width)


def growths(
    start: Mapping[Term, int], stride: Mapping[Term, int], growing: Mapping[Term, Term]
) -> dict[Term, Differences]:
    """How the variables in `stride` grow, and those of `growing` that grow (by the term there) by a polynomial."""
    found: dict[Term, Differences] = {variable: (start[variable], by) for variable, by in stride.items()}
    waiting = dict(growing)
    while True:
        known = {
            variable: differences
            for variable, by in waiting.items()
            if (differences := _differences(by, found)) is not None
        }
        if not known:
            return found
        for variable, differences in known.items():
            del waiting[variable]
            found[variable] = (start[variable], *differences)


def _differences(term: Term, known: Mapping[Term, Differences]) -> Differences | None:
    """The forward differences of a polynomial in variables that are known, if it is one."""
    degree = _degree(term, known)
    if degree is None or degree >= HIGHEST_DEGREE:
        return None
    row = [_value(term, known, turn) for turn in range(degree + 1)]
    found = []
    while row:
        found.append(row[0] % (1 << term.width))
        row = [after - before for before, after in pairwise(row)]
    return tuple(found)


def _value(term: Term, known: Mapping[Term, Differences], turn: int) -> int:
    return Evaluator(lambda variable: value_at(known[variable], turn, variable.width), _no_memory).value(term)


def _degree(term: Term, known: Mapping[Term, Differences]) -> int | None:
    """A bound of the degree, where the term is a sum or a product: these wrap around like their parts."""
    if not t.free_variables([term]):
        return 0
    if term.op == "var":
        return len(known[term]) - 1 if term in known else None
    if term.op not in ("lin", "mul"):
        return None
    degrees = [_degree(part, known) for part in term.args]
    if any(degree is None for degree in degrees):
        return None
    certain = [degree for degree in degrees if degree is not None]
    return sum(certain) if term.op == "mul" else max(certain)


def _no_memory(memory: Term, address: int) -> int:
    raise ValueError(f"what grows has no memory, and {memory} is read at {address:#x}")
