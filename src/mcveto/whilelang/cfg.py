"""Control-flow graphs of programs (lecture §3).

Edges carry a simple command, a condition ?P, or nothing (ε). Every assertion, those that guard undefined terms
included, has an edge ?¬Q to an error node of its own. Calls are unfolded, up to the bound on recursion; deeper ones
lead nowhere and mark the graph as cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcveto.whilelang.formatter import MATHEMATICAL, Style, command_text, formula_text
from mcveto.whilelang.guards import guarded
from mcveto.whilelang.inlining import Inliner
from mcveto.whilelang.rewriting import in_bounds, negate
from mcveto.whilelang.syntax import (
    Assert,
    Assign,
    Assume,
    Call,
    Command,
    If,
    Input,
    Module,
    Num,
    Position,
    Seq,
    Skip,
    Store,
    While,
)

Label = Assign | Store | Input | Assume | None


@dataclass(frozen=True, slots=True)
class Edge:
    """`enters` and `repeats` name the loop head an edge enters from outside, or takes one more time."""

    source: int
    target: int
    label: Label
    enters: int | None = None
    repeats: int | None = None

    def text(self, style: Style = MATHEMATICAL) -> str:
        if self.label is None:
            return "ε"
        if isinstance(self.label, Assume):
            return f"?{formula_text(self.label.condition, style)}"
        return command_text(self.label, style)


@dataclass(frozen=True, slots=True)
class ErrorNode:
    why: str
    at: Position | None


@dataclass(slots=True)
class Graph:
    """Node 0 is the entry."""

    exit: int = -1
    edges: dict[int, list[Edge]] = field(default_factory=dict)
    errors: dict[int, ErrorNode] = field(default_factory=dict)
    loops: dict[int, Position | None] = field(default_factory=dict)
    nodes: int = 0
    is_cut: bool = False

    def lines(self) -> list[str]:
        """One line per edge; errors and the exit are marked."""
        marks = {self.exit: " (exit)"} | {
            node: f" (error: {item.why}{f', line {item.at.line}' if item.at else ''})"
            for node, item in self.errors.items()
        }
        return [
            f"{edge.source} -> {edge.target}{marks.get(edge.target, '')}: {edge.text()}"
            for source in sorted(self.edges)
            for edge in self.edges[source]
        ]


def control_flow_graph(module: Module, recursion: int = 1) -> Graph:
    return _Builder(guarded(module), recursion).build()


class _Builder:
    def __init__(self, module: Module, recursion: int) -> None:
        self._module = module
        self._inliner = Inliner(module)
        self._recursion = recursion
        self._graph = Graph()

    def build(self) -> Graph:
        entry = self._node()
        self._graph.exit = self._command(self._module.program, entry)
        return self._graph

    def _node(self) -> int:
        self._graph.nodes += 1
        return self._graph.nodes - 1

    def _edge(
        self, source: int, target: int, label: Label, *, enters: int | None = None, repeats: int | None = None
    ) -> int:
        self._graph.edges.setdefault(source, []).append(Edge(source, target, label, enters, repeats))
        return target

    def _command(self, command: Command, start: int) -> int:
        """Adds the command from a node on; returns where it ends."""
        match command:
            case Seq(commands):
                for item in commands:
                    start = self._command(item, start)
                return start
            case Skip():
                return self._edge(start, self._node(), None)
            case Assign() | Store() | Input() | Assume():
                if isinstance(command, Store):
                    start = self._bounds(command, start)
                return self._edge(start, self._node(), command)
            case Assert():
                return self._assert(start, command, command.why)
            case If(condition, then, otherwise):
                yes = self._edge(start, self._node(), Assume(condition, command.at))
                no = self._edge(start, self._node(), Assume(negate(condition), command.at))
                end = self._node()
                self._edge(self._command(then, yes), end, None)
                self._edge(no if otherwise is None else self._command(otherwise, no), end, None)
                return end
            case While(condition, body):
                head = self._node()
                self._edge(start, head, None, enters=head)
                self._graph.loops[head] = command.at
                inside = self._edge(head, self._node(), Assume(condition, command.at), repeats=head)
                self._edge(self._command(body, inside), head, None)
                return self._edge(head, self._node(), Assume(negate(condition), command.at))
            case Call():
                if command.within.count(command.procedure) > self._recursion:
                    self._graph.is_cut = True
                    return self._node()
                return self._command(self._inliner.inlined(command), start)

    def _assert(self, start: int, command: Assert, why: str) -> int:
        error = self._node()
        self._graph.errors[error] = ErrorNode(why, command.at)
        self._edge(start, error, Assume(negate(command.condition), command.at))
        return self._edge(start, self._node(), Assume(command.condition, command.at))

    def _bounds(self, command: Store, start: int) -> int:
        if isinstance(command.index, Num) and 0 <= command.index.value < self._module.cells:
            return start
        return self._assert(start, Assert(in_bounds(command.index), command.at), "memory")
