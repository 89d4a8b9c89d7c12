"""The P-code of every instruction, overlay applied, has operands whose sizes fit.

Concrete execution computes with integers and would not notice; terms and formulas refuse operands of other sizes.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mcveto.machine.faults import Unsupported
from mcveto.machine.isa import decoder_for
from mcveto.machine.isa.table import isa_rows
from mcveto.machine.pcode import Instruction, Op

CORPUS = Path(__file__).parent / "differential" / "data"
CODE = 0x1000
RANDOM = 1500
ALIKE = {f"INT_{name}" for name in ("ADD", "SUB", "AND", "OR", "XOR", "MULT", "DIV", "SDIV", "REM", "SREM")}
COMPARED = {
    f"INT_{name}"
    for name in ("EQUAL", "NOTEQUAL", "LESS", "LESSEQUAL", "SLESS", "SLESSEQUAL", "CARRY", "SCARRY", "SBORROW")
}
LIKE_FIRST = {"COPY", "INT_2COMP", "INT_NEGATE", "INT_LEFT", "INT_RIGHT", "INT_SRIGHT"}
# Corpora of compiled code are named after what the compiler was asked for.
FILES = {path.stem.removeprefix("compiled_"): path for path in sorted(CORPUS.glob("compiled_*.txt"))}
ROWS = {"thumb": "arm"}


def fits(op: Op) -> bool:
    sizes = [item.size for item in op.inputs]
    made = op.output.size if op.output is not None else 0
    if op.opcode in ALIKE:
        return sizes == [made, made]
    if op.opcode in COMPARED:
        return sizes[0] == sizes[1] and made == 1
    if op.opcode in LIKE_FIRST:
        return sizes[0] == made
    if op.opcode == "SELECT":
        return sizes == [1, made, made]
    if op.opcode == "PIECE":
        return sum(sizes) == made
    if op.opcode in ("INT_ZEXT", "INT_SEXT"):
        return sizes[0] <= made
    if op.opcode.startswith("BOOL_"):
        return {made, *sizes} == {1}
    return True


def misfits(instruction: Instruction) -> list[str]:
    return [f"{instruction.mnemonic}: {op}" for op in instruction.ops if not fits(op)]


def corpus_instructions(name: str) -> list[bytes]:
    lines = FILES[name].read_text().splitlines()
    return [bytes.fromhex(word) for line in lines if not line.startswith("#") for word in line.split()[1:]]


@pytest.mark.parametrize("name", FILES)
def test_compiled_instructions(name: str) -> None:
    row = ROWS.get(name, name)
    decoder = decoder_for(row)
    decoded = 0
    for code in corpus_instructions(name):
        try:
            instruction = decoder.decode(CODE | (name == "thumb"), code.ljust(18, b"\0"))
        except Unsupported:
            continue
        decoded += 1
        assert misfits(instruction) == []
    assert decoded > 100


@pytest.mark.parametrize("isa", sorted(isa_rows()))
def test_random_instructions(isa: str) -> None:
    decoder, generator = decoder_for(isa), random.Random(isa)
    for number in range(RANDOM):
        try:
            instruction = decoder.decode(CODE | (isa.startswith("arm") and number % 2), generator.randbytes(18))
        except Unsupported:
            continue
        assert misfits(instruction) == []
