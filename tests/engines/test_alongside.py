"""Turns with explorations decide what ends, leave open what does not, and never say more than the explorations do."""

from __future__ import annotations

from pathlib import Path

import mcveto
from mcveto.engines.alongside import Alongside
from mcveto.program.program import Program

FIG10 = Path(__file__).parents[2] / "examples" / "fig10" / "x86-32"


def program(name: str) -> Program:
    return mcveto.load(spec=str(FIG10 / f"{name}.yaml"))


def test_the_first_turn_decides_what_ends_soon() -> None:
    found = Alongside(program("ex6"), 60.0).turn(None)
    assert found is not None
    assert (found.kind, found.found_by) == ("proved", "symex")


def test_a_violation_is_found() -> None:
    found = Alongside(program("simp_bad"), 60.0).turn(None)
    assert found is not None
    assert (found.kind, found.found_by) == ("violated", "symex")


def test_an_unbounded_loop_stays_open() -> None:
    turns = Alongside(program("slam1"), 60.0)
    assert turns.turn(None) is None
    assert turns.turn(0.5) is None


def test_the_same_turns_find_the_same() -> None:
    first, second = (Alongside(program("underflow"), 60.0).turn(None) for _ in range(2))
    assert first is not None and second is not None
    assert first.inputs == second.inputs
