"""What is at a place of which nothing is known: one name in all states that come from where it became unknown."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from mcveto.engines.simulation.coarse_memory import MOST_RANGES, CoarseMemory, Unknowns
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ, WRITE, RegionSpec

START, SIZE = 0x1000, 16


def memory(unknowns: Unknowns) -> CoarseMemory:
    space = AddressSpace([RegionSpec("data", START, START + SIZE, READ | WRITE, b"")], 32, False)
    return CoarseMemory(space, unknowns)


def unrecorded() -> Unknowns:
    unknowns = Unknowns()
    unknowns.is_recorded = False
    return unknowns


@dataclass
class Real:
    """A state, one of the memories it stands for, and what its variables are then."""

    abstract: CoarseMemory
    bytes: bytearray
    values: dict[Term, int]

    def fork(self) -> Real:
        return Real(self.abstract.copy(), bytearray(self.bytes), dict(self.values))

    def read(self, offset: int, size: int) -> None:
        content = int.from_bytes(self.bytes[offset : offset + size], "little")
        found = self.abstract.load(START + offset, size)
        if isinstance(found, int):
            assert found == content
        elif found.op == "var":
            assert self.values.setdefault(found, content) == content


steps = st.lists(
    st.tuples(
        st.sampled_from(["fork", "store", "forget", "read"]),
        st.integers(0, 3),
        st.integers(0, SIZE // 4 - 1).map(lambda word: 4 * word),
        st.sampled_from([1, 4]),
        st.integers(0, 255),
    ),
    max_size=40,
)


@given(steps)
def test_a_name_stands_for_one_content_in_every_state(script: list[tuple[str, int, int, int, int]]) -> None:
    states = [Real(memory(unrecorded()), bytearray(SIZE), {})]
    for what, which, offset, size, value in script:
        state = states[which % len(states)]
        if what == "fork" and len(states) < 4:
            states.append(state.fork())
        elif what == "store":
            state.abstract.store(START + offset, value, size)
            state.bytes[offset : offset + size] = value.to_bytes(size, "little")
        elif what == "forget":
            state.abstract.forget(START + offset, START + offset + size)
            state.bytes[offset : offset + size] = bytes((value + i) % 256 for i in range(size))
        elif what == "read":
            state.read(offset, size)


def test_states_that_fork_read_the_same() -> None:
    first = memory(unrecorded())
    first.forget(START, START + SIZE)
    second = first.copy()
    second.forget(START + 8, START + 12)
    assert first.load(START, 4) is second.load(START, 4)
    assert first.load(START + 8, 4) is not second.load(START + 8, 4)
    third = second.copy()
    third.store(START + 12, 7, 4)
    assert third.load(START + 12, 4) == 7 and first.load(START + 12, 4) is second.load(START + 12, 4)


def test_what_became_unknown_often_is_not_listed_for_ever() -> None:
    first = memory(unrecorded())
    first.forget(START, START + SIZE)
    second = first.copy()
    for _ in range(MOST_RANGES):
        second.forget(START, START + 4)
    assert first.load(START + 8, 4) is second.load(START + 8, 4)
    for offset in range(MOST_RANGES + 1):
        second.forget_cells([(START + offset, START + offset + 2)])
    assert len(second._later) <= MOST_RANGES
