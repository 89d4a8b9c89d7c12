"""What a call through a table tells about its index: never too little, and enough to know which device it is for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcveto.certify import Context
from mcveto.certify_paths import certificate_of_paths
from mcveto.check.discharge import Effort, check
from mcveto.dpg.location import Blocks
from mcveto.engines.execute import _choice
from mcveto.engines.path import KeyTable
from mcveto.engines.path import Path as Conditions
from mcveto.engines.record import PathProof
from mcveto.engines.simulation.coarse_memory import CoarseMemory
from mcveto.engines.simulation.narrowing import Narrowing, Table
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.engines.simulation.summaries import Summaries
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

from .driver_text import needs_assembler, x86_driver

WIDTH = 32


def number(value: int, width: int = WIDTH) -> Term:
    return t.const(value, width)


def conditions(*terms: Term) -> Conditions:
    return Conditions(KeyTable(t.memory("mem", WIDTH)), terms)


def nowhere(name: Term) -> Table | None:
    return None


tables = st.lists(st.integers(0, 5), min_size=2, max_size=9)


@settings(deadline=None)
@given(tables, st.sampled_from([1, 3, 8]), st.booleans())
def test_what_is_told_is_what_all_values_say(entries: list[int], stride: int, is_part: bool) -> None:
    """One index: exactly the values with which the term is what it is."""
    word = t.var("word", WIDTH)
    index = t.zext(t.extract(word, 7, 0), WIDTH) if is_part else word
    places = [stride * i for i in range(len(entries))]
    shown = t.mul(index, number(stride))
    term = _choice(shown, places, [number(entry) for entry in entries])
    path = conditions(t.ult(t.extract(word, 7, 0) if is_part else word, number(len(entries), 8 if is_part else WIDTH)))
    narrowing = Narrowing(path, nowhere)
    for entry in set(entries):
        told = narrowing.told(term, frozenset((entry,)))
        expected = [i for i, there in enumerate(entries) if there == entry]
        left = told.get(t.extract(word, 7, 0) if is_part else word, list(range(len(entries))))
        assert left == expected


@settings(deadline=None)
@given(tables, tables, st.integers(0, 5))
def test_two_ways_to_one_call_tell_no_more_than_both(first: list[int], second: list[int], where: int) -> None:
    """Which of the two tables it was is not known: an index is out only if it is with both."""
    size = min(len(first), len(second))
    index, way = t.var("index", WIDTH), t.var("way", 1)
    sides = [_choice(index, list(range(size)), [number(entry) for entry in side[:size]]) for side in (first, second)]
    term = t.ite(way, *sides)
    assume(index in t.free_variables([term]))
    told = Narrowing(conditions(t.ult(index, number(size))), nowhere).told(term, frozenset((where,)))
    expected = [i for i in range(size) if where in (first[i], second[i])]
    assert told.get(index, list(range(size))) == expected


@settings(deadline=None)
@given(tables, st.permutations(range(9)))
def test_what_was_read_from_a_table_tells_from_where(entries: list[int], order: list[int]) -> None:
    """A pointer read by the index, and a function read by the pointer: two tables, of which only names are left."""
    index, pointer, function = (t.var(name, WIDTH) for name in ("index", "pointer", "function"))
    entries = [200 + 4 * entry for entry in entries]
    size = len(entries)
    pointers = [100 + 4 * order[i] for i in range(size)]
    tables = {
        pointer: (t.add(t.mul(index, number(8)), number(16)), [16 + 8 * i for i in range(size)], pointers),
        function: (t.add(pointer, number(4)), [p + 4 for p in pointers], entries),
    }
    path = conditions(
        t.ult(index, number(size)),
        t.disj([t.eq(pointer, number(p)) for p in sorted(pointers)]),
        t.disj([t.eq(function, number(e)) for e in sorted({*entries, 300})]),
    )
    for entry in set(entries):
        told = Narrowing(path, tables.get).told(function, frozenset((entry,)))
        expected = [i for i, there in enumerate(entries) if there == entry]
        assert told[function] == [entry]
        assert told.get(index, list(range(size))) == expected
        # If the tables may no longer be what was read with, nothing is known of the index.
        assert index not in Narrowing(path, nowhere).told(function, frozenset((entry,)))


def test_what_can_be_anything_tells_nothing() -> None:
    index, other = t.var("index", WIDTH), t.var("other", WIDTH)
    term = t.ite(t.eq(index, number(0)), number(5), other)
    narrowing = Narrowing(conditions(t.ult(index, number(3))), nowhere)
    assert narrowing.told(term, frozenset((5,))) == {}
    assert narrowing.told(term, frozenset((6,))) == {index: [1, 2]}


# Devices of a lock, a mode and a pointer to the operations of their driver; two of these are called from one place. A
# driver locks its device in some modes only.
BEGIN = """
	xorl	%ecx, %ecx
.Lset:
	imull	$12, %ecx, %edx
	movl	drivers(,%ecx,4), %eax
	movl	%eax, devices+8(%edx)
	incl	%ecx
	cmpl	$DEVICES, %ecx
	jne	.Lset
.Levents:
	call	choice
	cmpl	$DEVICES, %eax
	jae	.Levents
	imull	$12, %eax, %eax
	leal	devices(%eax), %ebx
	movl	8(%ebx), %esi
	call	choice
	testb	$1, %al
	je	.Lother
	movl	(%esi), %eax
	jmp	.Lcall
.Lother:
	movl	4(%esi), %eax
.Lcall:
	call	*%eax
	jmp	.Levents
lock:
	cmpl	$0, (%ebx)
	jne	reached
	movl	$1, (%ebx)
	ret
unlock:
	cmpl	$1, (%ebx)
	jne	reached
	movl	$0, (%ebx)
	ret
"""
OPERATIONS = """
begin_NUMBER:
	call	choice
	andl	$3, %eax
	movl	%eax, 4(%ebx)
	ret
work_NUMBER:
	movl	4(%ebx), %edi
	testl	$1, %edi
	je	.Lfree_NUMBER
	call	lock
.Lfree_NUMBER:
	testl	$UNLOCKED, %edi
	je	.Ldone_NUMBER
	call	unlock
.Ldone_NUMBER:
	ret
"""


def driver(devices: int, unlocked: Callable[[int], int]) -> str:
    text = BEGIN.replace("DEVICES", str(devices))
    for device in range(devices):
        text += OPERATIONS.replace("NUMBER", str(device)).replace("UNLOCKED", str(unlocked(device)))
    text += "\t.section .rodata\n\t.p2align 4\ndrivers:\n"
    text += "".join(f"\t.long operations_{device}\n" for device in range(devices))
    text += "".join(f"operations_{i}:\n\t.long begin_{i}, work_{i}\n" for i in range(devices))
    return text + f"\t.data\n\t.p2align 4\ndevices:\n\t.zero {12 * devices}\n"


@needs_assembler
@pytest.mark.parametrize("devices", [6, 40, 80])
def test_where_a_call_goes_says_which_device_it_is_for(devices: int, tmp_path: Path) -> None:
    """Few devices are a choice between addresses, many a table."""
    verdict = simulate(x86_driver(tmp_path, driver(devices, lambda device: 1)), 120.0, None, False)
    assert verdict.kind == "proved", verdict.reason
    assert verdict.statistics["instructions_executed"] < 400 * devices


@needs_assembler
@pytest.mark.parametrize("wrong", [0, 5])
def test_the_device_whose_driver_is_wrong_is_found(wrong: int, tmp_path: Path) -> None:
    program = x86_driver(tmp_path, driver(6, lambda device: 3 if device == wrong else 1))
    assert simulate(program, 120.0, None, False).kind == "violated"


@needs_assembler
def test_a_proof_with_a_record_says_the_same(tmp_path: Path) -> None:
    assert simulate(x86_driver(tmp_path, driver(6, lambda device: 1)), 120.0).kind == "proved"


# A function that saves registers which nobody has used so far, and is called from two places.
SAVING = """
	call	saves
	call	choice
	call	saves
	call	choice
	call	saves
	cmpl	$0, word
	jne	reached
.Lend:
	jmp	.Lend
saves:
	pushl	%esi
	pushl	%edi
	movl	%eax, %esi
	testl	$1, %esi
	je	.Leven
	incl	%edi
.Leven:
	testl	$2, %esi
	je	.Lout
	decl	%edi
.Lout:
	popl	%edi
	popl	%esi
	ret
	.data
word:
	.long 0
"""


@needs_assembler
def test_registers_that_nobody_has_used_are_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failed: list[int] = []
    monkeypatch.setattr(Summaries, "is_due", lambda self, function, _: True)
    monkeypatch.setattr(Summaries, "failed", lambda self, function: failed.append(function))
    program = x86_driver(tmp_path, SAVING)
    simulation = Simulation(program, Blocks(program), time.monotonic() + 60.0, None)
    simulation.record_nothing()
    assert simulation.run().kind == "proved"
    assert not failed and simulation._summaries.unused


# Within a call that is followed for all of its kind, another one: the word at the entry of both is not the same, as the
# first has changed it before the second.
NESTED = """
	call	choice
	andl	$7, %eax
	movl	%eax, word
	call	outer
	call	choice
	andl	$7, %eax
	movl	%eax, word
	call	outer
	movl	word, %ecx
	subl	%edx, %ecx
	cmpl	$WRONG, %ecx
	je	reached
.Lend:
	jmp	.Lend
outer:
	movl	word, %edx
	addl	$3, word
	call	inner
	call	choice
	testb	$1, %al
	je	.Lonce
	call	inner
.Lonce:
	ret
inner:
	testb	$4, word
	jne	.Ltwo
	addl	$4, word
	ret
.Ltwo:
	addl	$2, word
	ret
	.data
	.p2align 4
word:
	.long 0
"""


@needs_assembler
@pytest.mark.parametrize("wrong", range(4, 14))
def test_names_of_nested_calls_are_not_confused(wrong: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("mcveto.engines.simulation.simulate.FEWEST_BLOCKS", 1)
    monkeypatch.setattr(Summaries, "is_due", lambda self, function, _: self._failures.get(function, 0) < 3)

    def inner(word: int) -> int:
        return word + (2 if word & 4 else 4)

    differences = set()
    for word in range(8):
        once = inner(word + 3)
        differences |= {once - word, inner(once) - word}
    verdict = simulate(x86_driver(tmp_path, NESTED.replace("WRONG", str(wrong))), 60.0, None, False)
    assert verdict.kind == ("violated" if wrong in differences else "proved")


# The outer call has written beside one element, and the inner one writes to another: both indices are the remainder of
# the word at the entry, but not of the same word.
REMAINDERS = """
	call	choice
	movl	%eax, word
	xorl	%eax, %eax
	call	outer
	call	choice
	movl	%eax, word
	xorl	%eax, %eax
	call	outer
.Lend:
	jmp	.Lend
outer:
	movl	word, %eax
	xorl	%edx, %edx
	movl	$5, %ecx
	divl	%ecx
	movl	%eax, %edi
	movl	%edi, array+8(,%edx,8)
	movl	%edx, %esi
	incl	word
	call	inner
	cmpl	%edi, array+8(,%esi,8)
	jne	reached
	ret
inner:
	movl	word, %eax
	xorl	%edx, %edx
	movl	$5, %ecx
	divl	%ecx
	notl	%eax
	movl	%eax, array+BESIDE(,%edx,8)
	ret
	.data
	.p2align 4
word:
	.long 0
array:
	.zero 64
"""


@needs_assembler
@pytest.mark.parametrize(("beside", "kind"), [(0, "violated"), (4, "proved")])
def test_stores_of_nested_calls_are_not_confused(
    beside: int, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mcveto.engines.simulation.simulate.FEWEST_BLOCKS", 1)
    monkeypatch.setattr(Summaries, "is_due", lambda self, function, _: self._failures.get(function, 0) < 3)
    program = x86_driver(tmp_path, REMAINDERS.replace("BESIDE", str(beside)))
    assert simulate(program, 60.0, None, False).kind == kind


@needs_assembler
def test_a_table_tells_nothing_about_an_index_that_is_not_known_to_be_the_one_it_was_read_with(tmp_path: Path) -> None:
    """Names of what was read and of indices stand for something else where a state covers another one."""
    program = x86_driver(tmp_path, SAVING)
    simulation = Simulation(program, Blocks(program), time.monotonic() + 60.0, None)
    executor, state = simulation._executor, simulation._executor.initial()
    memory = state.memory
    assert isinstance(memory, CoarseMemory)
    name, other, address = (t.var(text, WIDTH) for text in ("read", "other", "address"))
    table = executor._tables[name] = (address, [0, 4], [16, 32])
    assert executor._table_now(name, state) is None
    memory.looked[address, WIDTH // 8] = (other, 0, 8)
    assert executor._table_now(name, state) is None
    memory.looked[address, WIDTH // 8] = (name, 0, 8)
    assert executor._table_now(name, state) is table
    assert executor._table_now(other, state) is None


# A table of words that nobody has written to, read with an index that is not known, and read again.
EMPTY = """
	call	choice
	andl	$63, %eax
	movl	table(,%eax,4), %ebx
	call	choice
	testb	$1, %al
	je	.Lonce
	incl	count
.Lonce:
	andl	$0xe69a, %ebx
	cmpl	$0, %ebx
	jne	reached
.Lend:
	jmp	.Lend
	.data
	.p2align 4
table:
	.fill	64, 4, 0
count:
	.long 0
"""


@needs_assembler
def test_a_proof_says_what_is_in_a_table_that_can_be_written(tmp_path: Path) -> None:
    program = x86_driver(tmp_path, EMPTY)
    verdict = simulate(program, 60.0)
    assert verdict.kind == "proved" and isinstance(verdict.proof, PathProof)
    certificate = certificate_of_paths(program, verdict.proof, "test", Context())
    assert certificate is not None
    assert check(certificate, program.image, Effort(timeout=60)).problem == ""
