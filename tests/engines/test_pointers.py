"""Pointers that are null or one of a few addresses, and what is masked: requests in a ring that name their device."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.dpg.location import Blocks
from mcveto.engines.path import KeyTable
from mcveto.engines.path import Path as Conditions
from mcveto.engines.simulation.choices import taken
from mcveto.engines.simulation.masks import MOST, Masks
from mcveto.engines.simulation.pointers import MOST_GROWN, Pointers
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.engines.simulation.value_ranges import values_of
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator

from .driver_text import needs_assembler, x86_driver
from .random_programs import DATA, RandomProgram

# Two devices, each with its lock and a table of one operation; a ring of four requests, of a device and a number. A
# request is put in, or one is taken out and given to the operation of its device.
DRIVER = """
	movl	$operations, devices+4
	movl	$operations, devices+12
.Levents:
	call	choice
	testb	$1, %al
	jne	.Ltake
	call	choice
	cmpl	$2, %eax
	jae	.Levents
	cmpl	$4, count
	je	.Levents
	leal	devices(,%eax,8), %eax
	movl	tail, %ecx
	movl	%eax, ring(,%ecx,8)
	call	choice
	movl	tail, %ecx
	movl	%eax, ring+4(,%ecx,8)
	incl	%ecx
	andl	$3, %ecx
	movl	%ecx, tail
	incl	count
	jmp	.Levents
.Ltake:
	call	take
	testl	%eax, %eax
	je	.Levents
	movl	request, %ebx
	movl	4(%ebx), %ecx
	call	*(%ecx)
	jmp	.Levents
take:
	cmpl	$0, count
	je	.Lnone
	movl	head, %ecx
	movl	ring(,%ecx,8), %eax
	movl	%eax, request
	movl	ring+4(,%ecx,8), %eax
	movl	%eax, request+4
	incl	%ecx
	andl	$3, %ecx
	movl	%ecx, head
	decl	count
	movl	$1, %eax
	ret
.Lnone:
	xorl	%eax, %eax
	ret
operation:
	testb	$8, request+4
	je	.Lwithout
	cmpl	$0, (%ebx)
	jne	reached
	movl	$1, (%ebx)
.Lwithout:
	testb	$AGAIN, request+4
	je	.Ldone
	cmpl	$0, (%ebx)
	je	reached
	movl	$0, (%ebx)
.Ldone:
	ret
	.section .rodata
	.p2align 4
operations:
	.long operation
	.data
	.p2align 4
devices:
	.long 0, 0, 0, 0
ring:
	.long 0, 0, 0, 0, 0, 0, 0, 0
head:
	.long 0
tail:
	.long 0
count:
	.long 0
request:
	.long 0, 0
"""


@needs_assembler
@pytest.mark.parametrize(("again", "kind"), [("8", "proved"), ("16", "violated")])
def test_requests_in_a_ring_name_their_device(again: str, kind: str, tmp_path: Path) -> None:
    verdict = simulate(x86_driver(tmp_path, DRIVER.replace("AGAIN", again)), 120.0, None, False)
    assert verdict.kind == kind
    assert verdict.statistics["instructions_executed"] < 6000


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    program = RandomProgram(b"\xf4", b"\xc3", bytes(64), False).load()
    return Simulation(program, Blocks(program), time.monotonic() + 1e6, None)


def pointers_and_paths(simulation: Simulation) -> tuple[Pointers, Conditions, Conditions]:
    table = KeyTable(t.memory("mem", 32))
    return Pointers(simulation._program.space, 4), Conditions(table), Conditions(table)


def test_null_and_addresses_meet(simulation: Simulation) -> None:
    pointers, first, second = pointers_and_paths(simulation)
    index = t.var("index", 32)
    second.add(t.ult(index, t.const(3, 32)))
    element = t.add(t.mul(index, t.const(8, 32)), t.const(DATA, 32))
    assert pointers.may_meet(0, element)
    assert pointers.together(0, element, (first, second), True) == [0, DATA, DATA + 8, DATA + 16]
    # Neither numbers nor addresses where nothing is.
    assert pointers.together(0, 7, (first, second), True) is None
    assert pointers.together(0, 0x10, (first, second), False) is None
    assert pointers.together(0, t.var("any", 32), (first, second), False) is None


def test_a_list_in_a_loop_grows_only_so_far(simulation: Simulation) -> None:
    pointers, first, second = pointers_and_paths(simulation)
    known = t.var("known", 32)
    values = [DATA + 4 * i for i in range(MOST_GROWN)]
    first.add(pointers.listing(known, values))
    assert pointers.together(known, values[0], (first, second), True) == values
    assert pointers.together(known, values[-1] + 4, (first, second), True) is None
    assert pointers.together(known, values[-1] + 4, (first, second), False) == [*values, values[-1] + 4]


def test_a_path_tells_which_of_a_list_it_is() -> None:
    path, pointer = Conditions(KeyTable(t.memory("mem", 32))), t.var("pointer", 32)
    path.add(t.disj([t.eq(pointer, t.const(value, 32)) for value in (0, DATA, DATA + 8)]))
    assert values_of(pointer, path, 8) == [0, DATA, DATA + 8]
    path.add(t.eq(pointer, t.const(DATA, 32)))
    assert values_of(t.add(pointer, t.const(4, 32)), path, 8) == [DATA + 4]


def test_what_was_chosen_is_taken() -> None:
    path, flag = Conditions(KeyTable(t.memory("mem", 32))), t.var("flag", 1)
    x, y = t.var("x", 32), t.var("y", 32)
    choice = t.ite(flag, x, y)
    assert taken(choice, path) is choice
    path.add(t.bnot(flag))
    assert taken(choice, path) is y and taken(5, path) == 5


X, Y = t.var("x", 32), t.var("y", 32)
masked = st.recursive(
    st.one_of(st.integers(0, 40), st.sampled_from([X, Y])),
    lambda inner: st.builds(
        lambda value, mask: t.band(t.add(_term(value), t.const(1, 32)), t.const(mask, 32)),
        inner,
        st.sampled_from([1, 3, 7, 15, 0xFF]),
    ),
    max_leaves=3,
)


def _term(value: int | t.Term) -> t.Term:
    return t.const(value, 32) if isinstance(value, int) else value


@settings(max_examples=100, deadline=None, derandomize=True)
@given(value=masked, x=st.integers(0, 5), y=st.integers(0, 2**32 - 1))
def test_masks_bound_what_they_are_said_to(value: int | t.Term, x: int, y: int) -> None:
    masks = Masks(KeyTable(t.memory("mem", 32)))
    masks.note(X, 5)
    most = masks.at_most(value)
    if most is not None:
        held = Evaluator({X: x, Y: y}.__getitem__, lambda *_: 0).value(_term(value))
        assert held <= most <= MOST and most & (most + 1) == 0
    masks.rename(X, Y)
    assert masks.at_most(Y) == 7 and masks.at_most(t.var("z", 32)) is None
