"""A loop that is fallen into begins where its turns do, not behind the first block of one."""

from __future__ import annotations

from mcveto.dpg.location import Blocks
from mcveto.engines.order import Function

from .random_programs import CODE, RandomProgram

# mov eax, 0; head: inc eax; test al, 1; je +1; nop; join: dec ecx; jne head; hlt
LOOP = b"\xb8\0\0\0\0" + b"\x40\xa8\x01\x74\x01\x90" + b"\x49\x75\xf7" + b"\xf4"
HEAD, JOIN = CODE + 5, CODE + 11


def test_blocks_end_where_a_loop_begins() -> None:
    program = RandomProgram(LOOP, b"\xc3", bytes(64), False).load()
    blocks = Blocks(program)
    plain = Function(CODE, blocks.fixed_block)
    assert plain.place(HEAD)[1] != (HEAD,), "the first block goes on into the loop"
    assert [item.pc for item in blocks.fixed_block(CODE) or ()][1] == HEAD
    function = Function(CODE, blocks.fixed_block, 0, blocks.end_before)
    assert [item.pc for item in blocks.fixed_block(CODE) or ()] == [CODE]
    assert function.successors(CODE) == [HEAD]
    assert function.place(HEAD)[1] == (HEAD,) and function.place(JOIN)[1] == (HEAD,)
    assert function.place(CODE)[1] == ()


def test_blocks_that_nothing_leads_into_stay() -> None:
    program = RandomProgram(LOOP, b"\xc3", bytes(64), False).load()
    blocks = Blocks(program)
    before = blocks.fixed_block(HEAD)
    blocks.end_before([HEAD])
    assert blocks.fixed_block(HEAD) is before


def test_loops_behind_a_jump_through_a_table() -> None:
    """They are found when the jump is followed, not when the function is first looked at."""
    program = RandomProgram(b"\xff\xe0" + LOOP, b"\xc3", bytes(64), False).load()  # jmp eax
    blocks = Blocks(program)
    function = Function(CODE, blocks.fixed_block, 0, blocks.end_before)
    assert function.blocks() == [CODE]
    function.note_edge(CODE, CODE + 2)
    head, join = HEAD + 2, JOIN + 2
    assert [item.pc for item in blocks.fixed_block(CODE + 2) or ()] == [CODE + 2]
    assert function.successors(CODE) == [CODE + 2] and function.successors(CODE + 2) == [head]
    assert function.place(head)[1] == (head,) and function.place(join)[1] == (head,)
    assert function.place(CODE + 2)[1] == ()
