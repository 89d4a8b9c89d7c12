"""32-bit PowerPC, both byte orders, against Unicorn."""

from __future__ import annotations

from random import Random

import pytest
from unicorn import ppc_const as ppc

from mcveto.machine.isa.encoding import Encoding

from . import corpus_powerpc
from .harness import DATA, DATA_SIZE, Case, Oracle, Tally
from .oracle_powerpc import NAMES, LittleEndianOracle, PowerPcOracle
from .words import WordMachine, moved, read_words

ISAS = ("ppc32-be", "ppc32-le")


def machine(isa: str) -> WordMachine:
    # Unicorn's default processor (7457) lacks isel.
    plain, with_isel = PowerPcOracle(), PowerPcOracle(ppc.UC_CPU_PPC32_E500V2_V20)
    oracles: tuple[Oracle, Oracle] = (plain, with_isel)
    if isa == "ppc32-le":
        oracles = (LittleEndianOracle(plain), LittleEndianOracle(with_isel))
    return WordMachine(
        isa,
        NAMES,
        {"RESERVE": 0, "RESERVE_ADDRESS": 0},
        read_words(corpus_powerpc.WORDS),
        oracle=lambda name: oracles[name == "isel"],
        base_registers=base_registers,
        prepare=prepare,
    )


def base_registers(encoding: Encoding, word: int) -> tuple[str, ...]:
    fields = encoding.values(word)
    return tuple(f"r{fields[letter]}" for letter in "ab" if letter in fields)


def prepare(rng: Random, encoding: Encoding, case: Case) -> Case:
    """Reservations for the instructions that care, mostly at the address they use."""
    if encoding.name not in ("lwarx", "stwcx.") or not rng.randrange(32):
        return case
    word = int.from_bytes(case.code, "big")
    if not encoding.matches(word):
        word = int.from_bytes(case.code, "little")
    fields = encoding.values(word)
    if fields["a"] == fields["b"] != 0:
        return case
    reserved = DATA + rng.randrange(0, DATA_SIZE, 4)
    base = case.registers[f"r{fields['a']}"] if fields["a"] else 0
    index = (reserved - base) & 0xFFFFFFFF
    held = {"RESERVE": rng.randrange(2), "RESERVE_ADDRESS": reserved}
    return moved(case, **held, **{f"r{fields['b']}": index})


def check(isa: str, executions: int, seed: int) -> dict[str, Tally]:
    tallies = machine(isa).run(executions, seed)
    for kind, tally in tallies.items():
        print(f"{isa} {kind}: {tally.line()}")
        assert not tally.counts["wrong"], "\n\n".join(tally.wrong[:5])
    assert tallies["compiled"].agreement >= 0.999, tallies["compiled"].closed_by_reason.most_common(5)
    assert tallies["encodings"].agreement >= 0.9, tallies["encodings"].closed_by_reason.most_common(5)
    return tallies


@pytest.mark.parametrize("isa", ISAS)
def test_agrees_with_unicorn(isa: str) -> None:
    check(isa, 3_000, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("isa", ISAS)
def test_agrees_with_unicorn_on_many(isa: str) -> None:
    tallies = check(isa, 104_000, seed=2)
    assert sum(tally.executions for tally in tallies.values()) >= 100_000
