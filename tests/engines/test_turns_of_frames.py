"""Loops as compilers write them, whose counters are in frames or begin with a bit of a length: they have bounds, and a
store that goes one turn too far is found. And automata that may follow one lock or wait for another."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.engines.simulation.simulate import simulate
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec
from mcveto.property.attach import attach

from .driver_text import needs_assembler, x86_driver

CHECK = """
.Lcheck:
	cmpl	$0, flag
	jne	reached
	jmp	.Lrequest
	.data
	.p2align 4
"""
TABLE = """
marks:
	.fill 15, 4, 0
flag:
	.long 0
"""

# A variable of the frame is the index; a statistic counts with it in the first run of the loop.
WITH_A_STATISTIC = f"""
	subl	$16, %esp
.Lrequest:
	call	choice
	andl	$MASK, %eax
	movl	%eax, 4(%esp)
	movl	$0, (%esp)
	jmp	.Ltest
.Lturn:
	movl	(%esp), %eax
	movl	$1, marks(,%eax,4)
	incl	total
	incl	(%esp)
.Ltest:
	movl	(%esp), %eax
	cmpl	4(%esp), %eax
	jb	.Lturn
{CHECK}
total:
	.long 0
{TABLE}
"""

# What an inner loop leaves behind has grown with the outer one's counter once, and does not again.
WITH_AN_INNER_LOOP = f"""
	subl	$16, %esp
.Lrequest:
	call	choice
	andl	$MASK, %eax
	movl	%eax, 8(%esp)
	movl	$0, (%esp)
	movl	$0, 4(%esp)
	jmp	.Ltest
.Lturn:
	movl	(%esp), %eax
	movl	$1, marks(,%eax,4)
	movl	$0, 4(%esp)
.Linner:
	incl	4(%esp)
	cmpl	$8, 4(%esp)
	jb	.Linner
	incl	(%esp)
.Ltest:
	movl	(%esp), %eax
	cmpl	8(%esp), %eax
	jb	.Lturn
{CHECK}
{TABLE}
"""

# Unrolled: one turn is done before if the number of turns is odd.
UNROLLED = f"""
.Lrequest:
	call	choice
	andl	$MASK, %eax
	movl	%eax, %ebx
	movl	%eax, %esi
	andl	$1, %esi
	je	.Leven
	movl	$1, marks
.Leven:
	shrl	$1, %ebx
	je	.Lcheck
.Lpair:
	movl	$1, marks(,%esi,4)
	movl	$1, marks+4(,%esi,4)
	addl	$2, %esi
	decl	%ebx
	jne	.Lpair
{CHECK}
{TABLE}
"""

# What one loop has counted down to its end is where the next one begins.
COUNTED_DOWN = f"""
.Lrequest:
	call	choice
	andl	$MASK, %eax
	je	.Lcheck
	movl	%eax, %edi
	movl	%eax, %ebx
	xorl	%esi, %esi
.Lfill:
	movl	$1, marks(,%esi,4)
	incl	%esi
	decl	%ebx
	jne	.Lfill
.Lagain:
	movl	$2, marks(,%ebx,4)
	incl	%ebx
	cmpl	%edi, %ebx
	jne	.Lagain
{CHECK}
{TABLE}
"""

LOOPS = {
    "with a statistic": WITH_A_STATISTIC,
    "with an inner loop": WITH_AN_INNER_LOOP,
    "unrolled": UNROLLED,
    "counted down": COUNTED_DOWN,
}


@needs_assembler
@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str, tmp_path: Path) -> None:
    verdict = simulate(x86_driver(tmp_path, LOOPS[name].replace("MASK", "15")), 60.0, is_recorded=False)
    assert verdict.kind == "proved", verdict.reason
    assert verdict.statistics["instructions_executed"] < 1500
    wrong = simulate(x86_driver(tmp_path, LOOPS[name].replace("MASK", "31")), 10.0, is_recorded=False)
    assert wrong.kind == "violated"


# Two locks, one within the other; which of them is taken, and whether, is decided twice by what was read.
TWO_LOCKS = """
	.globl _start
_start:
	subl	$16, %esp
.Lrequest:
	call	choice
	movl	%eax, 8(%esp)
	testl	$1, 8(%esp)
	je	.Lfirst
	movl	$outer, (%esp)
	call	lock
.Lfirst:
	call	choice
	movl	%eax, 12(%esp)
	testl	$2, 12(%esp)
	je	.Lwork
	movl	$inner, (%esp)
	call	lock
.Lwork:
	incl	count
	testl	$2, 12(%esp)
	je	.Lsecond
	movl	$inner, (%esp)
	call	unlock
.Lsecond:
	testl	$BIT, 8(%esp)
	je	.Lrequest
	movl	$outer, (%esp)
	call	unlock
	jmp	.Lrequest
lock:
	ret
unlock:
	ret
choice:
	xorl	%eax, %eax
	ret
	.data
	.p2align 4
outer:
	.long 0
inner:
	.long 0
count:
	.long 0
"""


def locks(folder: Path, bit: int) -> Program:
    path = folder / "locks.s"
    path.write_text(TWO_LOCKS.replace("BIT", str(bit)))
    watched = PropertySpec("typestate", "lock-by-address")
    spec = Spec(entry="_start", input_calls=(InputCall("choice"),), properties=(watched,))
    return attach(load_program(str(path), spec)).program


@needs_assembler
@pytest.mark.parametrize("is_recorded", [False, True])
def test_which_lock_is_followed_is_decided_where_it_is_taken(is_recorded: bool, tmp_path: Path) -> None:
    """States that are kept apart by the automaton have one each, not a choice that depends on a fresh bit."""
    verdict = simulate(locks(tmp_path, 1), 60.0, is_recorded=is_recorded)
    assert verdict.kind == "proved", verdict.reason
    assert verdict.statistics["instructions_executed"] < 2500
    assert simulate(locks(tmp_path, 4), 30.0, is_recorded=is_recorded).kind == "violated"
