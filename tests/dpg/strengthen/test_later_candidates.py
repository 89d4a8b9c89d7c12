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

TURNS = 13_000
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


def test_late_iterations_are_those_of_the_loop() -> None:
    _, system, _ = explored("loops/x86-32-O0/stride-safe")
    (cut,) = system.cuts
    places = sorted(relevant_places(system.places, system.all_steps())[cut], key=lambda place: place.serial)
    start = {place: value_at(place, system.samples.visits[cut][0]) for place in places}
    states = one_by_one(system, start)
    late = accelerated(system)[cut]
    assert max(max(state.values()) for state in late) > 0x3000
    for state in late:
        if max(state.values()) <= 0x3000 + 4:  # as far as the naive iteration goes
            assert state in states


def test_a_phase_that_no_run_saw_is_described() -> None:
    _, system, _ = explored("loops/x86-32-O0/stride-safe")
    (cut,) = system.cuts
    (x,) = [place for place in relevant_places(system.places, system.all_steps())[cut] if place.op == "load"]
    system.samples = system.samples.with_computed(accelerated(system))
    found = by_condition(system, cut, [x], ())
    multiple = t.eq(t.band(x, t.const(3, 32)), t.const(0, 32))
    assert t.implies(t.ule(t.const(0x3000, 32), x), multiple) in found


def test_candidates_hold_in_all_samples() -> None:
    for name in ("loops/x86-32-O0/growing-safe", "loops/x86-32-O0/nested-safe", "loops/x86-32-O0/updown-safe"):
        _, system, _ = explored(name)
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
