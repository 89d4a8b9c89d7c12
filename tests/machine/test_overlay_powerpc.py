"""Every entry of the PowerPC overlay, by a concrete example; and the encodings it must refuse."""

from __future__ import annotations

import pytest

from mcveto.machine.faults import Unsupported
from mcveto.machine.isa import decoder_for
from mcveto.machine.pcode import Transfer

from .one_instruction import CODE, DATA, Example, check, matters

BE, LE = "ppc32-be", "ppc32-le"
MIN = 0x80000000

EXAMPLES = [
    Example("branch-target-alignment", BE, "4e800420", {"CTR": 0x1237}, transfer=Transfer.JUMP, target=0x1234),
    Example(
        "call-target-alignment",
        BE,
        "4e800421",
        {"CTR": 0x1236},
        {"LR": CODE + 4},
        transfer=Transfer.CALL,
        target=0x1234,
    ),
    Example(
        "call-target-alignment", BE, "4e800021", {"LR": 0x1236}, {"LR": CODE + 4}, transfer=Transfer.CALL, target=0x1234
    ),
    Example("return-target-alignment", BE, "4e800020", {"LR": 0x1235}, transfer=Transfer.RETURN, target=0x1234),
    Example("return-target-alignment", LE, "4e800020", {"LR": 0x1235}, transfer=Transfer.RETURN, target=0x1234),
    # beqlr taken
    Example(
        "return-target-alignment", BE, "4d820020", {"LR": 0x1235, "cr0": 2}, transfer=Transfer.RETURN, target=0x1234
    ),
    # bdnzlr
    Example(
        "counting-return", BE, "4e000020", {"LR": 0x1234, "CTR": 2}, {"CTR": 1}, transfer=Transfer.RETURN, target=0x1234
    ),
    Example("branch-if-false-and-count", BE, "40020008", {"CTR": 2, "cr0": 2}, {"CTR": 1}),
    Example(
        "branch-if-false-and-count", BE, "40020008", {"CTR": 2}, {"CTR": 1}, transfer=Transfer.JUMP, target=CODE + 8
    ),
    # add. r3,r4,r5 and andi. r3,r4,0xf: nothing of the old field stays
    Example("record-form", BE, "7c642a15", {"r4": 1, "r5": 2, "cr0": 0xFA, "xer_so": 1}, {"r3": 3, "cr0": 5}),
    Example("record-form", LE, "7083000f", {"r4": 0x80, "cr0": 0xFF}, {"r3": 0, "cr0": 2}),
    # twgt, twlgt, tweqi 5, tweqi 5 not hit
    Example("trap-word", BE, "7d032008", {"r3": 1, "r4": 0xFFFFFFFF}, fault="breakpoint"),
    Example("trap-word", BE, "7c232008", {"r3": 1, "r4": 0xFFFFFFFF}, {}),
    Example("trap-word-immediate", BE, "0c83fffb", {"r3": 0xFFFFFFFB}, fault="breakpoint"),
    Example("trap-word-immediate", BE, "0c830005", {"r3": 4}),
    # divw r3,r4,r5; divw. with OV kept; divwo.; undefined results are fresh
    Example("divide-signed", BE, "7c642bd6", {"r4": 7, "r5": 0}, {"r3": 0x1234}, fresh=0x1234),
    Example("divide-signed", BE, "7c642bd6", {"r4": MIN, "r5": 0xFFFFFFFF}, {"r3": 0x1234}, fresh=0x1234),
    Example(
        "divide-signed",
        BE,
        "7c642bd7",
        {"r4": 0xFFFFFFF9, "r5": 2, "xer_ov": 1, "xer_so": 1},
        {"r3": 0xFFFFFFFD, "cr0": 9, "xer_ov": 1},
    ),
    Example("divide-signed", BE, "7c642fd7", {"r4": 5, "r5": 0}, {"cr0": 0xF, "xer_ov": 1, "xer_so": 1}, fresh=0xFF),
    Example("divide-unsigned", BE, "7c642b96", {"r4": 7, "r5": 0}, {"r3": 0x1234}, fresh=0x1234),
    Example("divide-unsigned", BE, "7c642f97", {"r4": 7, "r5": 0}, {"cr0": 0xF, "xer_ov": 1, "xer_so": 1}, fresh=0xFF),
    Example(
        "move-to-xer", BE, "7c6103a6", {"r3": 0xA0000055}, {"xer_so": 1, "xer_ov": 0, "xer_ca": 1, "xer_count": 0x55}
    ),
    Example("move-to-xer", LE, "7c6103a6", {"r3": 0x40000000}, {"xer_so": 0, "xer_ov": 1, "xer_ca": 0}),
    Example("move-from-xer", BE, "7c6102a6", {"xer_so": 1, "xer_ca": 1, "xer_count": 3}, {"r3": 0xA0000003}),
    # lwarx r3,0,r4 and stwcx. r3,0,r4
    Example(
        "load-and-reserve",
        BE,
        "7c602028",
        {"r4": DATA},
        {"r3": 0x11223344, "RESERVE": 1, "RESERVE_ADDRESS": DATA},
        "11223344",
    ),
    Example("load-and-reserve", BE, "7c602028", {"r4": DATA + 2}, fault="unsupported"),
    Example(
        "store-conditional",
        BE,
        "7c60212d",
        {"r3": 0x55667788, "r4": DATA, "RESERVE": 1, "RESERVE_ADDRESS": DATA, "xer_so": 1},
        {"cr0": 3, "RESERVE": 0},
        "11223344",
        "55667788",
    ),
    Example(
        "store-conditional", BE, "7c60212d", {"r3": 5, "r4": DATA, "cr0": 0xF}, {"cr0": 0, "RESERVE": 0}, "11223344"
    ),
    Example(
        "store-conditional",
        BE,
        "7c60212d",
        {"r4": DATA + 4, "RESERVE": 1, "RESERVE_ADDRESS": DATA},
        fault="unsupported",
    ),
    Example("multiple-alignment", BE, "bbc10002", {"r1": DATA}, fault="unsupported"),
    Example("multiple-little-endian", LE, "bbc10000", {"r1": DATA}, fault="unsupported"),
    Example("multiple-little-endian", LE, "7c8325aa", {"r3": DATA}, fault="unsupported"),
    Example("cache-block-access", BE, "7c00186c", {"r3": 0x9000}, fault="unmapped-read"),
    Example("cache-block-access", BE, "7c001fac", {"r3": 0x9000}, fault="unmapped-read"),
    Example("negate-float", BE, "fc402050", {"vs4": 1 << 64}, {"vs2": 0x80000000_00000001 << 64}),
    Example("absolute-float", BE, "fc402210", {"vs4": 0x80000000_00000001 << 64}, {"vs2": 1 << 64}),
    Example("load-word-reversed", LE, "7c60242c", {"r4": DATA}, {"r3": 0x11223344}, "11223344"),
    Example("load-half-reversed", LE, "7c60262c", {"r4": DATA}, {"r3": 0x1122}, "11223344"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_entry(example: Example) -> None:
    check(example)


@pytest.mark.parametrize("identifier", sorted({example.id for example in EXAMPLES}))
def test_entry_matters(identifier: str) -> None:
    assert matters(identifier, EXAMPLES)


def test_every_entry_has_an_example() -> None:
    entries = {defect.id for isa in (BE, LE) for defect in decoder_for(isa).overlay.defects}
    assert entries == {example.id for example in EXAMPLES}


# What is right without correction, but easily lost with another SLEIGH variant or another reading of a field.
PLAIN = [
    Example("isel", BE, "7c64289e", {"r4": 4, "r5": 5, "cr0": 2}, {"r3": 4}),
    Example("isel", BE, "7c64289e", {"r4": 4, "r5": 5, "cr0": 0xD}, {"r3": 5}),
    Example("bl", BE, "48000011", {}, {"LR": CODE + 4}, transfer=Transfer.CALL, target=CODE + 16),
    Example("bctrl", LE, "4e800421", {"CTR": 0x2000}, {"LR": CODE + 4}, transfer=Transfer.CALL, target=0x2000),
    Example("sc", BE, "44000002", fault="system-call"),
    Example("sync", BE, "7c0004ac"),
    Example("isync", BE, "4c00012c"),
    Example("mfcr", LE, "7c600026", {"cr0": 1, "cr7": 8}, {"r3": 0x10000008}),
    Example("lwbrx", BE, "7c60242c", {"r4": DATA}, {"r3": 0x44332211}, "11223344"),
    Example("lmw", BE, "bbc10000", {"r1": DATA}, {"r30": 0x11223344, "r31": 0x55667788}, "1122334455667788"),
]


@pytest.mark.parametrize("example", PLAIN, ids=str)
def test_plain_instruction(example: Example) -> None:
    check(example)


REFUSED = {
    "lwzu r3,0(0)": 0x84600000,
    "lwzu r3,4(r3)": 0x84630004,
    "stwu r3,4(0)": 0x94600004,
    "lmw r30,0(r30)": 0xBBDE0000,
    "lswi r3,r3,8": 0x7C6344AA,
    "stswi r3,r4,7": 0x7C643DAA,
    "lswx r3,r4,r5": 0x7C642C2A,
    "cmpd r3,r4": 0x7C232000,
    "bdnzctr": 0x4E000420,
    "lwzx with bit 31": 0x7C64282F,
    "dcbz 0,r3": 0x7C001FEC,
    "fadd f1,f2,f3": 0xFC22182A,
    "vaddubm v1,v2,v3": 0x10221800,
    "rfi": 0x4C000064,
    "mfmsr r3": 0x7C6000A6,
    "mftb r3": 0x7C6C42E6,
    "zero word": 0,
}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("isa", [BE, LE])
def test_refused(isa: str, text: str) -> None:
    code = REFUSED[text].to_bytes(4, "big" if isa == BE else "little")
    with pytest.raises(Unsupported):
        decoder_for(isa).decode(CODE, code)


def test_mtlr_does_not_change_the_branch_after_it() -> None:
    """SLEIGH commits context for the instruction after mtlr; decoding must not depend on what was decoded before."""
    decoder = decoder_for(BE)
    blr, bctr = bytes.fromhex("4e800020"), bytes.fromhex("4e800420")
    fresh = [decoder.decode(address, code).ops for address, code in ((0x5004, blr), (0x5104, bctr))]
    for address in (0x6000, 0x6100):
        decoder.decode(address, bytes.fromhex("7c0803a6"))
    assert [decoder.decode(address, code).ops for address, code in ((0x6004, blr), (0x6104, bctr))] == fresh
