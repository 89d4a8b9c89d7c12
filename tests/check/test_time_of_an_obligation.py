"""The time for one obligation holds, however many known bytes a solver has to be told."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcveto.check import discharge
from mcveto.check.obligations import Obligation

from .proofs import certificate_for, program_of


class NeverConvinced:
    """A solver whose every model contradicts another byte."""

    def __init__(self) -> None:
        self.asked = 0

    def set(self, *_: Any) -> None:
        pass

    def add(self, *_: Any) -> None:
        pass

    def check(self) -> str:
        self.asked += 1
        time.sleep(0.05)
        return "sat"

    def model(self) -> None:
        return None


def test_a_solver_is_not_asked_beyond_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discharge, "_contradicted", lambda obligation, model: [True])
    solver = NeverConvinced()
    assert discharge._z3(Obligation("nothing", (), ()), solver, 0.3) == "unknown"
    assert 1 <= solver.asked <= 7


def test_the_time_for_all_holds_within_one_location() -> None:
    name = "fig10/x86-32/share-CASE-0"
    certificate = certificate_for(name)
    assert certificate is not None
    checked = discharge.check(certificate, program_of(name).image, discharge.Effort(seconds=0.0))
    assert checked.undecided and checked.problem.startswith("not all obligations were looked at")
    assert checked.obligations <= len(certificate.locations) + 1, "not more than one of each location"
