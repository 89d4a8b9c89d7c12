"""The dynamic table of an ELF file and the relocations it lists, as a dynamic linker would process them at
start-up.

Only this one module is known: a symbol that it does not define, and the cell that should hold it, are
unspecified.
"""

import struct
from dataclasses import dataclass, field, replace

from mcveto.program.image.elf_reader import (
    PT_DYNAMIC,
    SHN_ABS,
    SHN_UNDEF,
    STT_GNU_IFUNC,
    STT_TLS,
    ElfFile,
    RawRelocation,
    Symbol,
    text_at,
)
from mcveto.program.image.elf_relocate import Relocation, Relocator, Target
from mcveto.program.image.elf_symbols import is_thumb
from mcveto.program.image.memory import Memory, Notes

_INIT, _FINI = 12, 13
_HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _STRSZ, _REL, _RELSZ = 4, 5, 6, 7, 8, 10, 17, 18
_PLTRELSZ, _PLTGOT, _PLTREL, _JMPREL, _RELRSZ, _RELR = 2, 3, 20, 23, 35, 36
_GNU_HASH, _FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFFB
_MIPS_LOCAL_GOTNO, _MIPS_SYMTABNO, _MIPS_GOTSYM = 0x7000000A, 0x70000011, 0x70000013
_DF_1_PIE = 0x08000000
MAX_SYMBOLS = 1 << 20


@dataclass(slots=True)
class Dynamic:
    elf: ElfFile
    memory: Memory
    notes: Notes
    bias: int
    tags: dict[int, int]
    span: tuple[int, int]
    """Address and size of the table itself."""
    stub_symbols: dict[str, int] = field(default_factory=dict)
    """Undefined functions whose symbol value is the address of their PLT stub (non-PIC executables)."""
    _symbols: dict[int, Symbol] = field(default_factory=dict)

    @classmethod
    def read(cls, elf: ElfFile, memory: Memory, notes: Notes, bias: int) -> "Dynamic | None":
        header = next((h for h in elf.program_headers if h.type == PT_DYNAMIC), None)
        if header is None or header.file_size == 0:
            return None
        table = elf.chunk(header.offset, header.file_size, "dynamic table")
        layout = elf.prefix + ("QQ" if elf.bits == 64 else "II")
        size = struct.calcsize(layout)
        tags: dict[int, int] = {}
        for tag, value in struct.iter_unpack(layout, table[: len(table) // size * size]):
            if tag == 0:
                break
            tags.setdefault(tag, value)
        return cls(elf, memory, notes, bias, tags, (header.address + bias, header.file_size))

    @property
    def got(self) -> int | None:
        return self.tags[_PLTGOT] + self.bias if _PLTGOT in self.tags else None

    @property
    def startup_functions(self) -> list[int]:
        """What the loader calls at the beginning and at the end; addresses as in the file."""
        return [self.tags[tag] for tag in (_INIT, _FINI) if self.tags.get(tag)]

    def exported(self) -> list[Symbol]:
        """The dynamic symbols, as many as the hash tables say there are."""
        count = min(self._symbol_count(), MAX_SYMBOLS, len(self.elf.data) // 16)
        return [symbol for symbol in map(self._symbol, range(count)) if symbol is not None]

    def relocate(self, has_interpreter: bool) -> dict[int, str]:
        """Apply everything; the result maps cells to the imported names they would hold."""
        elf = self.elf
        relocator = Relocator(self.memory, self.notes, elf.isa, self.bias)
        cells: dict[int, str] = {}
        in_place = self._apply_relative_bitmap()
        relocations: list[RawRelocation] = []
        for start, size, explicit in (
            (_REL, _RELSZ, False),
            (_RELA, _RELASZ, True),
            (_JMPREL, _PLTRELSZ, self.tags.get(_PLTREL) == _RELA),
        ):
            if start in self.tags and self.tags.get(size, 0):
                relocations += elf.parse_relocations(self._table(start, size), explicit)
        preemptible = 0
        for raw in relocations:
            rule = relocator.rule(raw.type)
            if rule is not None and rule.formula == "none":
                continue
            target, symbol = self._target(raw.symbol)
            place = (raw.offset + self.bias) % (1 << elf.bits)
            in_place |= raw.addend is None and rule is not None and rule.formula in _ADDS_IN_PLACE
            if symbol is not None and symbol.section == SHN_UNDEF and rule is not None:
                self._import(symbol, place, cells)
            elif symbol is not None and symbol.binding and symbol.visibility == 0:
                preemptible += 1
            if rule is not None and rule.formula == "copy" and symbol is not None:
                self.memory.forget(place, symbol.size)
                self.notes.add(
                    f"{symbol.name or 'data'} at {place:#x} is copied from a library: unspecified",
                    "copied from a library",
                )
                continue
            if target.address is None and target.why == _IMPORTED:
                self.memory.forget(place, rule.size if rule and rule.places else elf.bits // 8)
                continue
            relocator.apply(Relocation(place, raw.type, target, raw.addend))
        if has_interpreter:
            # Some dynamic linkers turn the offsets in the table into addresses, others do not.
            self.memory.forget(*self.span)
        if elf.isa.startswith("mips"):
            self._relocate_mips_got(cells)
        elif has_interpreter and self.got is not None and _JMPREL in self.tags:
            # Reserved for the dynamic linker: its own entry point and a handle of this module.
            self.memory.forget(self.got, 3 * elf.bits // 8)
        self._summarise(cells, preemptible, has_interpreter, in_place)
        return cells

    def _summarise(self, cells: dict[int, str], preemptible: int, has_interpreter: bool, in_place: bool) -> None:
        if cells:
            self.notes.add(
                f"{len(set(cells.values()))} imported symbols: the cells for their addresses are unspecified"
            )
        is_program = has_interpreter or bool(self.tags.get(_FLAGS_1, 0) & _DF_1_PIE)
        if preemptible and not is_program:
            self.notes.add(f"{preemptible} references to its own symbols assume that no other module redefines them")
        if in_place and self.bias and is_program and not has_interpreter:
            self.notes.add(
                "relocations are applied as if start-up code had run; start-up code that applies them itself"
                " would do so twice: choose an entry point after it"
            )

    def _import(self, symbol: Symbol, place: int, cells: dict[int, str]) -> None:
        if symbol.name:
            cells[place] = symbol.name
            if symbol.value:
                self.stub_symbols.setdefault(symbol.name, symbol.value + self.bias)

    def _target(self, index: int) -> tuple[Target, Symbol | None]:
        if index == 0:
            return Target("", 0, local=True), None
        symbol = self._symbol(index)
        if symbol is None:
            return Target(f"symbol {index}", None, why="damaged symbol table"), None
        if symbol.section == SHN_UNDEF:
            return Target(symbol.name, None, why=_IMPORTED), symbol
        if symbol.type == STT_TLS:
            return Target(symbol.name, None, why="thread-local storage"), symbol
        if symbol.type == STT_GNU_IFUNC:
            return Target(symbol.name, None, why="its resolver function would have to run"), symbol
        address = symbol.value + (0 if symbol.section == SHN_ABS else self.bias)
        thumb = is_thumb(self.elf.isa, symbol)
        return Target(symbol.name, address & ~1 if thumb else address, thumb=thumb), symbol

    def _apply_relative_bitmap(self) -> bool:
        """DT_RELR: an even word is an address to relocate, an odd one a bitmap of the words after it."""
        if _RELR not in self.tags or not self.tags.get(_RELRSZ, 0):
            return False
        table, size = self._table(_RELR, _RELRSZ), self.elf.bits // 8
        where = 0
        for (entry,) in struct.iter_unpack(
            self.elf.prefix + ("Q" if size == 8 else "I"), table[: len(table) // size * size]
        ):
            if entry & 1 == 0:
                self._add_bias(entry)
                where = entry + size
            else:
                for bit in range(1, 8 * size):
                    if entry >> bit & 1:
                        self._add_bias(where + (bit - 1) * size)
                where += (8 * size - 1) * size
        return True

    def _add_bias(self, address: int) -> None:
        size = self.elf.bits // 8
        layout = self.elf.prefix + ("Q" if size == 8 else "I")
        place = (address + self.bias) % (1 << self.elf.bits)
        raw = self.memory.read(place, size)
        value = 0 if raw is None else struct.unpack(layout, raw)[0]
        patched = struct.pack(layout, (value + self.bias) % (1 << self.elf.bits))
        if raw is None or not self.memory.patch(place, patched):
            self.notes.add(
                f"relocation at {place:#x} not applied: it is outside the file's bytes", "relocation outside"
            )
            self.memory.forget(place, size)

    def _relocate_mips_got(self, cells: dict[int, str]) -> None:
        """MIPS o32: no relocations; local entries move with the module, global ones follow the symbols."""
        tags = self.tags
        if self.got is None or _MIPS_LOCAL_GOTNO not in tags:
            return
        local, first = tags[_MIPS_LOCAL_GOTNO], tags.get(_MIPS_GOTSYM, 0)
        total = max(tags.get(_MIPS_SYMTABNO, 0) - first, 0)
        if local + total > len(self.elf.data) // 4:
            raise self.elf.broken(f"its global offset table declares {local + total} entries")
        self.memory.forget(self.got, 8)
        for index in range(2, local if self.bias else 0):
            self._add_bias(self.got - self.bias + 4 * index)
        for index in range(total):
            place = self.got + 4 * (local + index)
            target, symbol = self._target(first + index)
            if symbol is not None and target.why == _IMPORTED:
                self._import(symbol, place, cells)
            if target.address is None:
                self.memory.forget(place, 4)
            else:
                value = target.address % (1 << 32)
                if not self.memory.patch(place, value.to_bytes(4, "little" if self.elf.little else "big")):
                    self.memory.forget(place, 4)

    def _table(self, start: int, size: int) -> bytes:
        length = self.tags.get(size, 0)
        raw = None
        if length <= len(self.elf.data):
            raw = self.memory.read((self.tags[start] + self.bias) % (1 << self.elf.bits), length)
        if raw is None:
            raise self.elf.broken(f"damaged: its dynamic table {start} of {length:#x} bytes is not mapped")
        return raw

    def _symbol(self, index: int) -> Symbol | None:
        if index in self._symbols:
            return self._symbols[index]
        size = 24 if self.elf.bits == 64 else 16
        if _SYMTAB not in self.tags:
            return None
        raw = self.memory.read((self.tags[_SYMTAB] + self.bias) % (1 << self.elf.bits) + index * size, size)
        if raw is None:
            return None
        name = struct.unpack_from(self.elf.prefix + "I", raw)[0]
        symbol = replace(self.elf.parse_symbols(raw, b"")[0], name=self._string(name))
        self._symbols[index] = symbol
        return symbol

    def _string(self, offset: int) -> str:
        if _STRTAB not in self.tags or offset >= self.tags.get(_STRSZ, 0):
            return ""
        start = (self.tags[_STRTAB] + self.bias) % (1 << self.elf.bits) + offset
        length = min(self.tags[_STRSZ] - offset, 256)
        raw = self.memory.read(start, length) or self.memory.read(start, min(length, 32))
        return text_at(raw, 0) if raw else ""

    def _symbol_count(self) -> int:
        if _MIPS_SYMTABNO in self.tags and self.elf.isa.startswith("mips"):
            return self.tags[_MIPS_SYMTABNO]
        if _HASH in self.tags:
            words = self._words(self.tags[_HASH], 2)
            return words[1] if words else 0
        if _GNU_HASH in self.tags:
            return self._gnu_hash_count(self.tags[_GNU_HASH])
        return 0

    def _gnu_hash_count(self, address: int) -> int:
        header = self._words(address, 4)
        if header is None or header[0] > MAX_SYMBOLS or header[2] > MAX_SYMBOLS:
            return 0
        buckets_at = address + 16 + header[2] * self.elf.bits // 8
        buckets = self._words(buckets_at, header[0])
        if not buckets or max(buckets) < header[1]:
            return header[1]
        last = max(buckets)
        while last < MAX_SYMBOLS:
            chain = self._words(buckets_at + 4 * header[0] + 4 * (last - header[1]), 1)
            if chain is None:
                return 0
            last += 1
            if chain[0] & 1:
                return last
        return 0

    def _words(self, address: int, count: int) -> tuple[int, ...] | None:
        raw = self.memory.read((address + self.bias) % (1 << self.elf.bits), 4 * count)
        return None if raw is None else struct.unpack(f"{self.elf.prefix}{count}I", raw)


_ADDS_IN_PLACE = frozenset({"rel", "abs", "absdata", "mipsrel32"})
_IMPORTED = "symbol of another module"
