"""Which numbers the exits of a loop compare with."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg.location import Blocks
from mcveto.engines.order import Order
from mcveto.engines.simulation.exit_tests import ExitTests
from mcveto.engines.state import Place
from mcveto.program.program import load_program
from mcveto.program.spec import PropertySpec, Spec

from .driver_text import needs_assembler

# Two loops, one in the other; the last comparison is in none, the first does not end a loop by itself, the second asks
# how something has failed.
X86 = """
	.globl _start
_start:
	xorl	%ecx, %ecx
outer:
	xorl	%edx, %edx
inner:
	cmpl	$77, %eax
	je	inside
	incl	%eax
	cmpl	$-11, %eax
	je	reached
inside:
	incl	%edx
	cmpl	$9, %edx
	jne	inner
	incl	%ecx
	cmpl	$100, %ecx
	jl	outer
	cmpl	$55, %eax
	jne	reached
	ret
reached:
	nop
	ret
"""
PPC = """
	.globl _start
_start:
	li 9,0
outer:
	li 10,0
inner:
	cmpwi 0,3,-11
	beq 0,reached
	addi 10,10,1
	cmpwi 0,10,9
	bne 0,inner
	addi 9,9,1
	cmplwi 0,9,100
	blt 0,outer
	cmpwi 0,3,55
	bne 0,reached
	blr
reached:
	nop
	blr
"""


@needs_assembler
@pytest.mark.parametrize(("arch", "text"), [("x86-32", X86), ("ppc32-be", PPC)])
def test_numbers_at_the_ends_of_loops(arch: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "loops.s"
    path.write_text(text)
    reach = PropertySpec("reach", ("reached",))
    program = load_program(str(path), Spec(arch=arch, entry="_start", properties=(reach,)))
    code = Blocks(program)
    order = Order(code.fixed_block, True, program.decoder.row.mode_mask, code.end_before)
    function = order.function(program.entry)
    exits = ExitTests()
    found: set[int] = set()
    for pc in function.blocks():
        if pc in function.place(pc)[1]:
            place = Place(None, program.entry, pc, (), frozenset())
            numbers = exits.numbers(function, place)
            assert exits.numbers(function, place) is numbers, "read once"
            found.update(numbers)
    assert {9, 100} <= found <= {9, 77, 100}, "what is compared elsewhere does not end a loop"
