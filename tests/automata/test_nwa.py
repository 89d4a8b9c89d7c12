from __future__ import annotations

from collections.abc import Hashable

import pytest
from hypothesis import given, settings

from mcveto.automata.nested_paths import PathTooLong
from mcveto.automata.nested_words import ANY, Kind, NWPrefix
from mcveto.automata.nwa import NWA
from mcveto.automata.nwa_acceptance import accepts
from mcveto.automata.nwa_emptiness import is_empty, shortest_run
from mcveto.automata.nwa_intersection import UNSATISFIABLE, intersect

from .oracles import accepts_by_search, all_words, distance_by_search, is_run
from .strategies import nested_word_automata

WORDS = list(all_words("xyz", 3)) + [w for w in all_words("x", 5) if len(w) > 3]
INTERNAL, CALL, RETURN = Kind.INTERNAL, Kind.CALL, Kind.RETURN


def both(left: Hashable, right: Hashable) -> Hashable:
    return ("and", left, right)


@given(nested_word_automata())
@settings(max_examples=60, deadline=None)
def test_acceptance_against_trying_all_runs(nwa: NWA[int]) -> None:
    for word in WORDS:
        assert accepts(nwa, word) == accepts_by_search(nwa, word)


@given(nested_word_automata(3), nested_word_automata(3))
@settings(max_examples=60, deadline=None)
def test_intersection_accepts_what_both_accept(left: NWA[int], right: NWA[int]) -> None:
    product = intersect(left, right, both)
    for word in WORDS:
        assert accepts(product, word) == (accepts_by_search(left, word) and accepts_by_search(right, word))


@given(nested_word_automata(5, 6))
@settings(max_examples=400, deadline=None)
def test_a_shortest_accepted_word(nwa: NWA[int]) -> None:
    run = shortest_run(nwa)
    assert is_empty(nwa) == (run is None)
    naive = distance_by_search(nwa, 5)
    if run is None:
        assert naive is None
    else:
        assert is_run(nwa, run.word, run.states)
        assert accepts(nwa, run.word)
        # shorter than or as short as everything that nests at most 5 deep
        assert naive is None or len(run.word) <= naive


def test_deep_recursion_is_needed() -> None:
    """Counting in two procedures of co-prime cycle lengths: only nesting 6 deep matches, found at once."""
    nwa: NWA[str] = NWA()
    nwa.add_state("d0", initial=True)
    nwa.add_state("goal", final=True)
    for i in range(3):
        nwa.add_call(f"d{i}", "c", f"d{(i + 1) % 3}")
    nwa.add_internal("d0", "turn", "u0")
    for i in range(2):
        for caller in range(3):
            nwa.add_return(f"u{i}", f"d{caller}", "r", f"u{1 - i}" if caller else f"v{1 - i}")
            nwa.add_return(f"v{i}", f"d{caller}", "r", f"u{1 - i}" if caller else f"v{1 - i}")
    nwa.add_internal("v0", "end", "goal")
    run = shortest_run(nwa)
    # 3 calls return with odd parity, 6 with even
    assert run is not None
    assert run.word.symbols == ("c",) * 6 + ("turn",) + ("r",) * 6 + ("end",)
    assert run.word.nesting()[0] == (5, 7)


def test_a_shortest_path_can_be_exponentially_long() -> None:
    nwa: NWA[tuple[int, int]] = NWA()
    depth = 60
    nwa.add_state((depth, 0), initial=True)
    nwa.add_state((depth, 2), final=True)
    nwa.add_internal((0, 0), "x", (0, 2))
    for level in range(1, depth + 1):
        for half in range(2):
            nwa.add_call((level, half), "c", (level - 1, 0))
            nwa.add_return((level - 1, 2), (level, half), "r", (level, half + 1))
    assert not is_empty(nwa)
    with pytest.raises(PathTooLong, match=str(2**depth + 4 * (2**depth - 1))):
        shortest_run(nwa)


def test_wildcards_and_predicates_of_an_intersection() -> None:
    left: NWA[str] = NWA()
    left.add_state("a", "PC=1", initial=True)
    left.add_state("b", "PC=2", final=True)
    left.add_internal("a", ANY, "b")
    left.add_internal("a", "nop", "a")
    right: NWA[int] = NWA()
    right.add_state(1, initial=True)
    right.add_state(2, "x=0", final=True)
    right.add_internal(1, "mov", 2)
    product = intersect(left, right, both)
    assert product.predicate(("a", 1)) == "PC=1"
    assert product.predicate(("b", 2)) == ("and", "PC=2", "x=0")
    assert [(t.source, t.symbol, t.target) for t in product.transitions()] == [(("a", 1), "mov", ("b", 2))]
    assert is_empty(intersect(left, right, lambda _, __: UNSATISFIABLE))


def test_a_word_with_a_wildcard_stands_for_all_its_instances() -> None:
    nwa: NWA[int] = NWA()
    nwa.add_state(0, initial=True)
    nwa.add_state(2, final=True)
    nwa.add_call(0, ANY, 1)
    nwa.add_internal(1, "x", 2)
    run = shortest_run(nwa)
    assert run is not None and run.word == NWPrefix((ANY, "x"), (CALL, INTERNAL))
    assert accepts(nwa, NWPrefix(("anything", "x"), (CALL, INTERNAL)))
    assert not accepts(nwa, NWPrefix((ANY, ANY), (CALL, INTERNAL)))


def test_none_is_not_a_symbol() -> None:
    with pytest.raises(ValueError, match="use ANY"):
        NWA[int]().add_internal(0, None, 1)
