"""A simulation that is interrupted answers as one that is not; its certificate comes second."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

import mcveto
from mcveto.engines.simulation import by_turns
from mcveto.engines.simulation.by_turns import SimulatedByTurns, simulate_twice
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.program.program import Program
from mcveto.search import Question, search
from mcveto.verdict import Verdict

AIR = Path(__file__).parents[2] / "examples" / "air" / "ppc32-be"


def program(name: str) -> Program:
    return mcveto.load(spec=str(AIR / f"{name}.yaml"))


@pytest.mark.parametrize("name", ["raid-poll-fix-O1", "lan-interrupt-bug-O2", "scsi-queue-fix-O0"])
def test_interrupted_it_finds_the_same(name: str) -> None:
    turns = SimulatedByTurns(program(name), time.monotonic() + 60.0)
    found, interrupted = None, -1
    while found is None:
        interrupted += 1
        found = turns.advance(time.monotonic() + 0.002)
    alone = simulate(program(name), 60.0)
    assert interrupted > 0
    assert (found.kind, found.at, found.inputs) == (alone.kind, alone.at, alone.inputs)
    assert (found.proof is None) == (alone.proof is None)


def test_what_took_long_is_a_proof_without_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_turns, "LONGEST_RECORD", 0.0)
    found = simulate_twice(program("raid-poll-fix-O1"), 60.0, None, must_record=False)
    assert found.kind == "proved" and found.proof is None
    asked_for = simulate_twice(program("raid-poll-fix-O1"), 60.0, None, must_record=True)
    assert asked_for.kind == "proved" and asked_for.proof is not None


def test_what_is_not_a_proof_is_not_simulated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Verdict("unknown", reason="may be reached")
    monkeypatch.setattr(Simulation, "advance", lambda *_: unknown)
    monkeypatch.setattr(by_turns, "simulate", lambda *_: pytest.fail("asked again"))
    assert simulate_twice(program("raid-poll-fix-O1"), 60.0, None, must_record=True) is unknown


def test_no_time_is_a_time_out() -> None:
    found = simulate_twice(program("raid-poll-fix-O1"), 0.0, None, must_record=False)
    assert (found.kind, found.reason) == ("unknown", "time-out")


@pytest.mark.parametrize("name", ["raid-poll-fix-O1", "memname-bug-O1"])
def test_an_invariant_that_nobody_can_check_is_not_the_last_word(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the checker cannot tell, another proof is looked for; there is none where the property does not hold."""

    def supported(_: object, verdict: Verdict, *__: object) -> Verdict:
        if verdict.found_by == "simulation":
            return replace(verdict, proof=None)
        return replace(verdict, kind="unknown", reason="self-check: not decided", proof=None)

    monkeypatch.setattr("mcveto.search._found", lambda *_: Verdict("proved", found_by="dpg"))
    monkeypatch.setattr("mcveto.self_check.supported", supported)
    verdict = search(lambda: program(name), Question(timeout=60)).verdict
    expected = ("proved", "") if "fix" in name else ("unknown", "self-check: not decided")
    assert (verdict.kind, verdict.reason) == expected
