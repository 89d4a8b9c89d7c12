"""Addresses as users write them, lookups in an image, and what every error looks like."""

import pickle

import pytest

from mcveto.errors import InputFileError, InternalError, McvetoError, UsageError
from mcveto.program.image import Image, Permission, Segment, load_image

from .fixtures import IMAGES


def small_image(**changes: object) -> Image:
    values: dict[str, object] = {
        "path": "folder/prog.elf",
        "sha256": "",
        "format": "elf",
        "isa": "x86-32",
        "entry": 0x1000,
        "base": 0x1000,
        "segments": (
            Segment(0x1000, 0x20, b"abcd", Permission.READ, "a"),
            Segment(0x1020, 0x10, b"xy", Permission.READ | Permission.WRITE, "b"),
        ),
        "symbols": {"main": 0x1004, "maintain": 0x1008, "odd+1": 0x100C},
        "unspecified": ((0x1010, 0x1014),),
    }
    return Image(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0x1004", 0x1004),
        ("0X10", 16),
        ("4096", 4096),
        ("0123", 123),
        ("main", 0x1004),
        (" main + 0x10 ", 0x1014),
        ("main+16", 0x1014),
        ("odd+1", 0x100C),
        ("prog+0x8", 0x1008),
        ("prog.elf+8", 0x1008),
        ("image+8", 0x1008),
        ("image", 0x1000),
    ],
)
def test_spellings_of_addresses(text: str, address: int) -> None:
    assert small_image().resolve(text) == address


@pytest.mark.parametrize("text", ["", "mian", "main+", "main-4", "0x", "-1", "main+x", "+4", "0x1g", "٣"])
def test_what_is_not_an_address(text: str) -> None:
    with pytest.raises(UsageError, match="unknown symbol"):
        small_image().resolve(text)


def test_unknown_symbols_get_suggestions_and_large_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="nearest: main"):
        small_image().resolve("mian")
    with pytest.raises(UsageError, match="no symbols"):
        small_image(symbols={}).resolve("main")
    for text in ("0x100000000", "main+0xffffffff", "9" * 5000):
        with pytest.raises(UsageError, match=r"does not fit|too long"):
            small_image().resolve(text)


def test_lookups() -> None:
    image = small_image()
    assert image.segment_at(0xFFF) is None
    assert image.segment_at(0x101F) is image.segments[0]
    assert image.segment_at(0x1020) is image.segments[1]
    assert image.segment_at(0x1030) is None
    assert image.read(0x1002, 4) == b"cd\0\0"
    assert image.read(0x101E, 4) == b"\0\0xy"
    assert image.read(0x102E, 3) is None
    assert image.read(0x1013, 2) is None
    image.require_address(0x1000, "entry")
    with pytest.raises(UsageError, match=r"target 0x5000 is outside the image.*0x1000-0x1020"):
        image.require_address(0x5000, "target")


def test_images_survive_pickling() -> None:
    image = load_image(IMAGES / "x86-64.elf")
    assert pickle.loads(pickle.dumps(image)) == image


def test_errors_are_one_line_with_an_exit_code() -> None:
    codes = {UsageError: 2, InputFileError: 3, InternalError: 70, McvetoError: 70}
    for kind, code in codes.items():
        error = kind("bad\nname \x1b[31m", "do\r\nthis")
        assert error.exit_code == code
        assert str(error) == "bad\\nname \\x1b[31m (do\\r\\nthis)"
        assert str(kind("plain")) == "plain"
