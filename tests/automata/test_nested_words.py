from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.nested_words import Edge, Kind, NestedWord, NWPrefix

kinds = st.lists(st.sampled_from(list(Kind)), max_size=7).map(tuple)


def is_nesting_relation(edges: set[Edge], length: int) -> bool:
    """Definition 4 of TR1669, literally; -1 and `length` play -∞ and +∞."""
    pairs = [(-1 if i is None else i, length if j is None else j) for i, j in edges]
    inside = range(length)
    return (
        all(i < j and (i in inside or j in inside) for i, j in pairs)
        and all(sum(i == k for i, _ in pairs) <= 1 and sum(j == k for _, j in pairs) <= 1 for k in inside)
        and not any(i < k <= j < m for i, j in pairs for k, m in pairs)
    )


@given(kinds)
@settings(deadline=None)
def test_the_kinds_of_positions_determine_a_nesting_relation(ks: tuple[Kind, ...]) -> None:
    word = NestedWord(tuple(range(len(ks))), ks)
    edges = set(word.nesting())
    assert is_nesting_relation(edges, len(ks))
    assert {i for i, _ in edges if i is not None} == {n for n, k in enumerate(ks) if k is Kind.CALL}
    assert {j for _, j in edges if j is not None} == {n for n, k in enumerate(ks) if k is Kind.RETURN}
    assert NestedWord.from_nesting(word.symbols, edges) == word
    for i, j in edges:
        if j is not None:
            assert word.call_predecessor(j) == i
    assert word.is_matched == all(None not in edge for edge in edges)
    assert word.is_prefix == all(i is not None for i, _ in edges)


ends = st.one_of(st.none(), st.integers(0, 3))


@given(st.sets(st.tuples(ends, ends), max_size=3))
@settings(deadline=None)
def test_from_nesting_accepts_exactly_the_nesting_relations(edges: set[Edge]) -> None:
    if is_nesting_relation(edges, 4):
        assert set(NestedWord.from_nesting("abcd", edges).nesting()) == edges
    else:
        with pytest.raises(ValueError):
            NestedWord.from_nesting("abcd", edges)


def test_the_number_of_nesting_relations_of_length_2() -> None:
    # every choice of a kind per position is a relation, and nothing else is: 3^2
    all_edges = [(i, j) for i in (None, 0, 1) for j in (0, 1, None)]
    relations = [c for n in range(3) for c in combinations(all_edges, n) if is_nesting_relation(set(c), 2)]
    assert len(relations) == 9


def test_a_prefix_has_no_pending_return() -> None:
    with pytest.raises(ValueError, match="pending return at position 1"):
        NWPrefix(("a", "b"), (Kind.INTERNAL, Kind.RETURN))
    with pytest.raises(ValueError, match="2 symbols but 1 kinds"):
        NestedWord(("a", "b"), (Kind.CALL,))


@given(kinds, st.integers(0, 7))
@settings(deadline=None)
def test_prefixes_of_prefixes(ks: tuple[Kind, ...], length: int) -> None:
    word = NestedWord(tuple(range(len(ks))), ks)
    if word.is_prefix:
        cut = NWPrefix(word.symbols, ks).prefix(length)
        assert cut.symbols == word.symbols[:length]
        inside = [(i, j) for i, j in word.nesting() if i is not None and i < length]
        assert set(cut.nesting()) == {(i, j if j is not None and j < length else None) for i, j in inside}
