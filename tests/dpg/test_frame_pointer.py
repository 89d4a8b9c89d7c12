"""The frame pointer tells locations apart where it is one, not where compilers keep something else in its register."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mcveto.dpg.location import ANY, frame_pointer_of
from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.search import Question, search

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")

# Counts in the register of the frame pointer, for as long as the input says; the mode stays what it was.
COUNTER = """.text
start: xor %ebp, %ebp
    mov %edi, %ebx
    and $1, %ebx
again: inc %ebp
    call input
    test %eax, %eax
    jne again
    mov %edi, %ecx
    and $1, %ecx
    cmp %ebx, %ecx
    jne bad
    ret
bad: ud2
input: ret
"""


def test_a_counter_is_no_frame_pointer(tmp_path: Path) -> None:
    path = tmp_path / "counter.s"
    path.write_text(COUNTER)
    spec = Spec(
        entry="start",
        arch="x86-64",
        input_calls=(InputCall("input", 32),),
        properties=(PropertySpec("reach", ("bad",)),),
    )
    verdict = search(lambda: load_program(str(path), spec), Question(timeout=60, alongside=False)).verdict
    assert verdict.kind == "proved"
    assert int(str(verdict.statistics["locations"])) < 12


def test_what_is_on_the_stack_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "counter.s"
    path.write_text(COUNTER)
    space = load_program(str(path), Spec(entry="start", arch="x86-64")).space
    (stack,) = (region for region in space.regions if region.name == "stack")
    top = stack.end - 64
    assert frame_pointer_of(space, top, top + 16) == top + 16
    assert frame_pointer_of(space, top, stack.end) == stack.end
    assert frame_pointer_of(space, top, 3) == ANY
    assert frame_pointer_of(space, ANY, 3) == 3
