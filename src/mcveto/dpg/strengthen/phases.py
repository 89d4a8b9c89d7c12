"""The later stages of candidates: what needs samples from late iterations, or the program's own comparisons.

More than the first stages propose and less often needed, so that they come after those, from cheap to expensive. Every
stage sees what the ones before it left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.accelerate import accelerated
from mcveto.dpg.strengthen.arrays import Arrays
from mcveto.dpg.strengthen.by_condition import by_condition
from mcveto.dpg.strengthen.candidates import bounds, differences, open_places, relations
from mcveto.dpg.strengthen.cells import all_cells
from mcveto.dpg.strengthen.coarse_bounds import coarse_bounds
from mcveto.dpg.strengthen.halves import as_numbers, lower_halves
from mcveto.dpg.strengthen.houdini import Candidates
from mcveto.dpg.strengthen.k_induction import with_earlier
from mcveto.dpg.strengthen.places import relevant_places
from mcveto.dpg.strengthen.products import multiplies, product_relations
from mcveto.dpg.strengthen.quantified import instantiate
from mcveto.dpg.strengthen.quantities import quantities, quantity_relations
from mcveto.dpg.strengthen.system import System
from mcveto.dpg.strengthen.tested_conditions import comparisons, holding, scaled
from mcveto.logic.terms import Term

LIMITS_PER_SIDE = 6
# Candidates that are tried with their preconditions.
MAX_UNSURE = 150


def later_candidates(system: System) -> Iterator[Candidates]:
    """Candidates stage by stage; between them the caller keeps what is inductive."""
    places = _places(system)
    sampled = system.samples.with_computed(accelerated(system))
    simple = partial(_simple, system, places, comparisons(system))

    if any(step.state.writes_through_pointers() for step in system.all_steps()):
        arrays = Arrays(system)
        for exact in (True, False):
            yield {cut: dict.fromkeys(all_cells(system, arrays, cut, places[cut], exact)) for cut in system.cuts}
            instantiate(system)
            yield {}
    stages: list[Callable[[Location], list[Term]]] = [
        simple,
        lambda cut: [*simple(cut), *differences(system, cut, places[cut])],
        lambda cut: by_condition(system, cut, places[cut], system.invariants[cut]),
        lambda cut: [*simple(cut), *scaled(system, cut, places[cut])],
        lambda cut: [
            *simple(cut),
            *coarse_bounds(system, cut, places[cut]),
            *by_condition(system, cut, places[cut], system.invariants[cut]),
        ],
    ]
    computed = quantities(system, places)
    if computed:
        stages.insert(2, lambda cut: [*simple(cut), *quantity_relations(system, cut, places[cut], computed)])
    if multiplies(term for step in system.all_steps() for term in step.guard):
        stages.insert(0, lambda cut: [*simple(cut), *product_relations(system, cut, places[cut])])
    for stage in stages:
        before, system.samples = system.samples, sampled
        try:
            found = {cut: dict.fromkeys(stage(cut)) for cut in system.cuts}
        finally:
            system.samples = before
        yield found


def with_preconditions(system: System) -> Candidates | None:
    """Simple candidates, with what must hold a step before; None if there are many."""
    simple = partial(_simple, system, _places(system), comparisons(system))
    unsure = {
        cut: dict.fromkeys(one for one in simple(cut) if one not in system.invariants[cut]) for cut in system.cuts
    }
    return with_earlier(system, unsure) if sum(map(len, unsure.values())) <= MAX_UNSURE else None


def _places(system: System) -> dict[Location, list[Term]]:
    relevant = relevant_places(system.places, system.all_steps())
    found = {cut: open_places(system, cut, relevant.get(cut, ())) for cut in system.cuts}
    halves = lower_halves(system, list(dict.fromkeys(place for places in found.values() for place in places)))
    return {cut: as_numbers(system, cut, places, halves) for cut, places in found.items()}


def _simple(
    system: System, places: Mapping[Location, list[Term]], conditions: Sequence[Term], cut: Location
) -> list[Term]:
    """Often not inductive alone: proposed again with what may be missing."""
    return [
        *bounds(system, cut, places[cut], LIMITS_PER_SIDE),
        *relations(system, cut, places[cut]),
        *holding(system, cut, conditions, system.invariants[cut]),
    ]
