"""Random runs before, beside and after the simulation of large code: who answers, and that nothing goes on alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import mcveto
import mcveto.search as searching
from mcveto.dpg.auto_ends import Decided
from mcveto.engines import beside, runs_beside
from mcveto.engines.runs_beside import RunsBeside
from mcveto.program.program import Program
from mcveto.property.attach import attach
from mcveto.search import Question
from mcveto.verdict import Verdict

MEMORY = Path(__file__).parents[2] / "examples/memory/x86-32"
LONG_ENOUGH = 20.0
NOTHING = Verdict("unknown", reason="nothing")
VIOLATED = Verdict("violated", about="reach")
Told = list[dict[str, float | int]]


def program(name: str) -> Program:
    return attach(mcveto.load(spec=str(MEMORY / f"{name}.yaml"))).program


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a process that has run many tests before."""
    monkeypatch.setattr(beside, "MOST_MEMORY", 1e6)


def processors(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(number)), raising=False)


def thinking() -> Callable[..., Verdict]:
    """A simulation that reports now and then, and finds nothing."""

    def simulate(program: Program, seconds: float, tell: runs_beside.Tell, is_recorded: bool) -> Verdict:
        end = time.monotonic() + LONG_ENOUGH
        while time.monotonic() < end:
            tell({"turns": 1}, "")
            time.sleep(0.01)
        return NOTHING

    return simulate


def found(
    monkeypatch: pytest.MonkeyPatch, name: str, simulate: Callable[..., Verdict], told: Told, number: int = 2
) -> tuple[Verdict, float]:
    """What is found of a program that passes for large, and how long it took."""
    processors(monkeypatch, number)
    monkeypatch.setattr("mcveto.engines.simulation.size.is_large", lambda *_: True)
    monkeypatch.setattr("mcveto.engines.alongside.glance", lambda *_: None)
    monkeypatch.setattr("mcveto.engines.simulation.simulate.simulate", simulate)
    monkeypatch.setattr(searching, "_engine", lambda *_: NOTHING)
    begun = time.monotonic()
    end = begun + LONG_ENOUGH
    verdict = searching._found(
        program(name), Question(seed=7), lambda: end - time.monotonic(), lambda counts, place: told.append(counts)
    )
    return verdict, time.monotonic() - begun


def test_what_runs_show_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    told: Told = []
    monkeypatch.setattr(searching, "_by_runs", lambda *_: None)
    verdict, seconds = found(monkeypatch, "negative-bug", thinking(), told)
    assert (verdict.kind, verdict.found_by) == ("violated", "runs") and verdict.inputs
    assert seconds < LONG_ENOUGH / 2
    assert {"turns": 1} in told, "the simulation's reports are passed on"


def test_a_proof_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_by_runs", lambda *_: None)
    verdict, seconds = found(monkeypatch, "negative-safe", lambda *_: Verdict("proved"), [])
    assert (verdict.kind, verdict.found_by) == ("proved", "simulation") and seconds < LONG_ENOUGH / 2


@pytest.mark.parametrize("number", [1, 2])
def test_runs_go_on_after_the_simulation(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """In the second process, or in this one if there is only one processor; then with other inputs than before."""
    seeds: list[int] = []
    parent = os.getpid()

    def runs(program: Program, seconds: float, seed: int, *_: object) -> Verdict:
        seeds.append(seed)
        if os.getpid() != parent:
            time.sleep(0.5)
            return replace(VIOLATED, reason=f"seed {seed}")
        return VIOLATED if len(seeds) > 1 else NOTHING

    monkeypatch.setattr("mcveto.engines.random_runs.random_runs", runs)
    monkeypatch.setattr(runs_beside, "random_runs", runs)
    verdict, _ = found(monkeypatch, "negative-bug", lambda *_: NOTHING, [], number)
    assert (verdict.kind, verdict.found_by) == ("violated", "runs")
    assert seeds == ([7, 8] if number == 1 else []) and (number == 1 or verdict.reason == "seed 7")


def test_what_runs_do_not_show_is_left_to_other_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcveto.engines.random_runs.random_runs", lambda *_: NOTHING)
    monkeypatch.setattr(runs_beside, "random_runs", lambda *_: NOTHING)
    verdict, seconds = found(monkeypatch, "negative-bug", lambda *_: NOTHING, [])
    assert verdict is NOTHING and seconds < LONG_ENOUGH / 2


def test_runs_end_with_what_they_accompany(monkeypatch: pytest.MonkeyPatch) -> None:
    processors(monkeypatch, 2)
    asked = program("negative-safe")
    with pytest.raises(ZeroDivisionError), RunsBeside(asked, LONG_ENOUGH, 0, None) as runs:
        assert runs.are_running and runs.look() is None
        assert runs._beside._watch is not None
        child = runs._beside._watch._child
        raise ZeroDivisionError
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_one_processor_is_left_to_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    processors(monkeypatch, 1)
    told: Told = []
    with RunsBeside(program("negative-bug"), LONG_ENOUGH, 0, None) as runs:
        assert not runs.are_running and runs.look(0.1) is None
        runs.watched(lambda counts, place: told.append(counts))({"turns": 1}, "")
    assert told == [{"turns": 1}]


def test_a_report_says_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    processors(monkeypatch, 2)
    with RunsBeside(program("negative-bug"), LONG_ENOUGH, 0, None) as runs:
        assert runs.look(LONG_ENOUGH) is not None and not runs.are_running
        with pytest.raises(Decided) as decided:
            runs.watched(lambda counts, place: None)({}, "")
    assert decided.value.verdict.kind == "violated"
