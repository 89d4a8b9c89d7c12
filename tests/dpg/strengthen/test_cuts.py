"""Cut points: no loop without one, and no more paths between them than allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.cuts import MAX_PATHS, Shape


def at(number: int) -> Location:
    return Location(number, b"", 0, 0, ())


@given(st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 9), max_size=3)))
def test_between_cut_points_there_are_no_loops(edges: dict[int, set[int]]) -> None:
    successors = {at(n): {at(m) for m in edges.get(n, ())} for n in range(10)}
    shape = Shape(at(0), successors)
    position = {location: number for number, location in enumerate(shape.order)}
    for location in shape.order:
        for following in shape.successors[location]:
            assert following in shape.cuts or position[following] > position[location]


def test_a_row_of_branches_is_cut() -> None:
    """n diamonds have 2^n paths; between cut points there are at most as many as allowed, times one diamond."""
    successors: dict[Location, set[Location]] = {}
    for n in range(20):
        successors[at(3 * n)] = {at(3 * n + 1), at(3 * n + 2)}
        successors[at(3 * n + 1)] = successors[at(3 * n + 2)] = {at(3 * n + 3)}
    successors[at(60)] = set()
    shape = Shape(at(0), successors)
    assert 1 <= len(shape.cuts) <= 20
    paths = {at(0): 1}
    for location in shape.order:
        mine = 1 if location in shape.cuts else paths[location]
        assert mine <= MAX_PATHS
        for following in shape.successors[location]:
            paths[following] = paths.get(following, 0) + mine


def test_a_loop_head_is_a_cut() -> None:
    shape = Shape(at(0), {at(0): {at(1)}, at(1): {at(2), at(3)}, at(2): {at(1)}, at(3): set()})
    assert shape.cuts == shape.heads == [at(1)]
