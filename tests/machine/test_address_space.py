"""The condition for an access not to fault, against the concrete check, at every address of a tiny address space."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.logic import terms as t
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.faults import Fault
from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec


@given(st.lists(st.integers(0, 7), min_size=8, max_size=8), st.sampled_from([1, 2, 4]))
@settings(max_examples=150, deadline=None)
def test_allowed_is_the_negation_of_a_fault(permissions: list[int], size: int) -> None:
    """Eight regions of eight bytes fill 6-bit addresses; no permissions stand for nothing mapped."""
    regions = [RegionSpec(f"r{i}", 8 * i, 8, bits) for i, bits in enumerate(permissions) if bits]
    space = AddressSpace(regions, 6, False)
    for needed in (READ, WRITE, EXECUTE):
        for address in range(64):
            try:
                space.check(address, size, needed)
                faults = False
            except Fault:
                faults = True
            assert (space.allowed(t.const(address, 6), size, needed) is t.FALSE) == faults


@given(
    st.lists(
        st.tuples(st.binary(max_size=8).map(lambda text: bytes(byte & 1 for byte in text)), st.integers(0, 8)),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 3)), max_size=2),
    st.integers(0, 63),
)
def test_a_uniform_range_is_the_largest_one_of_equal_known_bytes(
    parts: list[tuple[bytes, int]], unknown: list[tuple[int, int]], address: int
) -> None:
    """The oracle goes byte by byte, in both directions, without leaving the region."""
    unspecified = tuple((start, min(8, start + length)) for start, length in unknown)
    regions = [
        RegionSpec(f"r{i}", 12 * i, max(len(content), size, 1), READ, content, unspecified)
        for i, (content, size) in enumerate(parts)
    ]
    space = AddressSpace(regions, 6, False)
    byte, region = space.initial_byte(address), space.region_at(address)
    found = space.uniform_range(address)
    if byte is None or region is None:
        assert found is None
        return
    low = high = address
    while low > region.start and space.initial_byte(low - 1) == byte:
        low -= 1
    while high < region.end and space.initial_byte(high) == byte:
        high += 1
    assert found == (low, high)
