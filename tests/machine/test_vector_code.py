"""Vectorised code: loops compiled for several instruction sets give one result; conversions against Python's floats."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from random import Random

import pytest

from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory
from mcveto.program.exits import run_to_end
from mcveto.program.inputs import InputSource
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec

LOOPS = Path(__file__).resolve().parents[2] / "examples" / "machine" / "loops"
WITH_VECTORS = ("aarch64", "x86-32-sse2", "x86-64-sse4")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in WITH_VECTORS else pytest.mark.slow)
        for path in sorted(LOOPS.glob("*.yaml"))
    ],
)
def test_loops(path: Path) -> None:
    program = load_program(None, load_spec(str(path)))
    machine = program.machine(InputSource(), make=CompiledMachine)
    outcome = run_to_end(program, machine, 5_000_000)
    assert outcome.kind == "halted", outcome
    expected = program.spec.notes["expected_result"]
    content = machine.memory.peek(expected["at"], expected["size"])
    assert content is not None
    order = "big" if program.decoder.row.big_endian else "little"
    assert int.from_bytes(content, order) == expected["value"]  # type: ignore[arg-type]


def truncated(bits: int) -> int:
    """CVTTPS2DQ of one element, from its description."""
    number: float = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
    if math.isnan(number) or not -(2.0**31) <= number < 2.0**31:
        return 0x80000000
    return math.trunc(number) & 0xFFFFFFFF


def test_truncation_of_floats() -> None:
    rng = Random(1)
    decoder = decoder_for("x86-64")
    interpreter: Interpreter[int] = Interpreter(decoder)
    instruction = decoder.decode(0x1000, bytes.fromhex("f30f5bc1"))
    result, source = decoder.layout.named("XMM0")[0], decoder.layout.named("XMM1")[0]
    special = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x4F000000, 0xCF000000, 0x4EFFFFFF, 0xCF000001, 1]
    numbers = special + [rng.getrandbits(32) for _ in range(100)]
    numbers += [rng.getrandbits(1) << 31 | rng.randrange(120, 162) << 23 | rng.getrandbits(23) for _ in range(290)]
    for at in range(0, len(numbers), 4):
        lanes = numbers[at : at + 4]
        domain = ConcreteDomain(Memory([], 64, False))
        domain.registers[source.cell.number] = sum(bits << 32 * i for i, bits in enumerate(lanes)) << source.low
        interpreter.execute(instruction, domain)
        found = domain.registers[result.cell.number] >> result.low
        assert [found >> 32 * i & 0xFFFFFFFF for i in range(4)] == [truncated(bits) for bits in lanes]
