"""Small programs for tests: bytes in a code region, a data page, a stack."""

from __future__ import annotations

from mcveto.machine.address_space import AddressSpace
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import EXECUTE, READ, WRITE, RegionSpec

CODE, DATA, STACK = 0x10000, 0x20000, 0x40000
SIZE = 0x1000


def address_space(isa: str, code: bytes, *, writable_code: bool = False, data: bytes = b"") -> AddressSpace:
    """Code at CODE, known data at DATA, an unspecified stack at STACK."""
    row = decoder_for(isa).row
    permissions = READ | EXECUTE | (WRITE if writable_code else 0)
    return AddressSpace(
        [
            RegionSpec("code", CODE, max(SIZE, len(code)), permissions, code),
            RegionSpec("data", DATA, SIZE, READ | WRITE, data),
            RegionSpec("stack", STACK, SIZE, READ | WRITE, b"", ((0, SIZE),)),
        ],
        row.address_bits,
        row.big_endian,
    )
