"""ELF executables, shared objects and position-independent executables against an independent reading."""

import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mcveto.errors import InputFileError, UsageError
from mcveto.program.image import Image, Permission, address_bits, is_big_endian, load_image

from .fixtures import ELF_ISAS, IMAGES, elf_loads, elf_symbols


def word_at(image: Image, address: int) -> int:
    raw = image.read(address, address_bits(image.isa) // 8)
    assert raw is not None
    return int.from_bytes(raw, "big" if is_big_endian(image.isa) else "little")


@pytest.mark.parametrize("isa", ELF_ISAS)
@pytest.mark.parametrize("kind", ["", "-stripped"])
def test_every_byte_of_a_static_executable_is_where_the_file_says(isa: str, kind: str) -> None:
    path = IMAGES / f"{isa}{kind}.elf"
    image = load_image(path)
    assert (image.isa, image.format, image.unspecified) == (isa, "elf", ())
    for address, size, flags, content in elf_loads(path):
        assert image.read(address, size) == content.ljust(size, b"\0")
        segment = image.segment_at(address)
        assert segment is not None
        assert segment.permissions == Permission(flags)
        assert segment.address % 4096 == 0
        assert segment.size % 4096 == 0
    with path.open("rb") as stream:
        assert image.entry == ELFFile(stream)["e_entry"]
    assert image.entry is not None
    image.require_address(image.entry, "entry")


def test_a_page_shows_the_file_around_a_segment() -> None:
    path = IMAGES / "x86-64.elf"
    data = path.read_bytes()
    image = load_image(path)
    with path.open("rb") as stream:
        text = next(s for s in ELFFile(stream).iter_segments() if s["p_type"] == "PT_LOAD" and s["p_flags"] & 1)
    start, offset = text["p_vaddr"], text["p_offset"]
    assert start % 4096, "the fixture should start inside a page"
    assert image.read(start & -4096, start % 4096) == data[offset - start % 4096 : offset]
    end = start + text["p_memsz"]
    assert image.read(end, 8) == data[offset + text["p_filesz"] :][:8]


@pytest.mark.parametrize("isa", ELF_ISAS)
def test_stripped_and_unstripped_differ_in_names_only(isa: str) -> None:
    full, stripped = load_image(IMAGES / f"{isa}.elf"), load_image(IMAGES / f"{isa}-stripped.elf")
    expected = {name: value for name, value in elf_symbols(IMAGES / f"{isa}.elf").items() if not name.startswith("$")}
    for name in ("add", "choose", "_start", "table", "zero"):
        assert full.symbols[name] == expected[name]
    assert "add" not in stripped.symbols
    text = full.segment_at(full.symbols["add"])
    assert text is not None
    assert stripped.read(full.symbols["add"], 64) == full.read(full.symbols["add"], 64)
    if not isa.startswith("arm"):  # ARM has unwind tables of its own kind
        functions = {full.symbols[name] for name in ("add", "choose", "_start")}
        assert functions <= set(stripped.function_starts)
        assert full.function_starts == stripped.function_starts


@pytest.mark.parametrize("isa", ELF_ISAS)
@pytest.mark.parametrize("base", [None, 0x10000, 0x7FFF0000])
def test_position_independent_executables_are_relocated(isa: str, base: int | None) -> None:
    path = IMAGES / f"{isa}-pie.elf"
    image = load_image(path, base=base)
    assert image.base == (0x400000 if base is None else base)
    value = {name: address + image.base for name, address in elf_symbols(path).items()}
    assert {name: image.symbols[name] for name in ("table", "add")} == {n: value[n] for n in ("table", "add")}
    word = address_bits(isa) // 8
    assert word_at(image, value["pointer"]) == value["table"] + 8
    assert word_at(image, value["text_pointer"]) == value["text"] + 5
    assert word_at(image, value["operations"]) == value["add"]
    assert word_at(image, value["operations"] + word) == value["sub"]
    assert image.entry == value["_start"]


@pytest.mark.parametrize("isa", ELF_ISAS)
def test_shared_objects_bind_to_themselves_and_leave_imports_open(isa: str) -> None:
    path = IMAGES / f"{isa}.so"
    image = load_image(path)
    value = {name: address + image.base for name, address in elf_symbols(path).items()}
    assert word_at(image, value["pointer"]) == value["table"] + 8
    assert word_at(image, value["operations"]) == value["add"]
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        names = elf.get_section_by_name(".dynsym")
        slots = {
            r["r_offset"] + image.base: names.get_symbol(r["r_info_sym"]).name
            for section in elf.iter_sections()
            if section["sh_type"] in ("SHT_REL", "SHT_RELA")
            for r in section.iter_relocations()
            if r["r_info_sym"]
        }
        plt = elf.get_section_by_name(".plt")
    for slot, name in slots.items():
        if name == "nondet":
            assert not image.is_specified(slot)
        elif name not in ("pointer", "operations", "text_pointer") and slot not in (
            value["pointer"],
            value["text_pointer"],
        ):
            assert image.is_specified(slot), name
            assert word_at(image, slot) == value[name]
    assert set(image.imports) == {"nondet"}
    if not isa.startswith(("ppc", "mips")):
        start = plt["sh_addr"] + image.base
        assert start < image.imports["nondet"] < start + plt["sh_size"]
    assert any("imported" in note for note in image.notes)


@pytest.mark.parametrize("isa", ["mips32-be", "mips32-le"])
def test_mips_global_offset_table_moves_with_the_module(isa: str) -> None:
    path = IMAGES / f"{isa}.so"
    low, high = load_image(path), load_image(path, base=0x800000)
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        got = elf.get_section_by_name(".got")["sh_addr"]
        tags = {t.entry.d_tag: t.entry.d_val for t in elf.get_section_by_name(".dynamic").iter_tags()}
        symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
        raw = elf.get_section_by_name(".got").data()
    local, first = tags["DT_MIPS_LOCAL_GOTNO"], tags["DT_MIPS_GOTSYM"]
    order = "big" if isa.endswith("be") else "little"
    assert local > 2
    for index in range(2, local):
        stored = int.from_bytes(raw[4 * index : 4 * index + 4], "big" if order == "big" else "little")
        assert word_at(low, got + 0x400000 + 4 * index) == stored + 0x400000
        assert word_at(high, got + 0x800000 + 4 * index) == stored + 0x800000
    for index, symbol in enumerate(symbols[first:]):
        cell = got + 0x800000 + 4 * (local + index)
        if symbol["st_shndx"] == "SHN_UNDEF":
            assert not high.is_specified(cell)
        else:
            assert word_at(high, cell) == symbol["st_value"] + 0x800000


def test_thumb_entry_and_symbols_lose_bit_zero() -> None:
    image = load_image(IMAGES / "thumb.elf")
    assert image.thumb_entry
    assert image.entry == image.symbols["_start"]
    assert {"_start", "add", "choose"} <= image.thumb_symbols
    assert "table" not in image.thumb_symbols
    assert image.symbols["add"] % 2 == 0


def test_relocated_in_place_and_started_at_its_start_up_code_is_noted() -> None:
    assert any("twice" in note for note in load_image(IMAGES / "x86-32-pie.elf").notes)
    assert not any("twice" in note for note in load_image(IMAGES / "x86-64-pie.elf").notes)


def test_cells_of_indirect_functions_are_unspecified() -> None:
    path = IMAGES / "x86-64-ifunc.elf"
    image = load_image(path)
    with path.open("rb") as stream:
        sections = [s for s in ELFFile(stream).iter_sections() if s["sh_type"] == "SHT_RELA"]
        cells = [r["r_offset"] for s in sections for r in s.iter_relocations()]
    assert len(cells) == 1
    assert image.unspecified == ((cells[0], cells[0] + 8),)
    assert any("start-up code" in note for note in image.notes)


def patched(source: str, folder: Path, offset: int, raw: bytes) -> Path:
    data = bytearray((IMAGES / source).read_bytes())
    data[offset : offset + len(raw)] = raw
    path = folder / "patched"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("machine", "name"),
    [(21, "ppc64"), (43, "sparc64"), (22, "s390"), (258, "LoongArch"), (4242, "ELF machine 4242")],
)
def test_other_machines_are_named_and_refused(tmp_path: Path, machine: int, name: str) -> None:
    path = patched("x86-64.elf", tmp_path, 18, struct.pack("<H", machine))
    with pytest.raises(InputFileError, match=f"unsupported machine {name}.*supported: x86-32") as caught:
        load_image(path)
    assert caught.value.exit_code == 3


def test_x32_and_n32_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="unsupported machine x32"):
        load_image(patched("x86-32.elf", tmp_path, 18, struct.pack("<H", 62)))
    with pytest.raises(InputFileError, match="unsupported machine mips n32"):
        load_image(patched("mips32-be.elf", tmp_path, 36, struct.pack(">I", 0x70001025)))


def test_be8_is_an_instruction_set_of_its_own(tmp_path: Path) -> None:
    """Big-endian data with little-endian code, by the flag in the header."""
    path = patched("ppc32-be.elf", tmp_path, 18, struct.pack(">H", 40))
    assert load_image(patched(str(path), tmp_path, 36, struct.pack(">I", 0x05800200))).isa == "arm-be8"
    assert load_image(patched(str(path), tmp_path, 36, struct.pack(">I", 0x05000200))).isa == "arm-be"


def header_field(path: Path, index: int, field: int) -> int:
    """File offset of a field of the index-th program header of a 64-bit file."""
    (table,) = struct.unpack_from("<Q", path.read_bytes(), 32)
    return int(table) + 56 * index + field


def test_hostile_program_headers_end_in_one_line(tmp_path: Path) -> None:
    source = IMAGES / "x86-64.elf"
    with source.open("rb") as stream:
        kinds = [(s["p_type"], s["p_flags"]) for s in ELFFile(stream).iter_segments()]
    loads = [i for i, kind in enumerate(kinds) if kind[0] == "PT_LOAD"]
    cases = [
        (header_field(source, loads[-1], 40), struct.pack("<Q", 3 << 30), "declares [0-9]+ bytes of memory"),
        (header_field(source, loads[-1], 40), struct.pack("<Q", (1 << 64) - 1), "exceeds|bytes of memory"),
        (header_field(source, loads[0], 8), struct.pack("<Q", 1 << 40), "truncated or damaged"),
        (header_field(source, loads[0], 32), struct.pack("<Q", 1 << 40), "more bytes in the file|truncated"),
        (header_field(source, loads[1], 16), struct.pack("<Q", 0x1000010), "overlap"),
        (56, struct.pack("<H", 0xFFFE), "truncated or damaged"),
        (54, struct.pack("<H", 7), "program headers of 7 bytes"),
        (4, b"\x07", "unknown class"),
        (16, struct.pack("<H", 4), "core dump"),
    ]
    for offset, raw, message in cases:
        with pytest.raises(InputFileError, match=message) as caught:
            load_image(patched("x86-64.elf", tmp_path, offset, raw))
        assert "\n" not in str(caught.value)


def test_damaged_section_headers_do_not_matter_to_an_executable(tmp_path: Path) -> None:
    image = load_image(patched("x86-64.elf", tmp_path, 40, struct.pack("<Q", 1 << 50)))
    for address, size, _, content in elf_loads(IMAGES / "x86-64.elf")[1:]:
        assert image.read(address, size) == content.ljust(size, b"\0")
    assert any("section headers" in note for note in image.notes)


def test_base_and_arch_must_fit_the_file() -> None:
    with pytest.raises(UsageError, match="fixed"):
        load_image(IMAGES / "x86-64.elf", base=0x800000)
    with pytest.raises(UsageError, match="multiple"):
        load_image(IMAGES / "x86-64-pie.elf", base=0x800001)
    with pytest.raises(UsageError, match="contains x86-64 code, not arm"):
        load_image(IMAGES / "x86-64.elf", arch="arm")
    with pytest.raises(UsageError, match="unknown architecture 'z80'"):
        load_image(IMAGES / "x86-64.elf", arch="z80")
    with pytest.raises(InputFileError, match="exceeds"):
        load_image(IMAGES / "x86-32-pie.elf", base=0xFFFFF000)
    assert load_image(IMAGES / "x86-64.elf", entry=0x1001234).entry == 0x1001234
