"""What is known of frames behind jump tables and jumps to other functions."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mcveto.program.frame_layout import FrameLayout
from mcveto.program.spec import RegionPermissions, Spec
from tests.program.raw_programs import BASE, raw_program

TABLE, FIRST, SECOND, AWAY, OTHER = BASE + 0x80, BASE + 0x20, BASE + 0x28, BASE + 0x30, BASE + 0x40
CODE = {
    # push ebp; mov ebp,esp; cmp ebx,1; ja away; jmp [ebx*4 + table]
    BASE: bytes.fromhex("55 89e5 83fb01 77") + bytes([AWAY - BASE - 8]) + b"\xff\x24\x9d" + struct.pack("<I", TABLE),
    FIRST: bytes.fromhex("5d c3"),  # pop ebp; ret
    SECOND: bytes.fromhex("5d e9") + struct.pack("<i", OTHER - SECOND - 6),  # pop ebp; jmp other
    AWAY: bytes.fromhex("5d e8") + struct.pack("<i", OTHER - AWAY - 6) + b"\xc3",  # pop ebp; call other; ret
    OTHER: bytes.fromhex("56 8b7424fc 5e c3"),  # push esi; mov esi,[esp-4]; pop esi; ret
}


def layout(folder: Path, permissions: str) -> FrameLayout:
    content = bytearray(b"\x90" * 0x80 + struct.pack("<2I", FIRST, SECOND))
    for at, code in CODE.items():
        content[at - BASE : at - BASE + len(code)] = code
    spec = Spec(regions=(RegionPermissions(BASE, len(content), permissions),))
    return FrameLayout(raw_program(folder, "x86-32", spec, bytes(content)))


def test_registers_are_given_back_behind_a_jump_table(tmp_path: Path) -> None:
    found = layout(tmp_path, "rx")
    for case in (FIRST, SECOND, AWAY):
        function = found.function_at(case)
        assert function is not None and function.entry == BASE
        assert function.saved == {(0, -4)}


def test_a_jump_out_of_a_frame_that_is_taken_down_enters_another_function(tmp_path: Path) -> None:
    function = layout(tmp_path, "rx").function_at(OTHER)
    assert function is not None and function.entry == OTHER
    assert function.saved == {(0, -4)}


@pytest.mark.parametrize("at", [BASE, AWAY])
def test_nothing_is_watched_in_a_function_with_code_that_is_not_known(at: int, tmp_path: Path) -> None:
    """The table can be written: wherever else it leads, the register may be given back there."""
    function = layout(tmp_path, "rwx").function_at(at)
    assert function is not None and function.saves and not function.saved
