"""Tables: what a comparison says of the index must be known where the table is read, and what the table holds, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.engines.cegar.engine import cegar
from tests.engines.driver_text import needs_assembler, x86_driver

pytestmark = needs_assembler

# The index is masked into a register with zeros in front, compared, and only then used in another block.
TEXT = """
	pushq	%rbx
	callq	choice
	movl	%eax, %ebx
	andl	$15, %ebx
	cmpl	$LAST, %ebx
	ja	.Lend
	jmpq	*.Ltable(,%rbx,8)
.Lone:
	movl	$1, %eax
	jmp	.Lend
.Ltwo:
	movl	$2, %eax
	jmp	.Lend
reached:
	nop
.Lend:
	popq	%rbx
	retq
	.section .rodata,"a",@progbits
	.p2align 3
.Ltable:
	.quad .Lone
	.quad .Ltwo
	.quad .Lone
	.quad reached
"""


@pytest.mark.parametrize("section", ['.rodata,"a"', '.data,"aw"'])
@pytest.mark.parametrize(("last", "kind"), [(2, "proved"), (3, "violated")])
def test_the_bound_of_the_index_is_learned(last: int, kind: str, section: str, tmp_path: Path) -> None:
    text = TEXT.replace("LAST", str(last)).replace('.rodata,"a"', section)
    verdict = cegar(x86_driver(tmp_path, text), 60)
    assert verdict.kind == kind, verdict.reason
    if kind == "violated":
        assert verdict.inputs[0].value & 15 == 3


# The table can be written, but is not before it is read; or (WRITE) some entry is.
TABLE = """
	pushq	%rbx
	WRITE
	callq	choice
	movl	%eax, %ebx
	cmpl	$7, %ebx
	ja	.Lend
	cmpl	$0, table(,%rbx,4)
	je	.Lend
reached:
	nop
.Lend:
	popq	%rbx
	retq
	.data
table:
	.zero 32
	.long 1
"""
WRITE = "callq choice\n\tandl $7, %eax\n\tmovl $5, table(,%rax,4)"


@pytest.mark.parametrize(("write", "kind"), [("", "proved"), (WRITE, "violated")])
def test_a_table_that_was_not_written_holds_what_the_image_does(write: str, kind: str, tmp_path: Path) -> None:
    assert cegar(x86_driver(tmp_path, TABLE.replace("WRITE", write)), 60).kind == kind


# Every turn of the loop goes through a switch on a state, and some cases compute the next one from what they read. What
# lies behind the table leads nowhere.
MACHINE = """
	pushq	%rbp
	pushq	%rbx
	movl	$0, %ebp
	movl	$0, %ebx
	jmp	.Lturn
.Lfour:
	movl	$5, %ebx
.Lnext:
	addl	$1, %ebp
	callq	choice
	testl	%eax, %eax
	je	.Lend
.Lturn:
	callq	choice
	cmpl	$LAST, %ebx
	ja	reached
	movl	%ebx, %ebx
	jmpq	*.Ltable(,%rbx,8)
.Lzero:
	cmpl	$3, %eax
	sete	%bl
	movzbl	%bl, %ebx
	jmp	.Lnext
.Lone:
	cmpl	$5, %eax
	sete	%bl
	movzbl	%bl, %ebx
	addl	%ebx, %ebx
	jmp	.Lnext
.Ltwo:
	cmpl	$7, %eax
	sete	%bl
	movzbl	%bl, %ebx
	leal	(%rbx,%rbx,2), %ebx
	jmp	.Lnext
.Lthree:
	cmpl	$1, %eax
	sete	%bl
	movzbl	%bl, %ebx
	shll	$2, %ebx
	jmp	.Lnext
reached:
	nop
	jmp	.Lnext
.Lfive:
	movl	$0, %ebx
	jmp	.Lnext
.Lend:
	movl	%ebp, %eax
	popq	%rbx
	popq	%rbp
	retq
	.section .rodata,"a",@progbits
	.p2align 3
.Ltable:
	.quad .Lzero
	.quad .Lone
	.quad .Ltwo
	.quad .Lthree
	.quad .Lfour
	.quad .Lfive
	.set	i, 0
	.rept	64
	.quad	0x7000000 + i
	.set	i, i + 1
	.endr
"""


@pytest.mark.parametrize(("last", "kind"), [(5, "proved"), (4, "violated")])
def test_a_machine_of_states(last: int, kind: str, tmp_path: Path) -> None:
    verdict = cegar(x86_driver(tmp_path, MACHINE.replace("LAST", str(last))), 60)
    assert verdict.kind == kind, verdict.reason
