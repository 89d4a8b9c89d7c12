"""Reads over writes at constant distance are answered when built."""

from __future__ import annotations

import pytest

from mcveto.logic.memory import LOOK_BACK
from mcveto.logic.terms import Term, WidthError, add, concat, const, extract, load, memory, store, var

m = memory("m", 32)
sp, a, v, w = var("sp", 32), var("a", 32), var("v", 32), var("w", 32)


def at(offset: int) -> Term:
    return add(sp, const(offset, 32))


@pytest.mark.parametrize("big", [False, True])
def test_the_whole_word(big: bool) -> None:
    assert load(store(m, sp, v, big), sp, 4, big) is v
    assert load(store(store(m, sp, v, big), at(4), w, big), sp, 4, big) is v
    assert load(store(store(m, sp, v, big), at(-4), w, big), sp, 4, big) is v


def test_parts_of_a_word() -> None:
    little, big = store(m, sp, v, False), store(m, sp, v, True)
    assert load(little, at(1), 1, False) is extract(v, 15, 8)
    assert load(little, at(2), 2, False) is extract(v, 31, 16)
    assert load(big, at(1), 1, True) is extract(v, 23, 16)
    assert load(big, at(2), 2, True) is extract(v, 15, 0)


def test_a_word_from_two_stores_and_the_memory_below() -> None:
    both = store(store(m, sp, v, False), at(4), w, False)
    assert load(both, at(2), 4, False) is concat(extract(w, 15, 0), extract(v, 31, 16))
    both = store(store(m, sp, v, True), at(4), w, True)
    assert load(both, at(2), 4, True) is concat(extract(v, 15, 0), extract(w, 31, 16))
    one = store(m, sp, v, False)
    assert load(one, at(2), 4, False) is concat(load(m, at(4), 2, False), extract(v, 31, 16))


def test_byte_order_matters() -> None:
    swapped = load(store(m, sp, v, False), sp, 4, True)
    parts = [extract(v, 8 * i + 7, 8 * i) for i in range(4)]
    assert swapped is concat(concat(concat(parts[0], parts[1]), parts[2]), parts[3])


def test_stores_beside_are_skipped_and_stores_that_may_alias_are_not() -> None:
    beside = store(m, at(8), w, False)
    assert load(beside, sp, 4, False) is load(m, sp, 4, False)
    unknown = store(m, a, w, False)
    residual = load(unknown, sp, 4, False)
    assert residual.op == "load"
    assert residual.args == (unknown, sp)
    assert load(store(unknown, sp, v, False), sp, 4, False) is v


def test_bytes_of_a_loaded_word_join_again() -> None:
    word = load(m, sp, 4, False)
    assert extract(word, 15, 8) is load(m, at(1), 1, False)
    assert concat(load(m, at(2), 2, False), load(m, sp, 2, False)) is word
    big = load(m, sp, 4, True)
    assert extract(big, 31, 24) is load(m, sp, 1, True)
    assert concat(load(m, sp, 2, True), load(m, at(2), 2, True)) is big


def test_bytes_stored_one_by_one_make_the_word() -> None:
    memory_ = m
    for i in range(4):
        memory_ = store(memory_, at(i), extract(v, 8 * i + 7, 8 * i), False)
    assert memory_ is store(m, sp, v, False)
    assert load(memory_, sp, 4, False) is v
    memory_ = m
    for i in range(4):
        memory_ = store(memory_, at(3 - i), extract(v, 8 * i + 7, 8 * i), True)
    assert memory_ is store(m, sp, v, True)


def test_overwriting_and_writing_back() -> None:
    assert store(store(m, sp, v, False), sp, w, False) is store(m, sp, w, False)
    assert store(store(m, at(1), extract(v, 7, 0), False), sp, w, False) is store(m, sp, w, False)
    assert store(m, sp, load(m, sp, 4, False), False) is m


def test_addresses_wrap() -> None:
    small, p = memory("s", 3), var("p3", 3)
    written = store(small, const(7, 3), extract(v, 15, 0), False)
    assert load(written, const(0, 3), 1, False) is extract(v, 15, 8)
    assert load(store(small, p, v, False), add(p, const(4, 3)), 4, False) is load(small, add(p, const(4, 3)), 4, False)


def test_look_back_is_bounded() -> None:
    long = store(m, sp, v, False)
    for i in range(1, LOOK_BACK + 5):
        long = store(long, at(8 * i), w, False)
    far = load(long, sp, 4, False)
    assert far.op == "load"
    assert far is not v


def test_malformed_accesses_are_refused() -> None:
    with pytest.raises(WidthError):
        load(v, sp, 4, False)
    with pytest.raises(WidthError):
        load(m, var("p3", 3), 4, False)
    with pytest.raises(WidthError):
        store(m, sp, var("odd", 7), False)
    with pytest.raises(WidthError):
        load(memory("s", 1), var("bit", 1), 4, False)
