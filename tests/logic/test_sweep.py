"""Terms that nobody holds are given back, and nothing else."""

from __future__ import annotations

import gc
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.path import KeyTable
from mcveto.logic import terms as t
from mcveto.logic.node import sweep, table_size


def chain(name: str, length: int) -> list[t.Term]:
    """Terms of which each holds the one before."""
    found = [t.var(name, 32)]
    for _ in range(length):
        found.append(t.mul(t.bxor(found[-1], t.const(0x5A5A, 32)), t.var(f"{name}'", 32)))
    return found


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 30), st.data())
def test_what_is_held_stays_the_one_node(length: int, data: st.DataObject) -> None:
    terms = chain("swept", length)
    at = data.draw(st.integers(0, length))
    held, text = terms[at], str(terms[at])
    serials = [term.serial for term in terms]
    del terms
    sweep()
    again = chain("swept", length)
    assert again[at] is held and str(held) == text
    # What it is made of was held by it; what was made of it is new, and newer than all that was there.
    assert [term.serial for term in again[: at + 1]] == serials[: at + 1]
    assert all(term.serial > serials[-1] for term in again[at + 1 :])
    assert all(old.serial < new.serial for old, new in pairwise(again))


def test_what_nobody_holds_is_gone() -> None:
    sweep()
    before = table_size()
    terms = chain("gone", 50)
    grown = table_size() - before
    del terms
    gc.collect()
    assert sweep() >= grown > 50
    assert table_size() <= before
    assert sweep() == 0


def test_keys_are_found_again() -> None:
    memory = t.memory("swept memory", 32)
    table = KeyTable(memory)
    a, b = t.var("key a", 32), t.var("key b", 32)
    asked = [t.add(a, b), t.mul(a, a), t.load(memory, t.const(8, 32), 4, False), t.load(memory, a, 1, False)]
    known = [table.of(term) for term in asked]
    table.forget()
    sweep()
    assert [table.of(term) for term in asked] == known
