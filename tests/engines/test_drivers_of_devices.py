"""Drivers with flags of devices that an input chooses, and texts that unrolled loops fill, by the simulation alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.path import KeyTable
from mcveto.engines.path import Path as Conditions
from mcveto.engines.simulation.agreement import agreed
from mcveto.engines.simulation.choices import are_of_one_flag
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec

needs_assembler = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")
X = t.var("x", 8)


def number(value: int) -> t.Term:
    return t.const(value, 8)


def conditions(*terms: t.Term) -> Conditions:
    path = Conditions(KeyTable(t.memory("mem", 32)))
    for term in terms:
        path.add(term)
    return path


parts = st.tuples(st.integers(0, 7), st.integers(0, 7)).map(lambda bits: t.extract(X, max(bits), min(bits)))
said = st.one_of(
    st.builds(lambda part, limit: t.ult(part, t.const(limit, part.width)), parts, st.integers(1, 255)),
    st.builds(lambda part, limit: t.ult(t.const(limit, part.width), part), parts, st.integers(0, 255)),
    st.builds(lambda part, value: t.ne(part, t.const(value, part.width)), parts, st.integers(0, 255)),
    st.builds(lambda part, value: t.ne(part, t.const(value, part.width)), parts, st.integers(0, 3)),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(said, max_size=5), parts, st.integers(0, 255))
def test_bounds_of_parts_of_a_word(terms: list[t.Term], part: t.Term, more: int) -> None:
    path = conditions(*(term for term in terms if term.op != "const"))
    asked = [part, t.add(t.zext(part, 8), number(more))]
    found = [bounds_of(term, path) for term in asked]
    for x in range(256):
        evaluator = Evaluator(lambda _, x=x: x, lambda *_: 0)  # type: ignore[misc]
        if all(evaluator.value(term) for term in path.terms):
            for term, (least, most) in zip(asked, found, strict=True):
                assert least <= evaluator.value(term) <= most


def test_what_a_length_is_compared_with_bounds_its_parts() -> None:
    length = t.extract(X, 5, 0)
    path = conditions(t.ult(length, t.const(27, 6)), t.ne(length, t.const(0, 6)), t.ne(length, t.const(1, 6)))
    assert bounds_of(t.extract(X, 5, 1), path) == (1, 13)
    assert bounds_of(t.extract(X, 5, 2), path) == (0, 6)
    assert bounds_of(t.extract(X, 5, 1), conditions(t.bnot(t.extract(X, 5, 5)))) == (0, 15)


def test_a_number_that_is_the_other_sides_value() -> None:
    even = t.band(X, number(0xFE))
    one, other = conditions(t.eq(X, number(1))), conditions(t.ult(number(1), X))
    assert agreed(0, even, one, other) is even and agreed(even, 0, other, one) is even
    assert agreed(1, even, one, other) is None
    assert agreed(0, even, other, other) is None
    assert agreed(0, even, conditions(), other) is None


def test_what_two_ways_made_of_one_flag() -> None:
    before, index = t.var("before", 32), t.eq(X, number(2))
    set_here, cleared = (t.ite(index, t.const(value, 32), before) for value in (1, 0))
    assert are_of_one_flag(set_here, cleared) and are_of_one_flag(set_here, before) and are_of_one_flag(before, cleared)
    assert not are_of_one_flag(before, before) and not are_of_one_flag(set_here, 0)
    assert not are_of_one_flag(set_here, t.ite(index, t.const(0, 32), t.var("after", 32)))
    assert not are_of_one_flag(set_here, t.ite(index, t.const(0, 32), t.add(before, t.const(1, 32))))


# Four devices of 16 bytes: flags, held, how it was taken. Bit 1 of the flags says how a device is locked, and what
# gives the lock back must agree with that.
DEVICES = """
	.globl _start
_start:
	xorl	%esi, %esi
.Lbegin:
	call	choice
	andl	$7, %eax
	movl	%eax, devices(%esi)
	addl	$16, %esi
	cmpl	$64, %esi
	jne	.Lbegin
.Lrequest:
	call	choice
	andl	$3, %eax
	shll	$4, %eax
	leal	devices(%eax), %ebx
	testb	$2, (%ebx)
	je	.Lplain
	call	lock_saving
	jmp	.Llocked
.Lplain:
	call	lock_plain
.Llocked:
	incl	12(%ebx)
	testb	$AGAIN, (%ebx)
	je	.Lplain_again
	call	unlock_saving
	jmp	.Lrequest
.Lplain_again:
	call	unlock_plain
	jmp	.Lrequest
lock_saving:
	cmpl	$0, 4(%ebx)
	jne	reached
	movl	$1, 4(%ebx)
	movl	$1, 8(%ebx)
	ret
lock_plain:
	cmpl	$0, 4(%ebx)
	jne	reached
	movl	$1, 4(%ebx)
	movl	$0, 8(%ebx)
	ret
unlock_saving:
	cmpl	$0, 4(%ebx)
	je	reached
	cmpl	$0, 8(%ebx)
	je	reached
	movl	$0, 4(%ebx)
	ret
unlock_plain:
	cmpl	$0, 4(%ebx)
	je	reached
	cmpl	$0, 8(%ebx)
	jne	reached
	movl	$0, 4(%ebx)
	ret
reached:
	nop
	ret
choice:
	xorl	%eax, %eax
	ret
	.data
	.p2align 4
devices:
	.space 64
"""

# A text of up to 26 bytes is filled two bytes a turn, and what is left over by itself; a lock lies behind it.
UNROLLED = """
	.globl _start
_start:
	call	choice
	andl	$63, %eax
	cmpl	$LONGEST, %eax
	ja	.Ldone
	testl	%eax, %eax
	je	.Ldone
	movl	%eax, %edi
	xorl	%ebx, %ebx
	cmpl	$1, %eax
	je	.Lrest
	movl	%eax, %ebx
	andl	$62, %ebx
	leal	-2(%ebx), %ecx
	shrl	%ecx
	incl	%ecx
	movl	$text - 2, %edx
.Ltwo:
	addl	$2, %edx
	movb	$65, (%edx)
	movb	$66, 1(%edx)
	decl	%ecx
	jne	.Ltwo
	cmpl	%ebx, %edi
	je	.Ldone
.Lrest:
	leal	text-1(%ebx), %edx
	subl	%ebx, %edi
.Lone:
	incl	%edx
	movb	$67, (%edx)
	decl	%edi
	jne	.Lone
.Ldone:
	cmpl	$0, lock
	jne	reached
	movl	$1, lock
	movl	$0, lock
	jmp	_start
reached:
	nop
	ret
choice:
	xorl	%eax, %eax
	ret
	.data
	.p2align 4
text:
	.space 26
	.space 2
lock:
	.long 0
"""


@needs_assembler
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (DEVICES.replace("AGAIN", "2"), "proved"),
        (DEVICES.replace("AGAIN", "4"), "violated"),
        (UNROLLED.replace("LONGEST", "26"), "proved"),
        (UNROLLED.replace("LONGEST", "28"), "proved"),
    ],
)
def test_drivers(text: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "driver.s"
    path.write_text(text)
    reach = PropertySpec("reach", ("reached",))
    program = load_program(str(path), Spec(entry="_start", input_calls=(InputCall("choice"),), properties=(reach,)))
    verdict = simulate(program, 60.0, None, False)
    assert verdict.kind == kind
    assert verdict.statistics["instructions_executed"] < 4000
