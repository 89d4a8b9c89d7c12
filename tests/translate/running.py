"""Compiles a translation and runs it from the state an emulator starts in; what both end with can be compared."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcveto.machine.compiled.machine import CompiledMachine
from mcveto.machine.emulator import Machine
from mcveto.program.exits import run_to_end
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.translate.to_c import CTranslation

WARNINGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror")
_CHUNK = 60_000
MAX_STEPS = 3_000_000


def compiler() -> list[str]:
    """gcc if there is one, else the compiler that comes with ziglang."""
    if shutil.which("gcc"):
        return ["gcc"]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined"]
    pytest.skip("no C compiler")


def write(translation: CTranslation, path: Path) -> Path:
    path.write_text("\n".join(translation.lines()) + "\n")
    return path


def compile_c(source: Path, *flags: str) -> Path:
    output = source.with_suffix(".exe")
    command = [*compiler(), *WARNINGS, *flags, str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return output


@dataclass(frozen=True)
class Final:
    """How a run ended and in which state."""

    kind: str
    pc: int
    registers: dict[str, int]
    memory: dict[int, int]


def emulated(program: Program, inputs: Sequence[int], seed: int, names: Sequence[str], state: Path) -> Final | None:
    """The final state of the emulator; writes the initial one to `state`. None if the run does not end."""
    source = InputSource(inputs, seed)
    machine = program.machine(source, seed, make=CompiledMachine)
    lines = state_lines(machine, names)
    consumed = len(source.consumed)
    outcome = run_to_end(program, machine, MAX_STEPS)
    lines += [f"i {item.value & (1 << item.bits) - 1:x}" for item in source.consumed[consumed:]]
    state.write_text("\n".join(lines) + "\n")
    if outcome.kind == "limit":
        return None
    memory = {region.start: zlib.crc32(region.data) for region in machine.memory.regions}
    return Final(outcome.kind, outcome.pc, {name: register_value(machine, name) for name in names}, memory)


def state_lines(machine: Machine, names: Sequence[str]) -> list[str]:
    """The state of a machine, as the translation reads it."""
    lines = [f"r {name} {register_value(machine, name):x}" for name in names]
    for region in machine.memory.regions:
        for at in range(0, len(region.data), _CHUNK):
            part = region.data[at : at + _CHUNK]
            if any(part):
                lines.append(f"m {region.start + at:x} {part.hex()}")
    lines.append(f"p {machine.pc:x}")
    return lines


def register_value(machine: Machine, name: str) -> int:
    """A register of the translation; vector registers are split there into lanes NAME_OFFSET."""
    layout = machine.decoder.layout
    if name in layout.names:
        return machine.read(name)
    whole, _, offset = name.rpartition("_")
    value = 0
    for cell, low, bits in layout.pieces(layout.names[whole][0] + int(offset), 16):
        value = value << bits | machine.registers.get(cell.number, 0) >> low & ((1 << bits) - 1)
    return value


def executed(program: Path, state: Path) -> Final:
    """The final state of the compiled translation."""
    done = subprocess.run([str(program), str(state)], capture_output=True, text=True, check=True, timeout=60)
    first, *rest = done.stdout.splitlines()
    kind, pc = first.split()[:2]
    registers = {name: int(value, 16) for name, value in (line.split() for line in rest if not line.startswith("crc "))}
    memory = {int(line.split()[1], 16): int(line.split()[2], 16) for line in rest if line.startswith("crc ")}
    return Final(kind, int(pc, 16), registers, memory)
