"""The return of the function that a run begins in is an event also where its body cannot be told."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.counterexamples.finder import Request
from mcveto.counterexamples.machine_code import machine_counterexamples
from mcveto.errors import UsageError
from mcveto.program.program import Program, load_program
from mcveto.program.spec import PropertySpec, Spec
from mcveto.property.ghost import watch
from mcveto.property.library import find_typestate
from mcveto.search import Question, search

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")

# One way out is a jump to a function that the file does not define, which returns in its place; the other returns, or
# jumps to another function of its own. What the other one returns to is not where the run ends.
TEXT = {
    "x86-64": """
        handler: sub $8, %rsp
            call lock
            call other
            add $8, %rsp
            test $1, %edi
            je last
            jmp unlock
        last: {last}
        other: ret
        leave: jmp unlock
        """,
    "ppc32-be": """
        handler: mflr 0
            stwu 1,-16(1)
            stw 0,20(1)
            bl lock
            bl other
            lwz 0,20(1)
            addi 1,1,16
            mtlr 0
            andi. 3,31,1
            beq 0,last
            b unlock
        last: {last}
        other: blr
        leave: b unlock
        """,
}
LAST = {"x86-64": ("ret", "jmp leave"), "ppc32-be": ("blr", "b leave")}


def handler(isa: str, is_right: bool, folder: Path) -> Program:
    path = folder / "handler.s"
    path.write_text(".text\n" + TEXT[isa].format(last=LAST[isa][is_right]))
    return load_program(str(path), Spec(entry="handler", arch=isa, properties=(PropertySpec("typestate", "lock"),)))


@pytest.mark.parametrize("isa", TEXT)
@pytest.mark.parametrize("engine", ["dpg", "cegar", "symex"])
def test_verdicts(isa: str, engine: str, tmp_path: Path) -> None:
    kinds = []
    for is_right in (False, True):
        program = handler(isa, is_right, tmp_path)
        verdict = search(lambda program=program: program, Question(engine, timeout=60)).verdict  # type: ignore[misc]
        kinds.append((verdict.kind, verdict.about, verdict.reason))
    assert kinds == [("violated", "lock", "the program ends with the lock held"), ("proved", "", "")]


def defined(text: str, folder: Path) -> Program:
    path = folder / "defined.s"
    path.write_text(f".text\n{text}\nlock: ret\nunlock: ret\n")
    return load_program(str(path), Spec(entry="start", arch="x86-64"))


def test_lists_need_to_know_where(tmp_path: Path) -> None:
    program = defined("start: call lock\njmp leave\nleave: jmp unlock", tmp_path)
    with pytest.raises(UsageError, match="'end' happens is not certain"):
        machine_counterexamples(program, find_typestate("lock"), {}, Request(1), 10.0)


def test_a_function_that_serves_for_ever_has_no_end(tmp_path: Path) -> None:
    """That is said; of the entry of a file it would say nothing, since another function may end the process."""
    program = defined("start: call lock\ncall unlock\nagain: jmp again", tmp_path)
    watched = watch(program, find_typestate("lock"))
    assert any("end nowhere (the entry never returns)" in line for line in watched.program.assumptions)
    with pytest.raises(UsageError, match="nothing that is event 'end'"):
        watch(replace(program, image=replace(program.image, entry=program.entry)), find_typestate("lock"))


@pytest.mark.parametrize(("last", "kind"), [("bl unlock", "proved"), ("b 1f; bl unlock; 1:", "violated")])
def test_the_mode_of_the_entry_is_known(last: str, kind: str, tmp_path: Path) -> None:
    """Read as Thumb, `mov r0, #0` is a jump to nowhere; the entry is ARM, so nobody reads it like that."""
    path = tmp_path / "handler.s"
    path.write_text(f".text\n.arm\nhandler: mov r0, #0\npush {{r4, lr}}\nbl lock\n{last}\npop {{r4, pc}}\n")
    spec = Spec(entry="handler", arch="arm", properties=(PropertySpec("typestate", "lock"),))
    verdict = search(lambda: load_program(str(path), spec), Question(timeout=60.0)).verdict
    assert verdict.kind == kind, verdict.reason
