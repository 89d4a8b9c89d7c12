"""Windows and macOS programs against the numbers in their headers, read here with struct."""

import struct
from pathlib import Path

import pytest

from mcveto.errors import InputFileError, UsageError
from mcveto.program.image import Permission, address_bits, load_image

from .fixtures import IMAGES, unpacked


def pe_sections(data: bytes) -> list[tuple[int, int, int, int, int]]:
    """(address, virtual size, raw size, raw offset, flags)."""
    start = struct.unpack_from("<I", data, 0x3C)[0]
    count, optional = (
        struct.unpack_from("<H", data, start + 6)[0],
        struct.unpack_from("<H", data, start + 20)[0],
    )
    rows = [struct.unpack_from("<8sIIIIIIHHI", data, start + 24 + optional + 40 * i) for i in range(count)]
    return [(r[2], r[1], r[3], r[4], r[9]) for r in rows]


@pytest.mark.parametrize(("isa", "base"), [("x86-32", 0x400000), ("x86-64", 0x140000000)])
def test_pe_sections_imports_and_rebasing(isa: str, base: int) -> None:
    path = IMAGES / f"{isa}.exe"
    data = path.read_bytes()
    image, moved = load_image(path), load_image(path, base=0x1230000)
    assert (image.format, image.isa, image.base, moved.base) == ("pe", isa, base, 0x1230000)
    assert image.read(base, 0x40) == data[:0x40]
    names = {0x40000000: Permission.READ, 0x80000000: Permission.WRITE, 0x20000000: Permission.EXECUTE}
    specified = 0
    for address, virtual, raw, offset, flags in pe_sections(data):
        segment = image.segment_at(base + address)
        assert segment is not None
        assert segment.permissions == sum((p for bit, p in names.items() if flags & bit), Permission(0))
        assert segment.content[: min(raw, virtual)] == data[offset : offset + min(raw, virtual)]
        specified += min(raw, virtual)
    assert specified > 100
    entry = struct.unpack_from("<I", data, struct.unpack_from("<I", data, 0x3C)[0] + 24 + 16)[0]
    assert (image.entry, moved.entry) == (base + entry, 0x1230000 + entry)
    # int *pointer = &table[2], with table = {1, 2, 3, 4}: exactly one word of .data points to a 3 in .data
    size = address_bits(isa) // 8
    for loaded in (image, moved):
        section = next(s for s in loaded.segments if s.name == ".data")
        words = [int.from_bytes(section.content[i : i + size], "little") for i in range(0, 64, size)]
        pointers = [w for w in words if section.address <= w < section.end]
        assert len(pointers) == 1
        assert loaded.read(pointers[0], 4) == b"\x03\0\0\0"
    assert set(image.imports) == {"ExitProcess"}
    (slot,) = [s for s, e in image.unspecified]
    assert image.unspecified == ((slot, slot + size),)
    assert moved.unspecified == ((slot - base + 0x1230000, slot - base + 0x1230000 + size),)


def test_pe_refusals(tmp_path: Path) -> None:
    data = bytearray((IMAGES / "x86-32.exe").read_bytes())
    start = struct.unpack_from("<I", data, 0x3C)[0]

    def refused(offset: int, raw: bytes, message: str) -> None:
        changed = data.copy()
        changed[offset : offset + len(raw)] = raw
        path = tmp_path / "changed.exe"
        path.write_bytes(changed)
        with pytest.raises(InputFileError, match=message):
            load_image(path)

    refused(start + 4, struct.pack("<H", 0x1C4), "unsupported machine armv7 Thumb-2")
    refused(start + 4, struct.pack("<H", 0x8664), "magic 0x10b does not belong to x86-64")
    refused(start + 6, struct.pack("<H", 0xFFFF), "table of 65535 sections")
    refused(start + 24 + 96 + 14 * 8, struct.pack("<II", 0x1000, 72), "managed")
    sections = start + 24 + struct.unpack_from("<H", data, start + 20)[0]
    refused(sections + 16, struct.pack("<II", 0x1000, 0x7FFFFFF0), "truncated: section .text")
    refused(sections + 8, struct.pack("<I", 0x7FFFFFFF), "declares|overlap")
    with pytest.raises(UsageError, match="multiple of 0x10000"):
        load_image(IMAGES / "x86-32.exe", base=0x401000)


def test_macho_without_readable_fixups_is_refused(tmp_path: Path) -> None:
    data = bytearray((IMAGES / "x86-64.macho").read_bytes())
    at = data.index(struct.pack("<II", 0x80000022, 48))
    data[at : at + 4] = struct.pack("<I", 0x2B)
    path = tmp_path / "old"
    path.write_bytes(data)
    with pytest.raises(InputFileError, match="LC_DYLD_INFO"):
        load_image(path)


def macho_path(isa: str, folder: Path) -> Path:
    return unpacked("aarch64.macho", folder) if isa == "aarch64" else IMAGES / f"{isa}.macho"


@pytest.mark.parametrize("isa", ["x86-64", "aarch64"])
def test_macho_segments_rebases_and_binds(isa: str, tmp_path: Path) -> None:
    path = macho_path(isa, tmp_path)
    data = path.read_bytes()
    image, moved = load_image(path), load_image(path, base=0x200000000)
    assert (image.format, image.isa, image.base) == ("macho", isa, 0x100000000)
    at, segments = 32, {}
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, length = struct.unpack_from("<II", data, at)
        if command == 0x19:
            name, address, size, offset, file_size, _, protection = struct.unpack_from("<16sQQQQII", data, at + 8)
            segments[name.rstrip(b"\0").decode()] = (address, size, offset, file_size, protection)
        if command == 0x80000028:
            assert image.entry == image.base + struct.unpack_from("<Q", data, at + 8)[0]
        at += length
    assert image.segment_at(0) is None, "__PAGEZERO is not mapped"
    address, size, offset, file_size, protection = segments["__TEXT"]
    assert image.read(address, size) == data[offset : offset + size]
    text = image.segment_at(address)
    assert text is not None
    assert protection == 5
    assert text.permissions == Permission.READ | Permission.EXECUTE
    for loaded in (image, moved):
        start = segments["__DATA"][0] - image.base + loaded.base
        section = loaded.segment_at(start)
        assert section is not None
        words = {a: loaded.read(a, 8) for a in range(start, start + segments["__DATA"][1], 8)}
        pointers = [int.from_bytes(w, "little") for w in words.values() if w is not None]
        targets = [p for p in pointers if loaded.segment_at(p) is section]
        assert [loaded.read(t, 4) for t in targets] == [b"\x03\0\0\0"]
        assert sum(w is None for w in words.values()) == 2, "the lazy pointer and the function pointer to getpid"
    assert set(image.imports) == {"_getpid", "dyld_stub_binder"}


def test_fat_files(tmp_path: Path) -> None:
    parts = [macho_path("x86-64", tmp_path).read_bytes(), macho_path("aarch64", tmp_path).read_bytes()]
    header, body, offset = struct.pack(">II", 0xCAFEBABE, 3), b"", 4096
    header += struct.pack(">IIIII", 18, 0, 4096, 0, 12)
    for cpu, part in ((0x01000007, parts[0]), (0x0100000C, parts[1])):
        header += struct.pack(">IIIII", cpu, 0, offset + len(body), len(part), 12)
        body += part
    path = tmp_path / "fat"
    path.write_bytes(header.ljust(offset, b"\0") + body)
    first, second = load_image(path), load_image(path, arch="aarch64")
    assert (first.isa, second.isa) == ("x86-64", "aarch64")
    assert any("ppc, x86-64, aarch64: the x86-64 part" in note for note in first.notes)
    assert first.segments == load_image(macho_path("x86-64", tmp_path)).segments
    assert second.segments == load_image(macho_path("aarch64", tmp_path)).segments
    with pytest.raises(UsageError, match="no arm part"):
        load_image(path, arch="arm")


def chained_macho(pointer_format: int, links: list[int], start: int = 0x10) -> bytes:
    """A library with a page of code and a page of data, whose cells from `start` on are chained."""
    table = struct.pack("<7I", 0, 32, 80, 96, 2, 1, 0).ljust(32, b"\0")
    table += struct.pack("<4I", 3, 0, 16, 0) + struct.pack("<IHHQIHH", 24, 0x1000, pointer_format, 0x1000, 0, 1, start)
    table = table.ljust(80, b"\0") + struct.pack("<II", 1 << 9 | 1, 9 << 9 | 1)
    table = table.ljust(96, b"\0") + b"\0_getpid\0_exit\0"
    commands = b""
    for name, address, offset, size, protection in (
        (b"__TEXT", 0x100000000, 0, 0x1000, 5),
        (b"__DATA", 0x100001000, 0x1000, 0x1000, 3),
        (b"__LINKEDIT", 0x100002000, 0x2000, len(table), 1),
    ):
        commands += struct.pack("<II16sQQQQIIII", 0x19, 72, name, address, 0x1000, offset, size, 7, protection, 0, 0)
    commands += struct.pack("<IIII", 0x80000034, 16, 0x2000, len(table))
    header = struct.pack("<8I", 0xFEEDFACF, 0x01000007, 3, 6, 4, len(commands), 0x85, 0)
    data = b"\0" * 0x10 + b"".join(link.to_bytes(8, "little") for link in links)
    return (header + commands).ljust(0x1000, b"\0") + data.ljust(0x1000, b"\0") + table


def link(value: int, step: int = 2, bind: bool = False, top: int = 0) -> int:
    return value | top << 36 | step << 51 | bind << 63


@pytest.mark.parametrize(("pointer_format", "unit"), [(2, 0x100000000), (6, 0)])
def test_chained_fixups(pointer_format: int, unit: int, tmp_path: Path) -> None:
    path = tmp_path / "chained"
    links = [
        link(unit + 0x1230),
        link(1, bind=True),
        link(unit + 0x40, top=0x80),
        link(0, bind=True, step=0),
        77,
    ]
    path.write_bytes(chained_macho(pointer_format, links))
    for base in (0x100000000, 0x300000000):
        image = load_image(path, base=base)
        cells = base + 0x1010
        assert image.read(cells, 8) == struct.pack("<Q", base + 0x1230)
        assert image.read(cells + 16, 8) == struct.pack("<Q", base + 0x40 | 0x80 << 56)
        assert image.unspecified == ((cells + 8, cells + 16), (cells + 24, cells + 32))
        assert image.read(cells + 32, 8) == struct.pack("<Q", 77), "after the end of the chain"
        assert image.imports == {"_exit": cells + 8, "_getpid": cells + 24}


def test_chained_fixups_that_are_not_understood_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "chained"
    for content, message in (
        (chained_macho(1, [link(0, step=0)]), "format 1 are not supported"),
        (chained_macho(6, [link(0, step=0xFFF)]), "leaves its page"),
        (chained_macho(6, [link(5, bind=True, step=0)]), "import 5 of 2"),
        (chained_macho(6, [link(0, step=0)], start=0x8001), "several chains"),
        (chained_macho(6, [link(0, step=0)])[:-70], "exceed|truncated"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputFileError, match=message):
            load_image(path)


def test_the_bundled_chained_file_is_what_its_builder_writes() -> None:
    links = [link(0x1230), link(1, bind=True), link(0x40), link(0, bind=True, step=0)]
    assert (IMAGES / "chained.macho").read_bytes() == chained_macho(6, links)
