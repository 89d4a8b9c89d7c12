"""Loops whose end no input decides: joined soon, run where that lost something, and never a wrong answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcveto.engines.domain import as_term, as_value
from mcveto.engines.path import KeyTable
from mcveto.engines.path import Path as Conditions
from mcveto.engines.simulation import certain_loops
from mcveto.engines.simulation.agreement import agreed
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.simulation.value_ranges import bounds_of
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
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

# So many bytes as somebody says, but at most so many; whether there are any is asked of what was said.
CLAMP = """
	call	choice
	movl	%eax, %edx
	cmpl	$MOST, %eax
	jbe	.Lfew
	movl	$MOST, %edx
.Lfew:
	testl	%eax, %eax
	je	.Lend
	movl	$buffer, %esi
	addl	%esi, %edx
.Lcopy:
	call	choice
	movb	%al, (%esi)
	incl	%esi
	cmpl	%edx, %esi
	jne	.Lcopy
.Lend:
	cmpl	$0, flag
	jne	reached
	ret
	.data
	.p2align 4
buffer:
	.fill 10, 4, 0
flag:
	.long 0
"""


def answer(tmp_path: Path, text: str) -> Verdict:
    return simulate(x86_driver(tmp_path, text), 30, is_recorded=False)


@needs_assembler
@pytest.mark.parametrize(
    ("text", "name", "most", "instructions"),
    [
        # 496 turns of 8 to 10 instructions, of which few are followed: an inner loop counts its own turns.
        (SORT, "$31", 31, 1500),
        (WALK, "DISTANCE", 40, 400),
        (CLAMP, "MOST", 40, 400),
    ],
)
def test_stores_end_where_the_loop_ends(tmp_path: Path, text: str, name: str, most: int, instructions: int) -> None:
    prefix = "$" if name.startswith("$") else ""
    verdict = answer(tmp_path, text.replace(name, f"{prefix}{most}"))
    assert verdict.kind == "proved", verdict.reason
    assert verdict.statistics["instructions_executed"] < instructions
    beyond = answer(tmp_path, text.replace(name, f"{prefix}{most + 1}"))
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


P, Q = t.var("p", 4), t.var("q", 4)
numbers = st.integers(0, 15).map(lambda number: t.const(number, 4))
sums = st.builds(t.add, st.sampled_from([P, Q]), numbers)
conditions = st.builds(
    lambda side, number, is_less, holds: (lambda said: said if holds else t.bnot(said))(
        t.ult(side, number) if is_less else t.ult(number, side)
    ),
    st.sampled_from([P, Q]), numbers, st.booleans(), st.booleans(),
)  # fmt: skip
choices = st.recursive(st.one_of(sums, numbers), lambda inner: st.builds(t.ite, conditions, inner, inner), max_leaves=4)


def values(path: Conditions, *terms: t.Term) -> Iterator[list[int]]:
    for p, q in product(range(16), repeat=2):
        evaluator = Evaluator({P: p, Q: q}.__getitem__, lambda *_: 0)
        if all(evaluator.value(item) for item in path.terms):
            yield [evaluator.value(term) for term in terms]


def path_of(said: list[t.Term]) -> Conditions:
    path = Conditions(KeyTable(t.memory("mem", 32)))
    for condition in said:
        if condition.op != "const":
            path.add(condition)
    return path


@settings(max_examples=300, deadline=None)
@given(said=st.lists(conditions, max_size=3), asked=choices, number=numbers)
def test_bounds_of_choices(said: list[t.Term], asked: t.Term, number: t.Term) -> None:
    path = path_of(said)
    more = t.add(asked, number)
    bounds = bounds_of(asked, path), bounds_of(more, path)
    for found in values(path, asked, more):
        for value, (least, most) in zip(found, bounds, strict=True):
            assert least <= value <= most


@settings(max_examples=300, deadline=None)
@given(mine=st.lists(conditions, max_size=3), other=st.lists(conditions, max_size=3), pair=st.tuples(choices, choices))
def test_what_two_values_agree_on_is_each_of_them(
    mine: list[t.Term], other: list[t.Term], pair: tuple[t.Term, t.Term]
) -> None:
    first, second = path_of(mine), path_of(other)
    both = agreed(as_value(pair[0]), as_value(pair[1]), first, second)
    if both is not None:
        for path, value in ((first, pair[0]), (second, pair[1])):
            assert all(a == b for a, b in values(path, value, as_term(both, 4)))


def test_a_choice_agrees_with_what_it_is_in_one_case() -> None:
    at_most = t.ite(t.ult(P, t.const(5, 4)), P, t.const(4, 4))
    few, nothing = path_of([t.ult(P, t.const(5, 4))]), path_of([])
    assert agreed(at_most, P, nothing, few) is at_most and agreed(P, at_most, few, nothing) is at_most
    assert agreed(at_most, P, nothing, nothing) is None


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
