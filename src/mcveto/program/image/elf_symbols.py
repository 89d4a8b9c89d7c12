"""Names for addresses from ELF symbol tables.

A name that several local symbols share would be ambiguous: it appears as `name@0x…` for each of them, and the
plain name only exists when a global symbol has it.
"""

from dataclasses import field

from mcveto.late_methods import dataclass
from mcveto.program.image.elf_reader import (
    SHN_ABS,
    SHN_COMMON,
    SHN_UNDEF,
    STB_LOCAL,
    STT_FILE,
    STT_FUNC,
    STT_OBJECT,
    STT_SECTION,
    STT_TLS,
    Symbol,
)
from mcveto.program.image.model import ARM


@dataclass(slots=True)
class SymbolTable:
    isa: str
    bits: int
    addresses: dict[str, int] = field(default_factory=dict)
    thumb: frozenset[str] = frozenset()
    objects: dict[int, int] = field(default_factory=dict)
    """Where data objects begin that the table gives a size for, and their sizes."""
    _globals: dict[str, tuple[int, bool]] = field(default_factory=dict)
    _locals: dict[str, set[tuple[int, bool]]] = field(default_factory=dict)

    def add(self, symbol: Symbol, bias: int) -> None:
        """Record a symbol as the table of an executable has it: its value is an address."""
        if symbol.section in (SHN_UNDEF, SHN_COMMON):
            return
        self.add_at(symbol, symbol.value + (0 if symbol.section == SHN_ABS else bias))

    def add_at(self, symbol: Symbol, address: int) -> None:
        if not symbol.name or symbol.type in (STT_FILE, STT_SECTION, STT_TLS):
            return
        if symbol.name.startswith("$") and symbol.binding == STB_LOCAL:
            return  # mapping symbols of ARM, AArch64 and RISC-V mark code and data, they name nothing
        address %= 1 << self.bits
        if symbol.type == STT_OBJECT and symbol.size:
            self.objects[address] = max(symbol.size, self.objects.get(address, 0))
        thumb = is_thumb(self.isa, symbol)
        entry = (address & ~1 if thumb else address, thumb)
        if symbol.binding == STB_LOCAL:
            self._locals.setdefault(symbol.name, set()).add(entry)
        else:
            self._globals.setdefault(symbol.name, entry)

    def finish(self) -> None:
        """Settle which names are unambiguous."""
        named = dict(self._globals)
        for name, places in self._locals.items():
            places = places - {named.get(name, (-1, False))}
            if len(places) == 1 and name not in named:
                named[name] = next(iter(places))
            else:
                named.update({f"{name}@{address:#x}": (address, thumb) for address, thumb in places})
        self.addresses = {name: named[name][0] for name in sorted(named)}
        self.thumb = frozenset(name for name, (_, thumb) in named.items() if thumb)


def is_thumb(isa: str, symbol: Symbol) -> bool:
    return isa in ARM and symbol.type == STT_FUNC and bool(symbol.value & 1)
