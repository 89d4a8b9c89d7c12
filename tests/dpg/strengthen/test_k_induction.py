"""k-induction: preconditions against stepping concretely, and what it finds against ordinary induction."""

from __future__ import annotations

import random

import pytest

from mcveto.dpg.strengthen.big_steps import BigStep
from mcveto.dpg.strengthen.houdini import surviving
from mcveto.dpg.strengthen.interpolants import path_interpolants
from mcveto.dpg.strengthen.k_induction import before, k_inductive, with_earlier
from mcveto.dpg.strengthen.places import value_at
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term
from tests.dpg.strengthen.test_explicit_values import explored

CASES = ("delay-safe", "lock-safe", "modes-safe")


def open_exits(system: System) -> list[int]:
    """The numbers of the exits that the invariants do not exclude."""
    found = []
    for number, step in enumerate(system.exits()):
        known = list(system.invariants[step.source]) if step.source is not None else []
        if not system.queries.refutes([*step.guard, *known], step.source is None):
            found.append(number)
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_it_finds_is_inductive_and_excludes_the_exits(name: str) -> None:
    _, system, _ = explored(f"loops/x86-32-O0/{name}", seeds=8)
    still_open = open_exits(system)
    found = k_inductive(system, [system.exits()[number] for number in still_open])
    assert still_open and found is not None
    proposed = {cut: dict(clauses) for cut, clauses in found.items()}
    kept = surviving(system, proposed, background=system.invariants)
    assert kept == found
    for cut, clauses in kept.items():
        system.invariants[cut].update(clauses)
    assert not open_exits(system)


def test_the_property_alone_is_not_inductive() -> None:
    _, system, _ = explored("loops/x86-32-O0/delay-safe", seeds=8)
    exits = [system.exits()[number] for number in open_exits(system)]
    alone = {cut: {t.bnot(t.conj(step.guard)): None for step in exits if step.source == cut} for cut in system.cuts}
    assert not any(surviving(system, alone, background=system.invariants).values())


def test_a_violation_is_not_k_inductive() -> None:
    _, system, _ = explored("loops/x86-32-O0/delay-unsafe", seeds=1)
    system.samples.visits = {cut: [] for cut in system.cuts}
    exits = [system.exits()[number] for number in open_exits(system)]
    found = k_inductive(system, exits)
    assert exits
    if found is not None:  # the step into the first turns is asked by Houdini
        assert surviving(system, {cut: dict(clauses) for cut, clauses in found.items()}) != found


def test_a_precondition_says_what_a_step_does() -> None:
    _, system, _ = explored("loops/x86-32-O0/delay-safe", seeds=3)
    (cut,) = system.cuts
    rng = random.Random(5)
    checked = 0
    for step in system.into(cut):
        for place in sorted(system.places.of_all(step.guard), key=lambda place: place.serial):
            for clause in (t.eq(t.band(place, t.const(3, place.width)), t.const(0, place.width)), t.ule(place, place)):
                checked += sum(_agrees(system, step.pre(clause), before(step, clause), step, rng) for _ in range(40))
    assert checked


def _agrees(system: System, behind: Term, earlier: Term, step: BigStep, rng: random.Random) -> bool:
    """Whether a random state was one in which the precondition holds and the step is taken; the clause must follow."""
    leaves = {leaf for leaf in t.free_variables([behind, earlier, *step.guard]) if leaf.width}
    chosen = {leaf: t.const(rng.getrandbits(leaf.width), leaf.width) for leaf in sorted(leaves, key=lambda x: x.serial)}
    for place in system.places.of_all([behind, earlier, *step.guard]):
        chosen[place] = t.const(rng.choice((0, rng.getrandbits(place.width))), place.width)
    if substitute(earlier, chosen) is not t.TRUE:
        return False
    if any(substitute(literal, chosen) is not t.TRUE for literal in step.guard):
        return False
    assert substitute(behind, chosen) is t.TRUE
    return True


def test_candidates_with_their_preconditions_hold_in_the_samples() -> None:
    _, system, _ = explored("loops/x86-32-O0/modes-safe", seeds=8)
    (cut,) = system.cuts
    place = min(system.places.of_all(system.exits()[0].guard), key=lambda found: found.serial)
    highest = max(value_at(place, witness) for witness in system.samples.visits[cut])
    clause = t.ule(place, t.const(highest, place.width))
    found = with_earlier(system, {cut: {clause: None}})
    assert clause in found[cut] and all(system.samples.holds(cut, one) for one in found[cut])


@pytest.mark.parametrize("name", ["parity-safe", "twins-safe"])
def test_interpolants_of_short_paths_can_be_enough(name: str) -> None:
    _, system, _ = explored(f"loops/x86-32-O0/{name}", seeds=8)
    exits = [system.exits()[number] for number in open_exits(system)]
    found = path_interpolants(system, exits)
    assert exits and any(found.values())
    for cut, clauses in found.items():
        assert all(system.samples.holds(cut, clause) for clause in clauses)
    for cut, clauses in surviving(system, found, background=system.invariants).items():
        system.invariants[cut].update(clauses)
    assert not open_exits(system)
