"""Counts, indices and pointers that drivers keep in memory: they come to rest between the numbers they are compared or
masked with, and a store through them that goes too far is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.path import KeyTable
from mcveto.engines.path import Path as Conditions
from mcveto.engines.simulation.agreement import agreed
from mcveto.engines.simulation.masks import Masks
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.simulation.value_ranges import bounds_of, is_excluded
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term

from .driver_text import needs_assembler, x86_driver

# Bytes come in, several at once, until the buffer is full; and go out one by one.
BUFFER = """
.Lrequest:
	call	choice
	testb	$1, %al
	je	.Ltake
.Lmore:
	movl	count, %eax
	cmpl	$LIMIT, %eax
	jge	.Lnext
	movl	$1, buffer(,%eax,4)
	incl	count
.Lnext:
	call	choice
	testb	$1, %al
	jne	.Lmore
	jmp	.Lcheck
.Ltake:
	movl	count, %eax
	testl	%eax, %eax
	jle	.Lcheck
	decl	count
.Lcheck:
	cmpl	$0, flag
	jne	reached
	jmp	.Lrequest
	.data
	.p2align 4
count:
	.long 0
buffer:
	.fill 16, 4, 0
flag:
	.long 0
"""

# The entry is used as it is, and masked when it has moved.
RING = """
.Lrequest:
	call	choice
	testb	$1, %al
	je	.Lcheck
	movl	head, %eax
	movl	$1, ring(,%eax,4)
	incl	%eax
	andl	$MASK, %eax
	movl	%eax, head
.Lcheck:
	cmpl	$0, flag
	jne	reached
	jmp	.Lrequest
	.data
	.p2align 4
head:
	.long 0
ring:
	.fill 16, 4, 0
flag:
	.long 0
"""

# Objects of a pool are put into the slots of a ring, and written to when they are taken out; they can be the object
# before the first flag, too.
POOL = """
.Lrequest:
	call	choice
	testb	$1, %al
	je	.Ltake
	movl	next, %eax
	incl	next
	andl	$MASK, %eax
	shll	$3, %eax
	addl	$pool, %eax
	movl	filled, %ecx
	incl	filled
	andl	$7, %ecx
	movl	%eax, slots(,%ecx,4)
	jmp	.Lcheck
.Ltake:
	movl	taken, %ecx
	incl	taken
	andl	$7, %ecx
	movl	slots(,%ecx,4), %eax
	testl	%eax, %eax
	je	.Lcheck
	movl	$1, 4(%eax)
	movl	$0, slots(,%ecx,4)
.Lcheck:
	cmpl	$0, flag
	jne	reached
	jmp	.Lrequest
	.data
	.p2align 4
next:
	.long 0
filled:
	.long 0
taken:
	.long 0
slots:
	.fill 8, 4, 0
pool:
	.fill 16, 8, 0
	.long 0
flag:
	.long 0
"""

# What is done when a request has ended is told by the request: nothing before the first one.
DONE = """
.Lrequest:
	call	choice
	andl	$3, %eax
	leal	requests(,%eax,8), %esi
	testl	$1, (%esi)
	jne	.Lend
	movl	$1, (%esi)
	movl	$FUNCTION, 4(%esi)
	jmp	.Lrequest
.Lend:
	movl	$0, (%esi)
	movl	4(%esi), %eax
	testl	%eax, %eax
	je	.Lrequest
	call	*%eax
	jmp	.Lrequest
done:
	incl	count
	ret
	.data
	.p2align 4
requests:
	.fill 4, 8, 0
count:
	.long 0
"""

# A text is copied in pieces, each as long as what is left, or as the space that there is.
PIECES = """
.Lrequest:
	call	choice
	andl	$15, %eax
	movl	%eax, %ebx
	xorl	%esi, %esi
.Lpiece:
	call	choice
	andl	$7, %eax
	cmpl	%ebx, %eax
	jle	.Lfits
	movl	%ebx, %eax
.Lfits:
	testl	%eax, %eax
	jle	.Lcheck
	movl	$1, text+STEP(,%esi,4)
	subl	%eax, %ebx
	addl	%eax, %esi
	jmp	.Lpiece
.Lcheck:
	cmpl	$0, flag
	jne	reached
	jmp	.Lrequest
	.data
	.p2align 4
text:
	.fill 16, 4, 0
flag:
	.long 0
"""

PROGRAMS = [
    (BUFFER, "LIMIT", "16", "17"),
    (RING, "MASK", "15", "31"),
    (POOL, "MASK", "15", "31"),
    (DONE, "FUNCTION", "done", "reached"),
    (PIECES, "STEP", "0", "8"),
]


@needs_assembler
@pytest.mark.parametrize("program", PROGRAMS, ids=["buffer", "ring", "pool", "done", "pieces"])
def test_drivers(program: tuple[str, str, str, str], tmp_path: Path) -> None:
    text, name, right, wrong = program
    verdict = simulate(x86_driver(tmp_path, text.replace(name, right)), 60.0, is_recorded=False)
    assert verdict.kind == "proved", verdict.reason
    assert verdict.statistics["instructions_executed"] < 1500
    # Some are violated after many requests only.
    assert simulate(x86_driver(tmp_path, text.replace(name, wrong)), 10.0, is_recorded=False).kind != "proved"


A, B = t.var("a", 8), t.var("b", 8)


def conditions(terms: list[Term]) -> Conditions:
    path = Conditions(KeyTable(t.memory("mem", 32)))
    for term in terms:
        path.add(term)
    return path


numbers = st.integers(0, 255).map(lambda value: t.const(value, 8))
sums = st.builds(
    lambda m, n, number: t.add(t.add(t.mul(A, m), t.mul(B, n)), number),
    *[st.sampled_from([t.const(value, 8) for value in (0, 1, 2, 255)])] * 2,
    numbers,
)


@st.composite
def comparisons(draw: st.DrawFn) -> Term:
    compare = draw(st.sampled_from([t.ult, t.ule, t.slt, t.sle, t.eq]))
    sides = [draw(sums), draw(numbers)]
    if draw(st.booleans()):
        sides.reverse()
    found = compare(*sides)
    return t.bnot(found) if draw(st.booleans()) else found


@given(st.lists(comparisons(), min_size=1, max_size=4), sums, comparisons())
@settings(max_examples=150, deadline=None)
def test_bounds_hold_of_all_values(said: list[Term], term: Term, asked: Term) -> None:
    """Of sums, signed comparisons, and what they exclude: all values of two bytes, put in."""
    path = conditions(said)
    low, high = bounds_of(term, path)
    excluded = is_excluded(asked, path)
    for a in range(0, 256, 3):
        for b in range(0, 256, 5):
            evaluator = Evaluator(lambda variable, a=a, b=b: a if variable is A else b, lambda *_: 0)  # type: ignore[misc]
            if all(evaluator.value(condition) for condition in said):
                assert low <= evaluator.value(term) <= high
                assert not (excluded and evaluator.value(asked))


def test_a_count_that_is_less_than_a_signed_number() -> None:
    x, y = t.var("x", 32), t.var("y", 32)
    path = conditions([t.ult(x, t.const(63, 32)), t.ult(y, t.const(31, 32))])
    both = t.add(x, y)
    path.add(t.slt(both, t.const(64, 32)))
    assert bounds_of(both, path) == (0, 63)
    assert bounds_of(t.add(both, t.const(0x402000, 32)), path) == (0x402000, 0x40203F)
    left = conditions([t.ult(x, t.const(65, 32)), t.ult(y, t.const(65, 32)), t.slt(t.const(0, 32), t.sub(x, y))])
    assert bounds_of(t.sub(t.sub(x, y), t.const(1, 32)), left) == (0, 63)
    assert is_excluded(t.slt(t.const(99, 32), both), path) and not is_excluded(t.slt(t.const(62, 32), both), path)


def test_masks_of_places() -> None:
    masks = Masks(KeyTable(t.memory("mem", 32)))
    masks.note_number(1, 63)
    masks.note_store(0x100, 1)
    masks.note_store(0x104, 2)  # something else
    assert masks.of_place(0x100, False) == 63 and masks.of_place(0x104, True) is None
    masks.begin_block()
    masks.note_store(0x108, 1)  # what another block has masked
    assert masks.of_place(0x108, True) is None
    masks.note_held(0x10C, 5)
    masks.note_comparison(5, 15)
    masks.note_comparison(6, 20)
    masks.note_store(0x110, 6)
    assert masks.of_place(0x10C, True) == 15 and masks.of_place(0x110, True) == 20
    assert masks.of_place(0x10C, False) is None
    masks.note_held(0x114, 0)
    masks.note_comparison(0, 15)
    assert masks.of_place(0x114, True) == 15
    masks.note_held(0x118, 0)
    masks.note_comparison(0, 18)  # much is 0 at first
    assert masks.of_place(0x114, True) == 15 and masks.of_place(0x118, True) is None


@given(st.integers(0, 31))
def test_what_an_unrolled_loop_has_left_to_do(value: int) -> None:
    """n where n is even, and n - 1 where it is odd."""
    given_number = t.var("n", 32)
    n = t.zext(t.extract(given_number, 4, 0), 32)
    odd, even = conditions([t.extract(n, 0, 0)]), conditions([t.bnot(t.extract(n, 0, 0))])
    both = agreed(t.sub(n, t.const(1, 32)), n, odd, even)
    assert isinstance(both, Term)
    assert Evaluator(lambda _: value, lambda *_: 0).value(both) == value & ~1
    assert agreed(t.sub(n, t.const(1, 32)), n, even, odd) is None
    assert agreed(t.sub(n, t.const(1, 32)), n, odd, odd) is None
