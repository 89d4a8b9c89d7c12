"""Cases for machines with fixed 32-bit instruction words, from their list of checked encodings.

Three sources: words compilers emit; random words of every checked encoding; and words nobody should accept lightly:
checked ones with a flipped bit, and random ones. For the last kind nearly everything must fail closed, and what does
not must still be right.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from mcveto.machine.faults import Unsupported
from mcveto.machine.isa import Decoder
from mcveto.machine.isa.encoding import Encoding

from .harness import CODE, CODE_SIZE, Case, Emulator, Excuse, Oracle, States, Tally, judge, steered

KINDS = ("compiled", "encodings", "strays")


def read_words(text: str) -> list[tuple[int, ...]]:
    """The instructions of a corpus: lines of a name and words, continued by indented lines."""
    found: list[tuple[int, ...]] = []
    for line in text.strip().splitlines():
        tokens = line.split() if line.startswith(" ") else line.split()[1:]
        found.extend(tuple(int(token[at : at + 8], 16) for at in range(0, len(token), 8)) for token in tokens)
    return found


def random_word(rng: Random, encoding: Encoding) -> int:
    while True:
        word = encoding.value | rng.getrandbits(32) & ~encoding.mask
        if encoding.matches(word):
            return word


def encoding_of(decoder: Decoder, word: int) -> Encoding | None:
    return next((encoding for encoding in decoder.overlay.checked if encoding.matches(word)), None)


@dataclass
class WordMachine:
    """One instruction set with its oracle and what its cases need besides random words and states."""

    isa: str
    names: tuple[str, ...]
    fixed: dict[str, int]
    corpus: list[tuple[int, ...]]
    oracle: Callable[[str], Oracle]  # by name of the encoding
    base_registers: Callable[[Encoding, int], tuple[str, ...]]  # which ones an address may come from
    complete: Callable[[Random, int], tuple[int, ...]] = lambda rng, word: (word,)  # adds a delay slot
    prepare: Callable[[Random, Encoding, Case], Case] = lambda rng, encoding, case: case
    excuse: Excuse | None = None
    tallies: dict[str, Tally] = field(default_factory=lambda: {kind: Tally() for kind in KINDS})

    def run(self, executions: int, seed: int) -> dict[str, Tally]:
        rng = Random(seed)
        emulator = Emulator(self.isa, self.names)
        states = States(rng, emulator.bits, self.fixed)
        checked = emulator.decoder.overlay.checked
        for number in range(executions):
            # Half compiled, then every encoding in turn, one stray in ten.
            if number % 2:
                kind, words = "compiled", self.corpus[number // 2 % len(self.corpus)]
            elif number % 20:
                kind, words = "encodings", self.complete(rng, random_word(rng, checked[number // 2 % len(checked)]))
            else:
                word = random_word(rng, rng.choice(checked)) ^ 1 << rng.randrange(32)
                kind, words = "strays", self.complete(rng, word if rng.randrange(4) else rng.getrandbits(32))
            judge_words(self, emulator, states, rng, words, self.tallies[kind])
        return self.tallies


def judge_words(
    machine: WordMachine, emulator: Emulator, states: States, rng: Random, words: tuple[int, ...], tally: Tally
) -> str:
    order: Literal["big", "little"] = "big" if emulator.decoder.row.big_endian else "little"
    code = b"".join(word.to_bytes(4, order) for word in words)
    registers, memory = states.state()
    case = Case(CODE + rng.randrange(0, CODE_SIZE - 8, 4), code, registers, memory)
    name = ""
    for word in reversed(words):
        encoding = encoding_of(emulator.decoder, word)
        if encoding is None:
            continue
        name = encoding.name
        case = machine.prepare(rng, encoding, case)
        if rng.randrange(8):
            with suppress(Unsupported):
                case = steered(case, emulator, rng, machine.base_registers(encoding, word), 2)
    return judge(case, emulator, machine.oracle(name), tally, machine.excuse)


def moved(case: Case, **registers: int) -> Case:
    """The case with other register values."""
    return replace(case, registers={**case.registers, **registers})
