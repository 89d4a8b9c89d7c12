"""Mach-O executables and libraries for x86, x86-64 and ARM64, thin or fat.

Headers and segments are read here; the opcode streams of LC_DYLD_INFO and the symbols are LIEF's business.
Rebases are applied. Binds, i.e. pointers into other libraries, are unspecified.
"""

import struct
from dataclasses import dataclass, field
from typing import Any

from mcveto.errors import UsageError
from mcveto.program.image.macho_chained import ChainedFixups
from mcveto.program.image.memory import Memory, Notes
from mcveto.program.image.model import Image, Permission, address_bits
from mcveto.program.image.plt import import_addresses
from mcveto.program.image.request import LoadRequest

PAGE = 4096
MAX_COMMANDS = 10_000
MAX_FAT = 64
_ISA = {7: "x86-32", 0x01000007: "x86-64", 0x0100000C: "aarch64"}
_CPU_NAMES = {12: "arm", 18: "ppc", 0x01000012: "ppc64", 0x0200000C: "arm64_32"}
_SEGMENT, _SEGMENT_64, _UNIXTHREAD, _MAIN, _CHAINED, _REQUIRES_DYLD = 0x1, 0x19, 0x5, 0x28, 0x34, 0x80000000
_EXECUTE, _DYLIB, _BUNDLE = 2, 6, 8
_PIE = 0x200000
_DYLD_INFO, _LOADS_LIBRARY = 0x22, (0xC, 0x18, 0x1F, 0x20, 0x23)
_ENTRY_REGISTER = {"x86-32": (10, 4), "x86-64": (16, 8), "aarch64": (32, 8)}


@dataclass(slots=True)
class _MachO:
    request: LoadRequest
    data: bytes
    isa: str
    kind: int
    movable: bool
    segments: list[tuple[str, int, int, int, int, int]] = field(default_factory=list)
    chained: bytes | None = None
    has_dyld_info: bool = False
    needs_libraries: bool = False
    entry_offset: int | None = None
    entry_address: int | None = None
    notes: Notes = field(default_factory=Notes)


def looks_like(data: bytes) -> bool:
    magic = data[:4]
    if magic in (b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf"):
        return True
    # A Java class file has the magic of a fat one; its "number of architectures" is a version above 40.
    return magic in (b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf") and int.from_bytes(data[4:8], "big") < 40


def load(request: LoadRequest) -> Image:
    notes = Notes()
    data = _thin_slice(request, notes)
    macho = _read_commands(request, data)
    macho.notes = notes
    text = next((s for s in macho.segments if s[3] == 0 and s[4]), None)
    preferred = text[1] if text else min((s[1] for s in macho.segments if s[5]), default=0)
    base = preferred if request.base is None else request.base
    if base % PAGE:
        raise UsageError(f"base address {base:#x} is not a multiple of {PAGE:#x}")
    bias = base - preferred
    if bias and macho.kind == _EXECUTE and not macho.movable:
        request.fixed_base(preferred)
    memory = Memory(request.path, address_bits(macho.isa), len(request.data))
    page = 4 * PAGE if macho.isa == "aarch64" else PAGE
    for name, address, size, offset, file_size, protection in macho.segments:
        if protection == 0:
            continue  # __PAGEZERO: an access there is a fault, and that is what an unmapped address gives
        if offset + file_size > len(data):
            raise request.broken(f"truncated: segment {name} exceeds the file")
        length, mapped = min(file_size, size), -(-size // page) * page
        if file_size == size and offset % page == 0:
            length = mapped  # the rest of the last page shows the file
        content = data[offset : offset + length]
        memory.map(address + bias, mapped, content, _permissions(protection), name)
    memory.seal()
    symbols, cells = _fix_up(macho, memory, base, bias)
    entry = request.entry
    if entry is None:
        if macho.entry_offset is not None and text is not None:
            entry = base + macho.entry_offset
        elif macho.entry_address is not None:
            entry = macho.entry_address + bias
        else:
            notes.add("the file names no entry point")
    return Image(
        path=request.path,
        sha256=request.sha256,
        format="macho",
        isa=macho.isa,
        entry=entry,
        base=base,
        segments=memory.freeze(),
        symbols=symbols,
        imports=import_addresses(macho.isa, memory, cells, None),
        notes=notes.freeze(),
        unspecified=memory.unspecified(),
    )


def _permissions(protection: int) -> Permission:
    """VM_PROT_READ, WRITE, EXECUTE are 1, 2, 4."""
    permissions = Permission(0)
    for bit, permission in ((1, Permission.READ), (2, Permission.WRITE), (4, Permission.EXECUTE)):
        if protection & bit:
            permissions |= permission
    return permissions


def _thin_slice(request: LoadRequest, notes: Notes) -> bytes:
    data = request.data
    if data[:3] != b"\xca\xfe\xba":
        return data
    wide, count = data[3] == 0xBF, int.from_bytes(data[4:8], "big")
    size = 32 if wide else 20
    if count > MAX_FAT or 8 + count * size > len(data):
        raise request.broken(f"truncated or damaged: fat header with {count} architectures")
    found: list[tuple[str, bytes]] = []
    names = []
    for index in range(count):
        cpu, _, offset, length = struct.unpack_from(">IIQQ" if wide else ">IIII", data, 8 + index * size)
        names.append(_ISA.get(cpu) or _CPU_NAMES.get(cpu, f"CPU type {cpu:#x}"))
        if offset + length > len(data):
            raise request.broken(f"truncated: the {names[-1]} part exceeds the file")
        if cpu in _ISA:
            found.append((_ISA[cpu], data[offset : offset + length]))
    if not found:
        raise request.unsupported_machine(", ".join(names) or "none (an empty fat file)")
    chosen = [part for isa, part in found if request.arch in (None, isa)]
    if not chosen:
        raise UsageError(f"{request.path}: no {request.arch} part in this fat file", f"it has {', '.join(names)}")
    if request.arch is None and count > 1:
        notes.add(f"fat file with {', '.join(names)}: the {found[0][0]} part was loaded")
    return chosen[0]


def _read_commands(request: LoadRequest, data: bytes) -> _MachO:
    magic = data[:4]
    if magic in (b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf"):
        raise request.unsupported_machine("big-endian Mach-O")
    wide = magic == b"\xcf\xfa\xed\xfe"
    if len(data) < 32 or not (wide or magic == b"\xce\xfa\xed\xfe"):
        raise request.broken("truncated or damaged Mach-O header")
    cpu, _, kind, count, size, flags = struct.unpack_from("<IIIIII", data, 4)
    if cpu not in _ISA or wide != (address_bits(_ISA[cpu]) == 64):
        raise request.unsupported_machine(f"{_CPU_NAMES.get(cpu, f'CPU type {cpu:#x}')} (Mach-O)")
    request.check_arch(_ISA[cpu])
    if kind not in (_EXECUTE, _DYLIB, _BUNDLE):
        raise request.broken(f"Mach-O file type {kind} is not supported (executables and libraries are)")
    at = 32 if wide else 28
    if at + size > len(data) or count > MAX_COMMANDS:
        raise request.broken(f"truncated or damaged: {count} load commands of {size} bytes exceed the file")
    macho = _MachO(request, data, _ISA[cpu], kind, bool(flags & _PIE))
    end = at + size
    for _ in range(count):
        if at + 8 > end:
            raise request.broken("damaged: a load command exceeds its table")
        command, length = struct.unpack_from("<II", data, at)
        if length < 8 or at + length > end:
            raise request.broken("damaged: a load command exceeds its table")
        _read_command(macho, command & ~_REQUIRES_DYLD, data[at : at + length])
        at += length
    return macho


def _read_command(macho: _MachO, command: int, body: bytes) -> None:
    layouts = {_SEGMENT: "<16sIIIIII", _SEGMENT_64: "<16sQQQQII"}
    if command in layouts and len(body) >= 8 + struct.calcsize(layouts[command]):
        name, address, size, offset, file_size, _, protection = struct.unpack_from(layouts[command], body, 8)
        label = name.rstrip(b"\0").decode("latin-1") or "segment"
        macho.segments.append((label, address, size, offset, file_size, protection))
    elif command in layouts:
        raise macho.request.broken("damaged: a segment command is too short")
    elif command == _DYLD_INFO:
        macho.has_dyld_info = True
    elif command in _LOADS_LIBRARY:
        macho.needs_libraries = True
    elif command == _CHAINED:
        offset, length = struct.unpack_from("<II", body.ljust(16, b"\0"), 8)
        if offset + length > len(macho.data):
            raise macho.request.broken("truncated: its chained fix-ups exceed the file")
        macho.chained = macho.data[offset : offset + length]
    elif command == _MAIN and len(body) >= 16:
        macho.entry_offset = int.from_bytes(body[8:16], "little")
    elif command == _UNIXTHREAD:
        index, width = _ENTRY_REGISTER[macho.isa]
        at = 16 + index * width
        if len(body) >= at + width:
            macho.entry_address = int.from_bytes(body[at : at + width], "little")


def _fix_up(macho: _MachO, memory: Memory, base: int, bias: int) -> tuple[dict[str, int], dict[int, str]]:
    """Apply rebases, forget binds; the result is (symbols, import cells)."""
    import lief

    lief.logging.disable()
    word, modulus = address_bits(macho.isa) // 8, 1 << address_bits(macho.isa)
    parsed: Any = lief.MachO.parse(macho.data)
    binary = parsed[0] if parsed is not None and len(parsed) else None
    if binary is None:
        raise macho.request.broken("damaged Mach-O file: its dynamic linking information is unreadable")
    if macho.chained is None and macho.needs_libraries and not macho.has_dyld_info:
        # Its pointers into libraries could not be told from other data.
        raise macho.request.broken("linked in the style before LC_DYLD_INFO, which is not supported")
    if macho.chained is not None:
        if word != 8:
            raise macho.request.broken("chained fix-ups in a 32-bit file are not supported")
        cells = ChainedFixups(macho.request, macho.chained, memory, base, bias).apply()
    else:
        cells = _apply_opcodes(macho, binary, memory, bias)
    if cells:
        macho.notes.add(f"{len(set(cells.values()))} imported symbols: the cells for their addresses are unspecified")
    symbols: dict[str, int] = {}
    for symbol in binary.symbols:
        # N_STAB entries are debugging information; N_SECT means "defined in a section".
        if symbol.name and symbol.raw_type & 0xE0 == 0 and symbol.raw_type & 0x0E == 0x0E:
            symbols.setdefault(str(symbol.name), (symbol.value + bias) % modulus)
    return {name: symbols[name] for name in sorted(symbols)}, cells


def _apply_opcodes(macho: _MachO, binary: Any, memory: Memory, bias: int) -> dict[int, str]:
    """The rebase and bind streams of LC_DYLD_INFO, and the relocations of older files."""
    word, modulus = address_bits(macho.isa) // 8, 1 << address_bits(macho.isa)
    for relocation in binary.relocations:
        kind, place = type(relocation).__name__, (relocation.address + bias) % modulus
        raw = memory.read(place, word)
        if raw is None or kind != "RelocationDyld":
            macho.notes.add(f"fix-up at {place:#x} not applied: those bytes are unspecified", "fix-up not applied")
            memory.forget(place, word)
            continue
        value = int.from_bytes(raw, "little")
        if not memory.patch(place, ((value + bias) % modulus).to_bytes(word, "little")):
            memory.forget(place, word)
    cells: dict[int, str] = {}
    for binding in binary.bindings:
        place = (binding.address + bias) % modulus
        memory.forget(place, word)
        if binding.has_symbol:
            cells[place] = str(binding.symbol.name)
    return cells
