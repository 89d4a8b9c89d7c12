"""The abstract graph: folding, splitting, TS edges."""

from __future__ import annotations

from typing import cast

from mcveto.dpg.graph import TS, Edge, Graph, Witness
from mcveto.dpg.location import Location
from mcveto.dpg.ways import INTERNAL
from mcveto.logic import terms as t


def location(pc: int) -> Location:
    return Location(pc, b"\x90", 0, 0, ())


def chain(length: int) -> Graph:
    graph = Graph()
    for pc in range(length):
        graph.add_location(location(pc), is_start=pc == 0)
        if pc:
            graph.add_successor(location(pc - 1), location(pc))
    return graph


def witnessed(graph: Graph, *numbers: int) -> None:
    """Gives the nodes a witness (of whose state nothing is asked here)."""
    for number in numbers:
        graph.nodes[number].witnesses.append(cast(Witness, None))
        graph._witnesses_changed(graph.nodes[number])


def frontier(graph: Graph) -> tuple[int, int] | None:
    found = graph.frontier()
    return None if found is None else (found.edge.source, found.edge.target)


def test_the_frontier_is_the_one_nearest_to_ts() -> None:
    graph = chain(3)
    witnessed(graph, 1)
    assert frontier(graph) == (1, TS)
    graph.remove_edge(Edge(1, INTERNAL, TS))
    assert frontier(graph) == (1, 2)
    witnessed(graph, 2)
    assert frontier(graph) == (2, TS)


def test_no_path_is_left_when_every_ts_edge_is_refuted() -> None:
    graph = chain(3)
    witnessed(graph, 1, 2, 3)
    for number in (1, 2, 3):
        assert frontier(graph) == (number, TS)
        graph.remove_edge(Edge(number, INTERNAL, TS))
    assert frontier(graph) is None
    assert graph.reachable() == [1, 2, 3]
    assert not graph.undecided()


def test_an_edge_that_is_given_up_is_passed_over_but_not_forgotten() -> None:
    graph = chain(2)
    witnessed(graph, 1, 2)
    graph.give_up(Edge(1, INTERNAL, TS))
    graph.remove_edge(Edge(2, INTERNAL, TS))
    assert frontier(graph) is None
    assert graph.undecided()


def test_a_new_successor_is_given_to_nodes_whose_ts_edge_was_given_up() -> None:
    """Nobody showed that the step is impossible: it was only not decided."""
    graph = chain(2)
    graph.give_up(Edge(1, INTERNAL, TS))
    graph.add_location(location(7))
    graph.add_successor(location(0), location(7))
    (new,) = graph.by_location[location(7)]
    assert new in graph.nodes[1].successors


def test_an_edge_given_up_is_given_up_for_both_parts_of_a_split() -> None:
    graph = chain(2)
    graph.give_up(Edge(1, INTERNAL, TS))
    stays, moved = graph.split(1, t.var("p", 1))
    assert {Edge(stays, INTERNAL, TS), Edge(moved, INTERNAL, TS)} <= graph.given_up


def test_a_split_keeps_every_path() -> None:
    graph = chain(3)
    graph.add_successor(location(2), location(0))
    stays, moved = graph.split(2, t.var("p", 1))
    assert graph.nodes[stays].literals == (t.bnot(t.var("p", 1)),)
    assert graph.nodes[moved].literals == (t.var("p", 1),)
    assert {stays, moved} <= graph.nodes[1].successors
    assert graph.nodes[moved].successors == graph.nodes[stays].successors == {3, TS}


def test_a_node_with_a_loop_on_itself_is_split_into_all_four_edges() -> None:
    graph = chain(1)
    graph.add_successor(location(0), location(0))
    stays, moved = graph.split(1, t.var("p", 1))
    for source in (stays, moved):
        assert {stays, moved} <= graph.nodes[source].successors


def test_a_new_successor_is_not_given_to_nodes_whose_ts_edge_was_refuted() -> None:
    graph = chain(2)
    stays, moved = graph.split(1, t.var("p", 1))
    graph.remove_edge(Edge(stays, INTERNAL, TS))
    graph.add_location(location(7))
    graph.add_successor(location(0), location(7))
    (new,) = graph.by_location[location(7)]
    assert new in graph.nodes[moved].successors
    assert new not in graph.nodes[stays].successors
