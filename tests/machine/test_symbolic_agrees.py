"""The symbolic domain agrees with the concrete one: every register and byte term, evaluated, is the emulator's value.

Instructions are those compilers emitted for the bundled examples, executed one after the other from states whose
registers are all variables, so that every simplification a real instruction can trigger is exercised.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mcveto.logic import terms as t
from mcveto.machine.concolic import Assignment, ConcolicExecution
from mcveto.machine.emulator import Machine
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.isa import decoder_for
from mcveto.machine.pcode import BRANCHES, Instruction
from mcveto.program.image import Image, load_image

from .programs import CODE, DATA, SIZE, STACK, address_space

EXAMPLES = Path(__file__).parents[2] / "examples" / "machine" / "checksum"
BINARIES = sorted(path.name for path in EXAMPLES.glob("*-O*.elf") if ".sym" not in path.name)


def straight_instructions(image: Image, thumb: bool) -> list[Instruction]:
    """Every decodable instruction of the executable segments that cannot leave itself."""
    decoder = decoder_for(image.isa)
    mode = 1 if thumb else 0
    found: dict[bytes, Instruction] = {}
    for segment in image.segments:
        if not segment.permissions & 1:
            continue
        offset = 0
        while offset < len(segment.content):
            try:
                instruction = decoder.decode(segment.address + offset | mode, segment.content[offset : offset + 18])
            except Unsupported:
                offset += decoder.row.alignment
                continue
            if not any(op.opcode in BRANCHES and op.inputs[0].space.name != "CONST" for op in instruction.ops):
                found.setdefault(instruction.bytes, instruction)
            offset += instruction.size
    return sorted(found.values(), key=lambda instruction: instruction.bytes)


@pytest.mark.parametrize("name", BINARIES)
def test_terms_evaluate_to_what_the_emulator_computes(name: str) -> None:
    image = load_image(str(EXAMPLES / name))
    decoder = decoder_for(image.isa)
    thumb = "thumb" in name
    instructions = straight_instructions(image, thumb)
    assert len(instructions) > 50
    rng = random.Random(name)
    row = decoder.row
    compared = 0
    for _ in range(40):
        chosen = [rng.choice(instructions).bytes for _ in range(12)]
        code = b"".join(chosen)
        space = address_space(image.isa, code, data=rng.randbytes(SIZE))
        values = {}
        for register in (*row.general, *row.flags):
            # Pointers into the data and stack pages let loads and stores succeed.
            choice = rng.randrange(4)
            value = rng.getrandbits(64) if choice == 0 else rng.choice([DATA, STACK]) + 4 * rng.randrange(64, 512)
            (piece,) = decoder.layout.named(register)
            values[register] = value & ((1 << decoder.layout.significant_bits(piece.cell)) - 1)
        background = rng.randbytes(SIZE)
        memory = space.memory()
        memory.poke(STACK, background)
        start = CODE | (1 if thumb else 0)
        registers = {decoder.layout.named(register)[0].cell.number: value for register, value in values.items()}
        machine = Machine(decoder, memory, registers, start)
        execution = ConcolicExecution(
            decoder,
            space,
            start,
            Assignment(values, lambda address, b=background: b[address - STACK]),  # type: ignore[misc]
        )
        for _ in chosen:
            outcome = machine.step()
            if outcome is not None:
                with pytest.raises((Fault, Unsupported)) as caught:
                    execution.step()
                if isinstance(caught.value, Fault):
                    assert outcome.fault == caught.value.kind
                break
            execution.step()
            assert execution.pc == machine.pc
            for cell in decoder.layout.cells:
                term = execution.domain.registers.get(cell.number)
                if term is not None:
                    assert execution.evaluator.value(term) == machine.registers.get(cell.number, 0), cell.name
                    compared += 1
        else:
            for address in (DATA, STACK):
                whole = [
                    execution.evaluator.byte(execution.domain.memory.term, address + offset) for offset in range(SIZE)
                ]
                if address == STACK:
                    assert bytes(whole) == memory.peek(address, SIZE)
        for item in execution.path:
            assert execution.evaluator.value(item.term) == 1
    assert compared > 500


def test_known_bytes_of_the_image_are_constants() -> None:
    space = address_space("x86-32", b"\x90", data=bytes(range(16)))
    execution = ConcolicExecution(decoder_for("x86-32"), space, CODE, Assignment())
    assert execution.domain.load(t.const(DATA, 32), 4) is t.const(0x03020100, 32)
