"""Speculative refinement: the analyses cover what was seen, candidates are what Fig. 6 needs, splits lose nothing."""

from __future__ import annotations

import pytest

from mcveto.dpg.driver import Driver, Limits
from mcveto.dpg.graph import Graph, Witness, holds
from mcveto.dpg.liveness import live_places, registers_of
from mcveto.dpg.location import Blocks, Location
from mcveto.dpg.outcomes import OutcomeTable
from mcveto.dpg.runs import Choices, Run, Runner
from mcveto.dpg.speculate import Speculation, apply, candidates, interval_terms
from mcveto.dpg.trace_analysis import AffineAnalysis, FoldedTrace, Places, StridedAnalysis, fixpoint
from mcveto.dpg.variables import Accesses, choose, identify, observe
from mcveto.logic import terms as t
from mcveto.logic.evaluate import evaluate
from mcveto.logic.solver import make_solver
from mcveto.machine.tracked_cells import MemoryCell
from mcveto.program.program import Program

from ..machine.along_runs import example
from ..machine.test_strided import all_intervals, members

NAMES = [
    "x86-32/overview",
    "ppc32-be/overview",
    "x86-32/share-CASE-0",
    "x86-32/simp_ok",
    "x86-32/smc1-REACH-0",
    "x86-32/cars",
]


def folded(name: str, seeds: tuple[int, ...] = (0, 1)) -> tuple[Program, Graph, list[Run], Blocks]:
    program = example(name)
    blocks = Blocks(program)
    runner = Runner(program, blocks, 3_000, 0)
    graph = Graph()
    runs = [runner.run(Choices(seed=seed)) for seed in seeds]
    for run in runs:
        graph.fold(run)
    return program, graph, runs, blocks


def analysed(name: str) -> tuple[FoldedTrace, Places, list[Run]]:
    program, graph, runs, blocks = folded(name)
    seen = Accesses()
    for run in runs:
        observe(program, run, seen)
    trace = FoldedTrace(program, graph, blocks, seen)
    row, layout = program.decoder.row, program.decoder.layout
    registers = tuple(
        cell
        for cell in layout.cells
        if cell.name in row.general and cell not in (trace.stack_pointer, trace.frame_pointer)
    )
    cells = tuple(choose(identify(seen.counts.items(), seen.copies), 16, [row.address_bits // 8]))
    return trace, Places(registers, cells), runs


def value(program: Program, witness: Witness, term: t.Term) -> int:
    state = witness.visit.state
    assert state is not None
    return witness.run.execution.evaluator.value(state.value(term))


def place_term(program: Program, place: object) -> t.Term:
    if isinstance(place, MemoryCell):
        width = program.space.address_bits
        return t.load(t.memory("mem", width), t.const(place.address, width), place.size, program.space.big_endian)
    return t.var(place.name, place.bits)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_every_visited_state_is_in_what_the_analyses_compute(name: str) -> None:
    trace, places, runs = analysed(name)
    affine = fixpoint(trace, AffineAnalysis(trace, places), 0)
    ranges = fixpoint(trace, StridedAnalysis(trace, places), 2)
    everything: list[object] = [*places.registers, *places.cells]
    informative = 0
    for run in runs:
        for visit in run.visits:
            if visit.state is None:
                continue
            point = [value(trace.program, Witness(run, visit), place_term(trace.program, p)) for p in everything]
            assert point in affine[visit.location]
            for place, number in zip(everything, point, strict=True):
                interval = ranges[visit.location][place]  # type: ignore[index]
                assert number in interval, (visit.location, place)
                informative += not interval.is_top
    assert informative > 50


def test_loop_heads_are_the_targets_of_back_edges() -> None:
    trace, _, runs = analysed("x86-32/overview")
    again = {visit.location for run in runs for visit in run.visits}
    position = {location: number for number, location in enumerate(trace.order)}
    assert set(trace.order) == again
    backwards = {to for at, found in trace.successors.items() for to in found if position[to] <= position[at]}
    assert trace.loop_heads == backwards and len(backwards) == 1


def test_the_sum_that_stays_is_found_and_holds_wherever_it_is_proposed() -> None:
    program, graph, runs, _ = folded("x86-32/overview", (0,))
    found = candidates(program, graph, runs)
    trace, places, _ = analysed("x86-32/overview")
    terms = [place_term(program, cell) for cell in places.cells]
    sums = {t.eq(t.add(x, y), t.const(500, 32)) for x in terms for y in terms if x is not y}
    heads = [location for location in found if location in trace.loop_heads]
    assert len(heads) == 1 and sums & set(found[heads[0]])
    for run in runs:
        for visit in run.visits:
            if visit.state is not None:
                assert all(holds(term, Witness(run, visit)) for term in found[visit.location])
    variables = {variable for items in found.values() for variable in t.free_variables(items)}
    assert variables <= {t.memory("mem", 32), *(t.var(cell.name, 32) for cell in places.registers)}


@pytest.mark.parametrize("bits", [3, 4])
def test_terms_of_an_interval_are_its_membership(bits: int) -> None:
    x = t.var("x", bits)
    for interval in all_intervals(bits):
        inside = set(members(interval))
        terms = interval_terms(x, interval)
        for number in range(1 << bits):
            assert all(evaluate(term, {x: number}) for term in terms) == (number in inside), str(interval)


def test_nothing_is_proposed_after_the_deadline() -> None:
    program, graph, runs, _ = folded("x86-32/overview", (0,))
    assert not any(Speculation(program).candidates(graph, runs, deadline=0.0).values())
    assert any(Speculation(program).candidates(graph, runs).values())


def test_splits_keep_witnesses_and_cover_the_location() -> None:
    program, graph, runs, _ = folded("x86-32/overview", (0,))
    before = {
        location: [w for n in numbers for w in graph.nodes[n].witnesses]
        for location, numbers in graph.by_location.items()
    }
    proposed = candidates(program, graph, runs)
    splits = apply(graph, proposed)
    assert splits == sum(len(items) for location, items in proposed.items() if location != runs[0].visits[0].location)
    solver = make_solver("z3")
    for location, numbers in graph.by_location.items():
        nodes = [graph.nodes[number] for number in numbers]
        assert [w for node in nodes for w in node.witnesses] == before[location]
        witnessed = [node for node in nodes if node.witnesses]
        assert len(witnessed) == 1 and set(proposed[location]) <= {*witnessed[0].literals} | {t.TRUE}
        predicates = [t.conj(node.literals) for node in nodes]
        solver.push()
        solver.add(t.bnot(t.disj(predicates)))
        assert solver.check((), 10.0) == "unsat"
        solver.pop()
        for one in range(len(predicates)):
            for other in range(one):
                solver.push()
                solver.add(t.conj([predicates[one], predicates[other]]))
                assert solver.check((), 10.0) == "unsat"
                solver.pop()
    assert apply(graph, proposed) == 0


def test_a_candidate_that_a_witness_violates_splits_nothing() -> None:
    _, graph, runs, _ = folded("x86-32/overview", (0,))
    location = runs[0].visits[3].location
    stack = t.var("EAX", 32)
    wrong = t.ne(stack, t.const(value_of(runs[0], location), 32))
    assert apply(graph, {location: [wrong]}) == 0


def value_of(run: Run, location: Location) -> int:
    visit = next(visit for visit in run.visits if visit.location == location and visit.state is not None)
    assert visit.state is not None
    return run.execution.evaluator.value(visit.state.value(t.var("EAX", 32)))


@pytest.mark.parametrize("name", ["x86-32/overview", "x86-32/cars-signed"])
def test_registers_a_block_depends_on_are_those_it_reads(name: str) -> None:
    program, graph, _, blocks = folded(name)
    outcomes = OutcomeTable(program)
    layout = program.decoder.layout
    checked = 0
    for location in graph.by_location:
        block = blocks.of(location)
        read, written = registers_of(block, layout)
        assert not read & written
        for outcome in outcomes.of(location, block):
            changed = [after for before, after in outcome.state.items() if after is not before]
            names = {str(v.data) for v in t.free_variables([*outcome.guard, outcome.target, *changed]) if v.width}
            assert {name for name in names if name in layout.by_name} <= {cell.name for cell in read}
            checked += len(names)
            for cell in written:
                variable = t.var(cell.name, layout.significant_bits(cell))
                assert variable not in t.free_variables([outcome.state[variable]])
    assert checked > 3


def test_liveness_is_having_a_path_to_a_read() -> None:
    trace, places, runs = analysed("x86-32/share-CASE-0")
    live = live_places(trace, places)
    # Memory, from the runs themselves: what a visit reads later in the same run, before writing it, is live here.
    for run in runs:
        for number, visit in enumerate(run.visits):
            for cell in places.cells:
                for later in run.visits[number:]:
                    if cell in trace.accesses.needed[later.location]:
                        assert cell in live[visit.location]
                        break
                    if cell in trace.accesses.overwritten[later.location]:
                        break
    assert any(cell not in live[location] for location in live for cell in places.cells)


@pytest.mark.parametrize("name", ["x86-32/overview", "x86-32/overview-symbolic", "x86-32/share-CASE-0"])
def test_speculation_proves_what_unrolling_does_not(name: str) -> None:
    driver = Driver(example(name), Limits(seconds=240), speculate=True)
    assert driver.run().headline == "PROVED"
    assert driver.progress.refinements < 400


def test_speculation_does_not_hide_violations() -> None:
    driver = Driver(example("x86-32/simp_bad"), Limits(seconds=240), speculate=True)
    assert driver.run().kind == "violated"
