"""The text of a PowerPC program that jumps through a table by an input, over and over."""

from __future__ import annotations

from pathlib import Path

from mcveto.program.program import Program
from tests.engines.driver_text import reaching

_LOOP = """
	.text
	.globl handle
handle:
	bl choice
	cmplwi 0,3,{last}
	bgt 0,handle
	slwi 3,3,2
	lis 9,table@ha
	addi 9,9,table@l
	lwzx 10,9,3
{before}
	mtctr 10
	bctr
{ways}
reached:
	nop
	b handle
	.section .rodata
	.align 2
table:
{table}
{after}
"""


def dispatching(tmp_path: Path, entries: list[str], before: str, ways: str, after: str = "") -> Program:
    """The program whose target is `reached`; the entry of the table is in r10, and `before` comes before the jump."""
    table = "\n".join(f"\t.long {entry}" for entry in entries)
    text = _LOOP.format(last=len(entries) - 1, before=before, ways=ways, table=table, after=after)
    return reaching(tmp_path, text, "ppc32-be", "handle")
