"""x86-32 and x86-64 against Unicorn, and x86-64 against the processor the tests run on.

Run this file as a module to get the figures of docs/agreement/x86.md:
    python -m tests.machine.differential.test_x86 EXECUTIONS [x86-32-unicorn ...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import cycle
from random import Random

import pytest

from mcveto.machine.faults import Unsupported

from . import corpus_x86, oracle_x86
from .harness import CODE, Case, Emulator, Excuse, Oracle, States, Tally, judge, steered
from .host_oracle import HostOracle, HostUnavailable
from .unicorn_oracle import UnicornOracle

PAIRS = [("x86-32", "unicorn"), ("x86-64", "unicorn"), ("x86-64", "host")]


class Bench:
    """One instruction set against one oracle."""

    def __init__(self, isa: str, oracle: str, seed: int) -> None:
        self.isa = isa
        self.rng = Random(seed)
        self.emulator = Emulator(isa, oracle_x86.names(isa))
        self.oracle: Oracle = HostOracle() if oracle == "host" else UnicornOracle(oracle_x86.target(isa))
        self.excuse: Excuse = oracle_x86.host_cannot_tell if oracle == "host" else oracle_x86.unicorn_cannot_tell
        vectors = {name: (1 << 127) + 5 for name in self.emulator.names if name.startswith("XMM")}
        self._scalar_states = States(self.rng, self.emulator.bits, vectors)
        self._vector_states = States(self.rng, self.emulator.bits)
        self._counter = "ECX" if isa == "x86-32" else "RCX"

    def close(self) -> None:
        if isinstance(self.oracle, HostOracle):
            self.oracle.close()

    def run(self, codes: Iterable[bytes], states: int, executions: int) -> Tally:
        """Judges each encoding in `states` random states until `executions` are done."""
        tally = Tally()
        for code in codes:
            if tally.executions >= executions:
                break
            try:
                instruction = self.emulator.decode(Case(CODE, code, {}, b""))
            except Unsupported:
                tally.counts["undecoded"] += 1
                continue
            repeats = ".REP" in instruction.mnemonic
            source = self._vector_states if "MM" in instruction.operands else self._scalar_states
            for _ in range(states):
                registers, memory = source.state()
                if repeats:
                    registers[self._counter] = self.rng.randrange(6)
                case = Case(CODE, code, registers, memory, repeats)
                case = steered(case, self.emulator, self.rng, oracle_x86.GENERAL[self.isa])
                if "xmmword ptr" in instruction.operands:
                    case = self._aligned(case)
                    case = self._aligned(steered(case, self.emulator, self.rng, oracle_x86.GENERAL[self.isa]))
                judge(case, self.emulator, self.oracle, tally, self.excuse)
        return tally

    def _aligned(self, case: Case) -> Case:
        """Mostly the case with a register moved so that a 128-bit operand is aligned, if that is easy."""
        if not self._misaligned(case) or not self.rng.randrange(8):
            return case
        for name in oracle_x86.GENERAL[self.isa]:
            for distance in range(-15, 0):
                moved = case.registers[name] + distance & (1 << self.emulator.bits[name]) - 1
                candidate = replace(case, registers={**case.registers, name: moved})
                if not self._misaligned(candidate):
                    return candidate
        return case

    def _misaligned(self, case: Case) -> bool:
        try:
            return self.emulator.run(case).fault == "general-protection"
        except Unsupported:
            return False


@pytest.fixture(params=PAIRS, ids="-".join)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    isa, oracle = request.param
    try:
        made = Bench(isa, oracle, seed=1)
    except HostUnavailable as reason:
        pytest.skip(str(reason))
    yield made
    made.close()


def check(tally: Tally) -> None:
    assert not tally.counts["wrong"], "\n".join([tally.line(), *tally.wrong[:5]])


def compiled(bench: Bench) -> Iterator[bytes]:
    codes = corpus_x86.compiled(bench.isa)
    bench.rng.shuffle(codes)
    return cycle(codes)


def sampled(bench: Bench, share: float) -> Iterator[bytes]:
    return (code for code in corpus_x86.systematic(bench.isa, bench.rng) if bench.rng.random() < share)


def test_compiled_code_agrees(bench: Bench) -> None:
    tally = bench.run(compiled(bench), 1, 800)
    check(tally)
    assert tally.agreement > 0.999, tally.line()
    assert not tally.counts["undecoded"], "compiled code that the decoder refuses"


def test_rare_instructions_agree_or_fail_closed(bench: Bench) -> None:
    check(bench.run(sampled(bench, 0.02), 1, 500))
    check(bench.run(corpus_x86.random_bytes(bench.isa, bench.rng), 1, 300))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_hundred_thousand_executions(bench: Bench) -> None:
    tally = bench.run(compiled(bench), 2, 50_000)
    check(tally)
    assert tally.agreement > 0.999, tally.line()
    assert not tally.counts["undecoded"], "compiled code that the decoder refuses"
    rare = bench.run(corpus_x86.systematic(bench.isa, bench.rng), 1, 40_000)
    rare.add(bench.run(corpus_x86.random_bytes(bench.isa, bench.rng), 2, 60_000 - rare.executions))
    print(f"\n{bench.isa} {type(bench.oracle).__name__} compiled: {tally.line()}\nrare: {rare.line()}")
    check(rare)
    assert rare.executions + tally.executions >= 100_000
    assert rare.agreement > 0.9, rare.line()


def main(executions: int, pairs: list[tuple[str, str]]) -> None:
    for isa, oracle in pairs:
        bench = Bench(isa, oracle, seed=2)
        for title, codes, states in (
            ("compiled", compiled(bench), 2),
            ("systematic", corpus_x86.systematic(isa, bench.rng), 1),
            ("random", corpus_x86.random_bytes(isa, bench.rng), 2),
        ):
            tally = bench.run(codes, states, executions)
            print(f"{isa} {oracle} {title}: {tally.line()}, {tally.counts['undecoded']} encodings refused", flush=True)
            for wrong in tally.wrong[:10]:
                print(wrong[:600])
        bench.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), [pair for pair in PAIRS if "-".join(pair) in sys.argv[2:]] or PAIRS)
