"""Trace folding: feasible traces are never lost, what Fig. 5 as printed loses, and intersection with other foldings.

Random programs are tiny instruction lists (internal steps, branches, calls, returns, halts) whose branches are decided
by a bit string; every bit string is a feasible trace, so "every feasible trace" can be enumerated.
"""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.nested_words import Kind, NWPrefix
from mcveto.automata.nwa import NWA
from mcveto.automata.nwa_acceptance import states_after
from mcveto.automata.nwa_intersection import intersect
from mcveto.dpg.fold import EXIT, TS, FoldableTrace, Symbol, TracePosition, fold

Instruction = tuple[str, int]
BITS = 5


def run(program: list[Instruction], bits: tuple[int, ...], limit: int = 24) -> FoldableTrace:
    """The trace the program takes when its branches go as the bits say (0 when they are used up)."""
    positions: list[TracePosition] = []
    stack: list[int] = []
    pc, used = 0, 0
    while len(positions) < limit:
        kind, argument = program[pc]
        code = f"{pc}:{kind}".encode()
        if kind == "halt":
            positions.append(TracePosition(pc, Symbol(code), Kind.INTERNAL))
            return FoldableTrace(tuple(positions), True)
        if kind == "branch":
            taken = bool(bits[used]) if used < len(bits) else False
            used += 1
            positions.append(TracePosition(pc, Symbol(code, taken), Kind.INTERNAL))
            pc = argument if taken else pc + 1
        elif kind == "call":
            positions.append(TracePosition(pc, Symbol(code), Kind.CALL, pc + 1))
            stack.append(pc + 1)
            pc = argument
        elif kind == "return":
            if not stack:
                break  # a return without a call is not an acceptable execution: the trace stops before it
            positions.append(TracePosition(pc, Symbol(code), Kind.RETURN))
            pc = stack.pop()
        else:
            positions.append(TracePosition(pc, Symbol(code), Kind.INTERNAL))
            pc += 1
    # As the report assumes, an uncompleted trace does not stop just before a call or return.
    while positions and positions[-1].kind is not Kind.INTERNAL:
        positions.pop()
    return FoldableTrace(tuple(positions), False)


@st.composite
def programs(draw: st.DrawFn) -> list[Instruction]:
    size = draw(st.integers(4, 9))
    instructions: list[Instruction] = [
        (draw(st.sampled_from(["step", "branch", "call", "return"])), draw(st.integers(0, size - 1)))
        for _ in range(size)
    ]
    return [*instructions, ("halt", 0)]


def lost(nwa: NWA[object], word: NWPrefix) -> bool:
    return not states_after(nwa, word)


def traces(program: list[Instruction]) -> list[FoldableTrace]:
    return [run(program, bits) for bits in product((0, 1), repeat=BITS)]


@given(programs(), st.integers(0, 2**BITS - 1), st.booleans())
@settings(max_examples=250, deadline=None)
def test_no_feasible_trace_is_lost(program: list[Instruction], chosen: int, self_modifying: bool) -> None:
    everything = traces(program)
    folded: NWA[object] = fold(everything[chosen], self_modifying=self_modifying)  # type: ignore[assignment]
    for trace in everything:
        if trace.positions:
            assert not lost(folded, trace.word())


@given(programs(), st.integers(0, 2**BITS - 1), st.integers(0, 2**BITS - 1))
@settings(max_examples=100, deadline=None)
def test_the_intersection_of_two_foldings_loses_none_either(program: list[Instruction], one: int, two: int) -> None:
    everything = traces(program)
    if not everything[one].positions or not everything[two].positions:
        return
    both: NWA[object] = intersect(fold(everything[one]), fold(everything[two]), lambda a, b: None)  # type: ignore[assignment]
    for trace in everything:
        if trace.positions:
            assert not lost(both, trace.word())


# Two call sites of a procedure with two exits: site A leaves by the first exit, site B by the second.
TWO_SITES: list[Instruction] = [
    ("call", 3),
    ("call", 3),
    ("halt", 0),
    ("branch", 5),
    ("return", 0),
    ("return", 0),
]


def test_a_program_that_the_literal_figure_gets_wrong() -> None:
    seen, other = run(TWO_SITES, (0, 1)), run(TWO_SITES, (1, 0))
    assert lost(fold(seen, literal=True), other.word())  # type: ignore[arg-type]
    assert not lost(fold(seen), other.word())  # type: ignore[arg-type]


def test_leaving_the_known_code_inside_a_matched_call_and_returning() -> None:
    """Item 7 as printed has no (TS, q_c, *, TS) for a call that was matched in the trace."""
    program: list[Instruction] = [("call", 2), ("halt", 0), ("branch", 4), ("return", 0), ("step", 0), ("return", 0)]
    seen, other = run(program, (0,)), run(program, (1,))
    assert lost(fold(seen, literal=True), other.word())  # type: ignore[arg-type]
    assert TS in states_after(fold(seen), other.word())


def test_an_unfinished_trace_that_ends_in_a_branch_leaves_both_directions_open() -> None:
    program: list[Instruction] = [("branch", 0), ("halt", 0)]
    unfinished, other = run(program, (1,), limit=1), run(program, (0,))
    assert not unfinished.halted
    assert lost(fold(unfinished, literal=True), other.word(1))  # type: ignore[arg-type]
    assert not lost(fold(unfinished), other.word(1))  # type: ignore[arg-type]


def test_a_folded_loop_accepts_any_number_of_turns() -> None:
    """Fig. 4: positions with the same PC fall together."""
    program: list[Instruction] = [("step", 0), ("branch", 0), ("halt", 0)]
    once = fold(run(program, (1, 0)))
    assert EXIT in states_after(once, run(program, (1, 1, 1, 0)).word())
    assert len(once.states) == 5  # three addresses, TS, Exit


def test_an_unexplored_branch_leads_to_the_target_surrogate() -> None:
    program: list[Instruction] = [("branch", 2), ("halt", 0), ("halt", 0)]
    folded = fold(run(program, (0,)))
    assert states_after(folded, run(program, (1,)).word(1)) == (TS,)


def test_every_return_may_violate_its_call() -> None:
    """Item 12: an internal transition from each return to TS."""
    folded = fold(run(TWO_SITES, (0, 0)))
    returning = Symbol(b"4:return")
    assert any(edge.symbol == returning and edge.target == TS for edge in folded.internals_from((4, b"")))
