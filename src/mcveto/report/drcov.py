"""Coverage as a drcov file, version 2, as DynamoRIO writes it and coverage viewers read it.

A text header (version, flavour, a table of modules with base, end, entry and path), then one record of eight bytes for
each basic block: its offset from the base of its module (4 bytes), its size (2) and the number of the module (2), all
little-endian. There is one module, the binary; if it spans more than an offset can say, one for each segment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from mcveto.errors import InputFileError
from mcveto.report.result import Module

_RECORD = struct.Struct("<IHH")
_COLUMNS = "id, base, end, entry, path"


@dataclass(frozen=True, slots=True)
class Coverage:
    """A drcov file as it was read: modules as (base, end, entry, path), blocks as (address, size)."""

    modules: tuple[tuple[int, int, int, str], ...]
    blocks: tuple[tuple[int, int], ...]


def drcov_bytes(module: Module, blocks: Iterable[tuple[int, int]]) -> bytes:
    """Blocks outside the file (models of library functions) are left out: there is no code of theirs to show."""
    spans = [(module.base, module.end)] if module.end - module.base < 1 << 32 else list(module.segments)
    path = "".join(ch if ch.isprintable() else "?" for ch in module.path)
    lines = ["DRCOV VERSION: 2", "DRCOV FLAVOR: drcov"]
    lines += [f"Module Table: version 2, count {len(spans)}", f"Columns: {_COLUMNS}"]
    digits = module.address_bits // 4
    for number, (base, end) in enumerate(spans):
        entry = module.entry if base <= module.entry < end else 0
        lines.append(f"{number:3}, {base:#0{digits + 2}x}, {end:#0{digits + 2}x}, {entry:#0{digits + 2}x}, {path}")
    records = []
    for start, size in blocks:
        for number, (base, end) in enumerate(spans):
            if base <= start < end and size < 1 << 16 and start - base < 1 << 32:
                records.append(_RECORD.pack(start - base, size, number))
                break
    lines.append(f"BB Table: {len(records)} bbs")
    return "\n".join(lines).encode() + b"\n" + b"".join(records)


def read_drcov(content: bytes, name: str = "coverage") -> Coverage:
    """Reads what `drcov_bytes` writes; raises InputFileError."""
    header, found, table = content.partition(b"BB Table: ")
    lines = header.decode(errors="replace").splitlines()
    if not found or lines[:1] != ["DRCOV VERSION: 2"]:
        raise InputFileError(f"{name} is not a drcov file of version 2")
    try:
        count = int(lines[2].rpartition("count ")[2])
        if lines[3] != f"Columns: {_COLUMNS}":
            raise InputFileError(f"{name}: the modules have other columns than {_COLUMNS}")
        modules = []
        for line in lines[4 : 4 + count]:
            _, base, end, entry, path = line.split(", ", 4)
            modules.append((int(base, 16), int(end, 16), int(entry, 16), path))
        size, _, records = table.partition(b" bbs\n")
        if len(records) != int(size) * _RECORD.size or len(modules) != count:
            raise InputFileError(f"{name} is cut off")
        blocks = [(modules[number][0] + start, length) for start, length, number in _RECORD.iter_unpack(records)]
    except (ValueError, IndexError):
        raise InputFileError(f"{name} is damaged") from None
    return Coverage(tuple(modules), tuple(blocks))
