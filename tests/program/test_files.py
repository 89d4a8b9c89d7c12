"""Files that are not programs, and programs of the simple formats: Intel HEX, S-records, raw blobs."""

import hashlib
import os
from pathlib import Path

import pytest

from mcveto.errors import InputFileError, McvetoError, UsageError
from mcveto.program.image import Permission, load_image

from .fixtures import IMAGES

_RWX = Permission.READ | Permission.WRITE | Permission.EXECUTE


def ihex(kind: int, address: int, payload: bytes) -> str:
    record = bytes([len(payload)]) + address.to_bytes(2, "big") + bytes([kind]) + payload
    return f":{record.hex().upper()}{-sum(record) & 0xFF:02X}\n"


def srec(kind: int, width: int, address: int, payload: bytes = b"") -> str:
    record = bytes([width + len(payload) + 1]) + address.to_bytes(width, "big") + payload
    return f"S{kind}{record.hex().upper()}{~sum(record) & 0xFF:02X}\r\n"


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "input"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_intel_hex(tmp_path: Path) -> None:
    text = ihex(0, 0x10, b"abc") + ihex(0, 0x13, b"de") + ihex(4, 0, b"\x08\x00") + ihex(0, 0, b"\x01\x02")
    text += ihex(2, 0, b"\x10\x00") + ihex(0, 4, b"zz") + ihex(5, 0, b"\x08\x00\x00\x01") + ihex(1, 0, b"")
    image = load_image(written(tmp_path, text), arch="arm")
    assert [(s.address, s.content, s.size) for s in image.segments] == [
        (0x10, b"abcde", 5),
        (0x10004, b"zz", 2),
        (0x8000000, b"\x01\x02", 2),
    ]
    assert {s.permissions for s in image.segments} == {_RWX}
    assert (image.entry, image.thumb_entry, image.format) == (0x8000000, True, "ihex")


def test_srecords(tmp_path: Path) -> None:
    text = srec(0, 2, 0, b"title") + srec(1, 2, 0x1000, b"ab") + srec(2, 3, 0x20000, b"cd")
    text += srec(3, 4, 0x8000_0000, b"ef") + srec(5, 2, 3) + srec(7, 4, 0x1000)
    image = load_image(written(tmp_path, text), arch="ppc32-be")
    assert [(s.address, s.content) for s in image.segments] == [
        (0x1000, b"ab"),
        (0x20000, b"cd"),
        (0x80000000, b"ef"),
    ]
    assert (image.entry, image.format) == (0x1000, "srec")


_END = ihex(1, 0, b"")
_S9 = srec(9, 2, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (":0100000041BF\n" + _END, "line 1: wrong checksum"),
        (ihex(0, 0, b"ab"), "without an end record"),
        (ihex(0, 0, b"ab") + "junk\n" + _END, "line 2: does not start with ':'"),
        (ihex(0, 0, b"ab") + ihex(0, 1, b"x") + _END, "the byte at 0x1 twice"),
        (ihex(9, 0, b"ab") + _END, "unknown record type 9"),
        (ihex(0, 0, b"ab")[:-3] + "\n" + _END, "line 1: "),
        (_END + ihex(0, 0, b"ab"), "data after the end record"),
        (ihex(2, 0, b"\x10\x00") + ihex(0, 0xFFFF, b"ab") + _END, "wraps"),
        (_END, "nothing in it is loaded"),
        (srec(1, 2, 0, b"ab").replace("6162", "6163") + _S9, "line 1: wrong checksum"),
        (srec(1, 2, 0, b"ab"), "without an end record"),
        (srec(1, 2, 0, b"ab") + srec(5, 2, 7) + _S9, "counts 7 data records, there are 1"),
        (srec(1, 2, 0, b"ab") + srec(4, 2, 0) + _S9, "unknown record type S4"),
        (srec(3, 4, 0xFFFFFFFF, b"ab") + _S9, "exceeds 32 bits"),
    ],
)
def test_damaged_hex_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message) as caught:
        load_image(written(tmp_path, text), arch="arm")
    assert caught.value.exit_code == 3


def test_hex_files_need_an_architecture_and_keep_their_addresses(tmp_path: Path) -> None:
    path = written(tmp_path, ihex(0, 0x100, b"ab") + _END)
    with pytest.raises(UsageError, match="does not name its machine"):
        load_image(path)
    with pytest.raises(UsageError, match="fixed"):
        load_image(path, arch="arm", base=0x200)


def test_raw_blobs(tmp_path: Path) -> None:
    path = written(tmp_path, b"\x90\xc3")
    image = load_image(path, arch="x86-32", base=0x7C00)
    assert [(s.address, s.size, s.content, s.permissions) for s in image.segments] == [(0x7C00, 2, b"\x90\xc3", _RWX)]
    assert (image.entry, image.base, image.format) == (0x7C00, 0x7C00, "raw")
    assert image.sha256 == hashlib.sha256(b"\x90\xc3").hexdigest()
    assert load_image(path, arch="x86-32", entry=1).entry == 1
    with pytest.raises(InputFileError, match="exceeds 32 bits"):
        load_image(path, arch="x86-32", base=0xFFFFFFFF)
    with pytest.raises(UsageError, match="outside the address space"):
        load_image(path, arch="x86-32", base=1 << 32)
    forced = load_image(IMAGES / "x86-64.elf", arch="x86-64", format="raw", base=0)
    assert forced.format == "raw"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"#!/bin/sh\necho hello\n", "a text file"),
        (b"\x00\x01\x02\x03" * 10, "not a known binary format"),
        (b"MZ" + b"\0" * 100, "not a known binary format"),
        (b"\x7fELF", "truncated ELF header"),
        (b"\xcf\xfa\xed\xfe", "truncated or damaged Mach-O header"),
        (b"\xca\xfe\xba\xbe\0\0\0\x10", "fat header with 16 architectures"),
        (b"\xca\xfe\xba\xbe\0\0\0\x34" + b"\0" * 40, "not a known binary format"),
    ],
)
def test_files_that_are_no_programs(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        load_image(written(tmp_path, content))


@pytest.mark.parametrize("name", ["x86-64.elf", "x86-32.exe", "x86-64.macho", "arm.o", "aarch64.so"])
def test_every_truncation_is_refused_or_loads_without_a_traceback(tmp_path: Path, name: str) -> None:
    data = (IMAGES / name).read_bytes()
    refused = 0
    for length in range(1, len(data), max(len(data) // 60, 1)):
        try:
            load_image(written(tmp_path, data[:length]))
        except McvetoError as problem:
            assert isinstance(problem, InputFileError)
            refused += 1
    assert refused > 5


@pytest.mark.parametrize("format_name", ["elf", "pe", "macho", "ihex", "srec"])
def test_a_format_that_is_asked_for_must_be_there(format_name: str, tmp_path: Path) -> None:
    for content in (b"\0" * 200, b"hello\n", b"\xff"):
        with pytest.raises(InputFileError):
            load_image(written(tmp_path, content), format=format_name, arch="x86-64")
    with pytest.raises(UsageError, match="unknown file format 'coff'"):
        load_image(written(tmp_path, b"x"), format="coff")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, message in (
        (tmp_path, "is a directory"),
        (tmp_path / "missing", "no such file"),
        (fifo, "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path / ("x" * 5000), "File name too long"),
        (Path("a\0b"), "not a valid path"),
    ):
        with pytest.raises(InputFileError, match=message) as caught:
            load_image(path)
        assert "\n" not in str(caught.value)


def test_sparse_files_beyond_two_gigabytes_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as stream:
        stream.truncate((2 << 30) + 1)
    with pytest.raises(InputFileError, match="the limit is 2 GiB"):
        load_image(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files(tmp_path: Path) -> None:
    path = written(tmp_path, b"x")
    path.chmod(0)
    with pytest.raises(InputFileError, match="permission denied"):
        load_image(path)
