"""Replaying the recorded changes gives the graph that the search ended with, and the record is bounded."""

from __future__ import annotations

import pytest

from mcveto.dpg import history as module
from mcveto.dpg.driver import Driver, Limits, Method
from mcveto.dpg.history import History
from mcveto.dpg.location import Fold
from mcveto.program.program import load_program
from mcveto.program.spec import load_spec

EXAMPLE = "examples/loops/x86-32-O1/lock-safe.yaml"
Edges = set[tuple[int, int, str]]


def replayed(history: History) -> tuple[set[int], Edges]:
    nodes: set[int] = set()
    edges: Edges = set()
    for event in history.events:
        for kind, *rest in event.changes:
            if kind == "node":
                nodes.add(int(rest[0]))
            elif kind == "twin":
                old, new = int(rest[0]), int(rest[1])
                nodes.add(new)
                edges |= {(source, new, way) for source, target, way in edges if target == old}
                edges |= {(new, target, way) for source, target, way in edges if source == old}
            elif kind in ("edge", "gone"):
                edge = (int(rest[0]), int(rest[1]), str(rest[2]))
                edges = edges | {edge} if kind == "edge" else edges - {edge}
    return nodes, edges


@pytest.mark.parametrize("fold", [Fold.FRAME, Fold.PC])
def test_the_changes_give_the_graph(fold: Fold) -> None:
    history = History()
    driver = Driver(load_program(None, load_spec(EXAMPLE)), Limits(), method=Method(fold=fold), history=history)
    driver.run()
    nodes, edges = replayed(history)
    assert nodes == driver.graph.nodes.keys() and len(nodes) > 10
    shown = {
        (edge.source, edge.target, "" if not edge.way.kind else f"{edge.way.kind.name.lower()} {edge.way.address:#x}")
        for node in driver.graph.nodes.values()
        for edge in node.steps()
    }
    assert edges == shown
    assert sum(event.kind == "run" for event in history.events) == driver.progress.runs
    assert history.executed


def test_the_record_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EVENTS", 5)
    history = History()
    Driver(load_program(None, load_spec(EXAMPLE)), Limits(), history=history).run()
    assert len(history.events) == 5 and history.left_out > 0
