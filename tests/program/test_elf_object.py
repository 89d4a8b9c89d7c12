"""Relocatable objects: the bytes must be those that a linker produces at the same addresses."""

import struct
from pathlib import Path

import pytest

from mcveto.errors import InputFileError
from mcveto.program.image import Permission, address_bits, is_big_endian, load_image

from .fixtures import ELF_ISAS, IMAGES, elf_sections

_LINKER_REWRITES = {".eh_frame", ".ARM.exidx", ".ARM.extab", ".reginfo", ".MIPS.abiflags"}


@pytest.mark.parametrize("name", [*ELF_ISAS, "thumb", "interwork"])
def test_relocated_bytes_equal_those_of_the_linker(name: str) -> None:
    image = load_image(IMAGES / f"{name}.o")
    sections = elf_sections(IMAGES / f"{name}-linked.elf")
    compared = 0
    for segment in image.segments:
        if segment.name in sections and segment.name not in _LINKER_REWRITES:
            address, content = sections[segment.name]
            assert (segment.name, address) == (segment.name, segment.address)
            assert segment.content == content, segment.name
            compared += len(content)
    assert compared > (70 if name == "interwork" else 250)
    assert image.unspecified == ()
    original = elf_sections(IMAGES / f"{name}.o")[".text"][1]
    assert image.segments[0].name == ".text"
    assert image.segments[0].content != original, "the test would not notice missing relocations"


@pytest.mark.parametrize("name", [*ELF_ISAS, "arm-be"])
@pytest.mark.parametrize("suffix", ["", "-pic"])
def test_pointers_lead_to_their_symbols(name: str, suffix: str) -> None:
    if name == "arm-be" and suffix:
        return
    image = load_image(IMAGES / f"{name}{suffix}.o", base=0x20000)
    size = address_bits(image.isa) // 8
    order = "big" if is_big_endian(image.isa) else "little"
    symbols = image.symbols
    for pointer, target in (
        (symbols["pointer"], symbols["table"] + 8),
        (symbols["text_pointer"], symbols["text"] + 5),
        (symbols["operations"], symbols["add"]),
        (symbols["operations"] + size, symbols["sub"]),
    ):
        raw = image.read(pointer, size)
        assert raw is not None
        assert int.from_bytes(raw, "big" if order == "big" else "little") == target
    assert image.unspecified == ()
    assert image.entry is None
    assert image.base == 0x20000


def test_undefined_symbols_stand_in_an_unmapped_area() -> None:
    image = load_image(IMAGES / "x86-64.o")
    assert set(image.imports) == {"nondet"}
    assert image.import_area is not None
    start, end = image.import_area
    assert start <= image.imports["nondet"] < end
    assert image.segment_at(image.imports["nondet"]) is None
    calls = [
        address + 5 + struct.unpack_from("<i", segment.content, address - segment.address + 1)[0]
        for segment in image.segments
        if segment.name == ".text"
        for address in range(segment.address, segment.end - 5)
        if segment.content[address - segment.address] == 0xE8
    ]
    assert calls.count(image.imports["nondet"]) == 2
    assert any("nondet" in note for note in image.notes)


def test_common_symbols_get_zeroed_writable_memory() -> None:
    image = load_image(IMAGES / "x86-64-common.o")
    segment = image.segment_at(image.symbols["common_cell"])
    assert segment is not None
    assert (segment.name, segment.content) == ("common symbols", b"")
    assert segment.permissions == Permission.READ | Permission.WRITE
    places = sorted((image.symbols[name], size) for name, size in (("common_cell", 4), ("zero", 64)))
    assert places[0][0] + places[0][1] <= places[1][0]


def test_cells_of_the_global_offset_table_hold_the_symbols() -> None:
    image = load_image(IMAGES / "x86-64-pic.o")
    got = next(segment for segment in image.segments if segment.name == "GOT")
    cells = set(struct.unpack(f"<{got.size // 8}Q", got.content))
    assert {image.symbols["table"], image.symbols["pointer"], image.symbols["zero"]} <= cells


@pytest.mark.parametrize("name", ["mips32-be", "mips32-le"])
def test_mips_code_computes_the_global_pointer(name: str) -> None:
    """A function adds the distance `_gp_disp` (lui, addiu) to its own address, which it finds in $t9."""
    image = load_image(IMAGES / f"{name}-pic.o")
    got = next(segment for segment in image.segments if segment.name == "GOT")
    text, start = image.segments[0], image.symbols["choose"]
    code = struct.unpack((">" if name.endswith("be") else "<") + f"{text.size // 4}I", text.content)
    function = code[(start - text.address) // 4 :]
    at, high = next((i, word & 0xFFFF) for i, word in enumerate(function) if word >> 26 == 0x0F)
    low = next(word & 0xFFFF for word in function[at:] if word >> 26 == 0x09)
    assert start + (high << 16) + (low ^ 0x8000) - 0x8000 == got.address + 0x7FF0


def test_an_unknown_relocation_leaves_its_bytes_unspecified(tmp_path: Path) -> None:
    data = bytearray((IMAGES / "x86-64.o").read_bytes())
    rela = elf_sections(IMAGES / "x86-64.o")[".rela.text"][1]
    at = data.find(rela)
    offset, info, addend = struct.unpack_from("<QQq", data, at)
    struct.pack_into("<QQq", data, at, offset, info & ~0xFFFFFFFF | 200, addend)
    path = tmp_path / "unknown.o"
    path.write_bytes(data)
    image = load_image(path)
    assert not image.is_specified(0x400000 + offset)
    assert any("relocation type 200" in note and "unspecified" in note for note in image.notes)


def test_a_value_that_does_not_fit_is_not_truncated(tmp_path: Path) -> None:
    data = bytearray((IMAGES / "x86-64.o").read_bytes())
    at = data.find(elf_sections(IMAGES / "x86-64.o")[".rela.text"][1])
    offset, info, _ = struct.unpack_from("<QQq", data, at)
    struct.pack_into("<QQq", data, at, offset, info, 1 << 40)
    path = tmp_path / "far.o"
    path.write_bytes(data)
    image = load_image(path)
    assert not image.is_specified(0x400000 + offset)
    assert any("exceeds 32 bits" in note for note in image.notes)


def test_an_object_needs_its_section_headers(tmp_path: Path) -> None:
    data = bytearray((IMAGES / "x86-64.o").read_bytes())
    struct.pack_into("<Q", data, 40, 1 << 60)
    path = tmp_path / "damaged.o"
    path.write_bytes(data)
    with pytest.raises(InputFileError, match="section headers"):
        load_image(path)
