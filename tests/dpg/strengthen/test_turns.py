"""Who gets how much of the time beside strategy `auto`, and what it does with what its tests find."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg import auto_driver
from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.auto_ends import Decided
from mcveto.dpg.driver import Limits
from mcveto.dpg.strengthen import pdr
from mcveto.dpg.strengthen.explicit_values import Explicit, ExplicitValues
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.verdict import Verdict

EXAMPLES = Path(__file__).parents[3] / "examples"


def example() -> Program:
    return load_program(None, load_spec(str(EXAMPLES / "loops/x86-32-O0/handshake-safe.yaml")))


@pytest.mark.parametrize(("most", "asked"), [(10**6, 1), (0, 0)])
def test_what_is_large_is_not_split_for_a_few_seconds(most: int, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    splits: list[Limits] = []

    def otherwise(limits: Limits, is_recursive: bool) -> Verdict:
        splits.append(limits)
        return Verdict("unknown", reason="too many nodes")

    monkeypatch.setattr(auto_driver, "PAUSE_AFTER", 0.0)
    monkeypatch.setattr(auto_driver, "MANY_LOCATIONS", most)
    driver = AutoDriver(example(), Limits(seconds=60), otherwise=otherwise)
    assert driver.run().kind == "proved"
    assert len(splits) == asked


def test_those_who_found_nothing_get_less(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[float | None] = []

    def alongside(seconds: float | None) -> None:
        turns.append(seconds)

    driver = AutoDriver(example(), Limits(seconds=6000), alongside=alongside)
    driver._take_turns(None)
    for _ in range(8):
        driver._own_since -= 100.0
        driver._pause()
    shares = [round(seconds / 100, 1) for seconds in turns if seconds is not None]
    assert shares == [0.7] * 4 + [0.5] * 4


@pytest.mark.parametrize(("spent", "until"), [(3.0, 8.0), (50.0, 75.0)])
def test_a_proof_in_hand_is_told_before_the_time_is_over(spent: float, until: float) -> None:
    """As much time again is for a better one, but only half of what is left: nobody waits longer than that."""
    held = Verdict("proved", reason="in hand")
    driver = AutoDriver(example(), Limits(seconds=100), alongside=lambda _: held, is_final=lambda _: False)
    driver._started -= spent
    driver._take_turns(1.0)
    assert driver._limits.seconds == pytest.approx(until, abs=0.5)
    driver._started -= until
    assert driver.run().reason == "in hand"


@pytest.mark.parametrize("recurses", [True, False])
def test_a_path_is_a_shorter_proof_than_all_call_strings(recurses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_driver, "MANY_LOCATIONS", 0)
    monkeypatch.setattr(auto_driver, "FIRST_TURN", 1000.0)
    monkeypatch.setattr(AutoDriver, "_is_recursive", lambda self: recurses)

    def alongside(seconds: float | None) -> Verdict | None:
        return Verdict("proved", reason="a path") if seconds is not None else None

    driver = AutoDriver(example(), Limits(seconds=100), alongside=alongside, is_final=lambda _: True)
    assert (driver.run().reason == "a path") == recurses


def test_summaries_that_could_not_end_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def by_summaries(seconds: float) -> Verdict | None:
        asked.append(seconds)
        return answers.pop(0)

    monkeypatch.setattr(auto_driver, "RECURSION_AFTER", 0.0)
    monkeypatch.setattr(AutoDriver, "_is_recursive", lambda self: True)
    out_of_time, proved = Verdict("unknown", reason="time-out"), Verdict("proved", reason="summaries")
    for answers, times in (([out_of_time, proved], 2), ([None, proved], 1), ([out_of_time, out_of_time, proved], 2)):
        asked.clear()
        driver = AutoDriver(example(), Limits(seconds=100), by_summaries=by_summaries)
        decided = None
        for _ in range(4):
            try:
                driver._pause()
            except Decided as found:
                decided = found.verdict
                break
            driver._summaries_from -= 1.0
        assert len(asked) == times
        assert (decided is proved) == (times == 2 and not answers)
        if times == 2:
            assert asked[1] == pytest.approx(2 * asked[0], rel=0.1)


def test_summaries_are_not_asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not end in its time leaves as much to others first."""
    asked: list[float] = []
    clock = [1000.0]

    class Clock:
        monotonic = staticmethod(lambda: clock[0])

    def by_summaries(seconds: float) -> Verdict | None:
        asked.append(seconds)
        clock[0] += 7.0
        return Verdict("unknown", reason="time-out")

    monkeypatch.setattr(auto_driver, "time", Clock)
    monkeypatch.setattr(AutoDriver, "_is_recursive", lambda self: True)
    monkeypatch.setattr(AutoDriver, "_remaining", lambda self: 50.0)
    driver = AutoDriver(example(), Limits(seconds=100), by_summaries=by_summaries)
    driver._summaries_from = 0.0
    for now, times in ((1000.0, 1), (1013.0, 1), (1015.0, 2), (1100.0, 2)):
        clock[0] = now
        driver._pause()
        assert len(asked) == times


def test_code_is_added_when_a_test_has_found_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or each state of a protocol would take a round of its own."""
    added: list[object] = []

    class Recorded(AutoDriver):
        def _look_behind(self, stages: object) -> bool:
            added.append(stages)
            return True

        def _follow(self, path: pdr.Path) -> str:
            return "explored"

        def _size(self) -> int:
            return next(sizes)

    monkeypatch.setattr(ExplicitValues, "search", lambda self: Explicit(paths=[pdr.Path(())]))
    monkeypatch.setattr(ExplicitValues, "__init__", lambda self, *_: None)

    class Stages:
        system = None

        def open_exits(self) -> list[object]:
            return []

    for grows in (True, False):
        sizes = iter((1, 1 + grows, 1 + grows))
        driver = Recorded(example(), Limits(seconds=60))
        found = driver._explicit(Stages())  # type: ignore[arg-type]
        assert found == ([] if grows else None)
        assert len(added) == 1
