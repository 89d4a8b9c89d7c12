"""Howell forms against the naive oracle: the set of all linear combinations, enumerated."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.machine.howell import RowSpace, dot

Row = tuple[int, ...]
Matrix = list[Row]


def matrices(bits: int, columns: int, most: int = 3) -> st.SearchStrategy[Matrix]:
    entry = st.integers(0, (1 << bits) - 1)
    return st.lists(st.tuples(*[entry] * columns), max_size=most)


def span(rows: Matrix, bits: int, columns: int) -> set[Row]:
    """All linear combinations."""
    modulus = 1 << bits
    found = {(0,) * columns}
    for row in rows:
        found = {
            tuple((x + factor * y) % modulus for x, y in zip(v, row, strict=True))
            for v in found
            for factor in range(modulus)
        }
    return found


BITS, COLUMNS = 2, 3
ALL = list(product(range(1 << BITS), repeat=COLUMNS))
SPACES = matrices(BITS, COLUMNS)


def members(space: RowSpace) -> set[Row]:
    return {vector for vector in product(range(1 << space.bits), repeat=space.columns) if vector in space}


@given(matrices(3, 3))
def test_membership_is_being_a_linear_combination(rows: Matrix) -> None:
    assert members(RowSpace(3, 3, rows)) == span(rows, 3, 3)


@given(matrices(3, 3))
def test_form_is_howell(rows: Matrix) -> None:
    form = RowSpace(3, 3, rows).rows()
    leading = [next(column for column, entry in enumerate(row) if entry) for row in form]
    assert leading == sorted(set(leading))
    for number, column in enumerate(leading):
        pivot = form[number][column]
        assert pivot & (pivot - 1) == 0
        assert all(earlier[column] < pivot for earlier in form[:number])
    whole = span(rows, 3, 3)
    for zeros in range(4):
        vanishing = {vector for vector in whole if not any(vector[:zeros])}
        assert span([row for row, column in zip(form, leading, strict=True) if column >= zeros], 3, 3) == vanishing


@given(SPACES, SPACES)
def test_equal_spaces_have_equal_forms(first: Matrix, second: Matrix) -> None:
    a, b = RowSpace(BITS, COLUMNS, first), RowSpace(BITS, COLUMNS, second)
    assert (a == b) == (members(a) == members(b))
    assert (a <= b) == (members(a) <= members(b))


@given(matrices(3, 3, 4))
def test_order_of_generators_does_not_matter(rows: Matrix) -> None:
    assert RowSpace(3, 3, rows).rows() == RowSpace(3, 3, reversed(rows)).rows()


@given(SPACES, SPACES)
def test_join_and_meet(first: Matrix, second: Matrix) -> None:
    a, b = RowSpace(BITS, COLUMNS, first), RowSpace(BITS, COLUMNS, second)
    assert members(a.joined(b)) == span([*first, *second], BITS, COLUMNS)
    assert members(a.met(b)) == members(a) & members(b)


@given(SPACES, st.sampled_from(ALL))
def test_insert_says_whether_the_space_grew(rows: Matrix, row: Row) -> None:
    space = RowSpace(BITS, COLUMNS, rows)
    before = members(space)
    assert space.insert(row) == (members(space) != before) == (row not in before)


@given(matrices(3, 3), st.permutations(range(3)), st.integers(0, 3))
def test_projection(rows: Matrix, order: list[int], count: int) -> None:
    kept = order[:count]
    image = {tuple(vector[column] for column in kept) for vector in span(rows, 3, 3)}
    assert members(RowSpace(3, 3, rows).projected(kept)) == image


@given(matrices(3, 3), st.tuples(*[st.integers(0, 7)] * 3))
def test_annihilated_by_a_form(rows: Matrix, form: Row) -> None:
    expected = {vector for vector in span(rows, 3, 3) if dot(form, vector, 7) == 0}
    assert members(RowSpace(3, 3, rows).annihilated_by(form)) == expected


@given(matrices(3, 3))
def test_annihilator(rows: Matrix) -> None:
    space = RowSpace(3, 3, rows)
    dual = space.annihilator()
    expected = {form for form in product(range(8), repeat=3) if all(dot(form, row, 7) == 0 for row in rows)}
    assert members(dual) == expected
    assert dual.annihilator() == space


@settings(max_examples=30)
@given(matrices(32, 6, 5), st.lists(st.integers(0, 2**32 - 1), min_size=5, max_size=5))
def test_machine_words(rows: Matrix, factors: list[int]) -> None:
    space = RowSpace(32, 6, rows)
    combination = [sum(f * row[c] for f, row in zip(factors, rows, strict=False)) & 0xFFFF_FFFF for c in range(6)]
    assert combination in space
    assert all(dot(form, combination, 0xFFFF_FFFF) == 0 for form in space.annihilator())
    assert space.annihilator().annihilator() == space
