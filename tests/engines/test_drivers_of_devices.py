"""Drivers with flags of devices that an input chooses, and texts that unrolled loops fill, by the simulation alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.path import KeyTable
from mcveto.engines.path import Path as Conditions
from mcveto.engines.simulation.agreement import agreed
from mcveto.engines.simulation.choices import are_of_one_flag, settled
from mcveto.engines.simulation.elements import common_summands, trailing_zeros
from mcveto.engines.simulation.joined_bounds import _common_bits
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.simulation.since_change import places_since_change
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator

from .driver_text import needs_assembler, x86_driver

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


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255))
def test_what_counts_down_bounds_what_counts_up(start: int, least: int, most: int) -> None:
    left = t.sub(number(start), X)
    low, high = bounds_of(X, conditions(t.ule(number(least), left), t.ule(left, number(most))))
    assert all(low <= value <= high for value in range(256) if least <= (start - value) % 256 <= most)


def test_what_is_left_of_six() -> None:
    assert bounds_of(X, conditions(t.ult(t.sub(number(6), X), number(7)))) == (0, 6)
    assert bounds_of(X, conditions(t.ult(t.sub(number(200), X), number(10)))) == (191, 200)


def test_a_bit_that_both_have_set() -> None:
    mode, new = t.var("mode", 5), t.var("new", 32)
    is_set = t.extract(mode, 3, 3)
    plain, added = t.zext(mode, 32), t.zext(t.bor(mode, t.const(8, 5)), 32)

    def said(first: list[t.Term], a: t.Term | int, b: t.Term | int) -> list[t.Term]:
        meeting: Any = SimpleNamespace(
            first=SimpleNamespace(path=conditions(*first)), second=SimpleNamespace(path=conditions())
        )
        return [*_common_bits(meeting, new, a, b)]

    assert said([is_set], plain, added) == [t.extract(new, 3, 3)]
    assert said([], plain, added) == [] and said([t.bnot(is_set)], plain, added) == []
    assert said([], 12, added) == [t.extract(new, 3, 3)] and said([], 4, added) == []


def test_a_number_that_is_the_other_sides_value() -> None:
    even = t.band(X, number(0xFE))
    one, other = conditions(t.eq(X, number(1))), conditions(t.ult(number(1), X))
    assert agreed(0, even, one, other) is even and agreed(even, 0, other, one) is even
    assert agreed(1, even, one, other) is None
    assert agreed(0, even, other, other) is None
    assert agreed(0, even, conditions(), other) is None


def test_a_flag_is_a_number_where_the_path_says_so() -> None:
    one, other = t.eq(X, number(1)), t.eq(t.var("y", 8), number(2))
    both, either = (t.zext(joined([one, other]), 32) for joined in (t.conj, t.disj))
    assert settled(both, conditions(t.bnot(one))) == 0 and settled(both, conditions(one)) is both
    assert settled(both, conditions(one, other)) == 1 and settled(both, conditions(t.bnot(other))) == 0
    assert settled(either, conditions(other)) == 1 and settled(either, conditions(t.bnot(other))) is either
    assert settled(either, conditions(t.bnot(one), t.bnot(other))) == 0


def test_what_two_ways_made_of_one_flag() -> None:
    before, index = t.var("before", 32), t.eq(X, number(2))
    set_here, cleared = (t.ite(index, t.const(value, 32), before) for value in (1, 0))
    assert are_of_one_flag(set_here, cleared) and are_of_one_flag(set_here, before) and are_of_one_flag(before, cleared)
    assert not are_of_one_flag(before, before) and not are_of_one_flag(set_here, 0)
    assert not are_of_one_flag(set_here, t.ite(index, t.const(0, 32), t.var("after", 32)))
    assert not are_of_one_flag(set_here, t.ite(index, t.const(0, 32), t.add(before, t.const(1, 32))))


words = st.builds(
    lambda factors, constant: t.add(
        t.const(constant, 16),
        t.add(t.mul(t.var("d", 16), t.const(factors[0], 16)), t.mul(t.var("i", 16), t.const(factors[1], 16))),
    ),
    st.tuples(st.sampled_from([0, 4, 108]), st.sampled_from([0, 4, 8])),
    st.sampled_from([0, 12, 0x300, 0xFFF0]),
)


@given(words, words)
def test_sums_are_what_they_have_in_common_and_the_rest(a: t.Term, b: t.Term) -> None:
    found = common_summands(a, b, 16) if a.op != "const" and b.op != "const" else None
    if found is None:
        return
    common, first, second = found
    assert t.free_variables([common]) and t.add(common, first) is a and t.add(common, second) is b
    zeros = trailing_zeros(first, second)
    for d, i in ((0, 0), (1, 3), (7, 255), (65535, 4097)):
        values = {t.var("d", 16): d, t.var("i", 16): i}
        value = Evaluator(values.__getitem__, lambda *_: 0).value
        assert not (value(first) | value(second)) & ((1 << zeros) - 1)


def test_two_places_of_one_device() -> None:
    device = t.mul(t.var("d", 32), t.const(108, 32))
    one, other = (t.add(t.add(device, t.mul(t.var(x, 32), t.const(4, 32))), t.const(0x30CE4, 32)) for x in "ij")
    found = common_summands(one, other, 32)
    assert found is not None and found[0] is t.add(device, t.const(0x30CE4, 32))
    assert trailing_zeros(found[1], found[2]) == 2
    assert common_summands(one, t.var("k", 32), 32) is None and common_summands(one, 5, 32) is None


def test_where_a_path_has_been_since_a_flag_changed() -> None:
    """Taken at 2, on by 3 or 4 to 5; at 6 it is free again, and 7 comes from there only."""
    free, held = ((0, 0), (1, 9)), ((0, 1), (1, 9))
    ways = [(1, 2, free, free), (2, 3, free, held), (2, 4, free, held), (3, 5, held, held), (4, 5, held, held),
            (5, 6, held, free), (6, 7, free, held), (7, 8, held, held)]  # fmt: skip
    edges = [((a, None, before), (b, None, after)) for a, b, before, after in ways]
    assert places_since_change((5, None, held), edges, {0}) == {(3, None), (4, None), (5, None)}
    assert places_since_change((8, None, held), edges, {0}) == {(7, None), (8, None)}
    assert places_since_change((5, None, held), edges, {1}) == {(pc, None) for pc in range(1, 6)}


LOCKS = """\
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
"""

# Four devices of 16 bytes: flags, held, how it was taken. Bit 1 of the flags says how a device is locked, and what
# gives the lock back must agree with that.
DEVICES = """
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
LOCKS
	.data
	.p2align 4
devices:
	.space 64
""".replace("LOCKS\n", LOCKS)

# Two of these devices: a request is for one of them, or for all that have bit 2 set. States that have taken the lock of
# one by an index, and by a bit of an input, meet.
ALL_DEVICES = """
	call	choice
	andl	$7, %eax
	movl	%eax, devices
	call	choice
	andl	$7, %eax
	movl	%eax, devices+16
.Lrequest:
	call	choice
	andl	$1, %eax
	shll	$4, %eax
	leal	devices(%eax), %ebx
	call	choice
	testb	$1, %al
	je	.Lone
	call	all
	jmp	.Lrequest
.Lone:
	call	one
	jmp	.Lrequest
one:
	testb	$2, (%ebx)
	je	.Lplain
	call	lock_saving
	jmp	.Llocked
.Lplain:
	call	lock_plain
.Llocked:
	incl	12(%ebx)
	call	choice
	testb	$8, %al
	je	.Lshort
	movl	%eax, 12(%ebx)
.Lshort:
	testb	$AGAIN, (%ebx)
	je	.Lplain_again
	call	unlock_saving
	ret
.Lplain_again:
	call	unlock_plain
	ret
all:
	xorl	%esi, %esi
.Lnext:
	leal	devices(%esi), %ebx
	testb	$4, (%ebx)
	je	.Lfree
	call	lock_plain
.Lfree:
	incl	12(%ebx)
	testb	$4, (%ebx)
	je	.Ldone
	call	unlock_plain
.Ldone:
	addl	$16, %esi
	cmpl	$32, %esi
	jne	.Lnext
	ret
LOCKS
	.data
	.p2align 4
devices:
	.space 32
""".replace("LOCKS\n", LOCKS)

# A text of up to 26 bytes is filled two bytes a turn, and what is left over by itself; a lock lies behind it.
UNROLLED = """
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
	.data
	.p2align 4
text:
	.space 26
	.space 2
lock:
	.long 0
"""


# A lock that is taken and given back by functions that look at a mode, which their caller passes on.
MODES = """
	call	choice
	movl	%eax, %ebx
	call	post
	cmpl	$0, lock
	jne	reached
	jmp	_start
post:
	movl	%ebx, %eax
	call	enter
	incl	posted
	movl	%ebx, %eax
	AGAIN	%eax
	call	leave
	movl	%ebx, %eax
	call	enter
	incl	posted
	movl	%ebx, %eax
	call	leave
	ret
enter:
	testb	$4, %al
	jne	.Lentered
	cmpl	$0, lock
	jne	reached
	movl	$1, lock
.Lentered:
	ret
leave:
	testb	$4, %al
	jne	.Lleft
	cmpl	$0, lock
	je	reached
	movl	$0, lock
.Lleft:
	ret
	.data
	.p2align 4
lock:
	.long 0
posted:
	.long 0
"""


@needs_assembler
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (MODES.replace("AGAIN", "movl %eax,"), "proved"),
        (MODES.replace("AGAIN", "notl"), "violated"),
        (ALL_DEVICES.replace("AGAIN", "2"), "proved"),
        (ALL_DEVICES.replace("AGAIN", "4"), "violated"),
        (DEVICES.replace("AGAIN", "2"), "proved"),
        (DEVICES.replace("AGAIN", "4"), "violated"),
        (UNROLLED.replace("LONGEST", "26"), "proved"),
        (UNROLLED.replace("LONGEST", "28"), "proved"),
    ],
)
def test_drivers(text: str, kind: str, tmp_path: Path) -> None:
    verdict = simulate(x86_driver(tmp_path, text), 60.0, None, False)
    assert verdict.kind == kind
    assert verdict.statistics["instructions_executed"] < 4000
