"""A long path is cut short: what was computed becomes a number, an input that nothing was made of stays open."""

from __future__ import annotations

from mcveto.engines.memory import ByteOf
from mcveto.engines.path import KeyTable, Path
from mcveto.engines.queries import Model
from mcveto.engines.simulation.representatives import LateMemory, freeze
from mcveto.engines.state import PathState
from mcveto.logic import terms as t
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import RegionSpec

MODE, USED, INDEX, GONE = (t.var(f"in!{number}", 32) for number in range(4))
SPACE = AddressSpace([RegionSpec("data", 0x1000, 256, 6)], 32, True)


def frozen(*conditions: t.Term) -> PathState:
    table = KeyTable(t.memory("mem", 32))
    memory = LateMemory(SPACE)
    memory.base = t.memory("mem", 32)
    for place in range(4):
        memory.cells[0x1000 + place] = ByteOf(MODE, 3 - place)
        memory.cells[0x1010 + place] = ByteOf(t.add(USED, t.const(5, 32)), 3 - place)
    memory.late = ((t.add(t.mul(INDEX, t.const(4, 32)), t.const(0x1020, 32)), MODE, 4, 0x1020, 0x1040),)
    model = Model({MODE: 9, USED: 2, INDEX: 3, GONE: 1}, {}, lambda _: None, lambda _: 0)
    state = PathState(0, {1: MODE, 2: t.add(USED, INDEX), 3: 77}, memory, Path(table, conditions), None, model)
    freeze(state, table)
    return state


def test_inputs_stay_open_and_what_was_computed_does_not() -> None:
    state = frozen()
    assert state.registers == {1: MODE, 2: 5, 3: 77}
    memory = state.memory
    assert memory.load(0x1000, 4) is MODE and memory.load(0x1010, 4) == 7
    assert isinstance(memory, LateMemory) and not memory.late
    assert memory.load(0x102C, 4) is MODE  # the store that was put off, where the inputs make it


def test_conditions_about_what_stays_open_are_kept_with_the_rest_filled_in() -> None:
    small, sum_of_both = t.ult(MODE, t.const(100, 32)), t.ult(t.add(MODE, USED), t.const(50, 32))
    state = frozen(small, sum_of_both, t.eq(USED, t.const(2, 32)), t.ult(GONE, t.const(3, 32)))
    assert set(state.path.terms) == {small, t.ult(t.add(MODE, t.const(2, 32)), t.const(50, 32))}
    assert state.model is not None and all(state.model.value(term) for term in state.path.terms)


def test_too_many_conditions_freeze_what_they_are_about() -> None:
    state = frozen(*(t.bnot(t.eq(MODE, t.const(number, 32))) for number in range(100, 200)))
    assert state.registers[1] == 9 and state.memory.load(0x1000, 4) == 9 and not state.path.terms
