"""A counter in the register that is the frame pointer by convention does not tell locations apart."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mcveto.engines.cegar.engine import cegar
from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec

# A flag is set before a loop whose number of turns is any, and tested behind it.
TEXT = """
	.globl _start
_start:
	pushq	%rbp
	pushq	%rbx
	movl	$FLAG, %ebx
	xorl	%ebp, %ebp
.Lturn:
	callq	choice
	addl	$1, %ebp
	cmpl	%eax, %ebp
	jb	.Lturn
	cmpl	$1, %ebx
	je	.Lend
reached:
	nop
.Lend:
	popq	%rbx
	popq	%rbp
	retq
choice:
	xorl	%eax, %eax
	retq
"""


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")
@pytest.mark.parametrize(("flag", "kind"), [(1, "proved"), (2, "violated")])
def test_a_loop_that_counts_there_is_not_unrolled(flag: int, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "loop.s"
    path.write_text(TEXT.replace("FLAG", str(flag)))
    reach = PropertySpec("reach", ("reached",))
    program = load_program(str(path), Spec(entry="_start", input_calls=(InputCall("choice"),), properties=(reach,)))
    verdict = cegar(program, 20)
    assert verdict.kind == kind, verdict.reason
    assert verdict.statistics["nodes"] < 100
