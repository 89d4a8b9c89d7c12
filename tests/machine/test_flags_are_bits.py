"""Whatever an instruction leaves undefined, a flag stays 0 or 1: everything that reads flags relies on it."""

from __future__ import annotations

import random

import pytest

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import decoder_for, isa_rows

from .programs import CODE, DATA, address_space

LENGTHS = {"x86-32": 6, "x86-64": 7}
# The other byte order of what is here, too, has the same description.
OTHER_ORDERS = ("arm-be", "arm-be8", "mips32-le", "ppc32-le")


@pytest.mark.parametrize("isa", sorted(isa_rows()))
def test_flags_keep_their_width_when_fresh_values_are_all_ones(isa: str) -> None:
    decoder = decoder_for(isa)
    row, layout = decoder.row, decoder.layout
    interpreter: Interpreter[int] = Interpreter(decoder)
    rng = random.Random(isa)
    executed = 0
    for _ in range(1500 if isa in OTHER_ORDERS else 4000):
        code = rng.randbytes(LENGTHS.get(isa, 4)) + bytes(8)
        try:
            instruction = decoder.decode(CODE, code)
        except Unsupported:
            continue
        domain = ConcreteDomain(address_space(isa, code).memory(), lambda bits, origin, usual: (1 << bits) - 1)
        for name in (*row.general, *row.flags):
            (piece,) = layout.named(name)
            value = rng.choice([0, 1, DATA + 64, rng.getrandbits(64)])
            domain.registers[piece.cell.number] = value & ((1 << layout.significant_bits(piece.cell)) - 1)
        try:
            interpreter.execute(instruction, domain)
        except (Fault, Unsupported):
            continue
        executed += 1
        for cell in layout.cells:
            bits = layout.significant_bits(cell)
            if bits < cell.bits:
                assert domain.registers.get(cell.number, 0) >> bits == 0, (code.hex(), cell.name)
    assert executed > 100
