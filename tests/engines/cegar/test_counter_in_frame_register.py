"""A counter in the register that is the frame pointer by convention does not tell locations apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.engines.cegar.engine import cegar
from tests.engines.driver_text import needs_assembler, x86_driver

# A flag is set before a loop whose number of turns is any, and tested behind it.
TEXT = """
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
"""


@needs_assembler
@pytest.mark.parametrize(("flag", "kind"), [(1, "proved"), (2, "violated")])
def test_a_loop_that_counts_there_is_not_unrolled(flag: int, kind: str, tmp_path: Path) -> None:
    verdict = cegar(x86_driver(tmp_path, TEXT.replace("FLAG", str(flag))), 20)
    assert verdict.kind == kind, verdict.reason
    assert verdict.statistics["nodes"] < 100
