"""Words that hold a state are followed from the third comparison on, given up when they count, and only cost time."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcveto
from mcveto.engines.cegar import states
from mcveto.engines.cegar.constants import Constants, ImageBytes
from mcveto.engines.cegar.engine import cegar
from mcveto.engines.cegar.states import FEW, MANY, States
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.program.program import Program

EXAMPLES = Path(__file__).parents[3] / "examples"
MEMORY = t.memory("mem", 32)
WORD = 0x7FFE0000


def program(name: str) -> Program:
    return mcveto.load(spec=str(EXAMPLES / f"{name}.yaml"))


IMAGE = ImageBytes(program("fig10/x86-32/ex6").space)


def is_state(number: int, address: int = WORD) -> Term:
    return t.eq(t.load(MEMORY, t.const(address, 32), 4, False), t.const(number, 32))


def holding(number: int) -> Constants:
    change = Constants(IMAGE, {}, {}, ()).change()
    for at, byte in enumerate(number.to_bytes(4, "little")):
        change.write(WORD + at, byte)
    return change.done()


def test_a_word_is_followed_when_it_was_compared_often_enough() -> None:
    found = States()
    assert not found.compare([is_state(1), is_state(2), is_state(1), is_state(9, WORD + 4)])
    assert not found.bytes()
    assert found.compare([is_state(3)])
    assert found.bytes() == set(range(WORD, WORD + 4))
    assert not found.compare([is_state(4)])


def test_other_comparisons_do_not_count() -> None:
    word = t.load(MEMORY, t.const(WORD, 32), 4, False)
    pointer = t.load(MEMORY, t.var("eax", 32), 4, False)
    found = States()
    assert not found.compare([t.ult(word, t.const(number, 32)) for number in range(1, FEW + 2)])
    assert not found.compare([t.eq(pointer, t.const(number, 32)) for number in range(FEW + 1)])


def test_a_counter_is_given_up_and_not_followed_again() -> None:
    found = States()
    assert found.compare([is_state(number) for number in range(FEW)])
    for number in range(MANY):
        assert not found.see(holding(number))
    assert not found.give_up()
    assert found.see(holding(MANY)) == set(range(WORD, WORD + 4))
    assert found.give_up()
    assert not found.bytes() and not found.see(holding(MANY + 1))
    assert not found.compare([is_state(number) for number in range(FEW)])


@pytest.mark.parametrize("few", [1, 1000])
@pytest.mark.parametrize(
    ("name", "kind"), [("fig10/x86-32/blast2", "proved"), ("air/ppc32-be/memname-bug-O0", "violated")]
)
def test_the_answer_is_the_same_whatever_is_followed(
    name: str, kind: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "FEW", few)
    assert cegar(program(name), 300.0).kind == kind
