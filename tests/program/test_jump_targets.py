"""Targets of computed jumps from the instructions before them."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest

from mcveto.machine.pcode import Instruction
from mcveto.program.jump_targets import JumpTargets
from mcveto.program.program import Program
from mcveto.program.spec import RegionPermissions, Spec
from tests.program.raw_programs import BASE, raw_program

TABLE = BASE + 0x80
ENTRIES = [BASE + 0x40, BASE + 0x50, BASE + 0x60, BASE + 0x50, BASE + 0x70]
BEYOND = BASE + 0x48
# The index is in EBX: cmp ebx,4; ja away; and eax,3; jmp [ebx*4 + TABLE].
SWITCH = bytes.fromhex("83fb04 7720 83e003 ff249d") + struct.pack("<I", TABLE)
# As compilers do without optimising: the index is read from the frame again after the test.
FROM_FRAME = bytes.fromhex("8b45fc 83f804 7720 8b45fc 8b0485") + struct.pack("<I", TABLE) + bytes.fromhex("ffe0")
# The same, with a write to who knows where in between.
OVERWRITTEN = FROM_FRAME[:8] + bytes.fromhex("8911") + FROM_FRAME[8:]


def program(folder: Path, code: bytes, permissions: str = "rx") -> Program:
    table = struct.pack("<6I", *ENTRIES, BEYOND)
    content = code.ljust(0x80, b"\x90") + table.ljust(0x80, b"\0")
    return raw_program(folder, "x86-32", Spec(regions=(RegionPermissions(BASE, 0x100, permissions),)), content)


def targets(subject: Program, code: bytes, joined: int | None = None) -> set[int] | None:
    """Of the last instruction of the code; `joined` is one that control also comes to from elsewhere."""
    found: dict[int, Instruction] = {}
    pc = BASE
    while pc < BASE + len(code):
        found[pc] = subject.decoder.decode(pc, code[pc - BASE :])
        pc += found[pc].size
    order = sorted(found)
    before: dict[int, list[int]] = {BASE: [], **{at: [last] for last, at in pairwise(order)}}
    last = found[order[-1]]
    return JumpTargets(subject).of(last, lambda at: None if at in (BASE, joined) else before[at], found.get)


@pytest.mark.parametrize("code", [SWITCH, FROM_FRAME], ids=["register", "frame"])
def test_a_switch_goes_where_its_table_says_and_no_farther(tmp_path: Path, code: bytes) -> None:
    assert targets(program(tmp_path, code), code) == set(ENTRIES)


def test_a_table_that_can_be_written_says_nothing(tmp_path: Path) -> None:
    subject = program(tmp_path, SWITCH, "rwx")
    assert targets(subject, SWITCH) is None


def test_an_index_that_may_have_been_overwritten_says_nothing(tmp_path: Path) -> None:
    assert targets(program(tmp_path, OVERWRITTEN), OVERWRITTEN) is None


def test_a_test_that_control_can_come_around_says_nothing(tmp_path: Path) -> None:
    subject = program(tmp_path, SWITCH)
    assert targets(subject, SWITCH, joined=BASE + 5) is None
    # To the test itself it may come from wherever it likes.
    assert targets(subject, SWITCH, joined=BASE) == set(ENTRIES)


def test_a_call_through_a_table(tmp_path: Path) -> None:
    # and ecx,1; call [ecx*4 + TABLE]
    code = bytes.fromhex("83e101 ff148d") + struct.pack("<I", TABLE)
    assert targets(program(tmp_path, code), code) == set(ENTRIES[:2])


def test_a_target_that_is_any_value_is_not_guessed(tmp_path: Path) -> None:
    code = bytes.fromhex("83e0fc ffe0")  # and eax,-4; jmp eax
    assert targets(program(tmp_path, code), code) is None


def test_a_switch_behind_another_switch(tmp_path: Path) -> None:
    """The first one's jump is passed on the way to the second: it has to lead there, as it does for some index."""
    # cmp ebx,4; ja away; jmp [ebx*4 + TABLE], which leads to: and ecx,1; jmp [ecx*4 + TABLE]
    first = bytes.fromhex("83fb04 7720 ff249d") + struct.pack("<I", TABLE)
    second = bytes.fromhex("83e101 ff248d") + struct.pack("<I", TABLE)
    subject = program(tmp_path, first.ljust(0x40, b"\x90") + second)
    at = [BASE, BASE + 3, BASE + 5, ENTRIES[0], ENTRIES[0] + 3]
    content = first.ljust(0x40, b"\x90") + second
    found = {pc: subject.decoder.decode(pc, content[pc - BASE :]) for pc in at}
    before = {pc: [last] for last, pc in pairwise(at)}
    jumps = JumpTargets(subject)
    assert jumps.of(found[at[-1]], lambda pc: before.get(pc), found.get) == set(ENTRIES[:2])
    # An index that leads to the first case only is known to be one that does: the same index again goes there again.
    again = bytes.fromhex("909090 ff249d") + struct.pack("<I", TABLE)
    content = first.ljust(0x40, b"\x90") + again
    at = [*at[:3], *range(ENTRIES[0], ENTRIES[0] + 4)]
    subject = program(tmp_path, content)
    found = {pc: subject.decoder.decode(pc, content[pc - BASE :]) for pc in at}
    before = {pc: [last] for last, pc in pairwise(at)}
    assert JumpTargets(subject).of(found[at[-1]], lambda pc: before.get(pc), found.get) == {ENTRIES[0]}


def test_a_jump_to_what_follows_it(tmp_path: Path) -> None:
    code = b"\xb8" + struct.pack("<I", BASE + 7) + b"\xff\xe0"  # mov eax,BASE+7; jmp eax
    assert targets(program(tmp_path, code), code) == {BASE + 7}
