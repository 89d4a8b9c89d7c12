"""The C of a binary ends in the same state as the emulator: whole programs, and single instructions of every kind."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from mcveto.machine.emulator import Machine
from mcveto.machine.faults import Unsupported
from mcveto.machine.isa import decoder_for
from mcveto.program.exits import explained
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import Spec, load_spec
from mcveto.translate.to_c import CTranslation, MemoryModel

from .running import Final, compile_c, emulated, executed, register_value, state_lines, write

EXAMPLES = Path(__file__).parents[2] / "examples"
MACHINE = EXAMPLES / "machine"
SUMS = sorted(path.stem for path in (MACHINE / "checksum").glob("*-O2.yaml"))
TRICKS = sorted(path.stem for path in (MACHINE / "tricks").glob("*.yaml"))
# These modify their own code, which the translation refuses to follow.
MODIFIED = {"smc-64", "smc-input", "smc-input-safe", "smc-loop", "smc-next"}
QUICK = {"arm-interworking", "buffer-overflow", "jump-table", "mips-delay", "riscv-overlap", "stack-overflow"}
STACK = 1 << 16


def example(path: Path) -> Program:
    return load_program(None, replace(load_spec(str(path)), stack=STACK))


def compare(program: Program, folder: Path, seeds: range, memory: MemoryModel = "array") -> list[tuple[Final, Final]]:
    """Final states of emulator and C, for runs that end; also compiles the C as a verification task."""
    translation = CTranslation(program, memory)
    source = write(translation, folder / "program.c")
    compile_c(source, "-c")
    binary = compile_c(source, "-DMC_RUN", "-O0")
    pairs = []
    for seed in seeds:
        expected = emulated(program, [], seed, translation.registers, folder / "state")
        if expected is not None:
            pairs.append((expected, executed(binary, folder / "state")))
    return pairs


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "ppc32-be-O2" else pytest.mark.slow) for name in SUMS]
)
def test_compiled_programs(name: str, tmp_path: Path) -> None:
    """Compiler output of every instruction set, in which every kind of value and control flow of C occurs."""
    pairs = compare(example(MACHINE / "checksum" / f"{name}.yaml"), tmp_path, range(2))
    assert pairs
    for expected, found in pairs:
        if expected.kind == "unsupported":
            found = replace(found, kind=found.kind.replace("unknown-target", "unsupported"))
        assert found == expected


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in TRICKS if name not in MODIFIED],
)
def test_tricks(name: str, tmp_path: Path) -> None:
    """Jump tables, overlapping instructions, overwritten return addresses, overflowing stacks, faults."""
    pairs = compare(example(MACHINE / "tricks" / f"{name}.yaml"), tmp_path, range(3))
    assert pairs
    for expected, found in pairs:
        assert found == expected


@pytest.mark.parametrize("name", ["smc-loop", pytest.param("smc-input", marks=pytest.mark.slow)])
def test_modified_code_is_noticed(name: str, tmp_path: Path) -> None:
    pairs = compare(example(MACHINE / "tricks" / f"{name}.yaml"), tmp_path, range(1))
    assert [found.kind for _, found in pairs] == ["modified-code"]


@pytest.mark.parametrize(
    "name",
    [
        "tricks/jump-table",
        "tricks/store-code",
        *(pytest.param(f"checksum/{name}-O2", marks=pytest.mark.slow) for name in ("ppc32-be", "x86-32", "x86-64")),
    ],
)
def test_memory_as_pointers(name: str, tmp_path: Path) -> None:
    """The memory of the program is mapped where the program expects it."""
    pairs = compare(example(MACHINE / f"{name}.yaml"), tmp_path, range(2), "pointers")
    assert pairs
    for expected, found in pairs:
        assert found == expected


# Single instructions: those of the compiled programs with some bits flipped, each in a slot of its own that is followed
# by a halt and listed in a table, started in random states in which registers often point to mapped memory.

SLOT = 32
BASE = 0x10000
CORPUS = {
    "x86-32": "x86-32-O2",
    "x86-64": "x86-64-O2",
    "ppc32-be": "ppc32-be-O2",
    "ppc32-le": "ppc32-le-O2",
    "arm": "arm-O2",
    "arm-be8": "arm-be8-O2",
    "aarch64": "aarch64-O2",
    "riscv32": "riscv32-O2",
    "riscv64": "riscv64-O2",
    "mips32-be": "mips32-be-O2",
    "mips32-le": "mips32-le-O2",
}


@cache
def encodings(isa: str, count: int) -> tuple[bytes, ...]:
    """Instructions that occur, and their neighbours that are instructions as well."""
    image = load_program(None, load_spec(str(MACHINE / "checksum" / f"{CORPUS[isa]}.yaml"))).image
    decoder = decoder_for(isa)
    generator = random.Random(isa)
    segment = next(segment for segment in image.segments if segment.permissions & 1)
    unit, longest = decoder.row.alignment, decoder.row.max_instruction
    found: list[bytes] = []
    seen: set[bytes] = set()
    for _ in range(50 * count):
        at = generator.randrange(0x100, len(segment.content) - longest) // unit * unit
        code = bytearray(segment.content[at : at + longest])
        for _ in range(generator.choice((0, 1, 1, 2, 3))):
            code[generator.randrange(min(4, longest))] ^= 1 << generator.randrange(8)
        try:
            instruction = decoder.decode(BASE, bytes(code))
        except Unsupported:
            continue
        if instruction.bytes not in seen and any(instruction.bytes):
            seen.add(instruction.bytes)
            found.append(instruction.bytes)
        if len(found) == count:
            break
    return tuple(found)


def slots_program(isa: str, count: int, folder: Path) -> tuple[Program, list[tuple[int, int]]]:
    """A raw image of slots; (start, end) of each instruction."""
    content = bytearray()
    places = []
    for code in encodings(isa, count):
        start = BASE + len(content)
        places.append((start, start + len(code)))
        content += code.ljust(SLOT, b"\0")
    row = decoder_for(isa).row
    order: Literal["big", "little"] = "big" if row.big_endian else "little"
    table = b"".join(start.to_bytes(row.address_bytes, order) for start, _ in places)
    blob = folder / "slots.bin"
    blob.write_bytes(bytes(content) + bytes(64) + table)
    spec = Spec(binary=str(blob), arch=isa, base=BASE, entry=BASE, halt=tuple(end for _, end in places), stack=1 << 14)
    return load_program(str(blob), spec), places


@pytest.mark.parametrize("isa", CORPUS)
def test_single_instructions(isa: str, tmp_path: Path) -> None:
    check_single_instructions(isa, tmp_path, 60, 1)


@pytest.mark.slow
@pytest.mark.parametrize("isa", CORPUS)
def test_many_single_instructions(isa: str, tmp_path: Path) -> None:
    check_single_instructions(isa, tmp_path, 1500, 3)


def is_wide(program: Program, start: int, end: int) -> bool:
    """Whether the instruction computes with values of more than 128 bits, which C does not have."""
    code = program.image.read(start, end - start)
    assert code is not None
    ops = program.decoder.decode(start, code).ops
    return any(varnode.size > 16 for op in ops for varnode in (*op.inputs, op.output) if varnode is not None)


def check_single_instructions(isa: str, folder: Path, count: int, states: int) -> None:
    program, places = slots_program(isa, count, folder)
    translation = CTranslation(program)
    binary = compile_c(write(translation, folder / "program.c"), "-DMC_RUN", "-O0")
    generator = random.Random(isa)
    compared = 0
    for start, end in places:
        for _ in range(states):
            machine = _random_state(program, start, generator)
            names = translation.registers
            (folder / "state").write_text("\n".join(state_lines(machine, names)) + "\n")
            outcome = machine.step()
            if outcome is not None:
                outcome = explained(program, outcome, machine.read, None)
            if outcome is None and machine.pc != end:
                continue  # a jump: whole programs test these
            found = executed(binary, folder / "state")
            kind = "halted" if outcome is None else outcome.kind
            text = f"{isa} {program.image.read(start, end - start)!r} {kind} {found.kind}"
            if kind == "unsupported":
                assert found.kind in ("unsupported", "unknown-target"), text
                continue
            if found.kind == "modified-code" or (found.kind == "unsupported" and is_wide(program, start, end)):
                continue
            assert found.kind == kind, text
            assert found.pc == machine.pc, text
            different = {
                n: (v, register_value(machine, n))
                for n, v in found.registers.items()
                if v != register_value(machine, n)
            }
            assert not different, f"{text} {different}"
            compared += 1
    assert compared >= count // 3


def _random_state(program: Program, start: int, generator: random.Random) -> Machine:
    seed = generator.randrange(1, 1 << 20)
    machine = program.machine(InputSource((), seed), seed)
    machine.pc = start
    layout = program.decoder.layout
    stack = program.space.regions[-1]
    for name in program.decoder.row.general:
        (piece,) = layout.named(name)
        choice = generator.randrange(4)
        if choice < 2:
            value = stack.start + generator.randrange(64, stack.size - 64)
        else:
            value = generator.getrandbits(64) >> generator.choice((0, 20, 40, 60))
        machine.registers[piece.cell.number] = value & ((1 << layout.significant_bits(piece.cell)) - 1)
    return machine
