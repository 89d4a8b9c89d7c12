"""A mistake behind a device that is polled and never ready: many turns of a loop, each of which inputs could leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.engines.simulation.simulate import simulate

from .driver_text import needs_assembler, x86_driver

DRIVER = """
	call	choice
	cmpl	$5, %eax
	jne	_start
	call	handler
	jmp	_start
handler:
	cmpl	$0, held
	jne	reached
	movl	$1, held
	pushl	%ebx
	movl	$100, %ebx
.Lpoll:
	call	choice
	testb	$1, %al
	jne	.Lready
	decl	%ebx
	jne	.Lpoll
	GIVEN_BACK
	popl	%ebx
	ret
.Lready:
	movl	$0, held
	popl	%ebx
	ret
	.data
	.p2align 4
held:
	.long 0
"""


@needs_assembler
@pytest.mark.parametrize(("given_back", "kind"), [("movl $0, held", "proved"), ("nop", "violated")])
def test_a_lock_that_is_kept_when_a_device_is_never_ready(given_back: str, kind: str, tmp_path: Path) -> None:
    verdict = simulate(x86_driver(tmp_path, DRIVER.replace("GIVEN_BACK", given_back)), 10)
    assert verdict.kind == kind, verdict.reason
    if kind == "violated":
        values = [given.value for given in verdict.inputs]
        assert values.count(5) == 2 and sum(value & 1 for value in values) == 2, "ready never, asked for twice"
