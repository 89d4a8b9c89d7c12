"""The smaller parts against naive oracles: regular expressions, longest common subsequences, refinements."""

from __future__ import annotations

import re
from itertools import combinations
from itertools import product as words

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.counterexamples.finder import find_counterexamples
from mcveto.counterexamples.grouping import grouped, longest_common_subsequence, refinements
from mcveto.counterexamples.model_parser import parse_model
from mcveto.counterexamples.regular_expression import (
    EMPTY,
    EPSILON,
    Expression,
    accepts,
    reverse,
    sequence,
    single,
    star,
    union,
)
from mcveto.counterexamples.rendering import _ranges
from mcveto.property.typestate_parser import parse_typestate


def expressions() -> st.SearchStrategy[tuple[Expression, str | None]]:
    """Expressions over 0 and 1, with Python's regular expression for the same language (None: empty)."""
    leaves = st.sampled_from([(EMPTY, None), (EPSILON, ""), (single(0), "0"), (single(1), "1")])

    def both(
        left: tuple[Expression, str | None], right: tuple[Expression, str | None]
    ) -> tuple[Expression, str | None]:
        if left[1] is None or right[1] is None:
            return union(left[0], right[0]), right[1] if left[1] is None else left[1]
        return union(left[0], right[0]), f"(?:{left[1]}|{right[1]})"

    def then(
        left: tuple[Expression, str | None], right: tuple[Expression, str | None]
    ) -> tuple[Expression, str | None]:
        text = None if left[1] is None or right[1] is None else f"(?:{left[1]})(?:{right[1]})"
        return sequence(left[0], right[0]), text

    def extend(
        inner: st.SearchStrategy[tuple[Expression, str | None]],
    ) -> st.SearchStrategy[tuple[Expression, str | None]]:
        loops = inner.map(lambda item: (star(item[0]), "" if item[1] is None else f"(?:{item[1]})*"))
        return st.one_of(st.builds(both, inner, inner), st.builds(then, inner, inner), loops)

    return st.recursive(leaves, extend, max_leaves=8)


@settings(max_examples=200, deadline=None)
@given(expressions())
def test_expressions_denote_what_they_were_built_from(item: tuple[Expression, str | None]) -> None:
    expression, pattern = item
    assert expression.is_empty == (pattern is None)
    for length in range(5):
        for word in words((0, 1), repeat=length):
            text = "".join(map(str, word))
            expected = pattern is not None and re.fullmatch(pattern, text) is not None
            assert accepts(expression, word) == expected
            assert accepts(reverse(expression), word[::-1]) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2), max_size=7), st.lists(st.integers(0, 2), max_size=7))
def test_longest_common_subsequence(left: list[int], right: list[int]) -> None:
    def subsequences(items: list[int]) -> set[tuple[int, ...]]:
        return {chosen for size in range(len(items) + 1) for chosen in combinations(items, size)}

    found = tuple(longest_common_subsequence(left, right))
    common = subsequences(left) & subsequences(right)
    assert found in common
    assert len(found) == max(map(len, common))


def test_a_point_that_is_only_on_the_listed_traces_is_not_claimed() -> None:
    """Both traces listed pass `a`, but a longer violation does not: what every violation passes is checked on all."""
    model = parse_model(
        "finite m\nstart s\ns -> a\na -> b\na -> c\nb -> e\nc -> e\ns -> d\nd -> d2\nd2 -> d3\nd3 -> e\ne -> e\n"
        "event e: bad\nevent a: x\n"
    )
    automaton = parse_typestate("automaton p\nevent bad\nstates s\nstart s\nerror wrong\ns -> wrong on bad\n")
    found = find_counterexamples(model, automaton)
    assert len(found.witnesses) == 3
    two = type(found)(found.product, True, found.witnesses[:2], 1, True, "", (), found.expansions)
    assert grouped(two.witnesses)[0].nodes == ("s", "a", "e", "e")
    assert [item.what for item in refinements(two)] == ["bad"]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([4], "4"), ([1, 2], "1, 2"), ([1, 2, 3], "1-3"), ([1, 3, 4, 5, 8, 9], "1, 3-5, 8, 9"), ([], "")],
)
def test_numbers_in_a_row_are_a_range(numbers: list[int], text: str) -> None:
    assert ", ".join(_ranges(numbers)) == text
