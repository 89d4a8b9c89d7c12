"""ARM against Unicorn: A32, Thumb, IT blocks and BE8; exclusives; decoding as a function of address and bytes."""

from __future__ import annotations

from random import Random

import pytest

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.faults import Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import Decoder, decoder_for, isa_rows
from mcveto.machine.memory import Memory, RegionSpec
from mcveto.machine.pcode import Transfer

from .campaign import campaign
from .corpus_arm import a32, blocks, thumb
from .corpus_words import compiled
from .harness import CODE, DATA, Case, Emulator, Tally
from .oracle_arm import GENERAL, BlockOracle, excuse, target
from .unicorn_oracle import UnicornOracle

ISAS = {"arm": False, "arm-be8": True}
MODES = {"a32": a32, "thumb": thumb, "blocks": blocks}


def run(isa: str, mode: str, codes: list[bytes], states: int, seed: int) -> Tally:
    where = target(mode != "a32", ISAS[isa])
    emulator = Emulator(isa, where.registers)

    def size_of(case: Case) -> int:
        return emulator.decode(case).size

    oracle = BlockOracle(where, size_of) if mode == "blocks" else UnicornOracle(where)
    pc = CODE | (mode != "a32")
    return campaign(emulator, oracle, codes, states, pc, seed, GENERAL, excuse)


def compiled_codes(mode: str) -> list[bytes]:
    name = "arm" if mode == "a32" else "thumb"
    codes = [code for codes in compiled(name).values() for code in codes]
    if mode == "a32":
        return codes
    in_block = [code for code in codes if code[1] == 0xBF and code[0] & 15]
    return in_block if mode == "blocks" else [code for code in codes if code not in in_block]


@pytest.mark.parametrize("mode", MODES)
def test_compiled_instructions_agree(mode: str) -> None:
    tally = run("arm", mode, compiled_codes(mode), 1, 1)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.agreement >= 0.999, f"{tally.line()} {tally.closed_by_reason.most_common(5)}"


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("mode", MODES)
def test_rare_instructions_are_never_wrong(isa: str, mode: str) -> None:
    count = 200 if mode == "blocks" else 500
    tally = run(isa, mode, MODES[mode](Random(1), count), 1, 2)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["agree"] > count // 5, tally.line()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("mode", MODES)
def test_many_executions(isa: str, mode: str) -> None:
    often = run(isa, mode, compiled_codes(mode), 60, 11)
    seldom = run(isa, mode, MODES[mode](Random(12), 8_000 if mode == "blocks" else 35_000), 2, 13)
    print(f"\n{isa} {mode} compiled: {often.line()}\n{isa} {mode} rare: {seldom.line()}")
    wrong = often.wrong + seldom.wrong
    assert not wrong, "\n".join(wrong)
    assert often.agreement >= 0.999
    assert often.executions + seldom.executions >= (15_000 if mode == "blocks" else 100_000)


@pytest.mark.parametrize(("thumb_mode", "load", "store"), [(0, "9f0f91e1", "923f85e1"), (1, "51e8000f", "45e80023")])
@pytest.mark.parametrize(("offset", "spurious"), [(0, 0), (0, 1), (8, 0)])
def test_exclusive_pair(thumb_mode: int, load: str, store: str, offset: int, spurious: int) -> None:
    """ldrex r0,[r1] and strex r3,r2,[r5]: only to the same address, only once, and it may fail."""
    decoder = decoder_for("arm")
    interpreter: Interpreter[int] = Interpreter(decoder)
    memory = Memory([RegionSpec("data", DATA, 64, 6, bytes(range(1, 65)))], 32, False)
    domain = ConcreteDomain(memory, lambda bits, origin, usual: spurious)

    def number(name: str) -> int:
        return decoder.layout.by_name[name].number

    for name, value in {"r1": DATA, "r2": 0xA5A5A5A5, "r5": DATA + offset}.items():
        domain.registers[number(name)] = value
    interpreter.execute(decoder.decode(CODE | thumb_mode, bytes.fromhex(load)), domain)
    assert domain.registers[number("r0")] == 0x04030201
    storing = decoder.decode(CODE | thumb_mode, bytes.fromhex(store))
    if offset:
        with pytest.raises(Unsupported):
            interpreter.execute(storing, domain)
        return
    interpreter.execute(storing, domain)
    assert domain.registers[number("r3")] == spurious
    assert memory.load(DATA, 4) == (0x04030201 if spurious else 0xA5A5A5A5)
    interpreter.execute(storing, domain)
    assert domain.registers[number("r3")] == 1


@pytest.mark.parametrize(
    ("pc", "code", "goes_to", "link"),
    [
        # backwards and forwards, from ARM with the half-word bit, from Thumb at both alignments
        (0x8000, "feffff fa", 0x8001, 0x8004),
        (0x8000, "000000fb", 0x800B, 0x8004),
        (0x8001, "fff7feef", 0x8000, 0x8005),
        (0x8003, "00f002e8", 0x8008, 0x8007),
    ],
)
def test_blx_immediate_changes_the_mode(pc: int, code: str, goes_to: int, link: int) -> None:
    decoder = decoder_for("arm")
    domain = ConcreteDomain(Memory([], 32, False))
    step = Interpreter[int](decoder).execute(decoder.decode(pc, bytes.fromhex(code)), domain)
    assert (step.transfer, step.target) == (Transfer.CALL, goes_to)
    assert domain.registers[decoder.layout.by_name["lr"].number] == link


def test_decoding_does_not_depend_on_what_was_decoded_before() -> None:
    """IT blocks, BLX, `mov lr, pc` before `bx`: each commits context inside a translator."""
    cases = [
        (0x8001, "08bf0846"),  # it eq; mov.eq r0, r1
        (0x8003, "0846"),  # mov r0, r1
        (0x7FFD, "06bf084608460846"),  # itte eq over the addresses above
        (0x8001, "fff7feef"),  # blx backwards: everything above would turn into ARM
        (0x8000, "0fe0a0e1"),  # mov lr, pc
        (0x8004, "13ff2fe1"),  # bx r3
        (0x8001, "fe46"),  # mov lr, pc
        (0x8003, "1847"),  # bx r3
        (0x8000, "feffff fa"),
        (0x9000, "0100a0e1"),
        (0x8001, "08bf"),  # a block that ends too early
        (0x8001, "eef789ec"),  # blx with an odd offset
    ]

    def decoded(decoder: Decoder, pc: int, code: str) -> str:
        try:
            instruction = decoder.decode(pc, bytes.fromhex(code))
        except Unsupported as error:
            return f"unsupported {error.what[:12]}"
        return f"{instruction.text} {[str(op) for op in instruction.ops]}"

    alone = {case: decoded(Decoder(isa_rows()["arm"]), *case) for case in cases}
    shared = decoder_for("arm")
    for case in Random(7).sample(cases, len(cases)) + cases:
        assert decoded(shared, *case) == alone[case], case


def test_register_lists_that_crash_the_translator_are_refused() -> None:
    decoder = decoder_for("arm")
    for pc, code in [(0x8000, "bb5a37ed"), (0x8001, "3fed1cda"), (0x8001, "08bf3fed1cda")]:
        with pytest.raises(Unsupported):
            decoder.decode(pc, bytes.fromhex(code))
