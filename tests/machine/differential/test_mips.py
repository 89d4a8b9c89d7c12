"""MIPS32 release 2, both byte orders, against Unicorn."""

from __future__ import annotations

from random import Random

import pytest

from mcveto.machine.isa import decoder_for
from mcveto.machine.isa.encoding import Encoding

from . import corpus_mips
from .harness import CODE, CODE_SIZE, DATA, DATA_SIZE, Case, Tally
from .oracle_mips import GENERAL, NAMES, MipsOracle
from .words import WordMachine, encoding_of, moved, random_word, read_words

ISAS = ("mips32-be", "mips32-le")
BRANCHES = frozenset(
    ("j", "jal", "jr", "jalr", "beq", "bne", "beql", "bnel", "blez", "bgtz", "blezl", "bgtzl", "bltz", "bgez")
) | {"bltzl", "bgezl", "bltzal", "bgezal", "bltzall", "bgezall"}


def machine(isa: str) -> WordMachine:
    oracle = MipsOracle(isa == "mips32-be")
    return WordMachine(
        isa,
        NAMES,
        {"LLAddr": 0},
        read_words(corpus_mips.WORDS),
        oracle=lambda name: oracle,
        base_registers=lambda encoding, word: register(encoding, word, "s"),
        complete=with_delay_slot,
        prepare=prepare,
    )


def register(encoding: Encoding, word: int, letter: str) -> tuple[str, ...]:
    number = encoding.values(word).get(letter, 0)
    return (GENERAL[number - 1],) if number else ()


def with_delay_slot(rng: Random, word: int) -> tuple[int, ...]:
    decoder = decoder_for("mips32-be")
    encoding = encoding_of(decoder, word)
    if encoding is None or encoding.name not in BRANCHES:
        return (word,)
    candidates = [other for other in decoder.overlay.checked if other.name not in BRANCHES]
    return (word, random_word(rng, rng.choice(candidates)))


def prepare(rng: Random, encoding: Encoding, case: Case) -> Case:
    """SC mostly after an LL to the address it uses, jumps mostly to code."""
    if encoding.name not in ("ll", "sc", "jr", "jalr") or not rng.randrange(32):
        return case
    word = int.from_bytes(case.code[:4], "big")
    if not encoding.matches(word):
        word = int.from_bytes(case.code[:4], "little")
    base = register(encoding, word, "s")
    if not base or not encoding.matches(word):
        return case
    if encoding.name in ("jr", "jalr"):
        return moved(case, **{base[0]: CODE + rng.randrange(0, CODE_SIZE, 4)})
    linked = DATA + rng.randrange(0, DATA_SIZE, 4)
    displacement = (word & 0xFFFF ^ 0x8000) - 0x8000
    return moved(case, LLAddr=linked | 1, **{base[0]: (linked - displacement) & 0xFFFFFFFF})


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
