"""Which registers nobody reads any more: against all ways through a graph; and that forgetting any is never wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcveto.dpg.liveness import registers_of
from mcveto.dpg.location import Blocks
from mcveto.engines.order import Function, Order
from mcveto.engines.simulation.liveness import Liveness
from mcveto.engines.simulation.meeting import Setting
from mcveto.engines.simulation.simulate import simulate
from mcveto.engines.state import Place
from mcveto.program.program import Program

from .driver_text import needs_assembler, x86_driver
from .random_programs import RandomProgram, exhaustive, programs

NAMES = ("eax", "ebx", "ecx", "edx")
BLOCKS = 6
MOST_STEPS = 12

CALLS = """
	movl	$1, %ebx
	call	helper
	addl	%edx, %ebx
	call	choice
	movl	$2, %ecx
	cmpl	$0, %ecx
	jne	reached
	ret
helper:
	movl	%esi, %edx
	movl	$3, %ecx
	ret
"""


def liveness_of(program: Program) -> tuple[Liveness, Function]:
    code = Blocks(program)
    order = Order(code.fixed_block, True, program.decoder.row.mode_mask, code.end_before)
    return Liveness(program, order, lambda: 0), order.function(program.entry)


def live(program: Program, found: int) -> set[str]:
    return {cell.name.lower() for cell in program.decoder.layout.cells if found >> cell.number & 1} & {*NAMES, "esi"}


def place(function: int, pc: int) -> Place:
    return Place(None, function, pc, (), frozenset())


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = []
    for number in range(BLOCKS):
        lines.append(f".L{number}:")
        for _ in range(draw(st.integers(0, 2))):
            source, target = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
            lines.append(draw(st.sampled_from((f"\tmovl %{source}, %{target}", f"\tmovl $1, %{target}"))))
        way = draw(st.integers(0, BLOCKS))
        lines.append(f"\tjc .L{way}" if way < BLOCKS else "\tret" if draw(st.booleans()) else "\tnop")
    return "\n".join([*lines, f".L{BLOCKS}:", "\tret", ""])


@needs_assembler
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=texts())
def test_a_register_is_live_if_some_way_reads_it_first(text: str, tmp_path: Path) -> None:
    program = x86_driver(tmp_path, text)
    known, graph = liveness_of(program)
    layout = program.decoder.layout
    effects = {pc: registers_of(graph.block(pc), layout) for pc in graph.blocks()}

    def reads(pc: int, name: str, steps: int) -> bool:
        read, written = ({cell.name.lower() for cell in cells} for cells in effects[pc])
        if name in read:
            return True
        if name in written or not steps:
            return False
        return any(reads(way, name, steps - 1) for way in graph.successors(pc))

    for pc in graph.blocks():
        found = live(program, known.live_at(place(program.entry, pc)))
        assert found & {*NAMES} == {name for name in NAMES if reads(pc, name, MOST_STEPS)}


@needs_assembler
def test_through_calls_and_behind_returns(tmp_path: Path) -> None:
    program = x86_driver(tmp_path, CALLS)
    known, graph = liveness_of(program)
    entry, helper = program.entry, program.image.symbols["helper"]
    # What a call overwrites is live before it: nobody asks whether it does so on all ways.
    assert live(program, known.live_at(place(entry, entry))) - {"edx"} == {"esi"}
    behind = graph.successors(entry)[0]
    assert {"ebx", "edx"} <= live(program, known.live_at(place(entry, behind)))
    assert "ecx" not in live(program, known.live_at(place(entry, behind)))
    at_end = live(program, known.live_behind(helper))
    assert {"ebx", "edx"} <= at_end and "ecx" not in at_end


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_whatever_is_forgotten_nothing_wrong_is_said(program: RandomProgram) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Setting, "live_registers", lambda *_: 0)
        ends = exhaustive(program.load())
        verdict = simulate(program.load(), 20.0)
    bad = ends & {"target", "return-address"}
    assert verdict.kind != "violated" or bad
    assert verdict.kind != "proved" or not (bad or {"limit", "unsupported"} & ends)
