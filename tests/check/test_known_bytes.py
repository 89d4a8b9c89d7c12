"""Bytes that are known: told when a model contradicts them, equal ones together."""

from __future__ import annotations

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.check import discharge
from mcveto.check.discharge import Effort, refuted
from mcveto.check.obligations import Obligation


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0, 0, 0, 1, None]), min_size=64, max_size=64),
    st.integers(0, 63),
    st.integers(1, 64),
    st.sampled_from([0, 1]),
)
def test_a_question_about_any_byte_is_answered_by_all_that_is_known(
    content: list[int | None], start: int, length: int, wanted: int
) -> None:
    """The oracle looks at every address. Equal bytes are told together, and never more than is known."""
    memory = z3.Array("mem", z3.BitVecSort(8), z3.BitVecSort(8))
    where = z3.BitVec("where", 8)
    inside = z3.And(z3.UGE(where, start), z3.ULT(where, min(start + length, 255)))

    def known(address: int) -> int | None:
        return content[address] if address < len(content) else None

    obligation = Obligation("any byte", (inside, memory[where] != wanted), [(memory, known)])
    can_differ = any(known(address) != wanted for address in range(start, min(start + length, 255)))
    assert refuted(obligation, Effort()) == ("sat" if can_differ else "unsat")


def test_thousands_of_equal_bytes_take_a_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = z3.Array("mem", z3.BitVecSort(32), z3.BitVecSort(8))
    where = z3.BitVec("where", 32)
    rounds: list[int] = []
    contradicted = discharge._contradicted

    def counted(obligation: Obligation, model: object) -> list[object]:
        rounds.append(1)
        return contradicted(obligation, model)

    monkeypatch.setattr(discharge, "_contradicted", counted)
    inside = z3.ULT(where - 0x8049000, 4000)
    obligation = Obligation("any cell", (inside, memory[where] != 0), [(memory, lambda at: 0 if at >> 13 else None)])
    assert refuted(obligation, Effort()) == "unsat"
    assert len(rounds) <= 4
