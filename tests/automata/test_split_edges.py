"""Edges kept by families of split nodes, against a plain set of pairs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.split_edges import Predecessors, SplitEdges

NODES = 5
changes = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove", "split", "split"]), st.integers(0, 40), st.integers(0, 40)),
    max_size=80,
)


@given(changes)
@settings(max_examples=500, deadline=None)
def test_agrees_with_a_set_of_pairs(steps: list[tuple[str, int, int]]) -> None:
    edges = SplitEdges()
    pairs: set[tuple[int, int]] = set()
    nodes = NODES
    for kind, a, b in steps:
        source, target = a % nodes, b % nodes
        if kind == "add":
            assert edges.add(source, target) == ((source, target) not in pairs)
            pairs.add((source, target))
        elif kind == "remove":
            assert edges.remove(source, target) == ((source, target) in pairs)
            pairs.discard((source, target))
        else:
            twin, nodes = nodes, nodes + 1
            edges.split(source, twin)
            pairs |= {(twin, y) for x, y in pairs if x == source}
            pairs |= {(x, twin) for x, y in pairs if y == source}
    for node in range(nodes):
        assert sorted(edges.successors(node)) == sorted(y for x, y in pairs if x == node)
        before = sorted(x for x, y in pairs if y == node)
        assert sorted(edges.predecessors(node)) == before
        view = Predecessors(edges, node)
        assert len(view) == len(before) and set(view) == set(before)
        assert [other for other in range(nodes + 1) if other in view] == before


def test_neighbours_of_one_family_are_listed_by_age() -> None:
    edges = SplitEdges()
    edges.add(1, 2)
    for twin in range(3, 20):
        edges.split(2, twin)
    assert edges.successors(1) == list(range(2, 20))


def test_what_was_never_seen_has_no_edges() -> None:
    edges = SplitEdges()
    assert edges.successors(7) == edges.predecessors(7) == [] and not edges.has(7, 8) and not edges.remove(7, 8)
