"""Who gets how much of the time beside strategy `auto`, and what it does with what its tests find."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg import auto_driver
from mcveto.dpg.auto_driver import AutoDriver
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
