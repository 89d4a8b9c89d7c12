"""The further library models against the real C library: text, formats, input and the checked forms."""

from __future__ import annotations

import ctypes
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mcveto.machine.faults import FaultKind
from mcveto.program.models import REMAINS
from mcveto.whilelang.models.catalogue import models, procedure

from .test_models import DATA, FUNCTIONS, LIBC, area, bound, call, real, start

ISAS = ("x86-32", "x86-64", "ppc32-be", "arm", "mips32-le")
# Characters and numbers alone.
PLAIN = ("abs", "toupper", "tolower", "isdigit", "isspace", "isalpha", "isalnum", "isupper", "islower")


@pytest.mark.parametrize("isa", ISAS)
def test_functions_of_a_number(isa: str) -> None:
    for name in PLAIN:
        function = getattr(LIBC, name)
        for value in (*range(-1, 256, 3), 48, 57, 58, 47, 65, 90, 91, 64, 97, 122, 123, 96, 32, 9, 13, 14):
            found = ctypes.c_int(call(bound(isa, name), [value]).result & 0xFFFFFFFF).value
            expected = function(ctypes.c_int(value))
            assert (found == expected) if not name.startswith("is") else (bool(found) == bool(expected)), (name, value)


SEARCHES: dict[str, tuple[tuple[bool, ...], Callable[[random.Random], list[int]]]] = {
    "strrchr": ((True, False), lambda g: [g.randrange(100), g.choice((0, 97, 98, 255, 0x161))]),
    "memchr": ((True, False, False), lambda g: [g.randrange(100), g.choice((0, 97, 255)), g.randrange(6)]),
    "strnlen": ((True, False), lambda g: [g.randrange(100), g.randrange(5)]),
    "strstr": ((True, True), lambda g: [g.randrange(100), g.randrange(100)]),
    "strncat": ((True, True, False), lambda g: [150 + g.randrange(20), g.randrange(60), g.randrange(9)]),
}


@pytest.mark.parametrize("isa", ISAS)
def test_text(isa: str) -> None:
    generator = random.Random(f"text/{isa}")
    for name, (pointers, draw) in SEARCHES.items():
        for _ in range(20):
            content, arguments = area(generator), draw(generator)
            if name == "strnlen":
                text = content[arguments[0] :].split(b"\0")[0]
                expected, after = min(len(text), arguments[1]), content
            else:
                expected, after = real(name, content, arguments, pointers)
            given = [DATA + value if pointer else value for value, pointer in zip(arguments, pointers, strict=True)]
            found = call(bound(isa, name), given, content)
            assert (found.result, found.data()) == (expected, after), (name, arguments)


FORMATS: list[tuple[bytes, tuple[int | bytes, ...]]] = [
    (b"plain", ()),
    (b"100%%", ()),
    (b"%s", (b"text",)),
    (b"<%s|%s>", (b"", b"two")),
    (b"%d %d", (0, -2147483648)),
    (b"%u/%x", (4294967295, 0xBEEF)),
    (b"%c%c", (65, 0x142)),
    (b"%d:%s:%d", (-17, b"abc", 1000000007)),
    (b"%s %d %x %c", (b"four", 4, 4, 52)),
]


@pytest.mark.parametrize("isa", ["x86-32", "x86-64", "ppc32-be"])
@pytest.mark.parametrize("case", range(len(FORMATS)))
def test_formats(case: int, isa: str) -> None:
    """sprintf and snprintf with room for all, for some and for nothing."""
    form, values = FORMATS[case]
    content, given, real_values = bytearray(form + b"\0"), list[int](), list[object]()
    for value in values:
        if isinstance(value, bytes):
            given.append(DATA + len(content))
            content += value + b"\0"
            real_values.append(ctypes.c_char_p(value))
        else:
            given.append(value & 0xFFFFFFFF)
            real_values.append(ctypes.c_int(value if value < 1 << 31 else value - (1 << 32)))
    room_for_arguments = {"x86-64": 6, "ppc32-be": 8}.get(isa, 99)
    for room in (None, 0, 1, 4, 64):
        buffer = ctypes.create_string_buffer(b"\xaa" * 64, 64)
        target, start = DATA + 128, [] if room is None else [room]
        if len(given) + len(start) + 2 > room_for_arguments:
            continue
        name = "sprintf" if room is None else "snprintf"
        count = getattr(LIBC, name)(buffer, *map(ctypes.c_size_t, start), form, *real_values)
        found = call(bound(isa, name), [target, *start, DATA, *given], bytes(content.ljust(128, b"\0")) + b"\xaa" * 64)
        assert found.outcome.kind == "halted"
        assert (found.result, found.data(256)[128:192]) == (count, buffer.raw), room


@pytest.mark.parametrize("name", ["sprintf", "printf", "scanf"])
def test_formats_that_are_not_known_are_unsupported(name: str) -> None:
    unknown = {"sprintf": b"%5d", "printf": b"%f %s", "scanf": b"%9s"}[name]
    arguments = [DATA + 64, DATA] if name == "sprintf" else [DATA, DATA, DATA]
    assert call(bound("x86-32", name), arguments, unknown + b"\0", [1]).outcome.kind == "unsupported"


def test_printing_reads_what_it_prints() -> None:
    for name, arguments in (("printf", [DATA, 7, 0x99990000]), ("fprintf", [0, DATA, 7, 0x99990000])):
        found = call(bound("x86-32", name), arguments, b"%d%s\0")
        assert (found.outcome.kind, found.outcome.fault) == ("fault", FaultKind.UNMAPPED_READ)
    assert call(bound("x86-32", "printf"), [DATA, 1, 2], b"%d %% %ld\0", [5]).result == 5
    for name in ("puts", "fputs"):
        assert call(bound("ppc32-be", name), [DATA, 0], b"text\0", [9]).result == 9
        assert call(bound("ppc32-be", name), [0x99990000, 0], b"").outcome.kind == "fault"


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [-1, 0, 1, 2, 4, 40])
@pytest.mark.parametrize("text", [b"", b"a", b"abc\ndef", b"no line end at all", b"\n"])
def test_fgets(text: bytes, size: int, isa: str) -> None:
    buffer = ctypes.create_string_buffer(b"\xaa" * 64, 64)
    LIBC.fopen.restype = LIBC.fgets.restype = ctypes.c_void_p
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in")
        path.write_bytes(text)
        stream = ctypes.c_void_p(LIBC.fopen(bytes(path), b"r"))
        result = LIBC.fgets(ctypes.c_void_p(ctypes.addressof(buffer)), size, stream) if size > 0 else None
        LIBC.fclose(stream)
    inputs = [*text, 0xFF00]
    found = call(bound(isa, "fgets"), [DATA, size, 0], b"\xaa" * 64, inputs)
    assert bool(found.result) == bool(result)
    assert found.data(64) == buffer.raw


def test_input() -> None:
    for isa in ISAS:
        order = "big" if isa == "ppc32-be" else "little"
        # The conversion succeeds; low half, high half.
        found = call(bound(isa, "scanf"), [DATA, DATA + 16], b"%d\0", [1, 0x5678, 0x1234])
        assert found.result == 1 and found.data(32)[16:20] == (0x12345678).to_bytes(4, order)  # type: ignore[arg-type]
        found = call(bound(isa, "fscanf"), [0, DATA, DATA + 16], b"%s\0", [1, 97, 98, 32])
        assert found.result == 1 and found.data(32)[16:19] == b"ab\0"
        assert call(bound(isa, "fscanf"), [0, DATA, DATA + 16], b"%d\0", [0]).result & 0xFFFFFFFF == 0xFFFFFFFF
        assert call(bound(isa, "gets"), [DATA], b"", [97, 10]).data(2) == b"a\0"
        assert call(bound(isa, "gets"), [DATA], b"x", [0xFF00]).data(2) == b"x\0"
        found = call(bound(isa, "fread"), [DATA, 2, 3, 0], b"", [2, 1, 2, 3, 4])
        assert found.result == 2 and found.data(6) == b"\1\2\3\4\0\0"
        assert call(bound(isa, "fread"), [DATA, 0, 3, 0], b"", [2]).result == 0
        assert call(bound(isa, "fwrite"), [DATA, 2, 3, 0]).result == 3
        assert call(bound(isa, "rand"), [], b"", [0xFFFF, 0xFFFF]).result == 0x7FFFFFFF
        word = bound(isa, "time").decoder.row.address_bytes
        found = call(bound(isa, "time"), [DATA], b"", [0x5678, 0x1234])
        assert found.result == 0x12345678
        assert found.data(word) == (0x12345678).to_bytes(word, order)  # type: ignore[arg-type]
        if word == 4:
            program = bound(isa, "__time64")
            found = call(program, [DATA], b"", [0x5678, 0x1234])
            low = program.decoder.row.return_registers[isa == "ppc32-be"]
            assert found.machine.read(low) == 0x12345678 and found.data(8) == (0x12345678).to_bytes(8, order)  # type: ignore[arg-type]
        assert call(bound(isa, "srand"), [4]).outcome.kind == "halted"
        assert call(bound(isa, "fflush"), [0]).result == 0
        assert call(bound(isa, "fputc"), [0x141, 0]).result == 0x41
        assert call(bound(isa, "fgetc"), [0], b"", [0x41]).result == 0x41


@pytest.mark.parametrize("isa", ISAS)
def test_what_a_model_leaves_below_the_stack_pointer_is_not_known(isa: str) -> None:
    """It is what a region of unknown contents has, not what the variables of the model were."""
    program = bound(isa, "strlen")
    (remains,) = (region for region in program.space.regions if region.name == REMAINS)
    assert remains.unspecified == ((0, remains.size),)
    machine = start(program, [DATA], b"text\0")
    pointer = machine.read(program.decoder.row.stack_pointer)
    machine.memory.poke(remains.start, b"\xa5" * remains.size)
    assert machine.run(1000).kind == "halted"
    assert machine.memory.peek(pointer - 16, 16) == b"\xa5" * 16


CHECKED = {
    "__memcpy_chk": ([DATA + 64, DATA, 5], 5),
    "__memmove_chk": ([DATA + 64, DATA, 5], 5),
    "__memset_chk": ([DATA + 64, 7, 5], 5),
    "__strcpy_chk": ([DATA + 64, DATA], 5),
    "__strncpy_chk": ([DATA + 64, DATA, 5], 5),
    "__strcat_chk": ([DATA + 64, DATA], 5),
}


@pytest.mark.parametrize("name", CHECKED)
def test_checked_forms(name: str) -> None:
    arguments, needed = CHECKED[name]
    content = b"text\0"
    plain = call(bound("x86-64", name[2:-4]), arguments, content)
    assert call(bound("x86-64", name), [*arguments, needed], content).data() == plain.data()
    assert call(bound("x86-64", name), [*arguments, needed - 1], content).outcome.fault is FaultKind.GENERAL_PROTECTION


def test_other_checked_forms() -> None:
    assert call(bound("x86-32", "__fgets_chk"), [DATA, 9, 3, 0], b"", [97, 10]).data(3) == b"a\n\0"
    assert call(bound("x86-32", "__printf_chk"), [1, DATA, DATA], b"%s\0", [3]).result == 3
    assert call(bound("x86-32", "__fprintf_chk"), [0, 1, DATA, DATA], b"%s\0", [3]).result == 3
    assert call(bound("x86-32", "__stack_chk_fail"), []).outcome.fault is FaultKind.GENERAL_PROTECTION


def test_every_model_is_known_and_tested() -> None:
    here = {
        *PLAIN, *SEARCHES, *CHECKED, "sprintf", "snprintf", "fprintf", "scanf", "fscanf", "puts", "fputs", "fputc",
        "fgetc", "fgets", "gets", "fread", "fwrite", "fflush", "rand", "srand", "time", "__fgets_chk", "__printf_chk",
        "__fprintf_chk", "__stack_chk_fail", "__time64",
    }  # fmt: skip
    there = {*FUNCTIONS, "atoi", "malloc", "calloc", "realloc", "free", "read", "getchar", "write", "putchar", "printf"}
    known = models()
    own = {name for name, model in known.items() if not model.ends and model.same_as is None}
    assert own == here | there
    for name in own:
        assert procedure(name, 32).name == name
    assert all(model.same_as in own for model in known.values() if model.same_as is not None)
