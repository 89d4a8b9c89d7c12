"""Questions about states: which bytes are facts where, what is asserted once, and what a core names."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.dpg.strengthen.queries import Model, OutOfTime, Queries, Unsat
from mcveto.logic import terms as t
from mcveto.machine.memory import WRITE
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec

EXAMPLE = Path(__file__).parents[3] / "examples" / "fig10" / "x86-32" / "store-REACH-0.yaml"


@pytest.fixture(scope="module")
def program() -> Program:
    return load_program(None, load_spec(str(EXAMPLE)))


def known_byte(program: Program, writable: bool) -> tuple[int, int]:
    """An address of the image with its byte."""
    for region in program.space.regions:
        if bool(region.permissions & WRITE) == writable:
            for address in range(region.start, region.start + 64):
                byte = program.space.initial_byte(address)
                if byte is not None:
                    return address, byte
    raise AssertionError("no such byte")


def test_bytes_that_cannot_change_are_facts_through_pointers_too(program: Program) -> None:
    queries = Queries(program, lambda: 100.0)
    address, byte = known_byte(program, writable=False)
    pointer = t.var("EAX", 32)
    read = t.load(t.memory("mem", 32), pointer, 1, False)
    at = t.eq(pointer, t.const(address, 32))
    assert isinstance(queries.ask([at, t.ne(read, t.const(byte, 8))]), Unsat)
    answer = queries.ask([at, t.eq(read, t.const(byte, 8))])
    assert isinstance(answer, Model) and answer.value(read) == byte
    assert queries.facts
    # Only what refuted something is named in a proof.
    assert 0 < len(queries.needed_facts) < len(queries.facts)
    assert all(fact in queries.facts.values() for fact in queries.needed_facts)


def test_bytes_that_can_change_are_facts_at_entry_only(program: Program) -> None:
    queries = Queries(program, lambda: 100.0)
    address, byte = known_byte(program, writable=True)
    pointer = t.var("EAX", 32)
    read = t.load(t.memory("mem", 32), pointer, 1, False)
    changed = [t.eq(pointer, t.const(address, 32)), t.ne(read, t.const(byte, 8))]
    assert isinstance(queries.ask(changed), Model)
    assert isinstance(queries.ask(changed, at_entry=True), Unsat)


@pytest.mark.parametrize("size", [1, 4])
def test_equal_bytes_at_entry_are_learned_together(program: Program, size: int) -> None:
    """A question about any of thousands of cells takes a few rounds, not one for each."""
    queries = Queries(program, lambda: 100.0)
    ranges = [space_range(program, region.start) for region in program.space.regions if region.permissions & WRITE]
    low, high = max(ranges, key=lambda found: found[1] - found[0])
    assert high - low > 4096
    pointer = t.var("EAX", 32)
    read = t.load(t.memory("mem", 32), pointer, size, False)
    byte = program.space.initial_byte(low)
    content = t.const(int.from_bytes(bytes([byte or 0]) * size), 8 * size)
    near = t.ult(t.sub(pointer, t.const(low, 32)), t.const(high - low - size + 1, 32))
    assert isinstance(queries.ask([near, t.ne(read, content)], at_entry=True), Unsat)
    assert queries.count <= 5
    # Only at entry, and no more than these bytes.
    assert isinstance(queries.ask([near, t.ne(read, content)]), Model)
    answer = queries.ask([near, t.eq(read, content)], at_entry=True)
    assert isinstance(answer, Model) and low <= answer.value(pointer) <= high - size


def space_range(program: Program, address: int) -> tuple[int, int]:
    found = program.space.uniform_range(address)
    return found if found is not None else (address, address)


def test_what_is_known_is_not_in_the_core_and_can_shrink(program: Program) -> None:
    queries = Queries(program, lambda: 100.0)
    x, y = t.var("EAX", 32), t.var("EBX", 32)
    small, large = t.ult(x, t.const(5, 32)), t.ult(t.const(9, 32), x)
    answer = queries.ask([large, t.eq(y, x)], where="here", known={small: None})
    assert isinstance(answer, Unsat) and answer.core == {large}
    assert isinstance(queries.ask([large], where="here", known={t.ult(y, x): None}), Model)
    assert isinstance(queries.ask([large], where="elsewhere", known={small: None}), Unsat)


def test_words_and_their_bytes_agree(program: Program) -> None:
    queries = Queries(program, lambda: 100.0)
    region = next(region for region in program.space.regions if region.permissions & WRITE)
    memory, address = t.memory("mem", 32), t.const(region.start, 32)
    word = t.eq(t.load(memory, address, 4, False), t.const(0x11223344, 32))
    low = t.load(memory, address, 1, False)
    assert isinstance(queries.ask([word, t.ne(low, t.const(0x44, 8))]), Unsat)
    # The same with a read through a pointer beside it, which keeps the memory an array.
    anywhere = t.ne(t.load(memory, t.var("EAX", 32), 1, False), t.const(0, 8))
    assert isinstance(queries.ask([word, t.ne(low, t.const(0x44, 8)), anywhere]), Unsat)


def test_the_deadline_is_kept(program: Program) -> None:
    with pytest.raises(OutOfTime):
        Queries(program, lambda: 0.0).ask([t.var("CF", 1)])
