"""Distances and paths after random changes, against breadth-first search from scratch."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.dynamic_shortest_path import DynamicShortestPath

NODES = 8
GOAL = 0
changes = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "remove", "start", "unstart", "split"]),
        st.integers(1, NODES - 1),
        st.integers(0, NODES - 1),
    ),
    max_size=60,
)


def breadth_first(edges: set[tuple[int, int]], starts: set[int]) -> dict[int, int]:
    distance = dict.fromkeys(starts, 0)
    queue = sorted(starts)
    for node in queue:
        for source, target in sorted(edges):
            if source == node and target not in distance:
                distance[target] = distance[node] + 1
                queue.append(target)
    return distance


@given(changes)
@settings(max_examples=600, deadline=None)
def test_agrees_with_breadth_first_search(steps: list[tuple[str, int, int]]) -> None:
    graph = DynamicShortestPath(GOAL)
    edges: set[tuple[int, int]] = set()
    starts: set[int] = set()
    used = {GOAL}
    for kind, a, b in steps:
        used.add(a)
        if kind == "add":
            graph.add_edge(a, b)
            edges.add((a, b))
        elif kind == "remove":
            graph.remove_edge(a, b)
            edges.discard((a, b))
        elif kind == "split":
            if b not in used:
                graph.split(a, b)
                edges |= {(x, b) for x, y in edges if y == a}
                edges |= {(b, y) for x, y in edges if x == a and y != a} | (
                    {(b, a), (b, b)} if (a, a) in edges else set()
                )
                starts |= {b} if a in starts else set()
        elif kind == "start":
            graph.add_start(a)
            starts.add(a)
        else:
            graph.remove_start(a)
            starts.discard(a)
        used.add(b)
        expected = breadth_first(edges, starts)
        for node in range(1, NODES):
            assert graph.distance(node) == expected.get(node)
        path = graph.path()
        if GOAL not in expected:
            assert path is None
        else:
            assert path is not None
            assert path[0] in starts and path[-1] == GOAL and len(path) == expected[GOAL] + 1
            assert all(step in edges for step in pairwise(path))
            assert graph.last_before_goal() == path[-2]


def test_refining_a_chain_costs_the_change_not_the_graph() -> None:
    """Removing and re-adding an edge near the end of a long chain touches only what lies behind it."""
    graph = DynamicShortestPath(GOAL)
    graph.add_start(1)
    for node in range(1, 2000):
        graph.add_edge(node, node + 1)
    before = graph.work
    graph.remove_edge(1990, 1991)
    graph.add_edge(1990, 1991)
    assert graph.work - before < 50


def test_the_nearest_of_many_edges_to_the_goal_is_found_without_looking_at_the_others() -> None:
    graph = DynamicShortestPath(GOAL)
    graph.add_start(1)
    for node in range(1, 2000):
        graph.add_edge(node, node + 1)
        graph.add_edge(node, GOAL)
    before = graph.work
    for node in range(1, 2000):
        assert graph.last_before_goal() == node
        graph.remove_edge(node, GOAL)
    assert graph.last_before_goal() is None
    assert graph.work == before
