"""Claims that a result is a sum of products of two arguments: multiplication by repeated addition.

The products of the arguments are taken for further arguments, and the affine relations between all of them and a result
are polynomial equations of degree two, as for loops (`strengthen.products`, after Sharma et al., ESOP 2013). Terms
distribute products over sums, so that n + n*(m - 1) is n*m at sight, and no solver has to multiply. Here the program
itself need not multiply: that is what the recursion does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

from mcveto.dpg.strengthen.affine_hull import affine_relations
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_FACTORS = 4
MAX_SAMPLES = 120


def product_claims(
    arguments: Sequence[Term], result: Term, samples: Sequence[tuple[Sequence[int], int]], width: int
) -> list[Term]:
    """Equations between a result and products of arguments, all of one width; a sample has the arguments' values and
    the result's. Samples with a product that does not fit are left out."""
    chosen = arguments[:MAX_FACTORS]
    pairs = list(combinations_with_replacement(range(len(chosen)), 2))
    half = 1 << (width - 1)
    columns: list[list[int]] = [[] for _ in range(len(chosen) + len(pairs) + 1)]
    rows: dict[tuple[int, ...], None] = {}
    for given, made in samples:
        values = [t.signed(value, width) for value in given[: len(chosen)]]
        products = [values[i] * values[j] for i, j in pairs]
        if all(-half <= product < half for product in products):
            rows[(*given[: len(chosen)], *(product & (2 * half - 1) for product in products), made)] = None
    for row in list(rows)[:MAX_SAMPLES]:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    if len(rows) <= len(columns):
        return []  # then there are equations that say nothing
    terms = [*chosen, *(t.mul(chosen[i], chosen[j]) for i, j in pairs), result]
    return [
        equation
        for equation in affine_relations(terms, columns, width)
        if any(part.op == "mul" for part in t.postorder([equation])) and result in t.postorder([equation])
    ]
