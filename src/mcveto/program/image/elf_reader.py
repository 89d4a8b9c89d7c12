"""ELF structures, read defensively: every offset and count is checked against the file before it is used.

Written here instead of handing the file to a library because the relocations need every detail, and because a
damaged file must end in one line of text. Section headers of executables are hints (a stripped file may have
none, or wrong ones); program headers and the dynamic table are what a loader goes by.
"""

import struct
from dataclasses import field

from mcveto.errors import InputFileError
from mcveto.late_methods import dataclass
from mcveto.program.image.request import LoadRequest

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_EH_FRAME = 1, 2, 3, 0x6474E550
SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHT_DYNSYM, SHT_GROUP = 2, 4, 8, 9, 11, 17
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS, SHF_COMPRESSED = 1, 2, 4, 0x400, 0x800
SHN_UNDEF, SHN_LORESERVE, SHN_ABS, SHN_COMMON, SHN_XINDEX = 0, 0xFF00, 0xFFF1, 0xFFF2, 0xFFFF
STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE, STT_TLS, STT_GNU_IFUNC = 1, 2, 3, 4, 6, 10
STB_LOCAL, STB_WEAK = 0, 2
MAX_NAME = 4096

EM_386, EM_MIPS, EM_PPC, EM_ARM, EM_X86_64, EM_AARCH64, EM_RISCV = 3, 8, 20, 40, 62, 183, 243
_MACHINE_NAMES = {
    2: "SPARC",
    4: "m68k",
    15: "PA-RISC",
    21: "ppc64",
    22: "s390",
    42: "SuperH",
    43: "sparc64",
    50: "IA-64",
    83: "AVR",
    105: "MSP430",
    247: "BPF",
    258: "LoongArch",
}
_ISA = {
    (EM_386, 32, True): "x86-32",
    (EM_X86_64, 64, True): "x86-64",
    (EM_PPC, 32, False): "ppc32-be",
    (EM_PPC, 32, True): "ppc32-le",
    (EM_ARM, 32, True): "arm",
    (EM_ARM, 32, False): "arm-be",
    (EM_AARCH64, 64, True): "aarch64",
    (EM_RISCV, 32, True): "riscv32",
    (EM_RISCV, 64, True): "riscv64",
    (EM_MIPS, 32, False): "mips32-be",
    (EM_MIPS, 32, True): "mips32-le",
}
_EF_ARM_BE8 = 0x00800000
_EF_MIPS_ABI2, _EF_MIPS_MICROMIPS = 0x20, 0x02000000


@dataclass(frozen=True, slots=True)
class ProgramHeader:
    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int
    align: int


@dataclass(frozen=True, slots=True)
class Section:
    index: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str
    value: int
    size: int
    type: int
    binding: int
    visibility: int
    section: int


@dataclass(frozen=True, slots=True)
class RawRelocation:
    """`addend` is None where it is stored in the relocated field itself."""

    offset: int
    type: int
    symbol: int
    addend: int | None


@dataclass(slots=True)
class ElfFile:
    request: LoadRequest
    bits: int
    little: bool
    isa: str
    type: int
    flags: int
    entry: int
    program_headers: tuple[ProgramHeader, ...] = ()
    sections: tuple[Section, ...] = ()
    section_problem: str = ""
    _symbol_cache: dict[int, list[Symbol]] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return self.request.data

    @property
    def prefix(self) -> str:
        return "<" if self.little else ">"

    def chunk(self, offset: int, size: int, what: str) -> bytes:
        """Bytes of the file, or a complaint that it is truncated."""
        if offset < 0 or size < 0 or offset + size > len(self.data):
            raise self.broken(f"truncated or damaged: {what} at offset {offset:#x} exceeds the file")
        return self.data[offset : offset + size]

    def broken(self, what: str) -> InputFileError:
        return self.request.broken(what)

    def contents(self, section: Section) -> bytes:
        if section.type == SHT_NOBITS:
            return b""
        return self.chunk(section.offset, section.size, f"section {section.name or section.index}")

    def symbols_of(self, section: Section) -> list[Symbol]:
        """The symbols of a SHT_SYMTAB or SHT_DYNSYM section."""
        if section.index not in self._symbol_cache:
            if not 0 < section.link < len(self.sections):
                raise self.broken(f"symbol table {section.name} names no string table")
            strings = self.contents(self.sections[section.link])
            self._symbol_cache[section.index] = self.parse_symbols(self.contents(section), strings)
        return self._symbol_cache[section.index]

    def parse_symbols(self, table: bytes, strings: bytes) -> list[Symbol]:
        size = 24 if self.bits == 64 else 16
        table = table[: len(table) // size * size]
        symbols = []
        for fields in struct.iter_unpack(self.prefix + ("IBBHQQ" if self.bits == 64 else "IIIBBH"), table):
            if self.bits == 64:
                name, info, other, section, value, length = fields
            else:
                name, value, length, info, other, section = fields
            symbols.append(Symbol(text_at(strings, name), value, length, info & 15, info >> 4, other & 3, section))
        return symbols

    def parse_relocations(self, table: bytes, explicit_addend: bool) -> list[RawRelocation]:
        wide = self.bits == 64
        layout = self.prefix + ("QQ" if wide else "II") + (("q" if wide else "i") if explicit_addend else "")
        size = struct.calcsize(layout)
        shift, mask = (32, 0xFFFFFFFF) if wide else (8, 0xFF)
        return [
            RawRelocation(row[0], row[1] & mask, row[1] >> shift, row[2] if explicit_addend else None)
            for row in struct.iter_unpack(layout, table[: len(table) // size * size])
        ]


def text_at(strings: bytes, offset: int) -> str:
    """A NUL-terminated name; absurdly long ones are cut (they are labels, nothing depends on them)."""
    if offset >= len(strings):
        return ""
    end = strings.find(b"\0", offset, offset + MAX_NAME)
    return strings[offset : end if end >= 0 else offset + MAX_NAME].decode("utf-8", "replace")


def read_elf(request: LoadRequest) -> ElfFile:
    """Parse the headers."""
    data = request.data
    if len(data) < 20 or not data.startswith(b"\x7fELF"):
        raise request.broken("truncated ELF header, or not an ELF file")
    bits, little = {1: 32, 2: 64}.get(data[4], 0), data[5] == 1
    if not bits or data[5] not in (1, 2):
        raise request.broken("damaged ELF header: unknown class or byte order")
    layout = ("<" if little else ">") + ("HHIQQQIHHHHHH" if bits == 64 else "HHIIIIIHHHHHH")
    if len(data) < 16 + struct.calcsize(layout):
        raise request.broken("truncated ELF header")
    kind, machine, _, entry, phoff, shoff, flags, _, phsize, phcount, shsize, shcount, names = struct.unpack_from(
        layout, data, 16
    )
    isa = _isa_of(request, machine, bits, little, flags, kind)
    request.check_arch(isa)
    elf = ElfFile(request, bits, little, isa, kind, flags, entry)
    try:
        elf.sections = _read_sections(elf, shoff, shsize, shcount, names)
    except InputFileError as problem:
        elf.section_problem = problem.message
    if phcount == 0xFFFF and shoff:
        # The real count is in the first section header.
        phcount = elf.sections[0].info if elf.sections else phcount
    elf.program_headers = _read_program_headers(elf, phoff, phsize, phcount)
    return elf


def _isa_of(request: LoadRequest, machine: int, bits: int, little: bool, flags: int, kind: int) -> str:
    isa = _ISA.get((machine, bits, little))
    if isa is None:
        variants = {(EM_X86_64, 32): "x32", (EM_MIPS, 64): "mips64", (EM_AARCH64, 32): "aarch64 ilp32"}
        name = variants.get((machine, bits)) or _MACHINE_NAMES.get(machine, f"ELF machine {machine}")
        raise request.unsupported_machine(f"{name} ({bits}-bit {'little' if little else 'big'}-endian)")
    if isa == "arm-be" and flags & _EF_ARM_BE8 and kind != ET_REL:
        isa = "arm-be8"
    if machine == EM_MIPS:
        if flags & _EF_MIPS_ABI2:
            raise request.unsupported_machine("mips n32 (64-bit registers)")
        if flags & _EF_MIPS_MICROMIPS:
            raise request.unsupported_machine("microMIPS")
    return isa


def _read_program_headers(elf: ElfFile, offset: int, entry_size: int, count: int) -> tuple[ProgramHeader, ...]:
    if not count or not offset:
        return ()
    expected = 56 if elf.bits == 64 else 32
    if entry_size != expected:
        raise elf.broken(f"damaged ELF header: program headers of {entry_size} bytes, not {expected}")
    table = elf.chunk(offset, count * expected, f"table of {count} program headers")
    headers = []
    for row in struct.iter_unpack(elf.prefix + ("IIQQQQQQ" if elf.bits == 64 else "IIIIIIII"), table):
        if elf.bits == 64:
            kind, flags, position, address, _, file_size, memory_size, align = row
        else:
            kind, position, address, _, file_size, memory_size, flags, align = row
        headers.append(ProgramHeader(kind, flags, position, address, file_size, memory_size, align))
    return tuple(headers)


def _read_sections(elf: ElfFile, offset: int, entry_size: int, count: int, names: int) -> tuple[Section, ...]:
    if not offset:
        return ()
    layout = elf.prefix + ("IIQQQQIIQQ" if elf.bits == 64 else "IIIIIIIIII")
    expected = struct.calcsize(layout)
    if entry_size != expected:
        raise elf.broken(f"damaged ELF header: section headers of {entry_size} bytes, not {expected}")
    if count == 0 or names == SHN_XINDEX:
        first = struct.unpack(layout, elf.chunk(offset, expected, "first section header"))
        count, names = count or first[5], first[6] if names == SHN_XINDEX else names
    table = elf.chunk(offset, count * expected, f"table of {count} section headers")
    rows = list(struct.iter_unpack(layout, table))
    strings = b""
    if 0 < names < len(rows) and rows[names][1] != SHT_NOBITS:
        strings = elf.chunk(rows[names][4], rows[names][5], "table of section names")
    return tuple(Section(index, text_at(strings, row[0]), *row[1:]) for index, row in enumerate(rows))
