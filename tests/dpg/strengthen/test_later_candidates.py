"""Candidates of the later stages: late iterations against iterating one by one, and candidates against the samples."""

from __future__ import annotations

from mcveto.dpg.strengthen.accelerate import accelerated
from mcveto.dpg.strengthen.by_condition import by_condition
from mcveto.dpg.strengthen.candidates import differences, open_places
from mcveto.dpg.strengthen.phases import later_candidates
from mcveto.dpg.strengthen.places import relevant_places, value_at
from mcveto.dpg.strengthen.system import System
from mcveto.dpg.strengthen.tested_conditions import comparisons, holding, scaled
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term
from tests.dpg.strengthen.test_explicit_values import explored

TURNS = 100
Cells = dict[Term, int]


def one_by_one(system: System, start: Cells) -> list[Cells]:
    """The states at the only cut point that follow each other, without acceleration."""
    (cut,) = system.cuts
    found = [start]
    for _ in range(TURNS):
        known = {place: t.const(value, place.width) for place, value in found[-1].items()}
        for step in system.steps_from[cut]:
            if step.target == cut and all(substitute(literal, known) is t.TRUE for literal in step.guard):
                found.append({place: substitute(step.pre(place), known).data for place in start})
                break
        else:
            break
    return found


def late_and_start(name: str) -> tuple[System, list[Cells], Cells]:
    _, system, _ = explored(f"loops/x86-32-O0/{name}", seeds=1)
    (cut,) = system.cuts
    places = sorted(relevant_places(system.places, system.all_steps())[cut], key=lambda place: place.serial)
    start = {place: value_at(place, system.samples.visits[cut][0]) for place in places}
    return system, accelerated(system)[cut], start


def test_late_iterations_are_those_of_a_short_loop() -> None:
    system, late, start = late_and_start("stride-unsafe")
    states = one_by_one(system, start)
    assert late and all(state in states for state in late)


def test_late_iterations_of_a_long_loop_are_in_its_second_phase() -> None:
    _, late, _ = late_and_start("stride-safe")
    values = [max(state.values()) for state in late]
    assert 0x100000 - 4 <= max(values) <= 0x100000
    assert all(value <= 0x3000 or value % 4 == 0 for value in values)


def test_a_phase_that_no_run_saw_is_described() -> None:
    _, system, _ = explored("loops/x86-32-O0/stride-safe", seeds=1)
    (cut,) = system.cuts
    (x,) = [place for place in relevant_places(system.places, system.all_steps())[cut] if place.op == "load"]
    system.samples = system.samples.with_computed(accelerated(system))
    found = by_condition(system, cut, [x], ())
    multiple = t.eq(t.band(x, t.const(3, 32)), t.const(0, 32))
    assert t.implies(t.ule(t.const(0x3000, 32), x), multiple) in found


def test_candidates_hold_in_all_samples() -> None:
    for name in ("loops/x86-32-O0/growing-safe", "loops/x86-32-O0/nested-safe"):
        _, system, _ = explored(name, seeds=4)
        relevant = relevant_places(system.places, system.all_steps())
        for cut in system.cuts:
            places = open_places(system, cut, relevant.get(cut, ()))
            proposed = [
                *differences(system, cut, places),
                *scaled(system, cut, places),
                *by_condition(system, cut, places, ()),
                *holding(system, cut, comparisons(system), ()),
            ]
            assert all(system.samples.holds(cut, candidate) for candidate in proposed)
        for candidates in later_candidates(system):
            for cut, found in candidates.items():
                assert all(system.samples.holds(cut, candidate) for candidate in found)
