"""Bounds by powers of two: against the samples, and a loop whose sum has no other bound that is easy to name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.auto_ends import GiveUp
from mcveto.dpg.driver import Limits
from mcveto.dpg.strengthen import phases, stages
from mcveto.dpg.strengthen.candidates import open_places
from mcveto.dpg.strengthen.coarse_bounds import coarse_bounds
from mcveto.dpg.strengthen.houdini import Candidates
from mcveto.dpg.strengthen.places import relevant_places
from mcveto.dpg.strengthen.system import System
from mcveto.dpg.strengthen.tested_conditions import factors_of
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.program.program import Program
from tests.dpg.blob_program import blob_program
from tests.dpg.strengthen.test_explicit_values import explored

# y = input(); if (-1000 < y < 1000000) { x = -50; while (x < 0) { x += y; y++; } if (y <= 0) target(); }
CODE = "e8220000003d18fcffff7e1a3d40420f007d13b9ceffffff85c9790501c140ebf785c07f01f4c3c3"


def program(folder: Path) -> Program:
    content = bytes.fromhex(CODE)
    return blob_program(folder, content, 0x1027, 0x1025)


def test_the_bound_that_is_needed_is_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proposed: set[Term] = set()

    def propose(system: System) -> Iterator[Candidates]:
        for found in phases.later_candidates(system):
            proposed.update(*found.values())
            yield {}

    monkeypatch.setattr(stages, "later_candidates", propose)
    monkeypatch.setattr(AutoDriver, "_look_behind", lambda *_: (_ for _ in ()).throw(GiveUp("enough")))
    AutoDriver(program(tmp_path), Limits(seconds=60)).run()
    x, y = t.var("ECX", 32), t.var("EAX", 32)
    falls = t.add(x, t.mul(t.const(1000, 32), y))
    assert t.sle(t.const(-(1 << 20), 32), falls) in proposed


@pytest.mark.slow
def test_a_sum_that_falls_before_it_rises(tmp_path: Path) -> None:
    assert AutoDriver(program(tmp_path), Limits(seconds=120)).run().kind == "proved"


@pytest.mark.slow
def test_nothing_else_proves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "coarse_bounds", lambda *_: [])
    assert AutoDriver(program(tmp_path), Limits(seconds=20)).run().kind == "unknown"


def test_candidates_hold_in_all_samples_and_are_as_coarse_as_they_should_be() -> None:
    _, system, _ = explored("loops/x86-32-O0/growing-safe", seeds=4)
    relevant = relevant_places(system.places, system.all_steps())
    for cut in system.cuts:
        found = coarse_bounds(system, cut, open_places(system, cut, relevant.get(cut, ())))
        assert found and all(system.samples.holds(cut, candidate) for candidate in found)
        numbers = {abs(t.signed(x.data, x.width)) for one in found for x in one.args if x.op == "const"}
        powers = {min((16, 20, 24, 28, 30), key=lambda n: abs((1 << n) - number)) for number in numbers}
        assert {16, 30} <= powers and all(min(abs((1 << n) - number) for n in powers) <= 1 for number in numbers)


def test_factors_are_the_programs_numbers_and_not_their_neighbours() -> None:
    assert factors_of([-1001, -1000, -999, 6, 7, 8, 99_999, 100_000, 100_001]) == [7, 1000]
