"""Files that are just bytes at addresses: Intel HEX, Motorola S-records, raw blobs.

Both text formats are read strictly: every line must be a record with a right checksum, and every byte may be
given only once. They carry neither a machine nor permissions: each contiguous run is one rwx segment.
References: Intel's "Hexadecimal Object File Format Specification" (rev. A, 1988), Motorola's M68000 Family
Programmer's Reference, app. C.
"""

import re
from typing import TypeAlias

from mcveto.errors import InputFileError
from mcveto.program.image.memory import Memory, Notes
from mcveto.program.image.model import ARM, Image, Permission, address_bits
from mcveto.program.image.request import LoadRequest

_RWX = Permission.READ | Permission.WRITE | Permission.EXECUTE
_IHEX_LINE = re.compile(rb":[0-9A-Fa-f]{10,}")
_SREC_LINE = re.compile(rb"S[0-9][0-9A-Fa-f]{4,}")
_SREC_ADDRESS_BYTES = {0: 2, 1: 2, 2: 3, 3: 4, 5: 2, 6: 3, 7: 4, 8: 3, 9: 2}

Pieces: TypeAlias = list[tuple[int, bytes]]


def looks_like_intel_hex(data: bytes) -> bool:
    return _first_line_is(data, _IHEX_LINE)


def looks_like_srecord(data: bytes) -> bool:
    return _first_line_is(data, _SREC_LINE)


def load_intel_hex(request: LoadRequest) -> Image:
    pieces: Pieces = []
    entry: int | None = None
    upper, segmented, ended = 0, False, False
    for number, record in _records(request, b":"):
        if len(record) < 5 or record[0] != len(record) - 5:
            raise _bad_line(request, number, "its length field does not match the line")
        if sum(record) & 0xFF:
            raise _bad_line(request, number, "wrong checksum")
        if ended:
            raise _bad_line(request, number, "data after the end record")
        address, kind, payload = int.from_bytes(record[1:3], "big"), record[3], record[4:-1]
        match kind, len(payload):
            case 0, _:
                if address + len(payload) > 0x10000 and segmented:
                    raise _bad_line(request, number, "a record that wraps around its 64 KiB segment is not supported")
                pieces.append((upper + address, payload))
            case 1, 0:
                ended = True
            case 2, 2:
                upper, segmented = int.from_bytes(payload, "big") << 4, True
            case 3, 4:
                entry = (int.from_bytes(payload[:2], "big") << 4) + int.from_bytes(payload[2:], "big")
            case 4, 2:
                upper, segmented = int.from_bytes(payload, "big") << 16, False
            case 5, 4:
                entry = int.from_bytes(payload, "big")
            case _:
                raise _bad_line(request, number, f"unknown record type {kind} with {len(payload)} bytes")
    if not ended:
        raise request.broken("Intel HEX file without an end record: truncated?")
    return _image(request, "ihex", "an Intel HEX file", pieces, entry)


def load_srecord(request: LoadRequest) -> Image:
    pieces: Pieces = []
    entry: int | None = None
    data_records, ended = 0, False
    for number, record, kind in _typed_records(request):
        width = _SREC_ADDRESS_BYTES.get(kind)
        if width is None:
            raise _bad_line(request, number, f"unknown record type S{kind}")
        if record[0] != len(record) - 1 or record[0] < width + 1:
            raise _bad_line(request, number, "its length field does not match the line")
        if sum(record) & 0xFF != 0xFF:
            raise _bad_line(request, number, "wrong checksum")
        if ended:
            raise _bad_line(request, number, "data after the end record")
        address, payload = int.from_bytes(record[1 : 1 + width], "big"), record[1 + width : -1]
        if kind in (1, 2, 3):
            data_records += 1
            pieces.append((address, payload))
        elif kind in (5, 6):
            if address != data_records & ((1 << 8 * width) - 1):
                raise _bad_line(request, number, f"counts {address} data records, there are {data_records}")
        elif kind in (7, 8, 9):
            ended = True
            # S9 with address 0 is the customary "no entry point".
            entry = address or None
    if not ended:
        raise request.broken("S-record file without an end record: truncated?")
    return _image(request, "srec", "an S-record file", pieces, entry)


def load_raw(request: LoadRequest) -> Image:
    isa = request.require_arch("a raw blob")
    base = request.base or 0
    memory = Memory(request.path, address_bits(isa), len(request.data))
    memory.map(base, len(request.data), request.data, _RWX, "raw")
    entry = base if request.entry is None else request.entry
    return _with_entry(request, "raw", isa, memory, base, entry, Notes())


def _image(request: LoadRequest, format_name: str, article: str, pieces: Pieces, entry: int | None) -> Image:
    isa = request.require_arch(article)
    memory = Memory(request.path, address_bits(isa), len(request.data))
    notes = Notes()
    for address, content in _runs(request, pieces):
        memory.map(address, len(content), content, _RWX, f"{format_name}@{address:#x}")
    memory.seal()
    if request.entry is not None:
        entry = request.entry
    elif entry is None:
        notes.add("the file names no entry point")
    return _with_entry(request, format_name, isa, memory, request.fixed_base(memory.lowest), entry, notes)


def _with_entry(
    request: LoadRequest,
    format_name: str,
    isa: str,
    memory: Memory,
    base: int,
    entry: int | None,
    notes: Notes,
) -> Image:
    thumb = isa in ARM and entry is not None and bool(entry & 1)
    return Image(
        path=request.path,
        sha256=request.sha256,
        format=format_name,
        isa=isa,
        entry=entry & ~1 if thumb and entry is not None else entry,
        base=base,
        segments=memory.freeze(),
        notes=notes.freeze(),
        thumb_entry=thumb,
    )


def _runs(request: LoadRequest, pieces: Pieces) -> Pieces:
    """Join pieces that touch; refuse a byte that is given twice, even with the same value."""
    runs: list[tuple[int, bytearray]] = []
    for address, content in sorted(piece for piece in pieces if piece[1]):
        if runs and address < runs[-1][0] + len(runs[-1][1]):
            raise request.broken(f"gives the byte at {address:#x} twice")
        if runs and address == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].extend(content)
        else:
            runs.append((address, bytearray(content)))
    return [(address, bytes(content)) for address, content in runs]


def _lines(data: bytes) -> list[tuple[int, bytes]]:
    """Non-empty lines with their numbers; a DOS end-of-file byte at the very end is dropped."""
    stripped = data.rstrip(b"\r\n\x1a \t\0")
    lines = re.split(rb"\r\n|\n|\r", stripped)
    return [(number, line.rstrip(b" \t")) for number, line in enumerate(lines, 1) if line.strip()]


def _first_line_is(data: bytes, pattern: re.Pattern[bytes]) -> bool:
    first = re.split(rb"[\r\n]", data[:1024].lstrip(b"\r\n"), maxsplit=1)[0]
    return pattern.fullmatch(first.rstrip(b" \t")) is not None


def _records(request: LoadRequest, mark: bytes) -> list[tuple[int, bytes]]:
    records = []
    for number, line in _lines(request.data):
        if not line.startswith(mark):
            raise _bad_line(request, number, f"does not start with '{mark.decode()}'")
        records.append((number, _unhex(request, number, line[1:])))
    return records


def _typed_records(request: LoadRequest) -> list[tuple[int, bytes, int]]:
    records = []
    for number, line in _lines(request.data):
        if _SREC_LINE.fullmatch(line) is None:
            raise _bad_line(request, number, "not an S-record")
        records.append((number, _unhex(request, number, line[2:]), line[1] - ord("0")))
    return records


def _unhex(request: LoadRequest, number: int, text: bytes) -> bytes:
    if re.fullmatch(rb"(?:[0-9A-Fa-f]{2})+", text) is None:
        raise _bad_line(request, number, "not an even number of hexadecimal digits")
    return bytes.fromhex(text.decode("ascii"))


def _bad_line(request: LoadRequest, number: int, problem: str) -> InputFileError:
    return request.broken(f"line {number}: {problem}")
