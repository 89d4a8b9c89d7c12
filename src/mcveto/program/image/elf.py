"""ELF executables, position-independent executables and shared objects, mapped the way Linux maps them.

* Whole pages: the kernel maps pages of 4 KiB, so the bytes of the file around a segment are visible too, and
  zeros after a segment with a zero-filled tail. A segment is extended that far, but never into its neighbour.
  Without this, an access that succeeds on the machine would count as a fault.
* ET_DYN files are moved to `base` (default 0x400000) and their dynamic relocations are applied. The table is
  found through the program headers: stripped files have no other.
* What another module would fill in stays unspecified, e.g. the cells of imported functions.
* PT_GNU_RELRO and PT_GNU_STACK are ignored: the memory they protect keeps the permissions of its segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcveto.errors import InputFileError, UsageError
from mcveto.program.image.elf_reader import (
    ET_DYN,
    ET_EXEC,
    ET_REL,
    PT_DYNAMIC,
    PT_GNU_EH_FRAME,
    PT_INTERP,
    PT_LOAD,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_DYNSYM,
    SHT_REL,
    SHT_RELA,
    SHT_SYMTAB,
    ElfFile,
    ProgramHeader,
    read_elf,
)
from mcveto.program.image.elf_symbols import SymbolTable
from mcveto.program.image.memory import Memory, Notes
from mcveto.program.image.model import ARM, Image, Permission
from mcveto.program.image.request import LoadRequest

if TYPE_CHECKING:
    from mcveto.program.image.elf_dynamic import Dynamic

DEFAULT_BASE = 0x400000
PAGE = 4096
_LARGER_PAGES_EXIST = frozenset({"aarch64", "ppc32-be", "ppc32-le", "mips32-be", "mips32-le"})


def load(request: LoadRequest) -> Image:
    elf = read_elf(request)
    if elf.type == ET_REL:
        from mcveto.program.image import elf_object

        return elf_object.load(elf, DEFAULT_BASE if request.base is None else request.base)
    if elf.type not in (ET_EXEC, ET_DYN):
        what = "a core dump" if elf.type == 4 else f"ELF type {elf.type}"
        raise elf.broken(f"{what} is not a program")
    return _load_program(elf)


def _load_program(elf: ElfFile) -> Image:
    request = elf.request
    loads = sorted(
        (h for h in elf.program_headers if h.type == PT_LOAD and h.memory_size),
        key=lambda h: (h.address, h.memory_size),
    )
    if not loads:
        raise elf.broken("no loadable segments")
    notes = Notes()
    if elf.section_problem:
        notes.add("its section headers are damaged and were ignored")
    lowest = loads[0].address & -PAGE
    bias, base = _placement(elf, lowest)
    memory = Memory(request.path, elf.bits, len(elf.data))
    _map_segments(elf, loads, bias, memory, notes)
    has_interpreter = any(h.type == PT_INTERP for h in elf.program_headers)
    dynamic = _dynamic(elf, memory, notes, bias)
    imports: dict[str, int] = {}
    if dynamic is not None:
        from mcveto.program.image.plt import import_addresses

        cells = dynamic.relocate(has_interpreter)
        imports = import_addresses(elf.isa, memory, cells, dynamic.got)
        imports.update(dynamic.stub_symbols)
    elif elf.type == ET_EXEC:
        _forget_start_up_relocations(elf, memory, notes)
    symbols = _symbols(elf, dynamic, bias)
    entry: int | None = request.entry
    if entry is None:
        entry = (elf.entry + bias) % (1 << elf.bits) if elf.entry else None
        if entry is None:
            notes.add("the file names no entry point")
    thumb = elf.isa in ARM and entry is not None and bool(entry & 1)
    if entry is not None and thumb:
        entry -= 1
    return Image(
        path=request.path,
        sha256=request.sha256,
        format="elf",
        isa=elf.isa,
        entry=entry,
        base=base,
        segments=memory.freeze(),
        symbols=symbols.addresses,
        imports=imports,
        notes=notes.freeze(),
        unspecified=memory.unspecified(),
        thumb_entry=thumb,
        thumb_symbols=symbols.thumb,
        frame_table=_frame_table(elf, memory, bias),
        code_starts=_code_starts(elf, dynamic, bias),
        objects=symbols.objects,
    )


def _dynamic(elf: ElfFile, memory: Memory, notes: Notes, bias: int) -> Dynamic | None:
    if not any(header.type == PT_DYNAMIC for header in elf.program_headers):
        return None
    from mcveto.program.image.elf_dynamic import Dynamic

    return Dynamic.read(elf, memory, notes, bias)


def _placement(elf: ElfFile, lowest: int) -> tuple[int, int]:
    """(what is added to every address, the image's base)."""
    request = elf.request
    if elf.type == ET_EXEC:
        return 0, request.fixed_base(lowest)
    base = DEFAULT_BASE if request.base is None else request.base
    if base % PAGE:
        raise UsageError(f"base address {base:#x} is not a multiple of {PAGE:#x}")
    return base - lowest, base


def _map_segments(elf: ElfFile, loads: list[ProgramHeader], bias: int, memory: Memory, notes: Notes) -> None:
    previous_end, previous_flags = 0, 0
    for index, header in enumerate(loads):
        following = loads[index + 1] if index + 1 < len(loads) else None
        end = header.address + header.memory_size
        if header.file_size > header.memory_size:
            raise elf.broken(f"segment at {header.address:#x} has more bytes in the file than in memory")
        if following is not None and following.address < end:
            raise elf.broken(f"segments at {header.address:#x} and {following.address:#x} overlap")
        content = elf.chunk(header.offset, header.file_size, f"segment at {header.address:#x}")
        start, tail = header.address, b""
        if (header.address - header.offset) % PAGE == 0:
            start = max(header.address & -PAGE, previous_end)
            end = -(-end // PAGE) * PAGE
            if following is not None and following.address & -PAGE < end:
                end = header.address + header.memory_size
            if header.file_size:
                content = elf.data[header.offset - (header.address - start) : header.offset] + content
            if header.file_size == header.memory_size:
                position = header.offset + header.file_size
                tail = elf.data[position : position + end - (header.address + header.memory_size)]
        if previous_end > header.address & -PAGE and previous_flags != header.flags & 7:
            notes.add(
                f"segments share the page at {(header.address & -PAGE) + bias:#x}: each keeps its own flags",
                "segments share a page",
            )
        permissions = Permission(header.flags & 7)
        memory.map(start + bias, end - start, content + tail, permissions, f"LOAD{index}")
        previous_end, previous_flags = header.address + header.memory_size, header.flags & 7
    memory.seal()
    if elf.isa in _LARGER_PAGES_EXIST:
        notes.add("segments are extended to pages of 4096 bytes; a system with larger pages maps more")


def _symbols(elf: ElfFile, dynamic: Dynamic | None, bias: int) -> SymbolTable:
    table = SymbolTable(elf.isa, elf.bits)
    try:
        for section in elf.sections:
            if section.type in (SHT_SYMTAB, SHT_DYNSYM):
                for symbol in elf.symbols_of(section):
                    table.add(symbol, bias)
    except InputFileError:
        pass  # names are a convenience; a damaged table is no reason to refuse the program
    if dynamic is not None:
        for symbol in dynamic.exported():
            table.add(symbol, bias)
    table.finish()
    return table


def _forget_start_up_relocations(elf: ElfFile, memory: Memory, notes: Notes) -> None:
    """The indirect functions of a static executable are resolved by its own start-up code.

    Whether that code runs depends on where the analysis starts, so their cells are unspecified.
    """
    for section in elf.sections:
        if section.type not in (SHT_REL, SHT_RELA) or not section.flags & SHF_ALLOC:
            continue
        try:
            relocations = elf.parse_relocations(elf.contents(section), section.type == SHT_RELA)
        except InputFileError:
            notes.add(f"section {section.name} is damaged: its relocations were ignored")
            continue
        from mcveto.program.image.elf_rules import RULES

        for relocation in relocations:
            rule = RULES[elf.isa].get(relocation.type)
            if rule is not None and rule.formula == "none":
                continue
            memory.forget(relocation.offset, elf.bits // 8)
            notes.add(
                f"the cell at {relocation.offset:#x} is set by start-up code: unspecified",
                "cell set by start-up code",
            )


def _code_starts(elf: ElfFile, dynamic: Dynamic | None, bias: int) -> tuple[int, ...]:
    """Stripped files have no symbols for the start-up code, and nothing calls it; sections of code lie apart."""
    code = SHF_ALLOC | SHF_EXECINSTR
    starts = {section.address for section in elf.sections if section.flags & code == code and section.size}
    if dynamic is not None:
        starts.update(dynamic.startup_functions)
    return tuple(sorted((start + bias) % (1 << elf.bits) for start in starts))


def _frame_table(elf: ElfFile, memory: Memory, bias: int) -> tuple[int, int] | None:
    for section in elf.sections:
        if section.name == ".eh_frame" and section.size:
            return section.address + bias, section.address + bias + section.size
    for header in elf.program_headers:
        if header.type != PT_GNU_EH_FRAME:
            continue
        start = header.address + bias
        raw = memory.read(start, 8)
        # Version 1, the table's address stored as a signed 32-bit distance from where it is stored.
        if raw is not None and raw[:2] == b"\x01\x1b":
            address = start + 4 + int.from_bytes(raw[4:8], "little" if elf.little else "big", signed=True)
            end = memory.content_end(address)
            if end is not None:
                return address, end
    return None
