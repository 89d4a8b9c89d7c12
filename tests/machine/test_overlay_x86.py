"""Every entry of the x86 overlay: what the instruction does with it, and that it does something else without it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import pytest

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import Decoder, decoder_for
from mcveto.machine.memory import READ, WRITE, Memory, RegionSpec
from mcveto.machine.pcode import FreshOrigin

CODE, DATA, SIZE = 0x10000, 0x20000, 0x100
ANY = -1  # as an expected value: whatever the fresh source says
CLOSED = "unsupported"


@dataclass(frozen=True)
class Example:
    """`code` from `before` (registers; integers at DATA in `memory`) gives `after`, or ends with `end`."""

    defect: str
    isa: str
    code: str
    before: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    end: str = ""
    memory: int = 0
    stored: int | None = None


UPPER = 0xABCD << 48
ALL = dict.fromkeys(("CF", "OF", "SF", "ZF", "AF", "PF"), ANY)
W = "x86-64"
N = "x86-32"

FIRST, SECOND, TWOS = 0x7FFF8000FFFF01800010FF7F80FF0A05, 0x0001FFFF80010182F003FF01FE7F0B07, 0x1111111122222222 << 64

# What the processor of the development machine makes of these operands.
VECTOR_EXAMPLES = [
    Example("saturating", N, "660fecc1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x7F0080FF80000280F013FE7F807E150C}),
    Example("saturating", W, "660fe9c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x7FFE80017FFEFFFE100D007E8280FEFE}),
    Example("saturating", W, "660fddc1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x8000FFFFFFFF0302F013FFFFFFFF150C}),
    Example("saturating", W, "660fd8c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x7FFE00007FFE0000000D007E00800000}),
    Example("average", N, "660fe0c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x4080C080C0800181780AFF40BFBF0B06}),
    Example("multiply-high", W, "660fe5c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x2FFFF000000BF006E}),
    Example("multiply-high", W, "660fe4c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x7FFF80000002000FFE80803D006E}),
    Example(
        "multiply-low", W, "660f3840c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x8000800000004300FD0D807F6AE27D23}
    ),
    Example(
        "vector-absolute", W, "660f381dc1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x100017FFF01820FFD00FF01810B07}
    ),
    Example(
        "shuffle-bytes", W, "660f3800c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x50A0000000A0A000080000A007FFF00}
    ),
    Example(
        "blend-by-sign",
        N,
        "660f3810d1",
        {"XMM0": FIRST, "XMM1": SECOND, "XMM2": TWOS},
        {"XMM2": 0x1101FF11800122820000FF00FE7F0000},
    ),
    Example(
        "blend-by-sign",
        N,
        "660f3814d1",
        {"XMM0": FIRST, "XMM1": SECOND, "XMM2": TWOS},
        {"XMM2": 0x111111118001018200000000FE7F0B07},
    ),
    Example(
        "blend-words", N, "660f3a0ec135", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x7FFF8000800101820010FF0180FF0B07}
    ),
    Example(
        "extend-elements",
        N,
        "660f3821c1",
        {"XMM0": FIRST, "XMM1": SECOND},
        {"XMM0": 0xFFFFFFFE0000007F0000000B00000007},
    ),
    Example("extend-elements", N, "660f3835c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0xF003FF0100000000FE7F0B07}),
    Example(
        "multiply-signed-doublewords",
        W,
        "660f3828c1",
        {"XMM0": FIRST, "XMM1": SECOND},
        {"XMM0": 0x7F3F0000430000BEFAF96AE27D23},
    ),
    Example(
        "multiply-add-words", W, "660ff5c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0xFFFF0002C2FFFFFF80AF012D7DA4}
    ),
    Example(
        "multiply-add-bytes",
        W,
        "660f3804c1",
        {"XMM0": FIRST, "XMM1": SECOND},
        {"XMM0": 0xFFFF80817FC1010030FF807D810091},
    ),
    Example("sum-of-differences", W, "660ff6c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x47A000000000000027C}),
    Example(
        "pack-saturating", N, "660f63c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x1FF807F8080807F7F80FF7F1080807F}
    ),
    Example(
        "pack-saturating", N, "660f6bc1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x7FFF8000800080007FFF80007FFF8000}
    ),
    Example(
        "pack-saturating",
        W,
        "660f382bc1",
        {"XMM0": FIRST, "XMM1": SECOND},
        {"XMM0": 0xFFFF000000000000FFFF0000FFFF0000},
    ),
    Example(
        "horizontal-add", W, "660f3801c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x8183EF040986FFFF017FFF8F8B04}
    ),
    Example(
        "horizontal-add", N, "660f3806c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x7FFF01830E7B0C067FFF818080EE0A86}
    ),
    Example("least-word", W, "660f3841c1", {"XMM0": FIRST, "XMM1": SECOND}, {"XMM0": 0x70001}),
    Example(
        "truncate-floats",
        N,
        "f30f5bc1",
        {"XMM0": FIRST, "XMM1": 0xBE4CCCCD4F32D05E47F1205AC0FCCCCD},
        {"XMM0": 0x800000000001E240FFFFFFF9},
    ),
]
EXAMPLES = [
    *VECTOR_EXAMPLES,
    Example("not-checked", N, "0f5fc1", end=CLOSED),
    Example("not-checked", W, "c5f9efc1", end=CLOSED),
    Example("mmx-registers", W, "0fefc1", end=CLOSED),
    Example("segment-base", W, "64488b042528000000", end=CLOSED),
    Example("segment-base", N, "65ac", {"ESI": DATA}, end=CLOSED),
    Example("code-segment-store", N, "2e8903", {"EBX": DATA}, end=CLOSED),
    Example("segment-registers", N, "8cd8", end=CLOSED),
    Example("control-registers", W, "0f20c0", end=CLOSED),
    Example("too-long", W, "2e" * 14 + "01d8", end="general-protection"),
    Example("repeated-prefix", W, "666601d8", end=CLOSED),
    Example("branch-operand-size", N, "66e90000", end=CLOSED),
    Example("loop-address-size", W, "67e2fe", end=CLOSED),
    Example("string-address-size", W, "67aa", {"RDI": UPPER | DATA}, end=CLOSED),
    Example("bit-string", W, "0fa303", {"RBX": DATA}, end=CLOSED),
    Example("narrow-index-r12", W, "67428b0423", {"RBX": DATA, "R12": 4}, end=CLOSED),
    Example("high-byte-with-rex", W, "6740b7d6", end=CLOSED),
    Example("vector-register-16", W, "420f28c1", end=CLOSED),
    Example("two-mandatory-prefixes", W, "66f30f10c1", end=CLOSED),
    Example("adx-prefix", W, "66f30f38f6c1", end=CLOSED),
    Example("both-repeat-prefixes", N, "f3f20fbcc1", end=CLOSED),
    Example("xchg-as-nop", W, "4490", end=CLOSED),
    Example("xchg-as-pause", W, "f34990", end=CLOSED),
    Example("bswap-16", N, "660fc8", end=CLOSED),
    Example("test-alias", N, "f6c801", end=CLOSED),
    Example("movnti-prefix", N, "f30fc303", {"EBX": DATA}, end=CLOSED),
    Example("register-source-only", N, "660fc50300", end=CLOSED),
    Example("breakpoint", N, "cc", end="breakpoint"),
    Example("into", N, "ce", {"OF": 1}, end="overflow-trap"),
    Example("into", N, "ce", {"OF": 0}, {"EAX": 0}),
    Example("linux-system-call", N, "cd80", end="system-call"),
    Example("privileged", W, "f4", end="general-protection"),
    Example("not-in-64-bit-mode", W, "67ce", end="undefined-instruction"),
    Example("inc-or-branch", N, "67ff23", {"EBX": DATA}, end=CLOSED),
    Example("inc-reserved", W, "fe13", {"RBX": DATA}, end="undefined-instruction"),
    Example("unpack-high-memory", W, "660f6d03", {"RBX": DATA}, end=CLOSED),
    Example("misaligned-vector-load", W, "0f2803", {"RBX": DATA + 8}, end="general-protection"),
    Example("misaligned-vector-store", W, "0f2903", {"RBX": DATA + 8}, end="general-protection"),
    Example("div-error-byte", N, "f6f1", {"EAX": 0x0200, "ECX": 2}, end="divide-error"),
    Example("div-error-byte", N, "f6f1", {"EAX": 0x01FF, "ECX": 2}, {"EAX": 0x01FF, **ALL}),
    Example("div-error", W, "f7f1", {"RAX": 5, "RDX": 2, "RCX": 2}, end="divide-error"),
    Example("div-error", N, "f7f1", {"EAX": 7, "ECX": 2}, {"EAX": 3, "EDX": 1, **ALL}),
    Example("idiv-zero", N, "f7f9", {"EAX": 7}, end="divide-error"),
    Example("idiv-overflow", N, "f7f9", {"EAX": 1 << 31, "EDX": 0xFFFFFFFF, "ECX": 0xFFFFFFFF}, end="divide-error"),
    Example("af-add", N, "01d8", {"EAX": 15, "EBX": 1}, {"EAX": 16, "AF": 1}),
    Example("af-adc", N, "11d8", {"EAX": 14, "EBX": 1, "CF": 1}, {"EAX": 16, "AF": 1}),
    Example("af-sub", N, "39d8", {"EAX": 16, "EBX": 1}, {"AF": 1}),
    Example("af-sbb", N, "19d8", {"EAX": 17, "EBX": 1, "CF": 1}, {"EAX": 15, "AF": 1}),
    Example("af-inc", N, "40", {"EAX": 15}, {"EAX": 16, "AF": 1}),
    Example("af-dec", N, "48", {"EAX": 16}, {"EAX": 15, "AF": 1}),
    Example("af-neg", N, "f7d8", {"EAX": 1}, {"AF": 1}),
    Example("af-logic", N, "21d8", {"AF": 1}, {"AF": ANY}),
    Example("multiply-flags", N, "f7e1", {"EAX": 2, "ECX": 3}, {"EAX": 6, "SF": ANY, "ZF": ANY, "AF": ANY, "PF": ANY}),
    Example("bsf", W, "480fbcc1", {"RAX": 9, "RCX": 0}, {"RAX": ANY, "ZF": 1}),
    Example("bsf", W, "480fbcc1", {"RCX": 1 << 40}, {"RAX": 40, "ZF": 0, "CF": ANY}),
    Example("bsf-32", N, "0fbcc1", {"EAX": 9, "ECX": 0x50}, {"EAX": 4, "ZF": 0, "CF": ANY}),
    Example("bsf-32-in-64", W, "0fbcc1", {"RAX": UPPER, "RCX": UPPER | 0x50}, {"RAX": 4, "ZF": 0, "CF": ANY}),
    Example("bsr", W, "480fbdc1", {"RCX": 1 << 40 | 3}, {"RAX": 40, "ZF": 0, "CF": ANY}),
    Example("bsr-32", N, "0fbdc1", {"ECX": 0x50}, {"EAX": 6, "ZF": 0, "CF": ANY}),
    Example("bsr-32-in-64", W, "0fbdc1", {"RAX": UPPER, "RCX": UPPER | 0x50}, {"RAX": 6, "ZF": 0, "CF": ANY}),
    Example("lzcnt", W, "f30fbdc0", {"RAX": UPPER}, {"RAX": 32, "CF": 1, "ZF": 0, "SF": ANY}),
    Example("tzcnt", W, "f30fbcc1", {"RAX": UPPER, "RCX": 0}, {"RAX": 32, "CF": 1, "ZF": 0, "SF": ANY}),
    Example(
        "bit-test-flags", N, "0fa3d8", {"EAX": 2, "EBX": 33}, {"CF": 1, "OF": ANY, "SF": ANY, "AF": ANY, "PF": ANY}
    ),
    Example("shift-by-one", N, "d1e0", {"EAX": 1, "AF": 1}, {"EAX": 2, "AF": ANY}),
    Example("shr-by-one-of", N, "d1e8", {"EAX": 1 << 31}, {"EAX": 1 << 30, "OF": 1}),
    Example("shl-flags", N, "d3e0", {"EAX": 1, "ECX": 2}, {"EAX": 4, "OF": ANY, "AF": ANY, "CF": 0}),
    Example("shl-flags", N, "d2e0", {"EAX": 1, "ECX": 8}, {"EAX": 0, "OF": ANY, "AF": ANY, "CF": ANY}),
    Example("shr-flags", N, "c1e802", {"EAX": 4, "AF": 1}, {"EAX": 1, "OF": ANY, "AF": ANY, "CF": 0}),
    Example("sar-flags", N, "d2f8", {"EAX": 0x80, "ECX": 9}, {"EAX": 0xFF, "OF": ANY, "AF": ANY, "CF": 1}),
    Example("rotate-of", N, "d3c0", {"EAX": 1, "ECX": 2, "OF": 1}, {"EAX": 4, "OF": ANY}),
    Example("rcl-of", N, "d3d0", {"EAX": 1 << 30, "ECX": 1}, {"EAX": 1 << 31, "OF": 1, "CF": 0}),
    Example("rcl-of-64", W, "48d3d0", {"RAX": 1 << 62, "RCX": 1}, {"RAX": 1 << 63, "OF": 1, "CF": 0}),
    Example("rcr-of", N, "d3d8", {"EAX": 1 << 31, "ECX": 1}, {"EAX": 1 << 30, "OF": 1, "CF": 0}),
    Example("rcr-of-64", W, "48d3d8", {"RAX": 1 << 63, "RCX": 1}, {"RAX": 1 << 62, "OF": 1, "CF": 0}),
    Example("double-shift-flags", N, "0fa4d802", {"EAX": 1, "EBX": 3 << 30}, {"EAX": 7, "OF": ANY, "AF": ANY, "CF": 0}),
    Example("double-shift-too-far", N, "660fa4d811", end=CLOSED),
    Example("xchg-upper-half", W, "8703", {"RAX": UPPER | 5, "RBX": DATA}, {"RAX": 7}, memory=7, stored=5),
    Example("lods-upper-half", W, "ad", {"RAX": UPPER, "RSI": DATA}, {"RAX": 7, "RSI": DATA + 4}, memory=7),
    Example("lods-upper-half", W, "f3ad", {"RAX": UPPER, "RSI": DATA, "RCX": 1}, {"RAX": 7, "RCX": 0}, memory=7),
    Example("xadd-memory", W, "0fc100", {"RAX": DATA}, {"RAX": 7}, memory=7, stored=DATA + 7),
    Example("cmpxchg-memory", W, "0fb00b", {"RAX": 9, "RBX": 0x30000}, end="write-permission"),
    Example("cmpxchg-memory-dword", N, "0fb10b", {"EAX": 9, "EBX": 0x30000}, end="write-permission"),
    Example("cmpxchg-memory-dword-in-64", W, "0fb10b", {"RAX": 9, "RBX": 0x30000}, end="write-permission"),
    Example("cmpxchg8b", N, "0fc70b", {"EAX": 9, "EBX": 0x30000}, end="write-permission"),
    Example("cmpxchg8b-in-64", W, "0fc70e", {"RAX": UPPER, "RDX": UPPER, "RSI": DATA}, {"RAX": 7, "RDX": 0}, memory=7),
    Example("cmpxchg16b", W, "480fc70e", {"RSI": DATA + 8}, end="general-protection"),
    Example("pslld-register", W, "660ff2c1", {"XMM0": 1 << 32 | 1, "XMM1": 1}, {"XMM0": 1 << 33 | 2}),
    Example("pslld-memory", W, "660ff203", {"XMM0": 1 << 32 | 1, "RBX": DATA}, {"XMM0": 1 << 33 | 2}, memory=1),
    Example("psllq-register", W, "660ff3c1", {"XMM0": 1 << 64 | 1, "XMM1": 1}, {"XMM0": 1 << 65 | 2}),
    Example("psllq-memory", W, "660ff303", {"XMM0": 1 << 64 | 1, "RBX": DATA}, {"XMM0": 1 << 65 | 2}, memory=1),
    Example("psrad", W, "660fe2c0", {"XMM0": 4 << 32 | 2}, {"XMM0": 0}),
    Example("psrad", W, "660fe2c1", {"XMM0": 4 << 32 | 4, "XMM1": 1 << 64 | 1}, {"XMM0": 2 << 32 | 2}),
    Example("psllw", W, "660f71f003", {"XMM0": 1 << 112 | 1}, {"XMM0": 8 << 112 | 8}),
    Example("psraw", W, "660fe1c1", {"XMM0": 0x8000, "XMM1": 1 << 32}, {"XMM0": 0xFFFF}),
    Example("pshuflw", W, "f20f70c11b", {"XMM1": 9 << 64 | 0x0004000300020001}, {"XMM0": 9 << 64 | 0x0001000200030004}),
    Example("pshufhw", W, "f30f70c11b", {"XMM1": 0x0004000300020001 << 64 | 9}, {"XMM0": 0x0001000200030004 << 64 | 9}),
    Example("movmskps", W, "0f50c1", {"RAX": UPPER, "XMM1": 1 << 127 | 1 << 63}, {"RAX": 10}),
    Example("pushf", N, "9c", {"ESP": DATA + 4, "CF": 1}, {"ESP": DATA}, stored=0x203),
    Example("popf", N, "9d", {"ESP": DATA}, end=CLOSED, memory=0x100),
]


def outcome(decoder: Decoder, example: Example, fresh_bits: int) -> tuple[str, dict[str, int], int]:
    """(how it ended, the registers the example speaks of, the integer at DATA) with fresh values all 0 or all 1."""
    row = decoder.row
    memory = Memory(
        [
            RegionSpec("data", DATA, SIZE, READ | WRITE, example.memory.to_bytes(16, "little")),
            RegionSpec("constants", 0x30000, SIZE, READ),
        ],
        row.address_bits,
        row.big_endian,
    )

    def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
        return ((1 << bits) - 1) * fresh_bits

    domain = ConcreteDomain(memory, fresh)
    for name, value in example.before.items():
        (piece,) = decoder.layout.named(name)
        domain.registers[piece.cell.number] = value
    try:
        instruction = decoder.decode(CODE, bytes.fromhex(example.code).ljust(16, b"\x90"))
        Interpreter[int](decoder).execute(instruction, domain)
    except Unsupported:
        return CLOSED, {}, 0
    except Fault as fault:
        return fault.kind.label, {}, 0
    registers = {}
    for name in example.after:
        (piece,) = decoder.layout.named(name)
        registers[name] = domain.registers.get(piece.cell.number, 0) >> piece.low & (1 << piece.bits) - 1
    return "", registers, memory.load(DATA, 4)


def as_expected(decoder: Decoder, example: Example) -> bool:
    zeros, ones = outcome(decoder, example, 0), outcome(decoder, example, 1)
    if example.end or zeros[0] or ones[0]:
        return zeros[0] == ones[0] == example.end
    for name, value in example.after.items():
        low, high = zeros[1][name], ones[1][name]
        if (value == ANY and low == high) or (value != ANY and not low == high == value):
            return False
    return example.stored is None or zeros[2] == ones[2] == example.stored


def without(decoder: Decoder, defect: str) -> Decoder:
    """The decoder with one overlay entry left out."""
    result = copy.copy(decoder)
    result.overlay = copy.copy(decoder.overlay)
    result.overlay.defects = [entry for entry in decoder.overlay.defects if entry.id != defect]
    result.overlay._candidates = {}
    result._known = {}
    return result


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.defect}-{e.isa}-{e.code}")
def test_instruction_does_what_the_manual_says(example: Example) -> None:
    decoder = decoder_for(example.isa)
    assert as_expected(decoder, example), (outcome(decoder, example, 0), outcome(decoder, example, 1))


@pytest.mark.parametrize("defect", sorted({example.defect for example in EXAMPLES}))
def test_entry_is_needed(defect: str) -> None:
    examples = [example for example in EXAMPLES if example.defect == defect]
    assert not all(as_expected(without(decoder_for(example.isa), defect), example) for example in examples)


@pytest.mark.parametrize("isa", [N, W])
def test_every_entry_has_an_example(isa: str) -> None:
    assert {entry.id for entry in decoder_for(isa).overlay.defects} <= {example.defect for example in EXAMPLES}
