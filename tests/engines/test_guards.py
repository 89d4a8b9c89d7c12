"""Flags that matter only while others are set: what is learned from where they decide, and what is kept apart then."""

from __future__ import annotations

import time

import pytest

from mcveto.dpg.location import Blocks
from mcveto.engines.simulation.apart import Item
from mcveto.engines.simulation.guards import Flag
from mcveto.engines.simulation.simulate import Simulation
from mcveto.engines.state import PathState
from mcveto.logic import terms as t

from .random_programs import DATA, RandomProgram

LOCK, HOW, OTHER = (DATA, 4), (DATA + 4, 4), (DATA + 8, 4)
X = t.var("x", 32)


@pytest.fixture
def simulation() -> Simulation:
    program = RandomProgram(b"\xf4", b"\xc3", bytes(64), False).load()
    simulation = Simulation(program, Blocks(program), time.monotonic() + 1e6, None)
    simulation._first = simulation._executor.initial()
    return simulation


def item(flag: Flag) -> Item:
    return ("memory", *flag, None)


def state(simulation: Simulation, **held: int | t.Term) -> PathState:
    made = simulation._executor.initial()
    for name, value in held.items():
        made.memory.store({"lock": LOCK, "how": HOW, "other": OTHER}[name][0], value, 4)
    return made


def decides(simulation: Simulation, flag: Flag, where: PathState) -> None:
    others = simulation._apart.guards.set_in(where)
    simulation._guess_apart(set(range(flag[0], flag[0] + flag[1])), others)


def values(simulation: Simulation, where: PathState) -> list[object]:
    return [value for number, value in simulation._apart.values(where) if number >= 0]


def test_how_a_lock_was_taken_is_kept_apart_while_it_is_held(simulation: Simulation) -> None:
    decides(simulation, LOCK, state(simulation))
    decides(simulation, HOW, state(simulation, lock=1))
    assert values(simulation, state(simulation, lock=1, how=1)) == [1, 1]
    assert values(simulation, state(simulation, lock=0, how=1)) == [0, "?"]
    assert values(simulation, state(simulation, lock=X, how=1)) == ["?", 1]
    assert simulation._apart.guards.idle_cells(state(simulation)) == set(range(HOW[0], HOW[0] + 4))
    assert not simulation._apart.guards.idle_cells(state(simulation, lock=1))


def test_what_decides_while_nothing_is_set_always_matters(simulation: Simulation) -> None:
    decides(simulation, LOCK, state(simulation))
    decides(simulation, HOW, state(simulation))
    assert values(simulation, state(simulation, lock=0, how=1)) == [0, 1]


def test_a_guard_that_was_not_set_once_is_none(simulation: Simulation) -> None:
    for flag in (LOCK, OTHER):
        decides(simulation, flag, state(simulation))
    decides(simulation, HOW, state(simulation, lock=1, other=1))
    assert values(simulation, state(simulation, lock=1, how=1)) == [1, 0, "?"]
    decides(simulation, HOW, state(simulation, lock=1))
    assert values(simulation, state(simulation, lock=1, how=1)) == [1, 0, 1]
    assert values(simulation, state(simulation, other=1, how=1)) == [0, 1, "?"]
    decides(simulation, HOW, state(simulation))
    assert values(simulation, state(simulation, how=1)) == [0, 0, 1]
    assert not simulation._apart.guards.has(HOW)


def test_bounds_of_a_path_tell_that_a_flag_is_set(simulation: Simulation) -> None:
    decides(simulation, LOCK, state(simulation))
    held = state(simulation, lock=X)
    assert not simulation._apart.guards.set_in(held)
    held.path.add(t.ult(X, t.const(2, 32)))
    held.path.add(t.ne(X, t.const(0, 32)))
    assert simulation._apart.guards.set_in(held) == {LOCK}


def test_a_guess_is_taken_back_where_a_join_forgot_the_flag(simulation: Simulation) -> None:
    decides(simulation, LOCK, state(simulation))
    decides(simulation, HOW, state(simulation, lock=1))
    sides = [state(simulation, how=how) for how in (0, 1)]
    joined = simulation._joins.joined(sides[0], sides[1], is_loop=False)
    forgotten = joined.memory.load(*HOW)
    assert isinstance(forgotten, t.Term)
    joined.path.add(t.ne(forgotten, t.const(0, 32)))
    found = simulation._apart.forgotten(joined, simulation._unknowns, simulation._queries.table)
    assert found is not None and found[0] == item(HOW)
    simulation._doubts.keep_apart(found[0])
    assert values(simulation, state(simulation, how=1)) == [0, 1]
    assert simulation._apart.forgotten(joined, simulation._unknowns, simulation._queries.table) is None
