"""The worked examples of TR1669 §3 on real machine code: Fig. 2/4 (the two ways through `overview`), Fig. 7(b), Fig. 9.

Equation (2) and Fig. 8 are in `test_pre_alpha`, Fig. 6 in `test_speculate`, the gap of Fig. 5 in `test_fold`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import mcveto
from mcveto.automata.nested_words import Kind, NWPrefix
from mcveto.automata.nwa import NWA
from mcveto.automata.nwa_acceptance import states_after
from mcveto.automata.nwa_intersection import intersect
from mcveto.dpg.driver import Driver, Limits
from mcveto.dpg.fold import EXIT, TS, FoldableTrace, Symbol, TracePosition, fold
from mcveto.machine.pcode import Transfer
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program

EXAMPLES = Path(__file__).parents[2] / "examples" / "fig10" / "x86-32"
KINDS = {Transfer.CALL: Kind.CALL, Transfer.RETURN: Kind.RETURN}


def load(name: str) -> Program:
    return mcveto.load(spec=str(EXAMPLES / f"{name}.yaml"))


def trace_of(program: Program, inputs: tuple[int, ...]) -> FoldableTrace:
    """A run as Definition 1 sees it; hooks are instructions without bytes."""
    machine = program.machine(InputSource(inputs, 0), 0)
    assert machine.run(100_000).kind == "halted"
    positions = []
    for step in machine.trace:
        instruction = program.hooks.get(step.pc) or program.decoder.decode(step.pc, step.bytes)
        following = step.pc + instruction.size
        conditional = any(op.opcode == "CBRANCH" for op in instruction.ops)
        symbol = Symbol(step.bytes, step.next_pc != following if conditional else None)
        positions.append(TracePosition(step.pc, symbol, KINDS.get(step.transfer, Kind.INTERNAL), following))
    # Item 11: the step that halts, here a call of the function that ends the program, is an internal one.
    positions[-1] = replace(positions[-1], kind=Kind.INTERNAL)
    return FoldableTrace(tuple(positions), True)


def flipped(trace: FoldableTrace, at: int) -> NWPrefix:
    """The trace up to its `at`-th position, a branch that then goes the other way."""
    word = trace.word(at + 1)
    symbol = trace.positions[at].symbol
    assert symbol.taken is not None
    return NWPrefix((*word.symbols[:-1], Symbol(symbol.code, not symbol.taken)), word.kinds)


@pytest.fixture(scope="module")
def ways() -> tuple[FoldableTrace, FoldableTrace]:
    """Fig. 4(a) and (b): one run through each of the two blocks that call `adjust`."""
    program = load("overview")
    found: dict[frozenset[int], FoldableTrace] = {}
    for choice in range(8):
        trace = trace_of(program, (choice,))
        found.setdefault(frozenset(position.pc for position in trace.positions), trace)
    one, other = list(found.values())[:2]
    return one, other


def test_fig4_positions_with_the_same_pc_fall_together(ways: tuple[FoldableTrace, FoldableTrace]) -> None:
    for trace in ways:
        folded = fold(trace)
        addresses = {position.pc for position in trace.positions}
        assert len(folded.states) == len(addresses) + 2  # TS and Exit
        assert len(trace.positions) > 2 * len(addresses)  # the loop of adjust is folded
        assert EXIT in states_after(folded, trace.word())


def test_fig4_the_block_not_taken_is_unexplored_until_the_other_run_is_folded_in(
    ways: tuple[FoldableTrace, FoldableTrace],
) -> None:
    one, other = ways
    split = next(i for i, (a, b) in enumerate(zip(one.positions, other.positions, strict=False)) if a != b)
    assert one.positions[split].pc == other.positions[split].pc  # the same branch, taken once
    word = flipped(one, split)
    assert states_after(fold(one), word) == (TS,)
    assert TS not in states_after(fold(other), word)
    both = cast(NWA[object], intersect(fold(one), fold(other), lambda a, b: None))
    assert (TS, TS) not in states_after(both, word)


def test_fig4_the_error_branch_is_unexplored_in_the_intersection_too(
    ways: tuple[FoldableTrace, FoldableTrace],
) -> None:
    """The last branch, on y != 500, goes one way in both runs: the other way is a path to TS in all three graphs."""
    one, other = ways
    both = cast(NWA[object], intersect(fold(one), fold(other), lambda a, b: None))
    for trace in ways:
        last = max(i for i, position in enumerate(trace.positions) if position.symbol.taken is not None)
        assert (TS, TS) in states_after(both, flipped(trace, last))


@pytest.mark.parametrize("seed", range(4))
def test_fig7b_the_frontier_switches_away_from_the_complicated_loop(seed: int) -> None:
    """Whichever way the first run goes, ERR is reached through bar2 without refuting the hundred turns of bar1."""
    program = load("fig7b")
    driver = Driver(program, Limits(seconds=100), seed)
    verdict = driver.run()
    assert (verdict.kind, verdict.about) == ("violated", "reach")
    assert driver.progress.runs <= 4
    assert driver.progress.refinements <= 50


@pytest.mark.parametrize("seed", range(10))
def test_fig9_is_a_violation_on_every_seed(seed: int) -> None:
    """ERR is reachable only along a path in which a return serves as a call: no seed may say that it is not."""
    verdict = Driver(load("fig9"), Limits(seconds=100), seed).run()
    assert (verdict.kind, verdict.about) == ("violated", "return-address")
    assert "goes to" in verdict.reason and "instead of" in verdict.reason
    assert len(verdict.inputs) >= 1
