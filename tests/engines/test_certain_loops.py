"""Loops whose end no input decides: joined soon, run where that lost something, and never a wrong answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from mcveto.engines.simulation import certain_loops
from mcveto.engines.simulation.simulate import simulate
from mcveto.verdict import Verdict

from .driver_text import needs_assembler, x86_driver
from .random_programs import RandomProgram, exhaustive, programs

# Words of a buffer are put in order; the last one that was seen before it is a flag.
SORT = """
	call	choice
	movl	%eax, buffer+16
	movl	$31, %ebx
.Louter:
	movl	$buffer, %esi
	movl	%ebx, %ecx
.Linner:
	movl	(%esi), %eax
	movl	4(%esi), %edx
	addl	$4, %esi
	cmpl	%edx, %eax
	jbe	.Lkept
	movl	%edx, -4(%esi)
	movl	%eax, (%esi)
.Lkept:
	decl	%ecx
	jne	.Linner
	decl	%ebx
	jne	.Louter
	cmpl	$0, flag
	jne	reached
	ret
	.data
	.p2align 4
buffer:
	.fill 32, 4, 0
flag:
	.long 0
"""

# What a loop leaves is asked for behind it, or nothing is.
FILL = """
	xorl	%ecx, %ecx
.Lfill:
	movl	%ecx, table(,%ecx,4)
	incl	%ecx
	cmpl	$100, %ecx
	jne	.Lfill
	call	choice
	cmpl	$LIMIT, %eax
	jae	.Lend
	ASKED
	jne	reached
.Lend:
	ret
	.data
	.p2align 4
table:
	.fill 100, 4, 0
flag:
	.long 0
"""

# A pointer that may be one of two goes so far as the number beside it says.
WALK = """
	call	choice
	movl	$first, %esi
	testl	%eax, %eax
	je	.Lchosen
	movl	$second, %esi
.Lchosen:
	movl	%esi, %edi
	addl	$DISTANCE, %edi
.Lwalk:
	call	choice
	movb	%al, (%esi)
	incl	%esi
	cmpl	%edi, %esi
	jne	.Lwalk
	cmpl	$0, flag
	jne	reached
	ret
	.data
	.p2align 4
first:
	.fill 10, 4, 0
second:
	.fill 10, 4, 0
flag:
	.long 0
"""


def answer(tmp_path: Path, text: str) -> Verdict:
    return simulate(x86_driver(tmp_path, text), 30, is_recorded=False)


@needs_assembler
def test_a_loop_within_a_loop_counts_its_own_turns(tmp_path: Path) -> None:
    """496 turns by 8 to 10 instructions, of which few are followed."""
    verdict = answer(tmp_path, SORT)
    assert verdict.kind == "proved", verdict.reason
    assert verdict.statistics["instructions_executed"] < 1500
    beyond = answer(tmp_path, SORT.replace("$31", "$32"))
    assert beyond.kind == "violated", beyond.reason


@needs_assembler
def test_a_loop_is_run_only_if_somebody_asks_what_it_left(tmp_path: Path) -> None:
    other = answer(tmp_path, FILL.replace("LIMIT", "10").replace("ASKED", "cmpl $0, flag"))
    assert other.kind == "proved", other.reason
    assert other.statistics["instructions_executed"] < 100
    asked = answer(tmp_path, FILL.replace("LIMIT", "10").replace("ASKED", "cmpl $60, table+240"))
    assert asked.kind == "proved", asked.reason
    assert asked.statistics["instructions_executed"] > 300
    wrong = answer(tmp_path, FILL.replace("LIMIT", "10").replace("ASKED", "cmpl $61, table+240"))
    assert wrong.kind == "violated", wrong.reason


@needs_assembler
def test_how_far_a_pointer_that_nobody_knows_has_come(tmp_path: Path) -> None:
    verdict = answer(tmp_path, WALK.replace("DISTANCE", "40"))
    assert verdict.kind == "proved", verdict.reason
    assert verdict.statistics["instructions_executed"] < 400
    beyond = answer(tmp_path, WALK.replace("DISTANCE", "41"))
    assert beyond.kind == "violated", beyond.reason


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_joined_at_once_they_never_say_anything_wrong(program: RandomProgram) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certain_loops, "SOON", 0)
        ends = exhaustive(program.load())
        verdict = simulate(program.load(), 20.0, is_recorded=False)
    bad = ends & {"target", "return-address"}
    assert verdict.kind != "violated" or bad
    assert verdict.kind != "proved" or not (bad or {"limit", "unsupported"} & ends)
