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
PLAIN = (
    "abs", "toupper", "tolower", "isdigit", "isspace", "isalpha", "isalnum", "isupper", "islower", "isxdigit",
    "isprint", "ispunct", "iscntrl",
)  # fmt: skip


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
    "strpbrk": ((True, True), lambda g: [g.randrange(100), g.randrange(100)]),
    "stpcpy": ((True, True), lambda g: [150 + g.randrange(20), g.randrange(60)]),
    "mempcpy": ((True, True, False), lambda g: [150 + g.randrange(20), g.randrange(60), g.randrange(40)]),
}
COUNTS: dict[str, tuple[tuple[bool, ...], Callable[[random.Random], list[int]]]] = {
    "strspn": ((True, True), lambda g: [g.randrange(100), g.randrange(100)]),
    "strcspn": ((True, True), lambda g: [g.randrange(100), g.randrange(100)]),
    "strcasecmp": ((True, True), lambda g: [g.randrange(100), g.randrange(100)]),
    "strncasecmp": ((True, True, False), lambda g: [g.randrange(100), g.randrange(100), g.randrange(4)]),
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


@pytest.mark.parametrize("isa", ISAS)
def test_counts_and_signs(isa: str) -> None:
    generator = random.Random(f"counts/{isa}")
    for name, (pointers, draw) in COUNTS.items():
        for _ in range(20):
            content, arguments = bytearray(area(generator)), draw(generator)
            content[50:60] = b"aBcDbAdC\0a"
            buffer = ctypes.create_string_buffer(bytes(content), len(content))
            base = ctypes.addressof(buffer)
            numbers = [ctypes.c_size_t(v + base * p) for v, p in zip(arguments, pointers, strict=True)]
            expected = getattr(LIBC, name)(*numbers)
            given = [DATA + value if pointer else value for value, pointer in zip(arguments, pointers, strict=True)]
            found = ctypes.c_int(call(bound(isa, name), given, bytes(content)).result & 0xFFFFFFFF).value
            sign = (found > 0) - (found < 0), (expected > 0) - (expected < 0)
            assert (sign[0] == sign[1]) if "cmp" in name else (found == expected), (name, arguments)


NUMBERS = (
    b"0", b"-0", b" \t+17x", b"-2147483648", b"2147483647", b"2147483648", b"-2147483649", b"4294967295", b"4294967296",
    b"0x1F", b"0x", b"0xg", b"-0X7fffffff", b"012", b"08", b"zz", b"Zy-", b"", b"-", b"+ 1", b"99999999999999999999",
    b"-99999999999999999999", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808",
    b"18446744073709551616",
)  # fmt: skip


@pytest.mark.parametrize("isa", ["x86-32", "x86-64", "ppc32-be", "aarch64"])
@pytest.mark.parametrize("name", ["strtol", "strtoul", "atol", "__isoc23_strtol", "__isoc23_strtoul"])
def test_numbers_in_text(name: str, isa: str) -> None:
    """Where a long has 32 bits the C library's result is that of 64 bits, kept within the limits."""
    program = bound(isa, name)
    row = program.decoder.row
    bits, order = row.address_bits, "big" if row.big_endian else "little"
    is_signed = not name.endswith("ul")
    for text in NUMBERS:
        for base in (10, 16, 8, 36) if name.startswith("__") else (10,) if name == "atol" else (0, 2, 10, 16, 36):
            buffer = ctypes.create_string_buffer(text)
            end = ctypes.c_void_p()
            LIBC.strtol.restype, LIBC.strtoul.restype = ctypes.c_long, ctypes.c_ulong
            wide = LIBC.strtol(buffer, ctypes.byref(end), base)
            if is_signed:
                expected = max(min(wide, (1 << bits - 1) - 1), -1 << bits - 1)
            else:
                # The magnitude is what is limited.
                positive = text.replace(b"-", b"", 1) if text.lstrip()[:1] == b"-" else text
                magnitude = LIBC.strtoul(ctypes.create_string_buffer(positive), None, base)
                expected = LIBC.strtoul(buffer, None, base) if magnitude < 1 << bits else (1 << bits) - 1
            arguments = [DATA, DATA + 64, base] if name != "atol" else [DATA]
            found = call(program, arguments, (text + b"\0").ljust(80, b"\xaa"))
            assert found.result == expected & row.address_mask, (text, base)
            if name != "atol":
                stored = int.from_bytes(found.data(80)[64 : 64 + row.address_bytes], order)  # type: ignore[arg-type]
                assert stored - DATA == (end.value or 0) - ctypes.addressof(buffer), (text, base)
    for base in (1, 37) if name in ("strtol", "strtoul") else (0, 2) if name != "atol" else ():
        assert call(program, [DATA, 0, base], b"0b1\0").outcome.kind == "unsupported"


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
    (b"%5d|%-5d|%05d", (-42, 42, -42)),
    (b"%2d%02x%-3u", (12345, 10, 7)),
    (b"%.3s|%.0s|%.9s", (b"abcdef", b"x", b"yz")),
    (b"%5s|%-5s|%5.2s", (b"ab", b"ab", b"abc")),
    (b"%3c|%-3c|", (65, 66)),
    (b"%i%-07d", (-1, 33)),
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
    unknown = {
        "sprintf": [b"%+d", b"%.2d", b"%f", b"%lld", b"%ls", b"%05s", b"%*d"],
        "printf": [b"%f %s", b"%.*s", b"%ls", b"%n"],
        "scanf": [b"%3d", b"%[a-z]", b"%lld", b"%ls", b"%*d"],
    }[name]
    arguments = [DATA + 64, DATA] if name == "sprintf" else [DATA, DATA, DATA]
    for form in unknown:
        assert call(bound("x86-32", name), arguments, form + b"\0", [1, 1]).outcome.kind == "unsupported", form


@pytest.mark.parametrize("isa", ["x86-32", "x86-64"])
def test_numbers_as_wide_as_an_address(isa: str) -> None:
    """%ld of sprintf and scanf."""
    bits = bound(isa, "sprintf").decoder.row.address_bits
    for value in (0, 5, -5, (1 << bits - 1) - 1, -1 << bits - 1):
        found = call(bound(isa, "sprintf"), [DATA + 64, DATA, value], b"%ld\0")
        assert found.data(96)[64:].split(b"\0")[0] == str(value).encode()
    halves = [1, 0x5678, 0x1234, 0xDEF0, 0x9ABC][: 1 + bits // 16]
    found = call(bound(isa, "scanf"), [DATA, DATA + 16], b"%lx\0", halves)
    expected = 0x9ABCDEF012345678 & (1 << bits) - 1
    assert found.result == 1 and found.data(24)[16 : 16 + bits // 8] == expected.to_bytes(bits // 8, "little")


def test_text_that_is_read_up_to_a_width() -> None:
    for form, typed, expected in (
        (b"%3s", b"abcdef", b"abc\0\xaa"),
        (b"%3s", b"ab cd", b"ab\0\xaa"),
        (b"%s", b"a\x01\x00b\n", b"a\x01\x00b\0\xaa"),
        (b"%[^\n]", b"a b\n", b"a b\0\xaa"),
        (b"%2[^\n]", b"a b\n", b"a \0\xaa"),
    ):
        found = call(bound("x86-32", "scanf"), [DATA, DATA + 16], (form + b"\0").ljust(64, b"\xaa"), [1, *typed])
        assert found.result == 1 and found.data(64)[16 : 16 + len(expected)] == expected, form


@pytest.mark.parametrize("isa", ISAS)
def test_copies_on_the_heap(isa: str) -> None:
    for name, arguments, expected in (("strdup", [DATA], b"text\0"), ("strndup", [DATA, 2], b"te\0")):
        found = call(bound(isa, name), arguments, b"text\0")
        assert found.machine.memory.peek(found.result, len(expected)) == expected
        (heap,) = (region for region in bound(isa, name).space.regions if region.name == "heap")
        assert heap.start <= found.result < heap.start + heap.size
    assert call(bound(isa, "bzero"), [DATA + 1, 2], b"text").data(4) == b"t\0\0t"
    least = -1 << bound(isa, "labs").decoder.row.address_bits - 1
    for value in (0, 7, -7, least):
        program = bound(isa, "labs")
        assert call(program, [value]).result == abs(value) & program.decoder.row.address_mask
    assert call(bound(isa, "sleep"), [1]).result == call(bound(isa, "usleep"), [1]).result == 0
    assert call(bound(isa, "perror"), [DATA], b"text\0").outcome.kind == "halted"
    assert call(bound(isa, "perror"), [0x99990000]).outcome.kind == "fault"


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
        # What is there is no number; that cannot happen to a character.
        assert call(bound(isa, "fscanf"), [0, DATA, DATA + 16], b"%d\0", [0xFFFF]).result == 0
        assert call(bound(isa, "scanf"), [DATA, DATA + 16, DATA + 20], b"%d%d\0", [1, 2, 3, 0xFFFF]).result == 1
        assert call(bound(isa, "scanf"), [DATA, DATA + 16], b"%c\0", [0xFFFF, 65]).result == 1
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


@pytest.mark.parametrize("isa", ["x86-32", "x86-64", "ppc32-be"])
def test_tables_of_characters(isa: str) -> None:
    """Every entry that glibc has, where its macros look for it."""
    for name, size, kind in (("b", 2, ctypes.c_ubyte), ("toupper", 4, ctypes.c_int32), ("tolower", 4, ctypes.c_int32)):
        function = getattr(LIBC, f"__ctype_{name}_loc")
        function.restype = ctypes.POINTER(ctypes.POINTER(kind))
        table = function()[0]
        program = bound(isa, f"__ctype_{name}_loc")
        (region,) = (region for region in program.space.regions if region.name == "tables of characters")
        row = program.decoder.row
        order = "big" if row.big_endian else "little"
        found = call(program, [])
        peek = found.machine.memory.peek
        cell = peek(found.result, row.address_bytes)
        assert cell is not None
        zero = int.from_bytes(cell, order)  # type: ignore[arg-type]
        for character in (-129, 256):
            before = zero + size * character - region.start
            assert any(start <= before and before + size <= end for start, end in region.unspecified), character
        for character in range(-128, 256):
            entry = peek(zero + size * character, size)
            assert entry is not None
            if name == "b":
                assert entry == bytes((table[2 * character], table[2 * character + 1])), character
            else:
                assert int.from_bytes(entry, order, signed=True) == table[character], character  # type: ignore[arg-type]


CHECKED = {
    "__memcpy_chk": ([DATA + 64, DATA, 5], 5),
    "__memmove_chk": ([DATA + 64, DATA, 5], 5),
    "__memset_chk": ([DATA + 64, 7, 5], 5),
    "__strcpy_chk": ([DATA + 64, DATA], 5),
    "__strncpy_chk": ([DATA + 64, DATA, 5], 5),
    "__strcat_chk": ([DATA + 64, DATA], 5),
    "__strncat_chk": ([DATA + 64, DATA, 9], 5),
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
    found = call(bound("x86-32", "__sprintf_chk"), [DATA + 64, 1, 4, DATA, 123], b"%d\0")
    assert found.result == 3 and found.data(80)[64:68] == b"123\0"
    found = call(bound("x86-32", "__sprintf_chk"), [DATA + 64, 1, 3, DATA, 123], b"%d\0")
    assert found.outcome.fault is FaultKind.GENERAL_PROTECTION
    found = call(bound("x86-32", "__snprintf_chk"), [DATA + 64, 3, 1, 3, DATA, 123], b"%d\0")
    assert found.result == 3 and found.data(80)[64:68] == b"12\0\0"
    found = call(bound("x86-32", "__snprintf_chk"), [DATA + 64, 4, 1, 3, DATA, 123], b"%d\0")
    assert found.outcome.fault is FaultKind.GENERAL_PROTECTION
    assert call(bound("x86-32", "__stack_chk_fail"), []).outcome.fault is FaultKind.GENERAL_PROTECTION


def test_every_model_is_known_and_tested() -> None:
    here = {
        *PLAIN, *SEARCHES, *CHECKED, "sprintf", "snprintf", "fprintf", "scanf", "fscanf", "puts", "fputs", "fputc",
        "fgetc", "fgets", "gets", "fread", "fwrite", "fflush", "rand", "srand", "time", "__fgets_chk", "__printf_chk",
        "__fprintf_chk", "__stack_chk_fail", "__time64", *COUNTS, "strdup", "strndup", "bzero", "labs", "sleep",
        "usleep", "perror", "strtol", "strtoul", "atol", "__isoc23_strtol", "__isoc23_strtoul", "__sprintf_chk",
        "__snprintf_chk", "__ctype_b_loc", "__ctype_toupper_loc", "__ctype_tolower_loc",
    }  # fmt: skip
    there = {*FUNCTIONS, "atoi", "malloc", "calloc", "realloc", "free", "read", "getchar", "write", "putchar", "printf"}
    known = models()
    own = {name for name, model in known.items() if not model.ends and model.same_as is None}
    assert own == here | there
    for name in own:
        assert procedure(name, 32).name == name
    assert all(model.same_as in own for model in known.values() if model.same_as is not None)
