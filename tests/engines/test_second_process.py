"""Partners in a process of their own: answers, deaths, limits and ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcveto.engines import beside
from mcveto.engines.second_process import Apart
from mcveto.limits import resident_mb
from mcveto.verdict import Verdict

VIOLATED = Verdict("violated", about="reach")


class Partners:
    """What their turns do, one after the other; then there is nobody left."""

    def __init__(self, *turns: Callable[[], Verdict | None]) -> None:
        self.turns = list(turns)
        self.taken: list[float | None] = []

    @property
    def is_over(self) -> bool:
        return not self.turns

    def turn(self, seconds: float | None) -> Verdict | None:
        self.taken.append(seconds)
        return self.turns.pop(0)() if self.turns else None


def divided(partners: Partners, memory_mb: int | None = None, seconds: float = 20.0) -> Apart:
    end = time.monotonic() + seconds

    def finish(found: Verdict) -> Verdict:
        return Verdict(found.kind, about=found.about, reason=f"by {os.getpid()}", is_internal_error=found.reason == "!")

    made: Any = partners
    return Apart(made, partners.turn, finish, lambda: end - time.monotonic(), memory_mb)


@pytest.fixture(autouse=True)
def two_processors_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a process that has run many tests before."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    monkeypatch.setattr(beside, "MOST_MEMORY", 1e6)


def test_counted_turns_are_taken_here() -> None:
    partners = Partners(lambda: None, lambda: VIOLATED)
    both = divided(partners)
    assert both(None) is None and both(None) is VIOLATED and not both.is_apart


def test_the_child_finds_and_finishes() -> None:
    partners = Partners(lambda: None, lambda: VIOLATED)
    both = divided(partners)
    both(1.0)
    assert both.is_apart
    found = both.look(10.0)
    assert found is not None and (found.kind, found.is_finished) == ("violated", True)
    assert found.reason != f"by {os.getpid()}"
    assert partners.taken == [], "the parent took no turn"
    assert not both.is_apart and both(1.0) == found and both.look() == found


def test_nothing_found_is_not_looked_for_again() -> None:
    partners = Partners(lambda: None)
    both = divided(partners)
    both(1.0)
    assert both.look(10.0) is None and not both.is_apart
    assert both(1.0) is None and both(None) is None and partners.taken == []


def test_a_defect_is_told() -> None:
    both = divided(Partners(lambda: Verdict("unknown", reason="!")))
    both(1.0)
    found = both.look(10.0)
    assert found is not None and found.is_internal_error


def die() -> Verdict | None:
    os.kill(os.getpid(), signal.SIGKILL)
    return None


@pytest.mark.parametrize("end", [die, lambda: 1 // 0])
def test_after_a_death_turns_are_taken_here(end: Callable[[], Any]) -> None:
    parent = os.getpid()
    partners = Partners(lambda: VIOLATED if os.getpid() == parent else end())
    both = divided(partners)
    both(1.0)
    assert both.look(10.0) is None and not both.is_apart
    assert both(1.0) is VIOLATED


def test_memory_is_that_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def grow() -> Verdict | None:
        held = bytearray(200 << 20)
        held[:: 1 << 12] = bytes(len(held) >> 12)
        time.sleep(20)
        return VIOLATED

    parent = os.getpid()
    partners = Partners(lambda: grow() if os.getpid() != parent else VIOLATED)
    # A child has what it makes, and of its parent's memory what is not of files: how much, differs.
    limit = int(resident_mb(parent) + 150)
    monkeypatch.setattr(beside, "SHARE_OF_MEMORY", 1.0)
    both = divided(partners, limit)
    both(1.0)
    begun = time.monotonic()
    assert both.look(15.0) is None and not both.is_apart
    assert time.monotonic() - begun < 10
    assert both(1.0) is VIOLATED


def test_no_division_of_what_is_large_or_without_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    both = divided(Partners(lambda: VIOLATED), memory_mb=int(resident_mb(os.getpid())))
    assert both(1.0) is VIOLATED and not both.is_apart
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    both = divided(Partners(lambda: VIOLATED))
    assert both(1.0) is VIOLATED and not both.is_apart


def test_it_ends_with_the_search() -> None:
    both = divided(Partners(lambda: time.sleep(60)))
    both(1.0)
    assert both._beside._watch is not None
    child = both._beside._watch._child
    both.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
