"""A loop that is begun again with what the first part of a turn has shown: nothing that was dropped is lost."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mcveto.dpg.location import Blocks
from mcveto.engines.simulation import early_turns
from mcveto.engines.simulation.checkpoints import Slot, again
from mcveto.engines.simulation.join import Joins
from mcveto.engines.simulation.meeting import Setting
from mcveto.engines.simulation.simulate import Simulation, simulate
from mcveto.engines.state import PathState
from mcveto.program.program import Program
from mcveto.verdict import Verdict

from .driver_text import needs_assembler, x86_driver

WAYS = 6
LOOP = """
{before}next:
	call	choice
{branches}	jmp	next
{ways}
{handlers}
	.data
flag:	.long	0
cells:	.fill	{count}, 4, 0
	.text
"""


def driver(folder: Path, handlers: list[str], before: str = "", is_called: bool = False) -> Program:
    """Each input chooses a handler, which may go to `reached`."""
    numbers = range(len(handlers))
    branches = "".join(f"\tcmpl\t${number}, %eax\n\tje\tway{number}\n" for number in numbers)
    if is_called:
        ways = "".join(f"way{number}:\n\tcall\thandler{number}\n\tjmp\tnext\n" for number in numbers)
        code = "".join(f"handler{number}:\n{text}\tret\n" for number, text in enumerate(handlers))
    else:
        ways, code = "".join(f"way{number}:\n{text}\tjmp\tnext\n" for number, text in enumerate(handlers)), ""
    return x86_driver(
        folder, LOOP.format(before=before, branches=branches, ways=ways, handlers=code, count=len(handlers))
    )


def begun_again(program: Program, monkeypatch: pytest.MonkeyPatch, part: int) -> tuple[Verdict, int]:
    """The verdict, and how many times a loop was begun again."""
    monkeypatch.setattr(early_turns, "FIRST_PART", part)
    monkeypatch.setattr(early_turns, "LONGEST_PART", 100 * part)
    count = 0
    begin_again = early_turns.EarlyTurns.begin_again

    def counted(self: early_turns.EarlyTurns, instructions: int) -> None:
        nonlocal count
        count += 1
        begin_again(self, instructions)

    monkeypatch.setattr(early_turns.EarlyTurns, "begin_again", counted)
    return simulate(program, 20.0, is_recorded=False), count


def changes(number: int) -> str:
    return f"\tmovl\t%eax, cells+{4 * number}\n"


@needs_assembler
@pytest.mark.parametrize("part", [5, 20])
@pytest.mark.parametrize(("sets", "asks"), [*product((0, 2, WAYS - 1), repeat=2)])
@pytest.mark.parametrize("is_called", [False, True])
@pytest.mark.parametrize("is_wrong", [False, True])
def test_what_one_handler_sets_and_another_asks_for(
    sets: int, asks: int, part: int, is_called: bool, is_wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = [changes(number) for number in range(WAYS)]
    handlers[sets] += f"\tmovl\t${2 if is_wrong else 1}, flag\n"
    handlers[asks] = "\tcmpl\t$2, flag\n\tje\treached\n" + handlers[asks]
    verdict, count = begun_again(driver(tmp_path, handlers, is_called=is_called), monkeypatch, part)
    assert verdict.kind == ("violated" if is_wrong else "proved")
    assert count or is_wrong or part > 5


@needs_assembler
@pytest.mark.parametrize("is_wrong", [False, True])
def test_what_left_the_head_beside_what_has_arrived_is_begun_again(
    is_wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the flag, the first handlers never end: it is only from the other states that something arrives."""
    handlers = ["\tcmpl\t$1, flag\n\tje\thang\n" + changes(number) for number in range(WAYS)]
    handlers[0] += "\tcall\tchoice\n\tcmpl\t$0, %eax\n\tje\thang\n"  # inputs decide whether the loop ends
    handlers[-1] = f"\tcmpl\t${1 if is_wrong else 2}, flag\n\tje\treached\n"
    before = "\tcmpl\t$2, flag\n\tje\treached\n"  # so that it is kept apart from the beginning
    before += "\tcall\tchoice\n\tcmpl\t$1000, %eax\n\tjne\tnext\n\tmovl\t$1, flag\n\tjmp\tnext\nhang:\tjmp\thang\n"
    verdict, count = begun_again(driver(tmp_path, handlers, before), monkeypatch, 40)
    assert verdict.kind == ("violated" if is_wrong else "proved")
    assert count or is_wrong


def waiting(key: tuple[int, ...], passed: int | None) -> Slot:
    return Slot(cast(PathState, SimpleNamespace(key=key)), frozenset(), passed=passed)


def test_only_what_has_come_through_the_head_in_this_turn_is_dropped() -> None:
    turn = early_turns.Turn(5, (7, 3, 1), (), 0, 0)
    inside, head, outside, earlier = (7, 3, 1, 4, -1), turn.next_head, (7, 4, -1), (7, 3, 0, 4, -1)
    assert turn.has(waiting(inside, 5))
    assert not turn.has(waiting(inside, None)) and not turn.has(waiting(inside, 4))
    assert not any(turn.has(waiting(key, 5)) for key in (head, outside, earlier))


@needs_assembler
def test_ways_of_which_one_has_not_come_through_the_head(tmp_path: Path) -> None:
    program = driver(tmp_path, ["\tcmpl\t$2, flag\n\tje\treached\n"])
    simulation = Simulation(program, Blocks(program), time.monotonic() + 10, None)
    simulation.record_nothing()
    simulation._begin()
    ((key, slot),) = simulation._here.slots.items()
    simulation._here.slots.clear()
    for passed, expected in ((1, 1), (1, 1), (None, None), (1, None)):
        simulation._push(again(slot.state), frozenset(), None, passed)
        assert simulation._here.slots[key].passed == expected


@needs_assembler
@pytest.mark.parametrize("lost", ["none", "one of two", "the only one"])
def test_a_loop_of_which_not_all_heads_are_known_is_not_begun_again(lost: str, tmp_path: Path) -> None:
    """Another state has had the same name since."""
    program = driver(tmp_path, [changes(0)])
    simulation = Simulation(program, Blocks(program), time.monotonic() + 10, None)
    simulation.record_nothing()
    simulation._begin()
    early = simulation._early
    while early.turn is None or not early._arrived(simulation._here.slots):
        key = simulation._here.first_waiting()
        simulation._explore(simulation._here.slots.pop(key), key)
    heads = {where: state for where, (state, _) in simulation._here.heads.items()}
    (state,) = early.turn.left
    left = {"none": (state,), "one of two": (state, again(state)), "the only one": (again(state),)}[lost]
    early.turn = early.turn._replace(left=left)
    assert len(early.states_again(heads, simulation._here.slots)) == (1 if lost == "none" else 0)


def test_turns_at_the_same_place_are_not_the_same() -> None:
    early = early_turns.EarlyTurns(cast(Setting, None), cast(Joins, None))
    head = cast(PathState, SimpleNamespace())
    first = early.enter((7, 3, 0), head, 0)
    assert early.enter((7, 3, 0), head, 0) == first
    other = early.enter((7, 5, 0), head, 0)
    assert len({first, other, early.enter((7, 3, 0), head, 0)}) == 3


@needs_assembler
def test_handlers_are_followed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them change the same words, so that a few show what all leave behind."""
    text = "".join(f"\txorl\tcells+{4 * word}, %eax\n\tmovl\t%eax, cells+{4 * word}\n" for word in range(4)) * 4
    asks = "\tcmpl\t$2, flag\n\tje\treached\n\tmovl\t$1, flag\n"
    program = driver(tmp_path, [asks + text] * 40)
    executed = []
    for part in (100, 10**9):
        verdict, count = begun_again(program, monkeypatch, part)
        assert verdict.kind == "proved" and bool(count) == (part == 100)
        executed.append(verdict.statistics["instructions_executed"])
    assert executed[0] < 0.75 * executed[1]


@needs_assembler
def test_a_turn_that_ends_by_itself_is_not_begun_again(tmp_path: Path) -> None:
    program = driver(tmp_path, ["\tcmpl\t$2, flag\n\tje\treached\n"] * 3)
    simulation = Simulation(program, Blocks(program), time.monotonic() + 10, None)
    simulation.record_nothing()
    assert simulation.run().kind == "proved"
    turn = simulation._early.turn
    assert turn is not None and turn.due == float("inf")
