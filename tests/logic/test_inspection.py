"""What literals speak of and define, against evaluation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.logic.definition import definition_of
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.substitute import Substitution, substitute
from mcveto.logic.terms import Term
from mcveto.logic.words_read import words_read

X, Y = t.var("x", 8), t.var("y", 8)
MEMORY = t.memory("mem", 8)

values = st.sampled_from(
    (X, Y, *(t.const(n, 8) for n in range(3)), *(t.load(MEMORY, t.const(n, 8), 1, False) for n in (0, 5)))
)
sums = st.one_of(values, st.builds(t.add, values, values), st.builds(lambda at: t.load(MEMORY, at, 1, False), values))
literals = st.one_of(
    st.builds(t.eq, sums, sums), st.builds(t.ult, sums, sums), st.builds(lambda a, b: t.bnot(t.eq(a, b)), sums, sums)
)


def value(term: Term, x: int, y: int, cells: dict[int, int]) -> int:
    return Evaluator({X: x, Y: y}.__getitem__, lambda memory, at: cells.get(at, 0)).value(term)


@given(literals, st.integers(0, 7), st.integers(0, 7), st.dictionaries(st.integers(0, 9), st.integers(0, 7)), st.data())
def test_what_is_not_read_does_not_matter(
    literal: Term, x: int, y: int, cells: dict[int, int], data: st.DataObject
) -> None:
    read = set(words_read(literal))
    other_x = x if X in read else data.draw(st.integers(0, 7))
    other_y = y if Y in read else data.draw(st.integers(0, 7))
    others = dict(cells)
    if MEMORY not in read:
        for at in range(10):
            if t.const(at, 8) not in read:
                others[at] = data.draw(st.integers(0, 7))
    assert value(literal, x, y, cells) == value(literal, other_x, other_y, others)


@given(st.lists(literals, max_size=3), st.integers(0, 7))
def test_a_variable_with_a_definition_can_be_replaced(some: list[Term], y: int) -> None:
    definition = definition_of(X, some)
    if definition is None:
        return
    without = [substitute(literal, {X: definition}) for literal in some]
    some_x = any(all(value(literal, x, y, {}) for literal in some) for x in range(256))
    assert some_x == all(value(literal, 0, y, {}) for literal in without)


@given(literals, st.integers(0, 7), st.integers(0, 7), st.dictionaries(st.integers(0, 9), st.integers(0, 7)))
def test_loads_can_be_given_a_meaning(literal: Term, x: int, y: int, cells: dict[int, int]) -> None:
    """Every byte reads as its address."""
    meant = Substitution({}, lambda load: load.args[1]).apply(literal)
    assert not any(term is MEMORY for term in words_read(meant))
    told = Evaluator({X: x, Y: y}.__getitem__, lambda memory, at: at).value(literal)
    assert value(meant, x, y, cells) == told
