"""Weak topological orders: every edge goes forward, or back to the head of a loop around its source."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.dpg.location import Blocks
from mcveto.engines.order import Order, _nesting

from .driver_text import needs_assembler, reaching

GRAPHS = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=3), min_size=10, max_size=10)


@settings(max_examples=300, deadline=None)
@given(GRAPHS)
def test_edges_go_forward_or_to_a_head(successors: dict[int, list[int]]) -> None:
    places = _nesting(0, successors)
    assert places.keys() == successors.keys()
    assert len({position for position, _ in places.values()}) == len(places)
    for source, targets in successors.items():
        position, heads = places[source]
        for target in targets:
            assert places[target][0] > position or target in heads


def test_nested_loops() -> None:
    # 0 → 1 → 2 → 3 → 2 (inner), 3 → 1 (outer), 1 → 4
    places = _nesting(0, {0: [1], 1: [2, 4], 2: [3], 3: [2, 1], 4: []})
    assert places[3][1] == (1, 2)
    assert places[2][1] == (1, 2)
    assert places[1][1] == (1,)
    assert places[4][1] == ()
    assert places[0][0] < places[1][0] < places[2][0] < places[3][0] < places[4][0]


@needs_assembler
def test_what_follows_a_conditional_return_belongs_to_the_function(tmp_path: Path) -> None:
    text = "\t.globl _start\n_start:\n.Lhead:\n\tcmpwi 3, 0\n\tbeqlr\n\taddi 3, 3, -1\n\tb .Lhead\nreached:\n\tblr\n"
    text += "choice:\n\tblr\n"
    program = reaching(tmp_path, text, arch="ppc32-be")
    code = Blocks(program)
    graph = Order(code.fixed_block, True).function(program.entry)
    (behind,) = graph.successors(program.entry)
    assert behind == program.entry + 8
    assert graph.successors(behind) == [program.entry]
    assert graph.place(behind)[1] == (program.entry,)
