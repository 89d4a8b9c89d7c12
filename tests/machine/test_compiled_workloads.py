"""Compiler-made programs (the speed benchmark's) run in step with the reference emulator, at low heat."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest

from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.compiled import machine as compiled_machine
from mcveto.machine.emulator import Machine
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory, RegionSpec

BENCH = Path(__file__).parents[2] / "bench"
STEPS = 1200


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("machine_speed", BENCH / "machine_speed.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("enforce", [True, False])
@pytest.mark.parametrize("level", ["O0", "O1"])
@pytest.mark.parametrize("isa", ["x86-32", "x86-64", "ppc32-be"])
def test_in_step_with_the_reference(isa: str, level: str, enforce: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_machine, "HOT", 3)
    bench = benchmark()
    decoder = decoder_for(isa)
    entry, regions = bench.segments(BENCH / "workloads" / f"{isa}-{level}.elf")
    for name, (which, _) in bench.WORKLOADS.items():
        rng = random.Random(f"{isa} {level} {name} {enforce}")
        named, top = bench.start_state(isa, which, 9 if name == "fibonacci" else rng.randrange(3, 60))
        cells = {decoder.layout.named(register)[0].cell.number: value for register, value in named.items()}
        machines: list[Machine] = []
        for kind in (Machine, CompiledMachine):
            stack = RegionSpec("stack", bench.STACK, bench.STACK_SIZE, 6)
            memory = Memory([*regions, stack], decoder.row.address_bits, decoder.row.big_endian, enforce)
            memory.poke(bench.STACK + bench.STACK_SIZE - 0x100, top)
            machines.append(kind(decoder, memory, cells, entry, halts=[bench.HALT]))
        reference, compiled = machines
        done = 0
        while done < STEPS:
            piece = rng.choice((1, 20, 150, 600))
            expected, actual = reference.run(piece), compiled.run(piece)
            done += piece
            assert actual == expected, name
            numbers = reference.registers.keys() | compiled.registers.keys()
            for number in numbers:
                assert compiled.registers.get(number, 0) == reference.registers.get(number, 0), (name, done, number)
            for left, right in zip(reference.memory.regions, compiled.memory.regions, strict=True):
                assert left.data == right.data, (name, done, left)
            if expected.kind != "limit":
                assert expected.kind == "halted"
                break
        assert list(compiled.trace) == list(reference.trace)
        assert isinstance(compiled, CompiledMachine)
        assert compiled.paths_compiled > 0
