"""An automaton that may choose the object it watches: what it chose, and its state, must be known together."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.search import Question, search
from tests.engines.driver_text import needs_assembler

# One lock inside the other, if an input says so.
TEXT = """
	.globl run
run:
	pushq	%rbx
	callq	choice
	movl	%eax, %ebx
	leaq	one(%rip), %rdi
	callq	lock
	testb	$1, %bl
	je	.Lend
	leaq	two(%rip), %rdi
	callq	lock
	leaq	INNER(%rip), %rdi
	callq	unlock
.Lend:
	leaq	one(%rip), %rdi
	callq	unlock
	popq	%rbx
	retq
	.data
one:	.long 0
two:	.long 0
"""


@needs_assembler
@pytest.mark.parametrize(("inner", "kind"), [("two", "proved"), ("one", "violated")])
def test_nested_locks(inner: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "locks.s"
    path.write_text(TEXT.replace("INNER", inner))
    watched = PropertySpec("typestate", "lock-by-address")
    spec = Spec(entry="run", input_calls=(InputCall("choice"),), properties=(watched,))
    verdict = search(lambda: load_program(str(path), spec), Question("cegar", timeout=60.0)).verdict
    assert verdict.kind == kind, verdict.reason
