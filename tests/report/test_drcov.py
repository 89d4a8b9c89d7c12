"""drcov files: what is written is read back, also by a reader that knows only the format's description."""

from __future__ import annotations

import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcveto.errors import InputFileError
from mcveto.report.drcov import drcov_bytes, read_drcov
from mcveto.report.result import Module

SMALL = Module("folder/a, b.elf", base=0x8048000, end=0x804A000, entry=0x8048100, address_bits=32)
WIDE = Module(
    "wide.elf",
    base=0x1000,
    end=0x5_0000_2000,
    entry=0x5_0000_1000,
    address_bits=64,
    segments=((0x1000, 0x2000), (0x5_0000_0000, 0x5_0000_2000)),
)
_BLOCKS = st.lists(st.tuples(st.integers(0x8048000, 0x8049FFF), st.integers(1, 900)), max_size=20, unique=True)


@given(_BLOCKS)
def test_read_back(blocks: list[tuple[int, int]]) -> None:
    coverage = read_drcov(drcov_bytes(SMALL, blocks))
    assert coverage.blocks == tuple(blocks)
    assert coverage.modules == ((SMALL.base, SMALL.end, SMALL.entry, SMALL.path),)


def test_as_other_programs_read_it() -> None:
    """Line by line and byte by byte, without our reader."""
    content = drcov_bytes(SMALL, [(0x8048100, 7), (0x8048200, 2), (0xDEAD0000, 4)])
    text, _, table = content.partition(b" bbs\n")
    lines = text.decode().split("\n")
    assert lines[0] == "DRCOV VERSION: 2"
    assert lines[1].startswith("DRCOV FLAVOR: ")
    match = re.fullmatch(r"Module Table: version (\d+), count (\d+)", lines[2])
    assert match and match.groups() == ("2", "1")
    columns = lines[3].removeprefix("Columns: ").split(", ")
    row = dict(zip(columns, lines[4].split(", ", len(columns) - 1), strict=True))
    assert int(row["id"]) == 0 and int(row["base"], 16) == SMALL.base and int(row["end"], 16) == SMALL.end
    assert row["path"] == SMALL.path
    # What is not in the file is not covered.
    assert lines[5] == "BB Table: 2"
    assert [struct.unpack_from("<IHH", table, 8 * n) for n in (0, 1)] == [(0x100, 7, 0), (0x200, 2, 0)]
    assert len(table) == 16


def test_a_file_that_is_too_wide_for_offsets() -> None:
    blocks = [(0x1010, 3), (0x5_0000_1000, 9)]
    coverage = read_drcov(drcov_bytes(WIDE, blocks))
    assert coverage.blocks == tuple(blocks)
    assert [module[0] for module in coverage.modules] == [0x1000, 0x5_0000_0000]


@pytest.mark.parametrize("cut", [0, 10, 40, 120, -1, -8])
def test_damaged_files_are_refused(cut: int) -> None:
    content = drcov_bytes(SMALL, [(0x8048100, 7), (0x8048200, 2)])
    with pytest.raises(InputFileError):
        read_drcov(content[:cut])
