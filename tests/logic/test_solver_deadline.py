"""The limit of a query is about the work it does; a busy machine must not change what is decided."""

from __future__ import annotations

import time

import pytest

from mcveto.logic import terms as t
from mcveto.logic.solver.bitwuzla_backend import WAITING, BitwuzlaSolver


class Clocks:
    def __init__(self) -> None:
        self.worked = 100.0
        self.waited = 1000.0


def asked(monkeypatch: pytest.MonkeyPatch) -> tuple[BitwuzlaSolver, Clocks]:
    clocks = Clocks()
    monkeypatch.setattr(time, "thread_time", lambda: clocks.worked)
    monkeypatch.setattr(time, "monotonic", lambda: clocks.waited)
    solver = BitwuzlaSolver()
    assert solver.check([t.eq(t.var("x", 8), t.const(3, 8))], 2.0) == "sat"
    return solver, clocks


def test_waiting_alone_does_not_end_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    solver, clocks = asked(monkeypatch)
    clocks.waited += 2.0 * WAITING - 0.1
    assert not solver._expired()
    clocks.waited += 0.2
    assert solver._expired()


def test_work_ends_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    solver, clocks = asked(monkeypatch)
    clocks.worked += 1.9
    clocks.waited += 2.1
    assert not solver._expired()
    clocks.worked += 0.2
    assert solver._expired()
