"""RISC-V against Unicorn: registers, memory, next pc and faults of single instructions, and LR/SC pairs."""

from __future__ import annotations

from random import Random

import pytest

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory, RegionSpec

from .campaign import campaign
from .corpus_riscv import rare
from .corpus_words import compiled
from .harness import CODE, DATA, Emulator, Tally
from .oracle_riscv import GENERAL, excuse, target
from .unicorn_oracle import UnicornOracle

ISAS = ("riscv32", "riscv64")


def run(isa: str, codes: list[bytes], states: int, seed: int) -> Tally:
    emulator = Emulator(isa, GENERAL)
    return campaign(emulator, UnicornOracle(target(isa)), codes, states, CODE, seed, GENERAL, excuse)


def compiled_codes(isa: str) -> list[bytes]:
    return [code for codes in compiled(isa).values() for code in codes]


@pytest.mark.parametrize("isa", ISAS)
def test_compiled_instructions_agree(isa: str) -> None:
    tally = run(isa, compiled_codes(isa), 1, 1)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.agreement >= 0.999, f"{tally.line()} {tally.closed_by_reason.most_common(5)}"


@pytest.mark.parametrize("isa", ISAS)
def test_rare_instructions_are_never_wrong(isa: str) -> None:
    tally = run(isa, rare(Random(1), 1500), 1, 2)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["agree"] > 600, tally.line()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("isa", ISAS)
def test_many_executions(isa: str) -> None:
    often = run(isa, compiled_codes(isa), 80, 11)
    seldom = run(isa, rare(Random(12), 30_000), 2, 13)
    halves = run(isa, [n.to_bytes(2, "little") for n in range(0x10000) if n & 3 != 3], 1, 14)
    print(f"\n{isa} compiled: {often.line()}\n{isa} rare: {seldom.line()}\n{isa} all 16-bit: {halves.line()}")
    wrong = often.wrong + seldom.wrong + halves.wrong
    assert not wrong, "\n".join(wrong)
    assert often.agreement >= 0.999
    assert often.executions + seldom.executions + halves.executions >= 100_000


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("offset", "spurious", "outcome"), [(0, 0, "stored"), (0, 1, "failed"), (8, 0, "unsupported"), (2, 0, "misaligned")]
)
def test_load_reserved_store_conditional(isa: str, offset: int, spurious: int, outcome: str) -> None:
    """lr.w a0,(a1) and sc.w a2,a3,(a4): success writes and gives 0, failure leaves memory alone and gives 1."""
    decoder = decoder_for(isa)
    interpreter: Interpreter[int] = Interpreter(decoder)
    memory = Memory([RegionSpec("data", DATA, 64, 6, b"\x11\x22\x33\x44")], decoder.row.address_bits, False)
    domain = ConcreteDomain(memory, lambda bits, origin, usual: spurious)
    for name, value in {"a1": DATA, "a3": 0xA5A5A5A5, "a4": DATA + offset}.items():
        domain.registers[decoder.layout.by_name[name].number] = value
    found = ""
    for word in ("2fa50510", "2f26d718"):
        try:
            interpreter.execute(decoder.decode(CODE, bytes.fromhex(word)), domain)
        except Exception as error:
            found = str(error)
    result = domain.registers.get(decoder.layout.by_name["a2"].number)
    if outcome in ("unsupported", "misaligned"):
        assert outcome in found
        return
    assert found == ""
    assert domain.registers[decoder.layout.by_name["a0"].number] == 0x44332211
    assert result == (0 if outcome == "stored" else 1)
    assert memory.load(DATA, 4) == (0xA5A5A5A5 if outcome == "stored" else 0x44332211)
    # The reservation is gone either way: a second store conditional fails.
    interpreter.execute(decoder.decode(CODE, bytes.fromhex("2f26d718")), domain)
    assert domain.registers[decoder.layout.by_name["a2"].number] == 1
