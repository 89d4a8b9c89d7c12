"""Affine relations with small coefficients that all samples of some places satisfy.

Rational elimination over the samples read as signed numbers: the relations Σ aᵢ·xᵢ = c are the vectors orthogonal to
all differences between samples. A relation found over the integers also holds modulo 2^w.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from mcveto.logic import terms as t
from mcveto.logic.terms import Term

MAX_COEFFICIENT = 64
MIN_PLACES = 3
"""Relations of two places with coefficients ±1 are found elsewhere; others between two are found here."""


def affine_relations(places: Sequence[Term], samples: Sequence[Sequence[int]], width: int) -> list[Term]:
    """Equations between the places, reduced: each is solved for another place."""
    if len(places) < 2 or not samples or len(samples[0]) < 2:
        return []
    points = [[t.signed(value, width) for value in row] for row in samples]
    rows = [[Fraction(points[i][at] - points[i][0]) for i in range(len(places))] for at in range(1, len(points[0]))]
    basis, pivots = _reduced(rows, len(places))
    found: list[Term] = []
    for free in range(len(places)):
        if free in pivots:
            continue
        # x_pivot has coefficient basis[row][free] towards the free place: the orthogonal vector of that column.
        vector = [Fraction(0)] * len(places)
        vector[free] = Fraction(1)
        for row, pivot in zip(basis, pivots, strict=True):
            vector[pivot] = -row[free]
        # `vector` spans the null space of the differences.
        term = _equation(places, vector, [points[i][0] for i in range(len(places))], width)
        if term is not None:
            found.append(term)
    return found


def _reduced(rows: list[list[Fraction]], columns: int) -> tuple[list[list[Fraction]], list[int]]:
    """Reduced row echelon form and its pivot columns."""
    basis: list[list[Fraction]] = []
    pivots: list[int] = []
    for row in rows:
        for known, pivot in zip(basis, pivots, strict=True):
            if row[pivot]:
                factor = row[pivot]
                row = [a - factor * b for a, b in zip(row, known, strict=True)]
        pivot = next((at for at in range(columns) if row[at]), -1)
        if pivot < 0:
            continue
        scale = row[pivot]
        row = [value / scale for value in row]
        basis = [
            [a - known[pivot] * b for a, b in zip(known, row, strict=True)] if known[pivot] else known
            for known in basis
        ]
        basis.append(row)
        pivots.append(pivot)
        if len(basis) == columns:
            break
    return basis, pivots


def _equation(places: Sequence[Term], vector: list[Fraction], point: list[int], width: int) -> Term | None:
    common = lcm(*(value.denominator for value in vector))
    coefficients = [int(value * common) for value in vector]
    if any(abs(value) > MAX_COEFFICIENT for value in coefficients) or sum(map(bool, coefficients)) < 2:
        return None
    total = sum(a * b for a, b in zip(coefficients, point, strict=True))
    left = t.const(0, width)
    for coefficient, place in zip(coefficients, places, strict=True):
        if coefficient:
            left = t.add(left, t.mul(t.const(coefficient, width), place))
    return t.eq(left, t.const(total, width))
