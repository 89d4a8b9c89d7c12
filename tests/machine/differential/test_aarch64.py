"""AArch64 against Unicorn: registers, flags, vectors, memory, next pc and faults of single instructions; exclusives."""

from __future__ import annotations

from random import Random

import pytest

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.faults import Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory, RegionSpec

from .campaign import campaign
from .corpus_aarch64 import rare
from .corpus_words import compiled
from .harness import CODE, DATA, Emulator, Tally
from .oracle_aarch64 import GENERAL, excuse, target
from .unicorn_oracle import UnicornOracle
from .words import random_word


def run(codes: list[bytes], states: int, seed: int) -> Tally:
    where = target()
    emulator = Emulator("aarch64", where.registers)
    return campaign(emulator, UnicornOracle(where), codes, states, CODE, seed, GENERAL, excuse)


def compiled_codes() -> list[bytes]:
    return [code for codes in compiled("aarch64").values() for code in codes]


def defined_codes(rng: Random, each: int) -> dict[str, list[bytes]]:
    """Random words of every vector instruction that the overlay defines as a whole, by its name."""
    definitions = decoder_for("aarch64").overlay.definitions
    return {
        definition.id: [random_word(rng, definition.encoding).to_bytes(4, "little") for _ in range(each)]
        for definition in definitions
    }


def test_compiled_instructions_agree() -> None:
    tally = run(compiled_codes(), 1, 1)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.agreement >= 0.98, f"{tally.line()} {tally.closed_by_reason.most_common(5)}"


def test_defined_instructions_agree() -> None:
    codes = defined_codes(Random(3), 8)
    assert len(codes) >= 30
    tally = run([code for some in codes.values() for code in some], 1, 4)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["agree"] == 8 * len(codes), tally.line()


def test_definitions_do_not_overlap() -> None:
    """Which definition a word belongs to never depends on their order."""
    definitions = decoder_for("aarch64").overlay.definitions
    for words in defined_codes(Random(5), 40).values():
        for word in words:
            found = [d.id for d in definitions if d.encoding.matches(int.from_bytes(word, "little"))]
            assert len(found) == 1, (word.hex(), found)


def test_rare_instructions_are_never_wrong() -> None:
    tally = run(rare(Random(1), 700), 1, 2)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["agree"] > 250, tally.line()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_executions() -> None:
    often = run(compiled_codes(), 40, 11)
    seldom = run(rare(Random(12), 45_000), 2, 13)
    vectors = run([code for codes in defined_codes(Random(14), 500).values() for code in codes], 2, 15)
    for title, tally in {"compiled": often, "rare": seldom, "defined vectors": vectors}.items():
        print(f"\naarch64 {title}: {tally.line()}", end="")
    print(often.closed_by_reason.most_common(5))
    wrong = often.wrong + seldom.wrong + vectors.wrong
    assert not wrong, "\n".join(wrong)
    assert often.executions + seldom.executions >= 100_000


@pytest.mark.parametrize(
    ("load", "store", "size"),
    [
        ("207c5f08", "a27c0308", 1),
        ("207c5f48", "a27c0348", 2),
        ("207c5f88", "a27c0388", 4),
        ("207c5fc8", "a27c03c8", 8),
    ],
)
@pytest.mark.parametrize(("offset", "spurious"), [(0, 0), (0, 1), (16, 0)])
def test_exclusive_pair(load: str, store: str, size: int, offset: int, spurious: int) -> None:
    """ldxr x0,[x1] and stxr w3,x2,[x5]: only to the same address, only once, and it may fail."""
    decoder = decoder_for("aarch64")
    interpreter: Interpreter[int] = Interpreter(decoder)
    memory = Memory([RegionSpec("data", DATA, 64, 6, bytes(range(1, 65)))], 64, False)
    domain = ConcreteDomain(memory, lambda bits, origin, usual: spurious)

    def number(name: str) -> int:
        return decoder.layout.by_name[name].number

    for name, value in {"x1": DATA, "x2": 0xA5A5A5A5A5A5A5A5, "x5": DATA + offset}.items():
        domain.registers[number(name)] = value
    old = memory.load(DATA, size)
    interpreter.execute(decoder.decode(CODE, bytes.fromhex(load)), domain)
    assert domain.registers[number("x0")] == old
    if offset:
        with pytest.raises(Unsupported):
            interpreter.execute(decoder.decode(CODE, bytes.fromhex(store)), domain)
        return
    interpreter.execute(decoder.decode(CODE, bytes.fromhex(store)), domain)
    assert domain.registers[number("x3")] == spurious
    assert memory.load(DATA, size) == (old if spurious else int("a5" * size, 16))
    interpreter.execute(decoder.decode(CODE, bytes.fromhex(store)), domain)
    assert domain.registers[number("x3")] == 1
