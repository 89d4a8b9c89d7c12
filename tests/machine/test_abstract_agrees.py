"""The abstract domains agree with the concrete one on every instruction set: what they say of a register is so.

Instructions are those compilers emitted for the bundled examples, in random order, from random states of which the
domains know nothing (affine: the identity) or an interval around each register (strided).
"""

from __future__ import annotations

import random

import pytest

from mcveto.machine import strided
from mcveto.machine.affine import AffineDomain, AffineValue, Form
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import decoder_for
from mcveto.machine.strided_domain import StridedDomain, StridedValue
from mcveto.machine.tracked_cells import MemoryCell
from mcveto.program.image import load_image

from .along_runs import RecordingDomain
from .programs import CODE, DATA, SIZE, STACK, address_space
from .test_symbolic_agrees import BINARIES, EXAMPLES, straight_instructions


def value_of(form: Form, before: list[int]) -> int:
    total = form.constant + sum(factor * before[number] for number, factor in form.terms)
    return total & ((1 << form.bits) - 1)


def around(value: int, bits: int, rng: random.Random) -> strided.StridedInterval:
    choice = rng.randrange(4)
    if choice < 2:
        return strided.singleton(value, bits) if choice else strided.top(bits)
    number, half = strided.signed(value, bits), 1 << (bits - 1)
    stride = rng.choice([1, 4, 12])
    low, high = number - stride * rng.randrange(5), number + stride * rng.randrange(5)
    return strided.wrapped(bits, max(low, number - (number + half) // stride * stride), min(high, half - 1), stride)


@pytest.mark.parametrize("name", BINARIES)
def test_what_the_domains_say_of_registers_is_so(name: str) -> None:
    image = load_image(str(EXAMPLES / name))
    decoder = decoder_for(image.isa)
    row, layout = decoder.row, decoder.layout
    instructions = straight_instructions(image, "thumb" in name)
    concrete: Interpreter[int] = Interpreter(decoder)
    affine: Interpreter[AffineValue] = Interpreter(decoder)
    intervals: Interpreter[StridedValue] = Interpreter(decoder)
    word = row.address_bits
    registers = [cell for cell in layout.cells if cell.name in row.general and cell.bits == word]
    rng = random.Random(name)
    forms = bounded = 0
    for _ in range(30):
        space = address_space(image.isa, b"", data=rng.randbytes(SIZE))
        memory = space.memory()
        memory.poke(STACK, rng.randbytes(SIZE))
        state = RecordingDomain(memory)
        state.accesses = []
        for cell in registers:
            near = rng.choice([DATA, STACK]) + 4 * rng.randrange(64, 512)
            state.registers[cell.number] = rng.getrandbits(word) if rng.randrange(4) == 0 else near
        cells = [MemoryCell(page + 4 * i * (word // 8), word // 8) for page in (DATA, STACK) for i in range(20, 60)]
        before = [state.registers[cell.number] for cell in registers] + [memory.load(*cell) for cell in cells]
        script: list[bool] = []
        offsets = [0, 0]
        one = AffineDomain(space, word, registers, cells, lambda number: script[number - offsets[0]])  # noqa: B023
        other = StridedDomain(
            layout,
            space,
            {cell.number: around(state.registers[cell.number], word, rng) for cell in registers},
            {cell: around(memory.load(*cell), word, rng) for cell in cells},
            lambda number: script[number - offsets[1]],  # noqa: B023
        )
        for _ in range(10):
            instruction = rng.choice(instructions)
            state.decisions = []
            try:
                concrete.execute(instruction, state)
            except (Fault, Unsupported):
                break
            script[:] = state.decisions
            offsets[:] = [one.decisions, other.decisions]
            affine.execute(instruction, one)
            intervals.execute(instruction, other)
            for cell in layout.cells:
                number = state.registers.get(cell.number)
                if number is None:
                    continue
                form, interval = one.read_register(cell), other.register(cell)
                assert number in interval, (instruction, cell.name)
                bounded += not interval.is_top
                if isinstance(form, Form):
                    assert value_of(form, before) == number, (instruction, cell.name)
                    forms += bool(form.terms)
            for place in cells:
                known = one.memory.values[place]
                assert not isinstance(known, Form) or value_of(known, before) == memory.load(*place), instruction
                assert memory.load(*place) in other.cell(place), instruction
    assert forms > 300 and bounded > 300
    assert space.region_at(CODE) is not None
