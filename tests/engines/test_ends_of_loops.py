"""Loops as drivers have them: where what they walk through ends, and what is known when they are run once more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.dpg.location import Blocks
from mcveto.engines.domain import as_term, as_value
from mcveto.engines.memory import Value
from mcveto.engines.simulation.agreement import agreed
from mcveto.engines.simulation.coarse_memory import CoarseMemory, Unknowns
from mcveto.engines.simulation.joined_paths import _clauses, _said_by_parts
from mcveto.engines.simulation.meeting import Meeting
from mcveto.engines.simulation.pointers import MOST_GROWN
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.engines.simulation.turns import guesses
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.terms import Term
from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import READ, WRITE, RegionSpec

from .driver_text import needs_assembler, x86_driver
from .random_programs import DATA, RandomProgram
from .test_pointers import pointers_and_paths

# A free entry is looked for; where the search stops, an entry is taken. The limit is a register.
SEARCH = """
	movl	$table-4, %esi
	movl	$table+28, %edi
	xorl	%ebx, %ebx
.Lnext:
	addl	$4, %esi
	call	choice
	testl	%eax, %eax
	jne	.Lfound
	incl	%ebx
	cmpl	%edi, %esi
	jne	.Lnext
	ret
.Lfound:
	movl	%eax, table(,%ebx,4)
	cmpl	$0, flag
	jne	reached
	ret
	.data
	.p2align 4
table:
	.fill SIZE, 4, 0
flag:
	.long 0
"""

# For each of three devices, requests until there are no more; the device of a turn is told by the count of the outer
# loop, which is in memory. Its mode says what becomes of its lock.
DEVICES = """
	movl	$0, device
.Ldevice:
	movl	device, %eax
	movl	$0, locks(,%eax,4)
.Lrequest:
	call	choice
	testb	$1, %al
	je	.Lnone
	testb	$2, %al
	je	.Lrequest
	movl	device, %ecx
	movl	$1, locks(,%ecx,4)
	call	choice
	movl	device, %ecx
	cmpl	$1, locks(,%ecx,4)
	jne	reached
	movl	$0, locks(,%ecx,4)
	jmp	.Lrequest
.Lnone:
	incl	device
	cmpl	$2, device
	jbe	.Ldevice
	movl	locks, %eax
	orl	locks+4, %eax
	orl	locks+8, %eax
	jne	reached
	ret
	.data
	.p2align 4
device:
	.long 0
locks:
	.long 0, 0, 0
"""

# Commands are taken from a list of those that are free, and put on a list of those that are busy.
LISTS = """
	movl	$0, %ecx
	movl	$commands, %eax
.Lfill:
	movl	%ecx, (%eax)
	movl	%eax, %ecx
	addl	$16, %eax
	cmpl	$commands+16*LENGTH, %eax
	jne	.Lfill
	movl	%ecx, free
.Lagain:
	movl	free, %esi
	testl	%esi, %esi
	je	.Lempty
	movl	(%esi), %eax
	movl	%eax, free
	movl	busy, %eax
	movl	%eax, (%esi)
	movl	%esi, busy
	call	choice
	movl	%eax, OFFSET(%esi)
	testb	$1, %al
	jne	.Lagain
.Lempty:
	cmpl	$0, flag
	jne	reached
	ret
	.data
	.p2align 4
commands:
	.fill 4*LENGTH, 4, 0
flag:
	.long 0
free:
	.long 0
busy:
	.long 0
"""

# What decides about the lock is a word of the device when it is taken, and a byte of that word when it is given back.
WORD_AND_BYTE = """
.Lagain:
	call	choice
	andl	$3, %eax
	leal	(%eax,%eax,2), %ebx
	shll	$2, %ebx
	call	choice
	movl	%eax, devices+4(%ebx)
	testb	$0x40, %ah
	je	.Ltaken
	cmpl	$0, lock
	jne	reached
	movl	$1, lock
.Ltaken:
	call	choice
	movl	%eax, devices+8(%ebx)
	testb	$0x40, devices+BYTE(%ebx)
	je	.Lagain
	cmpl	$1, lock
	jne	reached
	movl	$0, lock
	jmp	.Lagain
	.data
	.p2align 4
devices:
	.fill 12, 4, 0
lock:
	.long 0
"""

# A ring is filled from its beginning, as often as an input says; what is masked is the index of the next turn.
RING = """
	call	choice
	andl	$7, %eax
	leal	1(%eax), %edi
	xorl	%esi, %esi
.Lput:
	call	choice
	movl	%eax, ring(,%esi,4)
	incl	%esi
	andl	$3, %esi
	decl	%edi
	jne	.Lput
	cmpl	$0, flag
	jne	reached
	ret
	.data
	.p2align 4
ring:
	.fill SIZE, 4, 0
flag:
	.long 0
"""


@needs_assembler
@pytest.mark.parametrize(("size", "kind"), [(4, "proved"), (3, "violated")])
def test_an_index_that_is_masked_for_the_next_turn(size: int, kind: str, tmp_path: Path) -> None:
    verdict = simulate(x86_driver(tmp_path, RING.replace("SIZE", str(size))), 60.0)
    assert verdict.kind == kind, verdict.reason
    assert verdict.kind == "violated" or verdict.statistics["refinements"] <= 1


@needs_assembler
@pytest.mark.parametrize(("size", "kind"), [(8, "proved"), (7, "violated")])
def test_a_search_ends_at_the_limit_in_a_register(size: int, kind: str, tmp_path: Path) -> None:
    verdict = simulate(x86_driver(tmp_path, SEARCH.replace("SIZE", str(size))), 60.0)
    assert verdict.kind == kind, verdict.reason
    assert verdict.kind == "violated" or verdict.statistics["instructions_executed"] < 100


@needs_assembler
@pytest.mark.parametrize(("wrong", "kind"), [("", "proved"), ("movl	device, %ecx\n\tcmpl	$1", "violated")])
def test_a_loop_that_is_come_to_again_begins_anew(wrong: str, kind: str, tmp_path: Path) -> None:
    text = DEVICES.replace(wrong, wrong.replace("cmpl", "andl	%eax, %ecx\n\tcmpl")) if wrong else DEVICES
    verdict = simulate(x86_driver(tmp_path, text), 60.0, None, False)
    assert verdict.kind == kind, verdict.reason
    assert verdict.kind == "violated" or verdict.statistics["instructions_executed"] < 400


@needs_assembler
@pytest.mark.parametrize(("offset", "kind"), [(4, "proved"), (0, "violated")])
def test_who_walks_along_a_list_comes_to_all_of_it(offset: int, kind: str, tmp_path: Path) -> None:
    text = LISTS.replace("LENGTH", "24").replace("OFFSET", str(offset))
    program = x86_driver(tmp_path, text if offset else text.replace("commands+16*24", "commands+16*25"))
    verdict = simulate(program, 60.0, None, False)
    assert verdict.kind == kind, verdict.reason
    assert verdict.kind == "violated" or verdict.statistics["instructions_executed"] < 600


@needs_assembler
@pytest.mark.parametrize(("byte", "kind"), [(5, "proved"), (4, "violated")])
def test_a_byte_of_a_word_that_was_stored_through_a_pointer(byte: int, kind: str, tmp_path: Path) -> None:
    verdict = simulate(x86_driver(tmp_path, WORD_AND_BYTE.replace("BYTE", str(byte))), 60.0)
    assert verdict.kind == kind, verdict.reason


def evaluated(term: Term, **values: int) -> int:
    return Evaluator(lambda variable: values[variable.data], lambda *_: 0).value(term)


@given(st.booleans(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]), st.integers(-4, 4), st.integers(0, 255))
def test_what_is_known_at_an_unknown_address(is_big: bool, stored: int, size: int, distance: int, content: int) -> None:
    start, low = 0x1000, 8
    space = AddressSpace([RegionSpec("data", start, start + 32, READ | WRITE, b"")], 32, is_big)
    memory = CoarseMemory(space, Unknowns())
    pointer, word = t.var("pointer", 32), t.var("word", 8 * stored)
    memory.store_within(pointer, word, [(start, start + 32)])
    found = memory.known_at(t.add(pointer, t.const(distance % (1 << 32), 32)), size)
    if found is None:
        is_part = distance >= 0 and distance + size <= stored and not distance % size
        assert not is_part
        return
    value = content * 0x01_03_07_0D % (1 << 8 * stored)
    real = bytearray(32)
    real[low : low + stored] = value.to_bytes(stored, "big" if is_big else "little")
    at = low + distance
    expected = int.from_bytes(real[at : at + size], "big" if is_big else "little")
    assert found[0] == (pointer, stored) and evaluated(found[1], word=value) == expected


@pytest.fixture(scope="module")
def simulation() -> Iterator[Simulation]:
    program = RandomProgram(b"\xf4", b"\xc3", bytes(64), False).load()
    yield Simulation(program, Blocks(program), time.monotonic() + 1e6, None)


def test_a_list_in_a_loop_grows_to_what_memory_holds(simulation: Simulation) -> None:
    pointers, first, second = pointers_and_paths(simulation)
    known = t.var("known", 32)
    objects = [DATA + 4 * i for i in range(MOST_GROWN + 6)]
    first.add(pointers.listing(known, [0, *objects[:2]]))
    memory = simulation._executor.initial().memory
    for number, item in enumerate(objects[1:]):
        memory.store(DATA + 4 * number, item, 4)
    memory.store(DATA + 60, DATA + 62, 4)  # none of these objects
    together = pointers.together(known, objects[2], (first, second), True, memory)
    assert together == [0, *objects]
    assert pointers.together(known, DATA + 62, (first, second), True, memory) == [0, *objects[:2], DATA + 62]
    assert pointers.together(0, 0, (first, second), False, memory) == [0]


def test_a_list_is_said_by_what_its_variable_is_now(simulation: Simulation) -> None:
    pointers, path, _ = pointers_and_paths(simulation)
    old, new, other = (t.var(name, 32) for name in ("old", "new", "other"))
    says = pointers.listing(old, [0, DATA, DATA + 8])
    path.add(pointers.listing(new, [DATA, DATA + 8]))
    chosen = t.ite(t.var("bit", 1), new, t.const(0, 32))
    assert pointers.says_list(says, {old: new}, path) and pointers.says_list(says, {old: chosen}, path)
    assert not pointers.says_list(says, {old: other}, path) and not pointers.says_list(says, {}, path)
    assert not pointers.says_list(says, {old: t.add(new, t.const(8, 32))}, path)
    assert not pointers.says_list(t.disj([t.eq(old, t.const(0, 32)), t.eq(other, t.const(0, 32))]), {old: new}, path)
    assert not pointers.says_list(t.ult(old, t.const(9, 32)), {old: new}, path)


def test_a_term_that_is_a_number_by_its_own_path(simulation: Simulation) -> None:
    _, path, other = pointers_and_paths(simulation)
    given, upper = t.var("given", 32), t.extract(t.var("given", 32), 31, 3)
    path.add(t.eq(given, t.const(5, 32)))
    assert agreed(upper, 0, path, other) == 0 and agreed(0, upper, other, path) == 0
    assert agreed(given, 5, path, other) == 5
    assert agreed(upper, 1, path, other) is None and agreed(given, 5, other, other) is None
    assert agreed(upper, 0, other, path) is upper, "the other side's path says it"


counts = st.integers(1, 40)


@settings(max_examples=60, deadline=None)
@given(counts, st.sampled_from([-8, -4, -1, 1, 4, 8]), st.booleans(), st.integers(0, 3))
def test_the_last_turn_is_at_the_end_that_was_compared_with(
    simulation: Simulation, length: int, step: int, is_counted: bool, more: int
) -> None:
    """All turns of the loop `do { i += step } while (i != end)`, or `while (i != end) i += step`."""
    start = DATA + 512
    end = start + step * length + (more if abs(step) > more and step > 0 else 0) * (1 if is_counted else 0)
    simulation._joins._setting.unknowns.is_recorded = False
    first, second = simulation._executor.initial(), simulation._executor.initial()
    first.registers[0], second.registers[0] = start, start + step
    tests: dict[tuple[Value, Value], int] = {(start + step if is_counted else start, end): 32}
    meeting = Meeting(simulation._joins._setting, first, second, True, tests=tests)
    joined = simulation._joins.of(meeting)
    value = joined.registers[0]
    assert isinstance(value, Term)
    (turn,) = t.free_variables([value])
    reached = [count for count in range(length + 1) if not is_counted or count * abs(step) < abs(end - start)]
    said = [term for term in joined.path.terms if t.free_variables([term]) == [turn]]
    for count in reached if length > 1 or not is_counted else ():
        assert all(evaluated(term, **{turn.data: count}) for term in said)
    is_bounded = not all(evaluated(term, **{turn.data: length + 1}) for term in said)
    assert is_bounded or length == 1


def test_a_counter_that_was_compared_itself() -> None:
    turn, limit = t.var("turn", 32), t.var("limit", 32)
    chosen = t.ite(t.var("odd", 1), t.const(0x2001, 32), t.const(0x2000, 32))
    new, now = t.add(chosen, t.mul(turn, t.const(2, 32))), t.add(chosen, t.const(2, 32))
    # Both sides lose the number that they have in common.
    test = t.bnot(t.eq(t.add(limit, t.const(0x2000, 32)), t.add(now, t.const(0x10, 32))))
    told = [bound for bound, _ in guesses([(new, now, 2)], [test], 32)]
    assert t.ult(new, t.add(limit, t.const(0x1FF0, 32))) in told
    assert as_value(t.sub(now, chosen)) == 2


def test_a_bit_that_is_stored_is_the_number_that_was_tested(simulation: Simulation) -> None:
    executor, bit = simulation._executor, t.var("bit", 1)
    flag = t.mul(t.zext(bit, 32), t.const(16, 32))
    for said, stored in ((t.bnot(bit), 0), (bit, 16), (t.var("other", 1), flag)):
        state = executor.initial()
        state.path.add(said)
        executor._state, executor._domain.memory = state, state.memory
        executor._domain.store(DATA, flag, 4)
        assert state.memory.load(DATA, 4) == stored


BITS = [t.var(name, 1) for name in "abcd"]
literals = st.sampled_from([*BITS, *map(t.bnot, BITS)])
bits = st.lists(st.booleans(), min_size=4, max_size=4)


@given(st.lists(literals, max_size=4), st.lists(literals, max_size=4), bits)
def test_what_two_ways_say_in_pieces_is_true_of_both(one: list[Term], two: list[Term], real: list[bool]) -> None:
    values = {name: int(value) for name, value in zip("abcd", real, strict=True)}
    said = [all(evaluated(term, **values) for term in way) for way in (one, two)]
    pieces = _clauses(one, two)
    if pieces:
        assert all(evaluated(term, **values) for term in pieces) == any(said)
    assert pieces or not any(t.bnot(term) in two for term in one) or len({*one, *two}) == 2


alternatives = st.lists(literals, min_size=1, max_size=3).map(t.disj)


@given(st.lists(alternatives, max_size=4), st.lists(literals, max_size=4), bits)
def test_alternatives_that_the_other_way_says_are_true_there(
    one: list[Term], two: list[Term], real: list[bool]
) -> None:
    values = {name: int(value) for name, value in zip("abcd", real, strict=True)}
    found = _said_by_parts(one, {*two})
    assert all(term in found for term in one if term.op == "or" and any(part in two for part in term.args))
    if all(evaluated(term, **values) for term in two):
        assert all(evaluated(term, **values) for term in found)


def test_numbers_of_errors_are_between_two(simulation: Simulation) -> None:
    first, second = simulation._executor.initial(), simulation._executor.initial()
    first.registers[0], second.registers[0] = 2**32 - 5, 2**32 - 11
    joined = simulation._joins.joined(first, second, is_loop=False)
    result = joined.registers[0]
    assert isinstance(result, Term) and simulation._covering.implied(joined, t.slt(result, t.const(0, 32)))


numbers_of_states = st.integers(0, 6)


@settings(deadline=None)
@given(numbers_of_states, numbers_of_states, st.booleans())
def test_the_state_of_a_machine_stays_above_where_it_began(
    simulation: Simulation, least: int, other: int, is_sum: bool
) -> None:
    """A state is chosen by an input in one turn, and is a number in the next: `2 + !(x & 4)`, then 3, never 0 again."""
    chosen = t.add(t.zext(t.var("bit", 1), 32), t.const(least, 32))
    first, second = simulation._executor.initial(), simulation._executor.initial()
    first.registers[0] = chosen if is_sum else t.ite(t.var("bit", 1), t.const(least + 1, 32), t.const(least, 32))
    second.registers[0] = other
    joined = simulation._joins.joined(first, second, is_loop=True)
    result = joined.registers[0]
    assert isinstance(result, Term) or result == other == least
    # Of the first turn it is as small as it was, else only not the first state of all.
    expected = least if least <= other else min(other, 1)
    assert simulation._covering.implied(joined, t.ule(t.const(expected, 32), as_term(result, 32)))
    for value in (least, least + 1, other):
        said = [term for term in joined.path.terms if result in t.free_variables([term])]
        assert not isinstance(result, Term) or all(evaluated(term, **{result.data: value}) for term in said)
