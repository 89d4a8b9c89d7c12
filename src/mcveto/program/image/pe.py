"""Windows executables and libraries (PE32, PE32+), mapped the way Windows maps them: headers, then sections
in pages.

Base relocations are applied when the image is moved. What the system's loader fills in is unspecified: the
import address table, the stack cookie and the control-flow-guard pointers. Structures: "PE Format",
Microsoft.
"""

import struct
from dataclasses import dataclass, field

from mcveto.errors import UsageError
from mcveto.program.image.memory import Memory, Notes
from mcveto.program.image.model import Image, Permission, address_bits
from mcveto.program.image.plt import import_addresses
from mcveto.program.image.request import LoadRequest

PAGE = 4096
MAX_IMPORTS = 1 << 16
MAX_NAME = 512
_MACHINES = {0x14C: ("x86-32", 0x10B), 0x8664: ("x86-64", 0x20B), 0xAA64: ("aarch64", 0x20B)}
_MACHINE_NAMES = {
    0x1C0: "arm",
    0x1C4: "armv7 Thumb-2",
    0x200: "IA-64",
    0x1F0: "ppc",
    0x166: "mips",
    0xEBC: "EFI byte code",
}
_EXPORT, _IMPORT, _BASE_RELOCATION, _TLS, _LOAD_CONFIG, _DELAY_IMPORT, _MANAGED = 0, 1, 5, 9, 10, 13, 14
_RELOCATIONS_STRIPPED = 0x0001


@dataclass(slots=True)
class _Pe:
    request: LoadRequest
    isa: str
    image_base: int
    entry: int
    header_size: int
    page: int
    relocations_stripped: bool
    directories: list[tuple[int, int]]
    sections: list[tuple[str, int, int, int, int, int]]
    coff_symbols: tuple[int, int]
    notes: Notes = field(default_factory=Notes)

    @property
    def word(self) -> int:
        return address_bits(self.isa) // 8

    def directory(self, index: int) -> tuple[int, int]:
        return self.directories[index] if index < len(self.directories) else (0, 0)


def looks_like(data: bytes) -> bool:
    if data[:2] != b"MZ" or len(data) < 0x40:
        return False
    offset = int.from_bytes(data[0x3C:0x40], "little")
    return data[offset : offset + 4] == b"PE\0\0"


def load(request: LoadRequest) -> Image:
    pe = _read_headers(request)
    base = pe.image_base if request.base is None else request.base
    if base % 0x10000:
        raise UsageError(f"base address {base:#x} is not a multiple of 0x10000")
    memory = Memory(request.path, address_bits(pe.isa), len(request.data))
    _map(pe, memory, base)
    _rebase(pe, memory, base)
    cells = _imports(pe, memory, base)
    _forget_loader_cells(pe, memory, base)
    entry: int | None = request.entry
    if entry is None:
        entry = base + pe.entry if pe.entry else None
        if entry is None:
            pe.notes.add("the file names no entry point")
    return Image(
        path=request.path,
        sha256=request.sha256,
        format="pe",
        isa=pe.isa,
        entry=entry,
        base=base,
        segments=memory.freeze(),
        symbols=_symbols(pe, memory, base),
        imports=import_addresses(pe.isa, memory, cells, None),
        notes=pe.notes.freeze(),
        unspecified=memory.unspecified(),
    )


def _read_headers(request: LoadRequest) -> _Pe:
    data = request.data
    start = int.from_bytes(data[0x3C:0x40], "little") + 4
    if len(data) < start + 20 or not looks_like(data):
        raise request.broken("truncated or damaged PE header")
    machine, count, _, symbols, symbol_count, optional_size, flags = struct.unpack_from("<HHIIIHH", data, start)
    if machine not in _MACHINES:
        raise request.unsupported_machine(f"{_MACHINE_NAMES.get(machine, f'PE machine {machine:#x}')} (PE)")
    isa, expected_magic = _MACHINES[machine]
    request.check_arch(isa)
    optional = data[start + 20 : start + 20 + optional_size]
    fixed = 96 if expected_magic == 0x10B else 112
    if len(optional) < fixed:
        raise request.broken("truncated or damaged PE header, or an object file")
    magic = int.from_bytes(optional[:2], "little")
    if magic != expected_magic:
        raise request.broken(f"damaged PE header: magic {magic:#x} does not belong to {isa}")
    entry = int.from_bytes(optional[16:20], "little")
    image_base = int.from_bytes(optional[28:32] if magic == 0x10B else optional[24:32], "little")
    header_size = int.from_bytes(optional[60:64], "little")
    directory_count = min(int.from_bytes(optional[fixed - 4 : fixed], "little"), 16, (len(optional) - fixed) // 8)
    directories = [struct.unpack_from("<II", optional, fixed + 8 * i) for i in range(directory_count)]
    table = start + 20 + optional_size
    if table + 40 * count > len(data):
        raise request.broken(f"truncated or damaged: table of {count} sections exceeds the file")
    sections = []
    for index in range(count):
        name, *numbers = struct.unpack_from("<8sIIIIIIHHI", data, table + 40 * index)
        label = name.rstrip(b"\0").decode("latin-1") or f"section {index}"
        sections.append((label, numbers[0], numbers[1], numbers[2], numbers[3], numbers[8]))
    # Sections that are aligned to less than a page are mapped as one piece, without padding between them.
    page = PAGE if int.from_bytes(optional[32:36], "little") >= PAGE else 1
    stripped = bool(flags & _RELOCATIONS_STRIPPED)
    coff_symbols = (symbols, symbol_count)
    return _Pe(request, isa, image_base, entry, header_size, page, stripped, directories, sections, coff_symbols)


def _map(pe: _Pe, memory: Memory, base: int) -> None:
    data, request = pe.request.data, pe.request
    if pe.directory(_MANAGED)[0]:
        raise request.broken("managed (.NET) code is not machine code")
    header = min(pe.header_size, len(data))
    memory.map(base, -(-header // pe.page) * pe.page, data[:header], Permission.READ, "headers")
    for name, virtual_size, address, raw_size, raw_at, flags in pe.sections:
        size = -(-(virtual_size or raw_size) // pe.page) * pe.page
        length = min(raw_size, size) if raw_at else 0
        if raw_at + length > len(data):
            raise request.broken(f"truncated: section {name} exceeds the file")
        permissions = Permission(0)
        for bit, permission in ((30, Permission.READ), (31, Permission.WRITE), (29, Permission.EXECUTE)):
            if flags >> bit & 1:
                permissions |= permission
        memory.map(base + address, size, data[raw_at : raw_at + length], permissions, name)
    memory.seal()


def _rebase(pe: _Pe, memory: Memory, base: int) -> None:
    delta = base - pe.image_base
    if not delta:
        return
    address, size = pe.directory(_BASE_RELOCATION)
    if pe.relocations_stripped or not address:
        pe.request.fixed_base(pe.image_base)
    table = memory.read(base + address, size) if size <= len(pe.request.data) else None
    if table is None:
        raise pe.request.broken("damaged: its base relocations are not mapped")
    at = 0
    while at + 8 <= len(table):
        page, block = struct.unpack_from("<II", table, at)
        if block < 8 or at + block > len(table):
            raise pe.request.broken("damaged: a block of base relocations exceeds its table")
        for (entry,) in struct.iter_unpack("<H", table[at + 8 : at + block // 2 * 2]):
            _rebase_one(pe, memory, base + page + (entry & 0xFFF), entry >> 12, delta)
        at += block


def _rebase_one(pe: _Pe, memory: Memory, place: int, kind: int, delta: int) -> None:
    width = {3: 4, 10: 8}.get(kind)
    if kind == 0:
        return
    raw = memory.read(place, width) if width else None
    if width and raw is not None:
        value = (int.from_bytes(raw, "little") + delta) % (1 << 8 * width)
        if memory.patch(place, value.to_bytes(width, "little")):
            return
    pe.notes.add(
        f"base relocation type {kind} at {place:#x} not applied: unspecified",
        "base relocation",
    )
    memory.forget(place, width or 8)


def _imports(pe: _Pe, memory: Memory, base: int) -> dict[int, str]:
    """Forget the import address table; the result maps its cells to names."""
    imported: dict[int, str] = {}
    address = pe.directory(_IMPORT)[0]
    total = 0
    while address:
        raw = memory.read(base + address, 20)
        if raw is None:
            raise pe.request.broken("damaged: its import table is not mapped")
        lookup, _, _, name_at, cells = struct.unpack("<IIIII", raw)
        if not cells or not name_at:
            break
        library = _text(memory, base + name_at)
        for index in range(MAX_IMPORTS):
            total += 1
            entry = memory.read(base + (lookup or cells) + index * pe.word, pe.word)
            if entry is None or total > MAX_IMPORTS:
                raise pe.request.broken("damaged: its import table does not end")
            number = int.from_bytes(entry, "little")
            if not number:
                break
            cell = base + cells + index * pe.word
            by_ordinal = number >> (8 * pe.word - 1)
            name = f"{library}#{number & 0xFFFF}" if by_ordinal else _text(memory, base + (number & 0x7FFFFFFF) + 2)
            imported[cell] = name or f"{library}@{cell:#x}"
            memory.forget(cell, pe.word)
        address += 20
    if imported:
        pe.notes.add(f"{len(imported)} imported symbols: the cells for their addresses are unspecified")
    if pe.directory(_DELAY_IMPORT)[0]:
        pe.notes.add("delay-loaded imports are left as in the file: they lead to the program's own helper")
    return imported


def _forget_loader_cells(pe: _Pe, memory: Memory, base: int) -> None:
    """The load configuration points to cells that the system fills in."""
    if pe.directory(_TLS)[0]:
        pe.notes.add("thread-local storage and its callbacks, which run before the entry point, are not modelled")
    address = pe.directory(_LOAD_CONFIG)[0]
    if not address:
        return
    raw_size = memory.read(base + address, 4)
    size = int.from_bytes(raw_size, "little") if raw_size else 0
    for offset in (0x3C, 0x48, 0x4C) if pe.word == 4 else (0x58, 0x70, 0x78):
        raw = memory.read(base + address + offset, pe.word)
        if raw is not None and offset + pe.word <= size:
            cell = int.from_bytes(raw, "little")
            if memory.read(cell, pe.word) is not None:
                memory.forget(cell, pe.word)
                pe.notes.add(f"the cell at {cell:#x} is set by the system: unspecified", "set by the loader")


def _symbols(pe: _Pe, memory: Memory, base: int) -> dict[str, int]:
    named = _exports(pe, memory, base)
    at, count = pe.coff_symbols
    data = pe.request.data
    if at and at + 18 * count <= len(data):
        strings = at + 18 * count
        index = 0
        while index < count:
            raw, value, section, _, kind, auxiliary = struct.unpack_from("<8sIhHBB", data, at + 18 * index)
            if kind in (2, 3) and 0 < section <= len(pe.sections) and not raw.startswith(b"."):
                if raw[:4] == b"\0\0\0\0":
                    begin = strings + int.from_bytes(raw[4:], "little")
                    raw = data[begin : begin + MAX_NAME].split(b"\0", 1)[0]
                name = raw.rstrip(b"\0").decode("utf-8", "replace")
                if name:
                    named.setdefault(name, base + pe.sections[section - 1][2] + value)
            index += 1 + auxiliary
    return {name: named[name] % (1 << 8 * pe.word) for name in sorted(named)}


def _exports(pe: _Pe, memory: Memory, base: int) -> dict[str, int]:
    address = pe.directory(_EXPORT)[0]
    raw = memory.read(base + address, 40) if address else None
    if raw is None:
        return {}
    _, _, _, _, _, _, functions, names, function_table, name_table, ordinal_table = struct.unpack("<IIHHIIIIIII", raw)
    named = {}
    for index in range(min(names, MAX_IMPORTS)):
        name_at = memory.read(base + name_table + 4 * index, 4)
        ordinal = memory.read(base + ordinal_table + 2 * index, 2)
        if name_at is None or ordinal is None or (number := int.from_bytes(ordinal, "little")) >= functions:
            break
        function = memory.read(base + function_table + 4 * number, 4)
        name = _text(memory, base + int.from_bytes(name_at, "little"))
        if function is not None and name:
            named[name] = base + int.from_bytes(function, "little")
    return named


def _text(memory: Memory, address: int) -> str:
    for length in (MAX_NAME, 64, 16, 4, 1):
        raw = memory.read(address, length)
        if raw is not None:
            return raw.split(b"\0", 1)[0].decode("utf-8", "replace")
    return ""
