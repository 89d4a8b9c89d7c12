"""The incremental graph against the literal construction: it loses no feasible trace, and accepts no more than
G0 ∩ π1/[PC] ∩ … ∩ πk/[PC] does (self-modifying variant, gaps closed). The programs are those of `test_fold`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.nested_words import Kind as WordKind
from mcveto.automata.nested_words import NWPrefix
from mcveto.automata.nwa import NWA
from mcveto.automata.nwa_acceptance import states_after
from mcveto.dpg.fold import TS as FOLDED_TS
from mcveto.dpg.fold import FoldableTrace, Symbol, TracePosition, fold
from mcveto.dpg.graph import TS, Graph
from mcveto.dpg.location import ANY, Location
from mcveto.dpg.matched_reachability import pending_addresses
from mcveto.dpg.nested_graph import START, NestedGraph
from mcveto.dpg.runs import Run, Visit
from mcveto.dpg.ways import INTERNAL, Exits, Kind, Way

from .test_fold import Instruction, programs, traces

SENTINEL = 1_000_000
WORDS = 400


def location_of(position: TracePosition, frames: tuple[int, ...] | None) -> Location:
    return Location(position.pc, position.symbol.code, ANY, ANY, frames)


def run_of(trace: FoldableTrace, keeps_call_strings: bool) -> Run:
    """The trace as the driver would see it."""
    visits: list[Visit] = []
    stack: list[tuple[int, int]] = []
    way = INTERNAL
    for number, position in enumerate(trace.positions):
        frames = (SENTINEL, *(address for address, _ in stack)) if keeps_call_strings else None
        caller = stack[-1][1] if stack else None
        visits.append(Visit(location_of(position, frames), number, number, 0, 0, None, way, caller))
        way = INTERNAL
        if position.kind is WordKind.CALL:
            stack.append((position.following, number))
            way = Way(Kind.CALL, position.following)
        elif position.kind is WordKind.RETURN:
            way = Way(Kind.RETURN, stack.pop()[0])
    return cast(Run, type("Seen", (), {"visits": visits})())


def graph_of(chosen: list[FoldableTrace], keeps_call_strings: bool) -> Graph:
    def exits(location: Location) -> Exits:
        returns = location.code.endswith(b":return")
        return Exits(not returns, returns)

    graph = Graph() if keeps_call_strings else NestedGraph(exits, SENTINEL)
    for trace in chosen:
        graph.fold(run_of(trace, keeps_call_strings))
    return graph


def accepts(graph: Graph, run: Run) -> bool:
    """Whether a trace stays in the graph, or leaves it through TS."""
    visits = run.visits
    if visits[0].location not in graph.by_location:
        return False
    for before, after in pairwise(visits):
        (number,) = graph.by_location[before.location]
        edges = graph.nodes[number].edges
        way = after.way if isinstance(graph, NestedGraph) else INTERNAL
        targets = graph.by_location.get(after.location, [])
        if not any(target in edges.get(way, ()) for target in targets):
            return TS in edges.get(graph.ts_way(way), ())
    return True


def words_to_ts(graph: Graph, program: list[Instruction], limit: int) -> Iterator[list[tuple[Symbol, WordKind]]]:
    """Words along paths of the graph that end in TS, shortest first; the step into TS may read any symbol."""
    starts = [number for number, node in sorted(graph.nodes.items()) if node.is_start]
    queue: list[tuple[int, tuple[int, ...], list[tuple[Symbol, WordKind]]]] = [(n, (SENTINEL,), []) for n in starts]
    count = 0
    while queue and count < limit:
        number, pending, word = queue.pop(0)
        node = graph.nodes[number]
        kind, argument = program[node.location.pc]
        for edge in node.steps():
            if edge.way.kind is Kind.RETURN and edge.way.address != pending[-1]:
                continue
            if edge.target == TS:
                count += 1
                symbols = [
                    Symbol(node.location.code, taken) for taken in ((False, True) if kind == "branch" else (None,))
                ]
                for symbol in symbols:
                    yield [*word, (symbol, WordKind.INTERNAL)]
                continue
            target = graph.nodes[edge.target].location
            taken = target.pc == argument if kind == "branch" else None
            after = pending
            step = WordKind.INTERNAL
            if kind == "call":
                step, after = WordKind.CALL, (*pending, node.location.pc + 1)
            elif kind == "return":
                step, after = WordKind.RETURN, pending[:-1]
            queue.append((edge.target, after, [*word, (Symbol(node.location.code, taken), step)]))


def in_every_folding(foldings: list[NWA[object]], word: list[tuple[Symbol, WordKind]]) -> bool:
    prefix = NWPrefix(tuple(symbol for symbol, _ in word), tuple(kind for _, kind in word))
    return all(FOLDED_TS in states_after(folding, prefix) for folding in foldings)


@pytest.mark.parametrize("keeps_call_strings", [False, True])
@given(programs(), st.lists(st.integers(0, 31), min_size=1, max_size=3, unique=True))
@settings(max_examples=60, deadline=None)
def test_no_feasible_trace_is_lost(keeps_call_strings: bool, program: list[Instruction], chosen: list[int]) -> None:
    everything = traces(program)
    graph = graph_of([everything[n] for n in chosen if everything[n].positions], keeps_call_strings)
    if graph.nodes:
        for trace in everything:
            if trace.positions:
                assert accepts(graph, run_of(trace, keeps_call_strings))


@pytest.mark.parametrize("keeps_call_strings", [False, True])
@given(programs(), st.lists(st.integers(0, 31), min_size=1, max_size=3, unique=True))
@settings(max_examples=60, deadline=None)
def test_contained_in_the_literal_intersection(
    keeps_call_strings: bool, program: list[Instruction], chosen: list[int]
) -> None:
    if any(kind == "branch" and argument == pc + 1 for pc, (kind, argument) in enumerate(program)):
        return  # both directions lead to the same place: the graph does not say which was seen
    everything = traces(program)
    used = [everything[n] for n in chosen if everything[n].positions]
    if not used:
        return
    foldings = cast(list[NWA[object]], [fold(trace, self_modifying=True) for trace in used])
    for word in words_to_ts(graph_of(used, keeps_call_strings), program, WORDS):
        assert in_every_folding(foldings, word)


@given(programs(), st.lists(st.integers(0, 31), min_size=1, max_size=3, unique=True), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_path_is_found_exactly_if_one_exists(program: list[Instruction], chosen: list[int], random: object) -> None:
    """The incremental search of the nested graph against saturation from scratch, while edges to TS are refuted."""
    everything = traces(program)
    used = [everything[n] for n in chosen if everything[n].positions]
    if not used:
        return
    graph = graph_of(used, False)
    assert isinstance(graph, NestedGraph)
    to_ts = [edge for node in graph.nodes.values() for edge in node.steps() if edge.target == TS]
    random.shuffle(to_ts)  # type: ignore[attr-defined]
    while True:
        starts = [number for number, node in graph.nodes.items() if node.is_start]
        reached = pending_addresses(
            starts, SENTINEL, lambda number: [(e.way, e.target) for e in graph.nodes[number].steps() if e.target != TS]
        )
        open_ends = [
            edge
            for edge in to_ts
            if edge.source in reached and (edge.way.kind is not Kind.RETURN or edge.way.address in reached[edge.source])
        ]
        path = graph.nested_path()
        assert (path is not None) == bool(open_ends)
        if path is None:
            break
        assert path[0].number == START and path[-1].number == TS
        graph.remove_edge(to_ts.pop())
