"""All frontiers of the abstract graph, and the k closest to the start or to the target (TR1669 §3.3).

The graph is turned into a pushdown system, the visits of the runs into the set X of executed configurations; then
`automata/frontier` answers Frontiers = ID[X] ∘ post ∘ ID[post*(start) ∩ pre*(target) ∩ ¬X] with distances as weights.
A graph whose locations keep call strings is the case in which nothing is ever pushed.

This looks at the whole graph each time. The default, the frontier on one shortest path, is kept incrementally instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from mcveto.automata.frontier import Near, closest_frontiers
from mcveto.automata.nwa_to_pds import Control, P, Popped
from mcveto.automata.pautomaton import PAutomaton, configuration_set
from mcveto.automata.pds import PDS, Configuration, Rule
from mcveto.automata.semirings import BOOLEAN
from mcveto.dpg.graph import TS, Edge, Frontier, Graph, Witness
from mcveto.dpg.nested_graph import START, NestedGraph
from mcveto.dpg.ways import Kind

Config = Configuration[Control[int], int]
_EVERY = 1_000_000


class FrontierChoice(Enum):
    """Which frontiers a round of the driver tries."""

    PATH = "path"
    """The last one on a shortest path to TS."""
    ALL = "all"
    CLOSEST_TO_START = "start"
    CLOSEST_TO_TARGET = "target"


_NEAR = {
    FrontierChoice.ALL: Near.ANY,
    FrontierChoice.CLOSEST_TO_START: Near.START,
    FrontierChoice.CLOSEST_TO_TARGET: Near.TARGET,
}


def frontiers(graph: Graph, choice: FrontierChoice, most: int) -> list[Frontier]:
    """The chosen frontiers, nearest first; none exactly if no path to TS is left."""
    if choice is FrontierChoice.PATH:
        found = graph.frontier()
        return [] if found is None else [found]
    edges: dict[Rule[Control[int], int], Edge] = {}
    pds: PDS[Control[int], int] = PDS()
    for edge, rules in _rules(graph):
        for rule in rules:
            pds.add(rule)
            edges[rule] = edge
    executed: dict[Config, Witness | None] = {}
    for configuration, witness in _executed(graph):
        executed.setdefault(configuration, witness)
    result: list[Frontier] = []
    limit = _EVERY if choice is FrontierChoice.ALL else most
    for item in closest_frontiers(
        pds, _start(graph), _target(pds), configuration_set(executed), limit, _NEAR[choice], _length
    ):
        made_by = executed[item.source]
        if made_by is not None:
            result.append(Frontier(edges[item.rule], made_by))
    return result


def _length(rule: Rule[Control[int], int]) -> int:
    """Popping an exit is not a step of the program."""
    return 0 if isinstance(rule.target, Popped) else 1


def _rules(graph: Graph) -> Iterator[tuple[Edge, list[Rule[Control[int], int]]]]:
    if isinstance(graph, NestedGraph):
        for number, node in sorted(graph.nodes.items()):
            if node.is_start:
                yield Edge(START, graph.start_way, number), [Rule(P, START, P, (number, START))]
    for _, node in sorted(graph.nodes.items()):
        for edge in node.steps():
            if edge in graph.given_up:
                continue
            source, way, target = edge.source, edge.way, edge.target
            if way.kind is Kind.INTERNAL:
                yield edge, [Rule(P, source, P, (target,))]
            elif way.kind is Kind.CALL:
                yield edge, [Rule(P, source, P, (target, source))]
            elif isinstance(graph, NestedGraph):
                popped: Control[int] = Popped(source)
                rules: list[Rule[Control[int], int]] = [Rule(P, source, popped, ())]
                rules += [Rule(popped, caller, P, (target,)) for caller in graph.callers(way.address)]
                yield edge, rules


def _executed(graph: Graph) -> Iterator[tuple[Config, Witness | None]]:
    """The configurations of the witnesses, and with an exit also the one in which it was popped."""
    if isinstance(graph, NestedGraph):
        yield (P, (START,)), None
    for number, node in sorted(graph.nodes.items()):
        returns = any(way.kind is Kind.RETURN for way in node.edges)
        for witness in node.witnesses:
            pending = graph.pending(witness) if isinstance(graph, NestedGraph) else ()
            if pending is not None:
                yield (P, (number, *pending)), witness
                if returns:
                    yield (Popped(number), pending), witness


def _start(graph: Graph) -> PAutomaton[Control[int], int, bool]:
    if isinstance(graph, NestedGraph):
        return configuration_set([(P, (START,))])
    return configuration_set([(P, (number,)) for number, node in sorted(graph.nodes.items()) if node.is_start])


def _target(pds: PDS[Control[int], int]) -> PAutomaton[Control[int], int, bool]:
    """TS, whatever calls are pending."""
    result: PAutomaton[Control[int], int, bool] = PAutomaton(BOOLEAN)
    below = result.new_state()
    result.add_final(below, True)
    result.add(result.entry(P), TS, below, True)
    for symbol in pds.symbols:
        result.add(below, symbol, below, True)
    return result
