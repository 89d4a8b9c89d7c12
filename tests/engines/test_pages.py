"""Cells in pages that memories share: what a dictionary would hold, whoever writes after a copy."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.memory import ByteOf, Cell, is_within, united
from mcveto.engines.path import KeyTable
from mcveto.engines.simulation.pages import BITS, Cells
from mcveto.logic import terms as t

A, B = t.var("page a", 32), t.var("page b", 32)
TERMS = (A, B, t.add(A, B))
addresses = st.builds(lambda page, at: (page << BITS) + at, st.integers(0, 4), st.integers(0, 3))
contents = st.one_of(st.integers(0, 255), st.builds(ByteOf, st.sampled_from(TERMS), st.integers(0, 3)))
steps = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "copy", "look"]), st.integers(0, 7), addresses, contents), max_size=60
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_copies_are_dictionaries_of_their_own(actions: list[tuple[str, int, int, Cell]]) -> None:
    table = KeyTable(t.memory("page memory", 32))
    both: list[tuple[Cells, dict[int, Cell]]] = [(Cells(), {})]
    for action, which, address, content in actions:
        cells, plain = both[which % len(both)]
        if action == "write":
            cells[address] = plain[address] = content
        elif action == "delete":
            cells.discard(address)
            plain.pop(address, None)
        elif action == "copy" and len(both) < 6:
            both.append((cells.copy(), dict(plain)))
        elif action == "look":  # what is remembered of pages must follow what is written
            {page.keys_of(table) for page in cells.pages.values()}
    for cells, plain in both:
        assert dict(cells.items()) == plain and len(cells) == len(plain)
        assert cells.keys() == plain.keys() and sorted(cells) == sorted(plain)
        assert all(cells.get(where) == plain.get(where) for where in range((5 << BITS) + 2))
        words = {cell.word for cell in plain.values() if isinstance(cell, ByteOf)}
        assert {word for page in cells.pages.values() for word in page.words()} == words
        keys = frozenset().union(*(page.keys_of(table) for page in cells.pages.values()))
        assert keys == frozenset().union(*map(table.of, words))
    for mine, plain in both:
        for others, other_plain in both:
            differ = {
                where
                for one, two in mine.different(others)
                for where in one.keys() | two.keys()
                if one.get(where) != two.get(where)
            }
            known = plain.keys() | other_plain.keys()
            assert differ == {where for where in known if plain.get(where) != other_plain.get(where)}
            alike = {where for page in mine.shared(others) for where in page}
            assert all(plain[where] == other_plain[where] for where in alike)


def test_copies_share_what_neither_has_written() -> None:
    cells = Cells()
    for where in range(0, 8 << BITS, 16):
        cells[where] = 1
    twin = cells.copy()
    twin[3 << BITS] = 2
    assert len(list(cells.shared(twin))) == 7 and len(cells.different(twin)) == 1
    cells[5 << BITS] = 2
    assert len(list(cells.shared(twin))) == 6


spans = st.tuples(st.integers(0, 60), st.integers(1, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(spans, max_size=8), spans)
def test_what_lies_within_ranges(ranges: list[tuple[int, int]], span: tuple[int, int]) -> None:
    inside = {where for low, high in ranges for where in range(low, high)}
    assert is_within(*span, united(ranges)) == inside.issuperset(range(*span))


def test_what_is_remembered_of_a_page_follows_what_is_written() -> None:
    table = KeyTable(t.memory("page memory", 32))
    cells = Cells()
    for content, words in ((ByteOf(A, 0), {A}), (ByteOf(B, 0), {B}), (7, set[t.Term]())):
        cells[8] = content
        for _ in range(2):  # the second time it is remembered
            assert {word for page in cells.pages.values() for word in page.words()} == words
            assert {key for page in cells.pages.values() for key in page.keys_of(table)} == words
    cells[8] = ByteOf(A, 0)
    assert cells.pages[0].words() == (A,)
    cells.discard(8)
    assert cells.pages[0].words() == () and not cells.pages[0].keys_of(table)
    twin = cells.copy()
    twin[8] = ByteOf(B, 0)
    assert cells.pages[0].words() == () and twin.pages[0].words() == (B,)
