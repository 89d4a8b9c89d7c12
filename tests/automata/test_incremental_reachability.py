"""The repaired solution against recomputation and breadth-first search, after every change."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.incremental_reachability import IncrementalReachability
from mcveto.automata.nested_paths import PathTooLong
from mcveto.automata.nested_words import ANY
from mcveto.automata.nwa import NWA
from mcveto.automata.nwa_emptiness import shortest_run

from .oracles import distance_by_search, is_run


@dataclass
class Model:
    """The same graph as plain sets, and the split written from its definition."""

    nodes: int = 4
    starts: set[int] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)
    edges: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)

    def split(self, node: int, twin: int) -> None:
        def image(end: int) -> set[int]:
            return {end, twin} if end == node else {end}

        for kind, ends in list(self.edges):
            choices: set[tuple[int, ...]] = {()}
            for end in ends:
                choices = {(*chosen, one) for chosen in choices for one in image(end)}
            self.edges |= {(kind, choice) for choice in choices}
        for group in (self.starts, self.targets):
            if node in group:
                group.add(twin)

    def nwa(self) -> NWA[int]:
        nwa: NWA[int] = NWA()
        for start in sorted(self.starts):
            nwa.add_state(start, initial=True)
        for target in sorted(self.targets):
            nwa.add_state(target, final=True)
        for kind, ends in sorted(self.edges):
            if kind == "internal":
                nwa.add_internal(ends[0], ANY, ends[1])
            elif kind == "call":
                nwa.add_call(ends[0], ANY, ends[1])
            else:
                nwa.add_return(ends[0], ends[1], ANY, ends[2])
        return nwa


def change(model: Model, graph: IncrementalReachability[int], adding: bool, kind: str, ends: tuple[int, ...]) -> None:
    """Applies one change to both; nodes are taken modulo the present number of nodes."""
    ends = tuple(end % model.nodes for end in ends)
    if kind in ("start", "target"):
        group = model.starts if kind == "start" else model.targets
        (group.add if adding else group.discard)(ends[0])
        getattr(graph, f"{'add' if adding else 'remove'}_{kind}")(ends[0])
    elif kind == "split":
        if any(ends[0] in edge for _, edge in model.edges) and model.nodes < 7:
            model.split(ends[0], model.nodes)
            graph.split(ends[0], model.nodes)
            model.nodes += 1
    elif kind == "node":
        if not adding:
            model.edges = {edge for edge in model.edges if ends[0] not in edge[1]}
            model.starts.discard(ends[0])
            model.targets.discard(ends[0])
            graph.remove_node(ends[0])
    else:
        used = ends[:3] if kind == "return" else ends[:2]
        (model.edges.add if adding else model.edges.discard)((kind, used))
        getattr(graph, f"{'add' if adding else 'remove'}_{kind}")(*used)


def check(model: Model, graph: IncrementalReachability[int], *, naive: bool) -> None:
    nwa = model.nwa()
    expected = shortest_run(nwa)
    path = graph.shortest_path()
    assert graph.distance() == (None if expected is None else len(expected.word))
    if path is None:
        assert expected is None
    else:
        assert len(path.word) == graph.distance()
        assert is_run(nwa, path.word, path.states)
    if naive:
        shallow = distance_by_search(nwa, 4)
        assert shallow is None or (path is not None and len(path.word) <= shallow)


ends = st.tuples(*[st.integers(0, 6)] * 3)
kinds = st.sampled_from(
    ["internal", "internal", "call", "call", "return", "return", "split", "start", "target", "node"]
)
changes = st.lists(st.tuples(st.sampled_from([True, True, False]), kinds, ends), max_size=40)


@given(changes)
@settings(max_examples=300, deadline=None)
def test_after_every_change(steps: list[tuple[bool, str, tuple[int, int, int]]]) -> None:
    model, graph = Model(), IncrementalReachability[int]()
    change(model, graph, True, "start", (0,))
    change(model, graph, True, "target", (3,))
    for step in steps:
        change(model, graph, *step)
        check(model, graph, naive=False)


@given(st.lists(changes, max_size=4))
@settings(max_examples=150, deadline=None)
def test_after_batches_of_changes(batches: list[list[tuple[bool, str, tuple[int, int, int]]]]) -> None:
    model, graph = Model(), IncrementalReachability[int]()
    change(model, graph, True, "start", (0,))
    change(model, graph, True, "target", (3,))
    for batch in batches:
        for step in batch:
            change(model, graph, *step)
        check(model, graph, naive=True)


def test_recursion_does_not_support_itself() -> None:
    """A procedure that is only called by itself keeps no summary once its last outside call is gone."""
    graph = IncrementalReachability[str]()
    graph.add_start("s")
    graph.add_target("t")
    graph.add_call("s", "f")
    graph.add_call("f", "f")
    graph.add_return("f", "f", "f")
    graph.add_return("f", "s", "t")
    assert graph.distance() == 2
    graph.remove_call("s", "f")
    assert graph.distance() is None


def test_a_path_of_exponential_length_is_measured_but_not_written_out() -> None:
    graph = IncrementalReachability[tuple[int, int]]()
    depth = 80
    graph.add_start((depth, 0))
    graph.add_target((depth, 2))
    graph.add_internal((0, 0), (0, 2))
    for level in range(1, depth + 1):
        for half in range(2):
            graph.add_call((level, half), (level - 1, 0))
            graph.add_return((level - 1, 2), (level, half), (level, half + 1))
    assert graph.distance() == 2**depth + 4 * (2**depth - 1)
    with pytest.raises(PathTooLong):
        graph.shortest_path()


def test_splitting_needs_an_old_and_a_new_node() -> None:
    graph = IncrementalReachability[int]()
    graph.add_internal(0, 1)
    with pytest.raises(ValueError, match="must not be one"):
        graph.split(0, 1)
    with pytest.raises(ValueError, match="must be a node"):
        graph.split(7, 8)


def test_an_edge_into_a_crowded_target_is_removed_in_logarithmic_work() -> None:
    """The target surrogate has thousands of incoming edges; losing the best one does not look at them all."""
    graph = IncrementalReachability[object]()
    graph.add_start("start")
    graph.add_target("TS")
    for node in range(2000):
        graph.add_internal("start", node)
        graph.add_internal(node, "TS")
    assert graph.distance() == 2
    before = graph.work.total
    for node in range(100):
        graph.remove_internal(node, "TS")
        assert graph.distance() == 2
    assert graph.work.total - before < 100 * 40


def test_both_parts_of_a_split_call_node_return() -> None:
    model, graph = Model(), IncrementalReachability[int]()
    for kind, ends in (("start", (0,)), ("target", (3,)), ("call", (0, 1)), ("return", (1, 0, 2))):
        change(model, graph, True, kind, ends)
    change(model, graph, True, "internal", (2, 3))
    change(model, graph, True, "split", (0,))
    for removed in ((1, 0, 2), (1, 4, 2)):
        check(model, graph, naive=True)
        assert graph.distance() == 3
        change(model, graph, False, "return", removed)
    assert graph.distance() is None
    check(model, graph, naive=True)
