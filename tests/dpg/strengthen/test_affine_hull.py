"""Affine relations found in samples: they hold in all of them, and no relation with small coefficients is missed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.strengthen.affine_hull import affine_relations
from mcveto.logic import terms as t
from mcveto.logic.evaluate import evaluate

X, Y, Z = (t.var(name, 32) for name in "xyz")


@given(st.lists(st.tuples(*(3 * [st.integers(-50, 50)])), min_size=2, max_size=8))
def test_relations_hold_in_every_sample(points: list[tuple[int, int, int]]) -> None:
    columns = [[value & 0xFFFFFFFF for value in column] for column in zip(*points, strict=True)]
    for relation in affine_relations([X, Y, Z], columns, 32):
        for x, y, z in zip(*columns, strict=True):
            assert evaluate(relation, {X: x, Y: y, Z: z})


@given(st.integers(1, 5), st.integers(-5, 5), st.integers(-9, 9), st.lists(st.tuples(*(2 * [st.integers(-50, 50)]))))
def test_a_plane_is_found(a: int, b: int, c: int, points: list[tuple[int, int]]) -> None:
    spanning = [(0, 0), (1, 0), (0, 1)]
    samples = [(x, y, a * x + b * y + c) for x, y in [*spanning, *points]]
    columns = [[value & 0xFFFFFFFF for value in column] for column in zip(*samples, strict=True)]
    found = affine_relations([X, Y, Z], columns, 32)
    # A point off the plane by one must violate some relation.
    x, y, z = samples[0]
    off = {X: x & 0xFFFFFFFF, Y: y & 0xFFFFFFFF, Z: (z + 1) & 0xFFFFFFFF}
    assert any(not evaluate(relation, off) for relation in found)


def test_counters_with_different_strides() -> None:
    columns = [[0, 1, 2, 3], [5, 8, 11, 14]]
    (relation,) = affine_relations([X, Y], columns, 32)
    assert evaluate(relation, {X: 100, Y: 305}) and not evaluate(relation, {X: 100, Y: 306})
