"""Relocatable ELF objects (`.o`), linked on their own.

Sections are laid out from `base`: code, read-only data, data, zero-filled data, each group on a new page;
then common symbols and a global offset table if the code asks for one. Relocations are applied against the
object's own symbols. An undefined symbol gets an address of its own in the import area behind everything,
where nothing is mapped: a call of it is recognisable, whatever the caller decides that it does. Code that a
linker would rewrite (relaxation) stays as it is.
"""

from dataclasses import dataclass, field

from mcveto.errors import UsageError
from mcveto.program.image.elf_reader import (
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHF_EXECINSTR,
    SHF_TLS,
    SHF_WRITE,
    SHN_ABS,
    SHN_COMMON,
    SHN_LORESERVE,
    SHN_UNDEF,
    SHT_NOBITS,
    SHT_REL,
    SHT_RELA,
    SHT_SYMTAB,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_TLS,
    ElfFile,
    Section,
    Symbol,
)
from mcveto.program.image.elf_relocate import Relocation, Relocator, Target
from mcveto.program.image.elf_rules import NEEDS_CELL
from mcveto.program.image.elf_symbols import SymbolTable, is_thumb
from mcveto.program.image.memory import Memory, Notes
from mcveto.program.image.model import ARM, Image, Permission

PAGE = 4096
IMPORT_STRIDE = 16
MAX_ALIGN = 1 << 16
_GP_OFFSET = 0x7FF0
_LINKER_SYMBOLS = {"_GLOBAL_OFFSET_TABLE_": 0, "_gp": _GP_OFFSET, "__gnu_local_gp": _GP_OFFSET, "_gp_disp": 0}


@dataclass(slots=True)
class _Layout:
    """Addresses of the sections, of common symbols and of the undefined ones."""

    sections: dict[int, int] = field(default_factory=dict)
    commons: dict[int, int] = field(default_factory=dict)
    imports: dict[int, int] = field(default_factory=dict)
    cells: dict[tuple[str, int], int] = field(default_factory=dict)
    got: int = 0
    cursor: int = 0

    def place(self, size: int, align: int) -> int:
        self.cursor = -(-self.cursor // max(align, 1)) * max(align, 1)
        address = self.cursor
        self.cursor += size
        return address


@dataclass(frozen=True, slots=True)
class _Pending:
    """A relocation before the addresses are settled."""

    section: Section
    offset: int
    type: int
    symbol: int
    addend: int | None
    cell: tuple[str, int] | None


def load(elf: ElfFile, base: int) -> Image:
    if elf.section_problem or not elf.sections:
        raise elf.broken(f"relocatable object without usable section headers: {elf.section_problem or 'none at all'}")
    if base % PAGE:
        raise UsageError(f"base address {base:#x} is not a multiple of {PAGE:#x}")
    return _Linker(elf, base).link()


class _Linker:
    def __init__(self, elf: ElfFile, base: int) -> None:
        self.elf = elf
        self.base = base
        self.notes = Notes()
        self.memory = Memory(elf.request.path, elf.bits, len(elf.data) + (1 << 20))
        self.layout = _Layout(cursor=base)
        self.relocator = Relocator(self.memory, self.notes, elf.isa)
        tables = [section for section in elf.sections if section.type == SHT_SYMTAB]
        if len(tables) > 1:
            raise elf.broken("relocatable object with several symbol tables")
        self.symbols = elf.symbols_of(tables[0]) if tables else []

    def link(self) -> Image:
        request, elf, layout = self.elf.request, self.elf, self.layout
        if elf.section_problem:
            raise elf.broken(elf.section_problem)
        self._place_sections()
        self._place_commons()
        pending = self._collect_relocations()
        self._place_cells(pending)
        import_area = self._place_imports(pending)
        self.memory.seal()
        self._fill_cells()
        self.relocator.apply_all([self._relocation(p) for p in pending])
        names = self._names()
        if request.entry is None:
            self.notes.add("a relocatable object has no entry point")
        entry = request.entry
        thumb = elf.isa in ARM and entry is not None and bool(entry & 1)
        frames = next((s for s in elf.sections if s.name == ".eh_frame" and s.index in layout.sections), None)
        return Image(
            path=request.path,
            sha256=request.sha256,
            format="elf",
            isa=elf.isa,
            entry=entry & ~1 if thumb and entry is not None else entry,
            base=self.base,
            segments=self.memory.freeze(),
            symbols=names.addresses,
            imports={self.symbols[i].name: address for i, address in sorted(layout.imports.items())},
            notes=self.notes.freeze(),
            unspecified=self.memory.unspecified(),
            thumb_entry=thumb,
            thumb_symbols=names.thumb,
            import_area=import_area,
            frame_table=(
                (layout.sections[frames.index], layout.sections[frames.index] + frames.size) if frames else None
            ),
        )

    def _place_sections(self) -> None:
        groups: list[list[Section]] = [[], [], [], []]
        for section in self.elf.sections:
            if section.flags & SHF_ALLOC and section.size:
                groups[_group(section)].append(section)
        for group in groups:
            if group:
                self.layout.place(0, PAGE)
            for section in group:
                self._place_section(section)

    def _place_section(self, section: Section) -> None:
        elf = self.elf
        if section.flags & SHF_COMPRESSED:
            raise elf.broken(f"section {section.name} is compressed")
        if section.align > MAX_ALIGN or section.align & (section.align - 1):
            raise elf.broken(f"section {section.name} has the alignment {section.align:#x}")
        address = self.layout.place(section.size, section.align)
        self.layout.sections[section.index] = address
        permissions = Permission.READ
        if section.flags & SHF_WRITE:
            permissions |= Permission.WRITE
        if section.flags & SHF_EXECINSTR:
            permissions |= Permission.EXECUTE
        name = section.name or f"section {section.index}"
        self.memory.map(address, section.size, elf.contents(section), permissions, name)

    def _place_commons(self) -> None:
        commons = [(i, s) for i, s in enumerate(self.symbols) if s.section == SHN_COMMON and s.size]
        if not commons:
            return
        start = self.layout.place(0, PAGE)
        for index, symbol in commons:
            if symbol.value > MAX_ALIGN or symbol.value & (symbol.value - 1):
                raise self.elf.broken(f"common symbol {symbol.name} has the alignment {symbol.value:#x}")
            self.layout.commons[index] = self.layout.place(symbol.size, symbol.value)
        self.memory.map(start, self.layout.cursor - start, b"", Permission.READ | Permission.WRITE, "common symbols")

    def _collect_relocations(self) -> list[_Pending]:
        elf, pending = self.elf, list[_Pending]()
        tables = [s for s in elf.sections if s.type in (SHT_REL, SHT_RELA) and s.info in self.layout.sections]
        if sum(section.size for section in tables) > len(elf.data):
            raise elf.broken("its relocation sections overlap")
        for table in tables:
            section = elf.sections[table.info]
            for raw in elf.parse_relocations(elf.contents(table), table.type == SHT_RELA):
                rule = self.relocator.rule(raw.type)
                if raw.symbol >= max(len(self.symbols), 1):
                    raise elf.broken(f"relocation against symbol {raw.symbol}, which does not exist")
                cell: tuple[str, int] | None = None
                if rule is not None and rule.formula in NEEDS_CELL:
                    # A MIPS GOT16 against a local symbol loads the symbol's 64 KiB page: a cell of its own.
                    is_page = rule.name == "GOT16" and elf.isa.startswith("mips") and self._is_local(raw.symbol)
                    cell = ("page", len(pending)) if is_page else ("symbol", raw.symbol)
                pending.append(_Pending(section, raw.offset, raw.type, raw.symbol, raw.addend, cell))
        return pending

    def _is_local(self, index: int) -> bool:
        return not self.symbols or self.symbols[index].binding == STB_LOCAL

    def _place_cells(self, pending: list[_Pending]) -> None:
        layout, size = self.layout, self.elf.bits // 8
        layout.got = layout.place(0, PAGE)
        for relocation in pending:
            if relocation.cell is not None and relocation.cell not in layout.cells:
                layout.cells[relocation.cell] = layout.place(size, size)
        self.relocator.got = layout.got
        self.relocator.gp = layout.got + _GP_OFFSET if self.elf.isa.startswith("mips") else None
        length = layout.cursor - layout.got
        self.memory.map(layout.got, length, bytes(length), Permission.READ | Permission.WRITE, "GOT")

    def _place_imports(self, pending: list[_Pending]) -> tuple[int, int] | None:
        """Undefined symbols that are used, in the order of the symbol table."""
        used = sorted({p.symbol for p in pending if p.symbol})
        undefined = [i for i in used if self.symbols[i].section == SHN_UNDEF and self.symbols[i].binding != STB_WEAK]
        undefined = [i for i in undefined if self.symbols[i].name and self.symbols[i].name not in _LINKER_SYMBOLS]
        if not undefined:
            return None
        start = self.layout.place(0, PAGE) + PAGE
        for position, index in enumerate(undefined):
            self.layout.imports[index] = start + position * IMPORT_STRIDE
        end = start + len(undefined) * IMPORT_STRIDE
        if end > 1 << self.elf.bits:
            raise self.elf.broken("no address space left for undefined symbols")
        listed = ", ".join(self.symbols[i].name for i in undefined[:5]) + (", …" if len(undefined) > 5 else "")
        self.notes.add(f"{len(undefined)} undefined symbols ({listed}) stand at {start:#x}-{end:#x} (not mapped)")
        return start, end

    def _fill_cells(self) -> None:
        size, order = self.elf.bits // 8, "little" if self.elf.little else "big"
        for (kind, index), address in self.layout.cells.items():
            if kind != "symbol":
                continue
            target = self._target(index)
            if target.address is None:
                self.memory.forget(address, size)
                self.notes.add(f"the address of {target.name} is unspecified ({target.why})", "unknown address")
            else:
                value = (target.address | target.thumb) % (1 << self.elf.bits)
                self.memory.patch(address, value.to_bytes(size, "little" if order == "little" else "big"))

    def _relocation(self, pending: _Pending) -> Relocation:
        place = self.layout.sections[pending.section.index] + pending.offset
        cell = self.layout.cells[pending.cell] if pending.cell else None
        if pending.offset >= pending.section.size:
            raise self.elf.broken(f"relocation outside of section {pending.section.name}")
        return Relocation(place, pending.type, self._target(pending.symbol), pending.addend, cell)

    def _target(self, index: int) -> Target:
        if index == 0 or not self.symbols:
            return Target("", 0, local=True)
        symbol = self.symbols[index]
        local = symbol.binding == STB_LOCAL
        address, why = self._address(index, symbol)
        thumb = is_thumb(self.elf.isa, symbol)
        if address is not None and thumb:
            address &= ~1
        is_code = symbol.type == STT_FUNC and symbol.section != SHN_UNDEF
        return Target(symbol.name, address, thumb, is_code, local, why)

    def _address(self, index: int, symbol: Symbol) -> tuple[int | None, str]:
        layout = self.layout
        if symbol.type == STT_TLS:
            return None, "thread-local storage"
        if symbol.type == STT_GNU_IFUNC:
            return None, "its resolver function would have to run"
        if symbol.section == SHN_UNDEF:
            if symbol.name in _LINKER_SYMBOLS:
                return layout.got + _LINKER_SYMBOLS[symbol.name], ""
            if index in layout.imports:
                return layout.imports[index], ""
            return None, "weak undefined symbol"
        if symbol.section == SHN_COMMON:
            return layout.commons.get(index), "empty common symbol"
        if symbol.section == SHN_ABS:
            return symbol.value, ""
        if symbol.section >= SHN_LORESERVE:
            return None, "special section index"
        if symbol.section not in layout.sections:
            # A symbol of an empty section, or of one that is not loaded.
            return None, "its section is not loaded"
        return layout.sections[symbol.section] + symbol.value, ""

    def _names(self) -> SymbolTable:
        table = SymbolTable(self.elf.isa, self.elf.bits)
        for index, symbol in enumerate(self.symbols):
            if symbol.section == SHN_UNDEF or symbol.type == STT_TLS:
                continue
            address, _ = self._address(index, symbol)
            if address is not None:
                table.add_at(symbol, address)
        table.finish()
        return table


def _group(section: Section) -> int:
    if section.type == SHT_NOBITS and not section.flags & SHF_TLS:
        return 3
    if section.flags & SHF_EXECINSTR:
        return 0
    return 2 if section.flags & SHF_WRITE else 1
