"""Loops in which several things count: what a store through one of them can reach, and what values say of turns."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcveto.dpg.location import Blocks
from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import ByteOf
from mcveto.engines.path import KeyTable
from mcveto.engines.path import Path as Conditions
from mcveto.engines.simulation.choices import settled
from mcveto.engines.simulation.joined_memory import _extent
from mcveto.engines.simulation.joined_paths import _named
from mcveto.engines.simulation.joined_places import JoinedPlaces
from mcveto.engines.simulation.joined_values import _are_flags
from mcveto.engines.simulation.meeting import Meeting
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.engines.simulation.turns import Turns, counted, guesses, renamed, step_between, thresholds, wider_bounds
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace

from .driver_text import needs_assembler, x86_driver

X, Y, TURN, NEXT = (t.var(name, 8) for name in ("x", "y", "turn", "next"))
numbers = st.integers(0, 255)
starts = st.one_of(numbers, st.builds(lambda v, n: t.add(v, t.const(n, 8)), st.sampled_from([X, Y]), numbers))


def evaluated(term: Term, **values: int) -> int:
    return Evaluator(lambda variable: values[variable.data], lambda *_: 0).value(term)


@settings(max_examples=200, deadline=None)
@given(starts, st.integers(-128, 127).filter(bool), numbers, numbers, numbers, st.integers(0, 9))
def test_what_counts_is_where_its_turn_says(start: object, step: int, x: int, y: int, turn: int, more: int) -> None:
    turns = Turns()
    turns.add(TURN)
    value = counted(start, TURN, step, 8)  # type: ignore[arg-type]
    begun = evaluated(as_term(start, 8), x=x, y=y)  # type: ignore[arg-type]
    assert evaluated(as_term(value, 8), x=x, y=y, turn=turn) == (begun + step * turn) % 256
    assert evaluated(as_term(renamed(value, TURN, NEXT), 8), x=x, y=y, next=turn) == (begun + step * turn) % 256
    after = t.add(as_term(value, 8), t.const(step * more % 256, 8))
    grown = step_between(value, after, 8)
    assert grown is not None and grown % 256 == step * more % 256
    assert step_between(value, t.add(after, t.mul(X, t.const(3, 8))), 8) is None
    later = turns.later(value, after, 8)
    if later is not None:
        found, now = later
        assert found is TURN
        moved = evaluated(now, turn=turn)
        assert (begun + step * moved) % 256 == evaluated(after, x=x, y=y, turn=turn)
    assert later is not None or not -128 <= step * more <= 127, "only what wraps around is not recognised"


def test_what_counts_on_in_another_loop() -> None:
    """The turn is that of the loop whose steps fit, and of two that do, the one that needs fewer turns."""
    turns = Turns()
    turns.add(TURN)
    turns.add(NEXT)
    eight, one, five = (t.const(number, 8) for number in (8, 1, 5))
    value = t.add(t.mul(TURN, eight), NEXT)
    assert turns.later(value, t.add(value, five), 8) == (NEXT, t.add(NEXT, five))
    assert turns.later(value, t.add(value, eight), 8) == (TURN, t.add(TURN, one))
    assert turns.later(t.add(t.mul(TURN, eight), X), t.add(t.mul(TURN, eight), t.add(X, one)), 8) is None


# Sums of what counts, what does not, and what depends on a part of what counts.
counts = st.lists(
    st.tuples(st.sampled_from([TURN, NEXT, X, t.zext(t.extract(TURN, 3, 0), 8), t.mul(TURN, Y)]), st.integers(-9, 9)),
    max_size=3,
)


def summed(parts: list[tuple[Term, int]], more: int) -> Term:
    total = t.const(more % 256, 8)
    for part, factor in parts:
        total = t.add(total, t.mul(part, t.const(factor % 256, 8)))
    return total


@settings(max_examples=500, deadline=None)
@given(counts, st.integers(-20, 20), counts, st.integers(-20, 20), st.booleans())
@example(
    [(TURN, 1), (t.zext(t.extract(TURN, 3, 0), 8), 1)], 0, [(TURN, 1), (t.zext(t.extract(TURN, 3, 0), 8), 1)], 1, False
)
@example([(TURN, -1)], 4, [(NEXT, -1)], 3, False)
def test_a_later_turn_makes_of_the_old_value_the_new_one(
    old_parts: list[tuple[Term, int]], old: int, new_parts: list[tuple[Term, int]], new: int, is_same: bool
) -> None:
    """Whatever else is in it; and what stands for two ways is what either of them has."""
    turns = Turns()
    turns.add(TURN)
    turns.add(NEXT)
    first, second = summed(old_parts, old), summed(old_parts if is_same else new_parts, new)
    later = turns.later(as_value(first), as_value(second), 8)
    if later is not None:
        assert renamed(first, *later) == as_value(second)
    met = turns.met(as_value(first), as_value(second))
    if met is not None:
        start, turn, other, step = met
        assert t.add(start, t.mul(turn, t.const(step % 256, 8))) is first
        assert t.add(start, t.mul(other, t.const(step % 256, 8))) is second


def test_the_same_count_in_turns_of_another_name() -> None:
    """States that were kept apart at the head of a loop have met within it."""
    turns = Turns()
    turns.add(TURN)
    turns.add(NEXT)
    four = t.const(4, 8)
    assert turns.met(t.sub(four, TURN), t.sub(four, NEXT)) == (four, TURN, NEXT, -1)
    assert turns.met(t.sub(four, TURN), t.sub(X, NEXT)) is None
    assert turns.met(t.sub(four, TURN), t.add(four, NEXT)) is None
    assert turns.later(t.sub(four, TURN), t.sub(t.const(3, 8), NEXT), 8) == (TURN, t.add(NEXT, t.const(1, 8)))
    assert turns.later(t.mul(four, TURN), t.add(t.mul(four, NEXT), t.const(2, 8)), 8) is None


# A lock that is taken in one of two ways before a loop, given back and taken again in each turn.
TRIES = """
	call	choice
	andl	$1, %eax
	movl	%eax, %edi
	incl	%eax
	movl	%eax, lock
	movl	$4, %esi
	xorl	%ebx, %ebx
.Lhead:
	call	choice
	testb	$1, %al
	jne	.Ldone
	leal	1(%edi), %ecx
	cmpl	%ecx, lock
	jne	reached
	movl	$0, lock
	addl	%ebx, count
	leal	1(%edi), %ecx
	movl	%ecx, lock
	incl	%ebx
	decl	%esi
	jne	.Lhead
.Ldone:
	leal	(%esi,%ebx), %ecx
	cmpl	$SUM, %ecx
	jne	reached
.Lend:
	jmp	.Lend
	.data
	.p2align 4
lock:
	.long 0
count:
	.long 0
"""


@needs_assembler
@pytest.mark.parametrize(("total", "kind"), [(4, "proved"), (5, "violated")])
def test_two_ways_that_meet_in_a_loop_count_alike(total: int, kind: str, tmp_path: Path) -> None:
    verdict = simulate(x86_driver(tmp_path, TRIES.replace("SUM", str(total))), 60.0, is_recorded=False)
    assert verdict.kind == kind


@settings(max_examples=100, deadline=None)
@given(st.booleans(), st.integers(1, 20), numbers, numbers)
def test_guesses_say_the_same_of_what_is_and_what_stands_for_it(grows: bool, size: int, x: int, now: int) -> None:
    step = size if grows else -size
    said = [*guesses([(TURN, t.const(now, 8), step)], [t.bnot(t.eq(X, t.const(3, 8))), t.ult(Y, X)], 8)]
    assert len(said) == (4 if grows and now != 3 else 2)
    for general, present in said:
        assert evaluated(general, x=x, y=x, turn=now) == evaluated(present, x=x, y=x)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(2, 250), max_size=3), st.booleans(), numbers, numbers)
@example(written=[2, 127], grows=False, now=128, later=1)  # where the numbers that count as negative begin
def test_thresholds_hold_now_and_say_less_and_less(written: list[int], grows: bool, now: int, later: int) -> None:
    """The first bound holds of the value now, each wider one wherever the one before it does; none is left out that
    is nearer and holds later."""
    first = [*thresholds([(TURN, t.const(now, 8), 1 if grows else -1)], written)]
    near = {number + around for number in written for around in (-1, 0, 1)}
    fitting = [number for number in near if 0 <= number < 256 and (now <= number if grows else number <= now)]
    assert len(first) == bool(fitting)
    for bound in first:
        assert evaluated(bound, turn=now) == 1
        rest = [bound, *wider_bounds(bound, written)]
        held = [evaluated(item, turn=later) for item in rest]
        assert held == sorted(held)
        telling = [number for number in fitting if number != (255 if grows else 0)] or fitting
        assert max(held) == any(later <= number if grows else number <= later for number in telling)


BUFFER = """
	call	choice
	andl	$15, %eax
	movl	%eax, %edx
	LOOP
.Lend:
	cmpl	$0, flag
	je	.Lreturn
reached:
	nop
.Lreturn:
	ret
	.data
	.p2align 4
buffer:
	.fill SIZE, 1, 0
flag:
	.long 0
"""
LOOPS = {
    # A count that runs down and a pointer, tested at the end.
    "pointer": """
	testl	%edx, %edx
	je	.Lend
	movl	$buffer, %ecx
.Lagain:
	movb	$7, (%ecx)
	incl	%ecx
	decl	%edx
	jne	.Lagain
""",
    # An index, compared with what nothing changes, at the beginning.
    "index": """
	xorl	%ecx, %ecx
.Lagain:
	cmpl	%edx, %ecx
	jae	.Lend
	movb	$7, buffer(%ecx)
	incl	%ecx
	jmp	.Lagain
""",
    # An index tested at the end, for being another number only.
    "unequal": """
	testl	%edx, %edx
	je	.Lend
	xorl	%ecx, %ecx
.Lagain:
	movb	$7, buffer(%ecx)
	incl	%ecx
	cmpl	%edx, %ecx
	jne	.Lagain
""",
    # The same, tested by its bits: n ^ 4 with n ^ 4 ^ i = 4, as compilers fold it.
    "bits": """
	xorl	$4, %edx
	cmpl	$4, %edx
	je	.Lend
	xorl	%ecx, %ecx
.Lagain:
	movb	$7, buffer(%ecx)
	incl	%ecx
	movl	%edx, %eax
	xorl	%ecx, %eax
	cmpl	$4, %eax
	jne	.Lagain
""",
    # Up to a number, or until an input says so; the index lies on the stack, as without optimisation.
    "number": """
	subl	$8, %esp
	movl	$0, (%esp)
	jmp	.Ltest
.Lagain:
	movl	(%esp), %ecx
	movb	$7, buffer(%ecx)
	call	choice
	testl	%eax, %eax
	jne	.Lout
	incl	(%esp)
.Ltest:
	cmpl	$14, (%esp)
	jle	.Lagain
.Lout:
	addl	$8, %esp
""",
    # From the end to the beginning, with another pointer that runs the other way.
    "backwards": """
	testl	%edx, %edx
	je	.Lend
	movl	$buffer, %esi
	leal	buffer-1(%edx), %ecx
.Lagain:
	movb	(%esi), %al
	movb	$7, (%ecx)
	incl	%esi
	decl	%ecx
	decl	%edx
	jne	.Lagain
""",
}


@needs_assembler
@pytest.mark.parametrize(("size", "is_proved"), [(15, True), (14, False)])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_up_to_an_input_stays_in_its_buffer(loop: str, size: int, is_proved: bool, tmp_path: Path) -> None:
    text = BUFFER.replace("LOOP", LOOPS[loop]).replace("SIZE", str(size))
    verdict = simulate(x86_driver(tmp_path, text), 60)
    assert (verdict.kind == "proved") == is_proved, verdict.reason
    assert loop == "number" or all(given.value & 15 == 15 for given in verdict.inputs)


def test_a_byte_beside_others_that_become_unknown_is_joined_by_itself() -> None:
    space = AddressSpace((), 32, False)
    mode, known = 0x100, {0x100: 2, 0x101: 0, 0x102: 0, 0x103: 0}
    partly = {mode: 2, 0x101: 0, 0x102: 0}
    assert _extent(0x103, known, partly, space) == (0x103, 1)
    assert _extent(0x103, known, {**known, mode: 3, 0x103: 1}, space) == (mode, 4), "numbers are words"
    word = {0x100 + i: ByteOf(t.var("w", 32), i) for i in range(4)}
    assert _extent(0x103, known, word, space) == (mode, 4)


def test_flags_that_a_path_decides_are_numbers() -> None:
    path = Conditions(KeyTable(t.memory("mem", 32)))
    small, even = t.ult(X, t.const(9, 8)), t.bnot(t.extract(Y, 0, 0))
    path.add(small)
    path.add(even)
    assert settled(t.zext(small, 32), path) == 1 and settled(t.zext(t.bnot(even), 32), path) == 0
    assert settled(t.mul(t.zext(small, 32), t.const(4, 32)), path) == 4
    assert settled(t.zext(t.conj([small, even]), 32), path) == 1, "the path says its parts"
    open_one = t.zext(t.eq(X, t.const(3, 8)), 32)
    assert settled(open_one, path) is open_one and settled(7, path) == 7
    assert settled(t.zext(X, 32), path) is t.zext(X, 32), "no flag"


def test_a_condition_that_gets_a_name_gives_its_opposite_one() -> None:
    bit, flag = t.extract(X, 2, 2), t.var("flag", 1)
    names = _named([(t.bnot(bit), flag), (X, Y), (t.add(X, Y), Y), (3, Y)])
    assert names == {t.bnot(bit): flag, bit: t.bnot(flag), X: Y}


def test_outcomes_of_comparisons_are_short() -> None:
    outcome = t.concat(t.zext(t.ult(X, Y), 7), t.eq(X, Y))
    assert _are_flags(outcome, 4, 8) and not _are_flags(outcome, X, 8), "a variable is renamed"
    assert not _are_flags(t.zext(outcome, 32), 4, 32)


@needs_assembler
def test_only_functions_that_are_chosen_are_listed(tmp_path: Path) -> None:
    """Not where calls return to: what they leave behind is another address after every call."""
    program = x86_driver(tmp_path, TRIES.replace("SUM", "4"))
    simulation = Simulation(program, Blocks(program), time.monotonic() + 60, None)
    simulation.record_nothing()
    assert simulation.run().kind == "proved"
    behind = simulation._executor._behind_calls
    assert len(behind) == 2
    state = simulation._executor.initial()
    places = JoinedPlaces(Meeting(simulation._joins._setting, state, state, is_loop=False))
    assert places._places(program.entry, state.path) == [program.entry]
    assert not any(places._places(address, state.path) for address in behind)


@needs_assembler
def test_what_counts_up_and_what_counts_down_stay_together_where_ways_meet(tmp_path: Path) -> None:
    program = x86_driver(tmp_path, TRIES.replace("SUM", "4"))
    simulation = Simulation(program, Blocks(program), time.monotonic() + 60, None)
    layout, turns = program.decoder.layout, simulation._joins._setting.turns
    up, down = (layout.named(name)[0].cell.number for name in ("EBX", "ESI"))
    ways = []
    for name in ("one", "other"):
        turn = t.var(name, 32)
        turns.add(turn)
        state = simulation._executor.initial()
        state.registers |= {up: turn, down: t.sub(t.const(4, 32), turn)}
        ways.append(state)
    joined = simulation._joins.joined(ways[0], ways[1], is_loop=False)
    count = joined.registers[up]
    assert isinstance(count, Term) and count in turns
    assert joined.registers[down] is t.sub(t.const(4, 32), count)
