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


# As GCC writes it for PowerPC: `byte text[16]; byte *p = text; if (p < text + 16) *p = x`. The end of the function
# loads what it has saved relative to the top of the frame, which it computes (or takes from the back chain).
GCC_POWERPC = """
    9421ffd0 7c0802a6 90010034 93e1002c 7c3f0b78  stwu 1,-48(1); mflr 0; stw 0,52(1); stw 31,44(1); mr 31,1
    393f0008 913f001c 813f001c 395f0018 7c095040  addi 9,31,8; stw 9,28(31); lwz 9,28(31); addi 10,31,24; cmplw 9,10
    40800008 98690000                             bge past; stb 3,0(9)
    {top}                                         past: the top of the frame in r11
    800b0004 7c0803a6 83ebfffc 7d615b78 4e800020  lwz 0,4(11); mtlr 0; lwz 31,-4(11); mr 1,11; blr
"""
TOPS = {"addi 11,31,48": "397f0030", "lwz 11,0(1)": "81610000"}


@pytest.mark.parametrize("top", sorted(TOPS))
def test_frames_of_gcc_on_powerpc(top: str, tmp_path: Path) -> None:
    words = [w for line in GCC_POWERPC.splitlines() for w in line.format(top=TOPS[top]).split("  ") if w.strip()]
    code = bytes.fromhex("".join(text for text in words if all(len(word) == 8 for word in text.split())))
    found = FrameLayout(raw_program(tmp_path, "ppc32-be", Spec(), code.ljust(256, b"\0")))
    function = found.function_at(BASE + 4)
    assert function is not None
    assert function.saved == {(0, -4)}, "the register is loaded back: it is the function's own to read"
    assert function.formed == {(0, -40), (0, 0)}, "the end that the pointer is compared with is no object"
    assert function.extent((0, -40)) == 20, "up to the pointer, which is a variable"


@pytest.mark.parametrize(("distance", "extent"), [(22, 2), (21, 3), (20, None)])
def test_a_number_is_no_part_of_an_object_that_is_aligned_less(
    distance: int, extent: int | None, tmp_path: Path
) -> None:
    """stwu 1,-48(1); addi 9,1,DISTANCE; stb 3,0(9); stw 3,24(1); addi 1,1,48; blr: the word is written, never read."""
    code = bytes.fromhex("9421ffd0") + struct.pack(">I", 0x39210000 + distance)
    code += bytes.fromhex("98690000 90610018 38210030 4e800020")
    found = FrameLayout(raw_program(tmp_path, "ppc32-be", Spec(), code.ljust(256, b"\0")))
    function = found.function_at(BASE)
    assert function is not None and function.formed >= {(0, distance - 48)}
    assert function.extent((0, distance - 48)) == (extent if extent is not None else 48 - distance)
