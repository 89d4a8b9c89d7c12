"""What a join of two states claims holds in both of them, also where one says nothing."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from mcveto.engines.simulation.gate import gate_of
from mcveto.engines.simulation.joined_paths import JoinedPaths
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term

X, Y, FLAG = t.var("x", 1), t.var("y", 1), t.var("flag", 8)
# Which value each of the two states gave the flag.
TOLD = (t.eq(FLAG, t.const(0, 8)), t.eq(FLAG, t.const(1, 8)))
# Only what is told of flags depends on it.
MEETING: Any = None
SAID: list[list[Term]] = [[], [X], [t.bnot(X)], [X, Y], [t.bnot(X), Y], [t.disj([X, Y])]]


@pytest.mark.parametrize("has_flag", [True, False])
@pytest.mark.parametrize(("first", "second"), list(product(SAID, SAID)))
def test_alternatives_hold_on_both_sides(first: list[Term], second: list[Term], has_flag: bool) -> None:
    paths: Any = SimpleNamespace(
        _kept=lambda term, live: [term], _told=lambda meeting, live: [TOLD] if has_flag else []
    )
    claims = JoinedPaths._alternatives(paths, MEETING, first, second, frozenset())
    for x, y, flag in product((0, 1), (0, 1), (0, 1)):
        values = {X: x, Y: y, FLAG: flag}
        value = Evaluator(values.__getitem__, lambda memory, address: 0).value
        side = second if flag else first
        if all(value(term) for term in side):
            assert all(value(claim) for claim in claims)


def test_what_one_side_says_stays_connected_with_its_flag() -> None:
    paths: Any = SimpleNamespace(_kept=lambda term, live: [term], _told=lambda meeting, live: [TOLD])
    (claim,) = JoinedPaths._alternatives(paths, MEETING, [X], [], frozenset())
    assert Evaluator({X: 0, FLAG: 0}.__getitem__, lambda memory, address: 0).value(claim) == 0


def test_a_condition_that_one_side_denies_in_parts() -> None:
    either, neither = t.disj([X, Y]), [t.bnot(X), t.bnot(Y)]
    assert gate_of([either], neither) is either
    assert gate_of(neither, [either]) is t.bnot(either)
    assert gate_of([either], neither[:1]) is None and gate_of(neither[:1], [either]) is None
    assert gate_of([X, either], [t.bnot(X), either]) is X
