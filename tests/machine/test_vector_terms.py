"""Vector instructions in the symbolic domain: terms over variable registers evaluate to what the emulator computes."""

from __future__ import annotations

import random

import pytest

from mcveto.machine.concolic import Assignment, ConcolicExecution
from mcveto.machine.emulator import Machine
from mcveto.machine.isa import decoder_for

from .differential import corpus_x86
from .differential.words import random_word
from .programs import CODE, DATA, SIZE, address_space
from .test_overlay_x86 import VECTOR_EXAMPLES


def agrees(isa: str, code: bytes, vectors: list[str], rng: random.Random) -> bool:
    """Runs one instruction on both sides; whether it ran (and did not fault)."""
    decoder = decoder_for(isa)
    space = address_space(isa, code, data=rng.randbytes(SIZE))
    values = {name: DATA + 16 * rng.randrange(8, 24) for name in decoder.row.general}
    cells = {decoder.layout.named(name)[0].cell for name in vectors}
    values |= {cell.name: rng.getrandbits(128) | (rng.getrandbits(1) << 127) for cell in cells}
    registers = {decoder.layout.named(name)[0].cell.number: value for name, value in values.items()}
    machine = Machine(decoder, space.memory(), registers, CODE)
    execution = ConcolicExecution(decoder, space, CODE, Assignment(values))
    if machine.step() is not None:
        return False
    execution.step()
    for cell in decoder.layout.cells:
        term = execution.domain.registers.get(cell.number)
        if term is not None:
            assert execution.evaluator.value(term) == machine.registers.get(cell.number, 0), (code.hex(), cell.name)
    stored = [execution.evaluator.byte(execution.domain.memory.term, DATA + at) for at in range(SIZE)]
    assert bytes(stored) == machine.memory.peek(DATA, SIZE)
    return True


def test_aarch64() -> None:
    rng = random.Random(1)
    for definition in decoder_for("aarch64").overlay.definitions:
        words = [random_word(rng, definition.encoding) for _ in range(4)]
        ran = [agrees("aarch64", word.to_bytes(4, "little"), [f"q{i}" for i in range(32)], rng) for word in words]
        assert any(ran), definition.id


@pytest.mark.parametrize("isa", ["x86-32", "x86-64"])
def test_x86(isa: str) -> None:
    rng = random.Random(2)
    vectors = [f"XMM{i}" for i in range(8)]
    codes = [bytes.fromhex(example.code) for example in VECTOR_EXAMPLES]
    assert all(agrees(isa, code, vectors, rng) for code in codes)
    compiled = [code for code in corpus_x86.compiled(isa)[1500:] if rng.random() < 0.3]
    assert sum(agrees(isa, code, vectors, rng) for code in compiled) > len(compiled) // 2
