"""The part of an invariant that a proof needs: it is inductive, excludes the exits, and says little by cases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mcveto.dpg import auto_driver
from mcveto.dpg.auto_driver import AutoDriver
from mcveto.dpg.driver import Limits
from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.inductive_core import inductive_core
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec

EXAMPLES = Path(__file__).parents[3] / "examples"


def proves(system: System, invariants: Mapping[Location, list[Term]]) -> bool:
    """The oracle: every step from the invariants ends in them, and no exit can be taken."""
    for step in system.all_steps():
        known = [] if step.source is None else invariants[step.source]
        wanted = t.FALSE if step.target is None else step.pre(t.conj(invariants[step.target]))
        if not system.queries.refutes([*known, *step.own_guard, t.bnot(wanted)], step.source is None, 10):
            return False
    return True


def by_cases(literal: Term) -> Term:
    places = [term for term in t.postorder([literal]) if term.op == "load"]
    return t.disj([literal, *(t.eq(place, t.const(5, place.width)) for place in places[:1])])


@pytest.mark.parametrize("name", ["loops/x86-32-O0/growing-safe"])
def test_a_core_proves_and_says_nothing_by_cases(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cores: list[bool] = []

    def looked_at(system: System) -> dict[Location, list[Term]] | None:
        for cut, found in system.invariants.items():
            # Weaker than what is known, and the first to be found where conjuncts are taken as they come.
            system.invariants[cut] = {**dict.fromkeys(map(by_cases, found)), **found}
        core = inductive_core(system)
        assert core is not None and proves(system, core)
        cores.append(any(literal.op == "or" for found in core.values() for literal in found))
        return core

    monkeypatch.setattr(auto_driver, "inductive_core", looked_at)
    program = load_program(None, load_spec(str(EXAMPLES / f"{name}.yaml")))
    assert AutoDriver(program, Limits(seconds=60)).run().kind == "proved"
    assert cores == [False]
