"""Library models against the real C library, on every family of instruction sets."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from mcveto.errors import UsageError
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.emulator import Machine, Outcome
from mcveto.machine.faults import FaultKind
from mcveto.program.image.model import Image, Permission, Segment
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, make_program
from mcveto.program.spec import Spec, parse_spec

CODE, DATA, AREA = 0x10000, 0x20000, 256
ISAS = ("x86-32", "x86-64", "ppc32-be", "arm", "aarch64", "riscv64", "mips32-le")
LIBC = ctypes.CDLL(None)


@cache
def bound(isa: str, name: str) -> Program:
    """A program that is nothing but a call of the model."""
    readable = Permission.READ | Permission.WRITE
    code = Segment(CODE, 4096, bytes(4096), Permission.READ | Permission.EXECUTE, "code")
    data = Segment(DATA, 4096, bytes(4096), readable, "data")
    image = Image("test", "", "raw", isa, CODE, CODE, (code, data))
    return make_program(image, Spec(models=((CODE, name),)))


@dataclass
class Called:
    outcome: Outcome
    machine: Machine
    result: int

    def data(self, size: int = AREA) -> bytes:
        found = self.machine.memory.peek(DATA, size)
        assert found is not None
        return found


def start(
    program: Program, arguments: Sequence[int], content: bytes = b"", inputs: Sequence[int] = (), *, slow: bool = False
) -> Machine:
    """The machine at the model's entry with its arguments where the convention wants them."""
    machine = program.machine(InputSource(list(inputs)), make=Machine if slow else CompiledMachine)
    machine.memory.poke(DATA, content)
    row, layout = program.decoder.row, program.decoder.layout
    mask = row.address_mask
    for number, value in enumerate(arguments):
        if row.arguments[0].startswith("stack+"):
            at = machine.read(row.stack_pointer) + int(row.arguments[0].removeprefix("stack+")) + 4 * number
            machine.memory.poke(at, (value & mask).to_bytes(4, "little"))
        else:
            (piece,) = layout.named(row.arguments[number])
            machine.registers[piece.cell.number] = value & mask
    return machine


def call(program: Program, arguments: Sequence[int], content: bytes = b"", inputs: Sequence[int] = ()) -> Called:
    machine = start(program, arguments, content, inputs)
    pointer = machine.read(program.decoder.row.stack_pointer)
    outcome = machine.run(100_000)
    if outcome.kind == "halted" and outcome.steps:
        popped = program.decoder.row.address_bytes if program.decoder.row.pushes_return_address else 0
        assert machine.read(program.decoder.row.stack_pointer) == pointer + popped
    return Called(outcome, machine, machine.read(program.decoder.row.return_registers[0]))


def text(generator: random.Random, longest: int, alphabet: bytes = b"ab") -> bytes:
    return bytes(generator.choice(alphabet) for _ in range(generator.randrange(longest + 1)))


def area(generator: random.Random) -> bytes:
    """Bytes with a few terminators, the last of them at the end."""
    return bytes(generator.choice(b"\0abc\xff\x80") for _ in range(AREA - 1)) + b"\0"


def real(name: str, content: bytes, arguments: Sequence[int], pointers: Sequence[bool]) -> tuple[int, bytes]:
    """What the C library does with the same bytes; pointers are offsets into them.

    A pointer result is what it would be if the bytes were at DATA.
    """
    buffer = ctypes.create_string_buffer(content, len(content))
    base = ctypes.addressof(buffer)
    function = getattr(LIBC, name)
    is_pointer = name not in ("memcmp", "strcmp", "strncmp", "strlen", "atoi")
    function.restype = ctypes.c_void_p if is_pointer else ctypes.c_size_t if name == "strlen" else ctypes.c_int
    converted = [
        ctypes.c_void_p(base + value) if pointer else ctypes.c_size_t(value)
        for value, pointer in zip(arguments, pointers, strict=True)
    ]
    result = function(*converted)
    return (result - base + DATA if is_pointer and result is not None else result or 0), buffer.raw


# Name, which arguments are pointers, and how to draw the arguments for an area.
Draw = Callable[[random.Random, bytes], list[int]]


def _somewhere(generator: random.Random) -> int:
    return generator.randrange(0, 100)


def _apart(generator: random.Random, content: bytes) -> list[int]:
    return [128 + generator.randrange(20), generator.randrange(60)]


FUNCTIONS: dict[str, tuple[tuple[bool, ...], Draw]] = {
    "memcpy": ((True, True, False), lambda g, c: [*_apart(g, c), g.randrange(40)]),
    "memmove": ((True, True, False), lambda g, c: [_somewhere(g), _somewhere(g), g.randrange(40)]),
    "memset": ((True, False, False), lambda g, c: [_somewhere(g), g.choice((0, 65, 255, 0x141)), g.randrange(40)]),
    "memcmp": ((True, True, False), lambda g, c: [_somewhere(g), _somewhere(g), g.randrange(4)]),
    "strlen": ((True,), lambda g, c: [_somewhere(g)]),
    "strcmp": ((True, True), lambda g, c: [_somewhere(g), _somewhere(g)]),
    "strncmp": ((True, True, False), lambda g, c: [_somewhere(g), _somewhere(g), g.randrange(4)]),
    "strchr": ((True, False), lambda g, c: [_somewhere(g), g.choice((0, 97, 98, 122, 0xFF, 0x161))]),
    "strcpy": ((True, True), lambda g, c: [150 + g.randrange(20), g.randrange(60)]),
    "strncpy": ((True, True, False), lambda g, c: [150 + g.randrange(20), g.randrange(60), g.randrange(12)]),
    "strcat": ((True, True), lambda g, c: [150 + g.randrange(20), g.randrange(60)]),
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_the_c_library(name: str, isa: str) -> None:
    generator = random.Random(f"{name}/{isa}")
    pointers, draw = FUNCTIONS[name]
    program = bound(isa, name)
    bits = program.decoder.row.address_bits
    for _ in range(12):
        content = area(generator)
        arguments = draw(generator, content)
        expected, after = real(name, content, arguments, pointers)
        given = [DATA + value if pointer else value for value, pointer in zip(arguments, pointers, strict=True)]
        found = call(program, given, content)
        assert found.outcome.kind == "halted"
        assert found.data() == after
        if name in ("memcmp", "strcmp", "strncmp"):
            signed = found.result - (1 << bits) if found.result >> (bits - 1) else found.result
            assert (signed > 0) - (signed < 0) == (expected > 0) - (expected < 0)
        else:
            assert found.result == expected


@pytest.mark.parametrize("isa", ISAS)
def test_atoi(isa: str) -> None:
    program = bound(isa, "atoi")
    LIBC.atoi.restype = ctypes.c_int
    for number in (b"0", b"  42", b"-17x", b"+8", b"\t\n\v\f\r 2147483647", b"-2147483648", b"", b"x1", b"- 1", b"007"):
        found = call(program, [DATA], number + b"\0").result
        assert ctypes.c_int(found & 0xFFFFFFFF).value == LIBC.atoi(number), number


@pytest.mark.parametrize("isa", ["x86-32", "x86-64", "ppc32-be", "arm", "riscv64"])
def test_allocator(isa: str) -> None:
    """The contract of malloc and its relatives, on one heap: what the C library promises, and its own checks."""
    readable = Permission.READ | Permission.WRITE
    segments = (
        Segment(CODE, 4096, bytes(4096), Permission.READ | Permission.EXECUTE, "code"),
        Segment(DATA, 4096, bytes(4096), readable, "data"),
    )
    names = ("malloc", "calloc", "realloc", "free")
    image = Image("test", "", "raw", isa, CODE, CODE, segments)
    program = make_program(image, Spec(models=tuple((CODE + 64 * i, name) for i, name in enumerate(names))))
    table = {name: CODE + 64 * i for i, name in enumerate(names)}
    memory = program.machine(InputSource(), 7).memory

    def invoke(name: str, *arguments: int) -> tuple[Outcome, int]:
        machine = start(replace(program, entry=table[name]), arguments)
        # The heap as the calls before left it.
        for region, old in zip(machine.memory.regions, memory.regions, strict=True):
            if region.name.startswith("heap"):
                region.data[:] = old.data
        outcome = machine.run(10_000)
        for region, old in zip(machine.memory.regions, memory.regions, strict=True):
            if region.name.startswith("heap"):
                old.data[:] = region.data
        return outcome, machine.read(program.decoder.row.return_registers[0])

    heap = next(region for region in memory.regions if region.name == "heap")
    blocks: list[tuple[int, int]] = []
    for size in (1, 0, 16, 17, 100):
        outcome, block = invoke("malloc", size)
        assert outcome.kind == "halted" and block % 16 == 0
        assert heap.start <= block and block + size <= heap.end
        assert all(block + size <= start or start + length <= block for start, length in blocks)
        blocks.append((block, max(size, 1)))
    _, zeroed = invoke("calloc", 5, 7)
    assert memory.peek(zeroed, 35) == bytes(35)
    memory.poke(blocks[4][0], bytes(range(100)))
    _, grown = invoke("realloc", blocks[4][0], 200)
    assert grown not in (0, blocks[4][0]) and memory.peek(grown, 100) == bytes(range(100))
    assert invoke("realloc", 0, 3)[1] != 0
    assert invoke("malloc", 1 << 17)[1] == 0
    assert invoke("calloc", program.decoder.row.address_mask, 2)[1] == 0
    assert invoke("free", 0)[0].kind == "halted"
    assert invoke("free", blocks[0][0])[0].kind == "halted"
    for bad in (blocks[0][0], blocks[4][0], grown + 1, DATA, grown + 16):
        assert invoke("free", bad)[0].fault is FaultKind.GENERAL_PROTECTION
    assert invoke("realloc", blocks[0][0], 5)[0].fault is FaultKind.GENERAL_PROTECTION


@pytest.mark.parametrize("isa", ISAS)
def test_input_and_output(isa: str, tmp_path: Path) -> None:
    data = b"some\0bytes"
    reader, writer = os.pipe()
    os.write(writer, data)
    buffer = ctypes.create_string_buffer(32)
    count = LIBC.read(reader, buffer, 32)
    os.close(reader)
    os.close(writer)
    found = call(bound(isa, "read"), [0, DATA, 32], b"", [count, *data])
    assert (found.result, found.data(32)) == (count, buffer.raw)
    source = tmp_path / "in"
    source.write_bytes(b"\xfe")
    LIBC.fopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(LIBC.fopen(os.fsencode(source), b"r"))
    for expected, given in ((LIBC.fgetc(stream), 0xFE), (LIBC.fgetc(stream), 0xFF00)):
        assert ctypes.c_int(call(bound(isa, "getchar"), [], b"", [given]).result & 0xFFFFFFFF).value == expected
    LIBC.fclose(stream)
    sink = os.open(os.devnull, os.O_WRONLY)
    assert call(bound(isa, "write"), [1, DATA, 5], b"hello").result == LIBC.write(sink, b"hello", 5)
    os.close(sink)
    stream = ctypes.c_void_p(LIBC.fopen(os.fsencode(tmp_path / "out"), b"w"))
    assert call(bound(isa, "putchar"), [0x141]).result == LIBC.fputc(0x141, stream)
    printed = LIBC.fprintf(stream, b"%d %s", 1, b"x")
    assert call(bound(isa, "printf"), [DATA, 1, DATA + 6], b"%d %s\0x\0", [printed]).result == printed
    LIBC.fclose(stream)


@pytest.mark.parametrize("name", ["abort", "exit", "_exit", "__assert_fail"])
def test_functions_that_end_the_run(name: str) -> None:
    program = bound("x86-32", name)
    assert call(program, [1]).outcome.kind == "halted"
    assert CODE in program.halts


def test_a_fault_in_a_model_is_the_machines() -> None:
    found = call(bound("x86-64", "memcpy"), [DATA, 0x99990000, 4])
    assert (found.outcome.kind, found.outcome.fault) == ("fault", FaultKind.UNMAPPED_READ)


def test_compiled_and_reference_machines_agree() -> None:
    program = bound("x86-32", "strncpy")
    arguments, content = [DATA + 100, DATA, 9], b"some text\0"
    fast, slow = start(program, arguments, content), start(program, arguments, content, slow=True)
    assert fast.run(10_000) == slow.run(10_000)
    assert fast.memory.peek(DATA, 200) == slow.memory.peek(DATA, 200)


def test_specs_bind_models() -> None:
    assert parse_spec({"models": ["memcpy"]}).models == (("memcpy", "memcpy"),)
    assert parse_spec({"models": {0x1000: "strlen"}}).models == ((0x1000, "strlen"),)
    with pytest.raises(UsageError, match=r"no library model 'memcopy'.*memcpy"):
        bound("x86-32", "memcopy")
    with pytest.raises(UsageError, match="two models"):
        image = bound("x86-32", "strlen").image
        make_program(image, Spec(models=((CODE, "strlen"), (CODE, "memcpy"))))


def test_assumptions_are_listed() -> None:
    listed = bound("x86-32", "printf").assumptions
    assert any("%s" in item for item in listed) and any("library models stand for printf" in item for item in listed)


# push DATA; call 0x10020; add esp, 4; cmp eax, LENGTH; jne 0x10013; (target) nop; ret
MEASURE = "68 00000200 e8 16000000 83c404 83f8 {:02x} 75 01 90 c3"


@pytest.mark.parametrize(("length", "expected"), [(3, "violated"), (9, "proved")])
def test_proofs_and_violations_go_through_models(length: int, expected: str) -> None:
    """The length of a string in four unknown bytes and a terminator."""
    from mcveto.program.spec import InputMemory, PropertySpec
    from mcveto.search import Question, search

    content = bytes.fromhex(MEASURE.format(length))
    code = Segment(CODE, 64, content, Permission.READ | Permission.EXECUTE, "code")
    data = Segment(DATA, 4096, bytes(4096), Permission.READ | Permission.WRITE, "data")
    image = Image("test", "", "raw", "x86-32", CODE, CODE, (code, data))
    spec = Spec(
        models=((CODE + 0x20, "strlen"),),
        input_memory=(InputMemory(DATA, 4),),
        properties=(PropertySpec("reach", (CODE + 0x12,)),),
    )
    verdict = search(lambda: make_program(image, spec), Question(timeout=120)).verdict
    assert verdict.kind == expected, verdict
    if expected == "violated":
        given = [item.value for item in verdict.inputs[:4]]
        assert 0 not in given[:3] and given[3] == 0
