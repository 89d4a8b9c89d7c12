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
