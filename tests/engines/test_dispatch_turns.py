"""A loop that is closed by jumps through a table takes two turns, whether or not it ends."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mcveto.dpg.location import Blocks
from mcveto.engines.order import Function, Order
from mcveto.engines.simulation import simulate as simulation
from mcveto.engines.simulation.directed import DirectedSearch
from mcveto.engines.state import Place
from mcveto.program.program import Program

from .driver_text import needs_assembler, reaching

WAYS = 40
DISPATCH = """
	.text
	.globl handle
handle:
	lis 30,cells@ha
	addi 30,30,cells@l
{entry}next:
	bl choice
{test}	cmplwi 0,3,{last}
	bgt 0,{otherwise}
	slwi 3,3,2
	lis 9,table@ha
	addi 9,9,table@l
	lwzx 10,9,3
	mtctr 10
	bctr
{ways}
done:
	b done
lock:
	lwz 5,0(30)
	cmpwi 0,5,0
	bne 0,reached
	li 5,1
	stw 5,0(30)
	blr
unlock:
	li 5,0
	stw 5,0(30)
	blr
reached:
	nop
	b reached
	.section .rodata
	.align 2
table:
{table}
	.data
	.align 2
cells:
	.space 4096
"""
ROTATED = {False: {"entry": "", "test": ""}, True: {"entry": "\tbl choice\n\tb test\n", "test": "test:\n"}}
WAY = """
.L{number}:
	bl lock
	lwz 4,{cell}(30)
	addi 4,4,1
	andi. 4,4,255
	stw 4,{cell}(30)
	bl unlock
	b next
"""


def dispatch(folder: Path, count: int, otherwise: str, is_rotated: bool) -> Program:
    ways = "".join(WAY.format(number=number, cell=4 * number + 4) for number in range(count))
    table = "\n".join(f"\t.long .L{number}" for number in range(count))
    text = DISPATCH.format(last=count - 1, ways=ways, table=table, otherwise=otherwise, **ROTATED[is_rotated])
    return reaching(folder, text, "ppc32-be", "handle", ("done",))


@needs_assembler
@pytest.mark.parametrize(("otherwise", "is_rotated"), [("done", False), ("next", False), ("done", True)])
def test_turns(otherwise: str, is_rotated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotated: the link register holds one address of code in the first turn and another in all others."""
    monkeypatch.setattr(simulation, "LONG_TURNS", 100)  # nothing is guessed that may cost another turn
    program = dispatch(tmp_path, WAYS, otherwise, is_rotated)
    verdict = simulation.simulate(program, 30, is_recorded=False)
    assert verdict.kind == "proved", verdict.reason
    # What every way calls is executed for each: 15 instructions a way, and two turns.
    assert verdict.statistics["instructions_executed"] < 2.2 * 17 * WAYS


@needs_assembler
def test_heads_have_the_names_of_what_is_kept_apart_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after going back to a checkpoint that was made when less was kept apart."""
    monkeypatch.setattr("mcveto.engines.simulation.checkpoints.STRETCH", 20)
    program = dispatch(tmp_path, 3, "done", False)
    simulated = simulation.Simulation(program, Blocks(program), time.monotonic() + 30, None)
    simulated.record_nothing()
    assert simulated.run().kind == "proved"
    simulated._apart.add(("register", simulated._apart.stack_pointer, None))
    simulated._back(1 << 40)
    assert simulated._here.heads
    for where, (state, _) in simulated._here.heads.items():
        assert where[3] == simulated._apart.values(state)


def test_a_loop_that_nothing_leaves() -> None:
    edges = {1: [2], 2: [3, 4], 3: [2], 4: [5, 6], 5: [4], 6: []}
    function = Function.__new__(Function)
    function._entry, function._successors, function._places = 1, edges, None
    function.edges, function._endless = 1, (0, {})
    assert not function.is_endless(2) and not function.is_endless(4)
    function._successors[4] = [5]
    function._places, function.edges = None, 2
    assert function.is_endless(4) and not function.is_endless(2)


def test_a_loop_that_only_a_violation_leaves() -> None:
    """A check in every turn is no test that ends the loop: nothing is counted by it, and nothing waits for its end."""
    edges = {1: [2], 2: [3, 4], 3: [2], 4: []}
    function = Function.__new__(Function)
    function._entry, function._successors, function._places = 1, edges, None
    function.edges, function._endless = 1, (0, {})
    assert not function.is_endless(2)
    function._endless = (0, {})
    assert function.is_endless(2, {4}.__contains__)
    search = DirectedSearch.__new__(DirectedSearch)
    search._order = cast(Order, SimpleNamespace(function=lambda entry: function))
    place = cast(Place, SimpleNamespace(function=1, pc=2, loops=((2, 0),)))
    search._is_target = {4}.__contains__
    assert not search._may_leave(place)
    search._is_target = set[int]().__contains__
    assert search._may_leave(place)
