"""Every entry of the MIPS overlay, by a concrete example; delay slots; and the encodings it must refuse."""

from __future__ import annotations

from random import Random
from typing import Literal

import pytest

from mcveto.machine.faults import Unsupported
from mcveto.machine.isa import decoder_for
from mcveto.machine.pcode import Transfer

from .one_instruction import CODE, DATA, Example, check, matters

BE, LE = "mips32-be", "mips32-le"
MIN, MAX = 0x80000000, 0x7FFFFFFF

# t0-t2 are registers 8-10.
EXAMPLES = [
    Example("add-overflow", BE, "01095020", {"t0": MAX, "t1": 1}, fault="overflow-trap"),
    Example("add-overflow", BE, "2128ffff", {"t1": MIN}, fault="overflow-trap"),
    Example("subtract-overflow", LE, "01095022", {"t0": MIN, "t1": 1}, fault="overflow-trap"),
    Example("trap-if", BE, "01090034", {"t0": 3, "t1": 3}, fault="breakpoint"),
    Example("trap-if", BE, "052effff", {"t1": 3}, fault="breakpoint"),
    Example("trap-if-greater-or-equal", BE, "01090030", {"t0": 1, "t1": 0xFFFFFFFF}, fault="breakpoint"),
    Example("trap-if-greater-or-equal", BE, "01090030", {"t0": 0xFFFFFFFF, "t1": 1}),
    Example("trap-if-divisor-zero", BE, "010001f4", {"t0": 0}, fault="divide-error"),
    Example("breakpoint", BE, "0000000d", fault="breakpoint"),
    Example("break-divisor-zero", BE, "0007000d", fault="divide-error"),
    Example("load-half-alignment", BE, "85280001", {"t1": DATA}, fault="misaligned"),
    Example("load-half-alignment", LE, "95280001", {"t1": DATA}, fault="misaligned"),
    Example("load-word-alignment", BE, "8d280002", {"t1": DATA}, fault="misaligned"),
    Example("store-half-alignment", BE, "a5280001", {"t1": DATA}, fault="misaligned"),
    Example("store-word-alignment", BE, "ad280002", {"t1": DATA}, fault="misaligned"),
    Example("load-linked", BE, "c1280000", {"t1": DATA}, {"t0": 0x11223344, "LLAddr": DATA + 1}, "11223344"),
    Example("load-linked", BE, "c1280002", {"t1": DATA}, fault="misaligned"),
    Example(
        "store-conditional",
        BE,
        "e1280000",
        {"t0": 0x55667788, "t1": DATA, "LLAddr": DATA + 1},
        {"t0": 1, "LLAddr": 0},
        "11223344",
        "55667788",
    ),
    Example("store-conditional", BE, "e1280000", {"t0": 5, "t1": DATA}, fault="unsupported"),
    Example("store-conditional", BE, "e1280002", {"t1": DATA, "LLAddr": DATA + 1}, fault="misaligned"),
    Example("divide-signed", BE, "0109001a", {"t0": 7}, {"hi": 0x1234, "lo": 0x1234}, fresh=0x1234),
    Example("divide-signed", BE, "0109001a", {"t0": MIN, "t1": 0xFFFFFFFF}, {"hi": 0x1234, "lo": 0x1234}, fresh=0x1234),
    Example("divide-unsigned", BE, "0109001b", {"t0": 7}, {"hi": 0x1234, "lo": 0x1234}, fresh=0x1234),
    Example(
        "multiply-leaves-hi-lo",
        BE,
        "71095002",
        {"t0": 7, "t1": 6, "hi": 1, "lo": 2},
        {"t2": 42, "hi": 9, "lo": 9},
        fresh=9,
    ),
]
# These entries change no result: they replace a branch inside the instruction by a selection.
BRANCH_FREE = {
    "move-if-zero": Example("move-if-zero", BE, "0109500a", {"t0": 5, "t2": 6}, {"t2": 5}),
    "move-if-not-zero": Example("move-if-not-zero", BE, "0109500b", {"t0": 5, "t1": 1, "t2": 6}, {"t2": 5}),
}


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_entry(example: Example) -> None:
    check(example)


@pytest.mark.parametrize("name", BRANCH_FREE)
def test_branch_free(name: str) -> None:
    example = Example("", *[getattr(BRANCH_FREE[name], key) for key in ("isa", "word", "before", "after")])
    check(example)
    ops = decoder_for(BE).decode(CODE, bytes.fromhex(example.word)).ops
    assert "CBRANCH" not in {op.opcode for op in ops}


@pytest.mark.parametrize("identifier", sorted({example.id for example in EXAMPLES}))
def test_entry_matters(identifier: str) -> None:
    assert matters(identifier, EXAMPLES)


def test_every_entry_has_an_example() -> None:
    entries = {defect.id for isa in (BE, LE) for defect in decoder_for(isa).overlay.defects}
    assert entries == {example.id for example in EXAMPLES} | BRANCH_FREE.keys()


DELAY_SLOTS = [
    # beq taken, not taken; the slot runs in both cases
    Example("beq", BE, "11090004 216b0001", {"t3": 4}, {"t3": 5}, transfer=Transfer.JUMP, target=CODE + 0x14),
    Example("beq", LE, "11090004 216b0001", {"t0": 1, "t3": 4}, {"t3": 5}),
    # the branch reads its operands before the slot writes them
    Example("beq", BE, "11090004 21080001", {"t0": 0, "t1": 0}, {"t0": 1}, transfer=Transfer.JUMP, target=CODE + 0x14),
    # beql nullifies the slot when not taken
    Example("beql", BE, "51090004 216b0001", {"t3": 4}, {"t3": 5}, transfer=Transfer.JUMP, target=CODE + 0x14),
    Example("beql", BE, "51090004 216b0001", {"t0": 1, "t3": 4}, {"t3": 4}),
    # jal: the slot sees the new ra; jr ra with a slot that overwrites ra
    Example(
        "jal", BE, "0c000800 03e05825", {}, {"t3": CODE + 8, "ra": CODE + 8}, transfer=Transfer.CALL, target=0x2000
    ),
    Example("jr", BE, "03e00008 241f0000", {"ra": 0x2000}, {"ra": 0}, transfer=Transfer.RETURN, target=0x2000),
    Example("jalr", LE, "0320f809 00000000", {"t9": 0x2000}, {"ra": CODE + 8}, transfer=Transfer.CALL, target=0x2000),
    # a trap, a corrected instruction and a selection in a slot
    Example("beq", BE, "11090004 01095020", {"t0": MAX, "t1": MAX}, fault="overflow-trap"),
    Example("bne", BE, "15090004 0109001a", {"t0": 1}, {"lo": 7}, transfer=Transfer.JUMP, target=CODE + 0x14, fresh=7),
    Example(
        "b", BE, "10000004 0109500a", {"t0": 5, "t1": 1, "t2": 6}, {"t2": 6}, transfer=Transfer.JUMP, target=CODE + 0x14
    ),
    Example("j-odd", BE, "03e00008 00000000", {"ra": 0x2001}, transfer=Transfer.RETURN, target=0x2001),
]


@pytest.mark.parametrize("example", DELAY_SLOTS, ids=str)
def test_delay_slot(example: Example) -> None:
    check(example)


UNALIGNED = [
    # lwl t0,1(t1); lwr t0,2(t1); swl t0,1(t1); swr t0,2(t1), t0 = 0xaabbccdd
    Example("lwl", BE, "89280001", {"t0": 0xAABBCCDD, "t1": DATA}, {"t0": 0x223344DD}, "11223344"),
    Example("lwl", LE, "89280001", {"t0": 0xAABBCCDD, "t1": DATA}, {"t0": 0x2211CCDD}, "11223344"),
    Example("lwr", BE, "99280002", {"t0": 0xAABBCCDD, "t1": DATA}, {"t0": 0xAA112233}, "11223344"),
    Example("lwr", LE, "99280002", {"t0": 0xAABBCCDD, "t1": DATA}, {"t0": 0xAABB4433}, "11223344"),
    Example("swl", BE, "a9280001", {"t0": 0xAABBCCDD, "t1": DATA}, {}, "11223344", "11aabbcc"),
    Example("swr", LE, "b9280002", {"t0": 0xAABBCCDD, "t1": DATA}, {}, "11223344", "1122ddcc"),
]


@pytest.mark.parametrize("example", UNALIGNED, ids=str)
def test_unaligned_access(example: Example) -> None:
    check(example)


REFUSED = {
    "branch in a delay slot": "11090004 11090004",
    "jr in a delay slot": "11090004 03e00008",
    "refused instruction in a delay slot": "11090004 46000000",
    "branch whose slot is not readable": "11090004",
    "jalx": "74000800 00000000",
    "jalr with rs = rd": "03e0f809 00000000",
    "bgezal with rs = ra": "07f10004 00000000",
    "clz with rt != rd": "71095020",
    "ext beyond bit 31": "7d0a4fc0",
    "ins with msb < lsb": "7d0a0884",
    "add.s": "46020800",
    "lwc1": "c5280000",
    "mfc0": "40086000",
    "rdhwr": "7c03e83b",
    "addu.qb": "7d2a4010",
    "reserved bits in addu": "01095061",
    "eret": "42000018",
}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("isa", [BE, LE])
def test_refused(isa: str, text: str) -> None:
    order: Literal["big", "little"] = "big" if isa == BE else "little"
    code = b"".join(int(word, 16).to_bytes(4, order) for word in REFUSED[text].split())
    with pytest.raises(Unsupported):
        decoder_for(isa).decode(CODE, code)


def test_odd_address_is_another_instruction_set() -> None:
    with pytest.raises(Unsupported, match="mode"):
        decoder_for(BE).decode(CODE + 1, bytes(8))


def test_refused_jalx_leaves_no_trace() -> None:
    """SLEIGH would commit MIPS16 mode for the target of JALX; it must not see the instruction at all."""
    decoder = decoder_for(BE)
    with pytest.raises(Unsupported):
        decoder.decode(CODE, bytes.fromhex("7400180000000000"))
    assert decoder.decode(0x6000, bytes.fromhex("0109502100000000")).mnemonic == "addu"


def test_decoding_does_not_depend_on_earlier_decoding() -> None:
    """SLEIGH may reuse the parser state of a branch for its slot if the address was decoded shortly before."""
    decoder = decoder_for(BE)
    rng = Random(1)
    nop, jump = bytes(8), bytes.fromhex("03e0000824080001")
    for _ in range(2000):
        address = 0x9000 + 4 * rng.randrange(16)
        if rng.randrange(2):
            assert decoder.decode(address, jump).ops[-1].opcode == "RETURN"
        else:
            decoder.decode(address, nop)
