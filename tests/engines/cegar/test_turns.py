"""Predicates in turns: as short as they may be, they find what one long turn finds, and they end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import mcveto
from mcveto.engines.cegar.turns import PredicateTurns
from mcveto.program.program import Program
from mcveto.verdict import Verdict

EXAMPLES = Path(__file__).parents[3] / "examples"
TURNS = 20_000


def program(name: str) -> Program:
    return mcveto.load(spec=str(EXAMPLES / f"{name}.yaml"))


def in_turns(partner: PredicateTurns) -> tuple[Verdict | None, int]:
    """The verdict, and how many turns that are over at once were needed."""
    for number in range(TURNS):
        verdict = partner.advance(until=time.monotonic())
        if verdict is not None:
            return verdict, number
    return None, TURNS


@pytest.mark.parametrize(
    ("name", "kind"), [("air/ppc32-be/scsi-queue-fix-O1", "proved"), ("air/ppc32-be/scsi-queue-bug-O1", "violated")]
)
def test_short_turns_find_the_same(name: str, kind: str) -> None:
    at_once = PredicateTurns(program(name), 300.0, None, must_recheck=True).advance()
    assert at_once is not None and at_once.kind == kind
    verdict, number = in_turns(PredicateTurns(program(name), 300.0, None, must_recheck=True))
    assert verdict is not None and verdict.kind == kind
    assert number > 2 or kind == "violated"


def test_a_part_of_the_time_is_all_it_gets() -> None:
    partner = PredicateTurns(program("fig10/x86-32/barber"), 0.8, None, must_recheck=True)
    verdict, _ = in_turns(partner)
    assert verdict is not None and verdict.kind == "unknown"
