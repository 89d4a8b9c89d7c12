"""Which branches can matter: against paths that are followed one by one, and on jumps between odd addresses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.engines.order import Function, Order
from mcveto.engines.simulation.relevance import Relevance
from mcveto.machine.pcode import Instruction, Op, Space, Varnode

TARGET = 0x900
LOCKING = 0x800
HARMLESS = 0x700
COUNT = 8


def to(address: int) -> Varnode:
    return Varnode(Space.RAM, address, 4)


def block(pc: int, *ops: Op) -> tuple[Instruction, ...]:
    return (Instruction(pc, bytes(4), ops, "", ""),)


FLAG = Varnode(Space.UNIQUE, 0, 1)
RETURN = Op("RETURN", None, (FLAG,))


def program() -> Any:
    row = SimpleNamespace(extra=(), code_address=lambda pc: pc, mode_mask=0)
    decoder = SimpleNamespace(row=row, layout=SimpleNamespace(names={}))
    return SimpleNamespace(targets=frozenset({TARGET}), decoder=decoder)


Graph = list[tuple[str, int]]


def code(graph: Graph) -> dict[int, tuple[Instruction, ...]]:
    """Blocks at 0, 4, 8, …: each falls through, branches, calls or returns."""
    found = {
        TARGET: block(TARGET, RETURN),
        HARMLESS: block(HARMLESS, RETURN),
        LOCKING: block(LOCKING, Op("CBRANCH", None, (to(TARGET), FLAG))),
        LOCKING + 4: block(LOCKING + 4, RETURN),
        4 * len(graph): block(4 * len(graph), RETURN),
    }
    for index, (kind, where) in enumerate(graph):
        ops = {
            "branch": [Op("CBRANCH", None, (to(4 * where), FLAG))],
            "jump": [Op("BRANCH", None, (to(4 * where),))],
            "lock": [Op("CALL", None, (to(LOCKING),))],
            "work": [Op("CALL", None, (to(HARMLESS),))],
            "end": [RETURN],
        }[kind]
        found[4 * index] = block(4 * index, *ops)
    return found


def events_next(graph: Graph, start: int) -> set[object]:
    """What can come first from a block on, by walking."""
    found: set[object] = set()
    seen: set[int] = set()
    pending = [start]
    while pending:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        kind, where = graph[index] if index < len(graph) else ("end", 0)
        if kind == "lock":
            found.add(index)
        elif kind == "end":
            found.add("end")
        else:
            pending += {"branch": [where, index + 1], "jump": [where], "work": [index + 1]}[kind]
    return found


GRAPHS = st.lists(
    st.tuples(st.sampled_from(["branch", "branch", "jump", "lock", "work", "end"]), st.integers(0, COUNT)),
    min_size=COUNT,
    max_size=COUNT,
)


@settings(max_examples=300, deadline=None)
@given(GRAPHS)
def test_a_branch_matters_if_its_ways_differ_in_what_comes_next(graph: Graph) -> None:
    blocks = code(graph)
    order = Order(blocks.get, True)
    relevance = Relevance(program(), blocks.get)
    reached = set(order.function(0).blocks())
    for index, (kind, where) in enumerate(graph):
        if kind == "branch" and where != index + 1 and 4 * index in reached:
            differs = events_next(graph, where) != events_next(graph, index + 1)
            assert relevance.matters(order, 0, 4 * index) == differs


def test_what_changes_something_kept_apart_is_an_event() -> None:
    graph: Graph = [("branch", 2), ("jump", 3), ("jump", 3), ("end", 0)]
    blocks = code(graph)
    order = Order(blocks.get, True)
    relevance = Relevance(program(), blocks.get)
    assert not relevance.matters(order, 0, 0) and not relevance.all_matter(order, 0)
    relevance.note_change(0, 4)
    assert relevance.matters(order, 0, 0) and relevance.all_matter(order, 0)


def test_a_call_of_nobody_knows_whom_is_an_event() -> None:
    blocks = code([("branch", 2), ("work", 0), ("end", 0)])
    blocks[4] = block(4, Op("CALLIND", None, (FLAG,)))
    assert Relevance(program(), blocks.get).matters(Order(blocks.get, True), 0, 0)


def test_jumps_between_odd_addresses_go_where_they_say() -> None:
    odd = {5: block(5, Op("BRANCH", None, (to(8),))), 8: block(8, RETURN)}
    assert Function(5, odd.get).blocks() == [5, 8]
    thumb = {5: block(5, Op("BRANCH", None, (to(8),))), 9: block(9, RETURN)}
    assert Function(5, thumb.get, 1).blocks() == [5, 9]
