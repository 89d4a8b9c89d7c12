"""Which registers nobody reads any more: what two states that meet have there need not be looked at.

The usual backward analysis over the blocks of all functions that are known: a register is live if some path from here
reads it before it is overwritten, through calls and behind the return, of which all known callers are asked. Nothing
depends on its being right: a register that is forgotten can be anything, which only adds states.

What is only suspected is kept apart from what is known, in the upper half of the bits: a jump through a table that
nobody has made yet may lead to code that reads everything, and a call through a pointer may read the arguments that any
function reads. Of that, results of calls pass to the ends of the functions that are called, and what may be an argument
comes from no further than the last call: else all registers were live everywhere.

The analysis is made again when more code is known, but not so often that this would take a noticeable part of the time;
in a function that has grown since, all registers are live.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from mcveto.dpg.liveness import registers_of
from mcveto.engines.order import Function, Order
from mcveto.engines.state import Place
from mcveto.machine.pcode import Instruction, Space
from mcveto.program.program import Program

# A function, and one of its blocks; its end has none.
Node = tuple[int, int | None]
ANY_ENTRY: Node = (-1, None)
ANY_END: Node = (-2, None)
# Instructions executed for each block that is known, before the analysis is made again.
INSTRUCTIONS_PER_BLOCK = 0.5


class Edge(IntEnum):
    """How what is live at a node comes to be live at one before."""

    FLOW = 0
    OVER_CALL = 1
    """From behind a call to before it."""
    INTO_END = 2
    """From behind a call to the end of what was called."""
    INTO_CALL = 3
    """From the beginning of a function to a call of it."""
    BY_POINTER = 4
    """The same, if the call is one through a pointer."""


class Liveness:
    def __init__(self, program: Program, order: Order, instructions: Callable[[], int]) -> None:
        """`instructions`: how many have been executed."""
        self._layout = program.decoder.layout
        row = program.decoder.row
        self._row = row
        self._stops = program.targets | program.halts
        self._order = order
        self._instructions = instructions
        self._width = len(self._layout.cells)
        self._all = (1 << self._width) - 1
        self._always = self._bits((row.stack_pointer, *(name for name, _ in row.extra)))
        """What the simulation itself looks at, or a property."""
        arguments, results = self._bits(row.arguments), self._bits(row.return_registers)
        self._passes = {
            Edge.FLOW: self._all | self._all << self._width,
            Edge.OVER_CALL: self._all | (self._all & ~arguments) << self._width,
            Edge.INTO_END: self._all | results << self._width,
            Edge.INTO_CALL: self._all | arguments << self._width,
            Edge.BY_POINTER: arguments << self._width,
        }
        self._effects: dict[tuple[Instruction, ...], tuple[int, int]] = {}
        self._live: dict[Node, int] = {}
        self._edges: dict[int, int] = {}
        """How much was known of the functions that were looked at."""
        self._due = 0

    def _bits(self, names: tuple[str, ...]) -> int:
        pieces = [piece for name in names if name in self._layout.names for piece in self._layout.named(name)]
        return sum({1 << piece.cell.number for piece in pieces})

    def live_at(self, place: Place) -> int:
        """The numbers of registers that may be read from a place on, as bits."""
        return self._known(place.function, place.pc)

    def live_behind(self, function: int) -> int:
        """The same behind the return from a function."""
        return self._known(function, None)

    def _known(self, function: int, pc: int | None) -> int:
        if self._edges.get(function) != self._order.function(function).edges:
            if self._instructions() < self._due:
                return self._all
            self._solve()
        found = self._live.get((function, pc))
        return self._all if found is None else (found | found >> self._width) & self._all | self._always

    def _solve(self) -> None:
        live: dict[Node, int] = {}
        kept: dict[Node, int] = {}
        readers: dict[Node, list[tuple[Node, Edge]]] = {}
        """For which nodes it counts what is live at one, and how."""
        graphs: dict[int, Function] = {}
        pending = self._order.known()

        def reads(node: Node, other: Node, edge: Edge = Edge.FLOW) -> None:
            readers.setdefault(other, []).append((node, edge))

        while pending:
            entry = pending.pop()
            if entry in graphs:
                continue
            graph = graphs[entry] = self._order.function(entry)
            end: Node = entry, None
            live[end] = 0
            reads(ANY_ENTRY, (entry, entry))
            reads(end, ANY_END, Edge.INTO_END)
            for pc in graph.blocks():
                node: Node = entry, pc
                if self._row.code_address(pc) in self._stops:
                    live[node] = 0
                    continue
                block, following = graph.block(pc), graph.successors(pc)
                live[node], overwritten = self._effect(block)
                kept[node] = ~(overwritten | overwritten << self._width)
                ends = {op.opcode for op in block[-1].ops} if block else set()
                if not block or ("BRANCHIND" in ends and not following):
                    live[node] |= self._all << self._width
                if "RETURN" in ends:
                    reads(node, end)
                callees = [op.inputs[0] for op in block[-1].ops if op.opcode in ("CALL", "CALLIND")] if block else []
                if any(to.space is Space.RAM and to.offset in self._stops for to in callees):
                    continue
                for way in following:
                    reads(node, (entry, way), Edge.OVER_CALL if callees else Edge.FLOW)
                for to in callees:
                    if to.space is Space.RAM and "CALL" in ends:
                        callee = to.offset | (block[-1].pc & self._row.mode_mask)
                        pending.append(callee)
                        reads(node, (callee, callee), Edge.INTO_CALL)
                        called: Node = callee, None
                    else:
                        reads(node, ANY_ENTRY, Edge.BY_POINTER)
                        called = ANY_END
                    for way in following:
                        reads(called, (entry, way), Edge.INTO_END)
        self._propagate(live, kept, readers)
        self._live = live
        self._edges = {entry: graph.edges for entry, graph in graphs.items()}
        self._due = self._instructions() + int(INSTRUCTIONS_PER_BLOCK * len(kept))

    def _propagate(
        self, live: dict[Node, int], kept: dict[Node, int], readers: dict[Node, list[tuple[Node, Edge]]]
    ) -> None:
        live[ANY_ENTRY] = live[ANY_END] = 0
        passes, width = self._passes, self._width
        work = [*live]
        while work:
            node = work.pop()
            content = live[node]
            for reader, edge in readers.get(node, ()):
                known = live.get(reader)
                if known is None:
                    continue
                coming = (content | content << width if edge is Edge.BY_POINTER else content) & passes[edge]
                now = known | coming & kept.get(reader, -1)
                if now != known:
                    live[reader] = now
                    work.append(reader)

    def _effect(self, block: tuple[Instruction, ...]) -> tuple[int, int]:
        """The registers that a block reads first, and those that it overwrites."""
        found = self._effects.get(block)
        if found is None:
            read, written = registers_of(block, self._layout)
            found = sum(1 << cell.number for cell in read), sum(1 << cell.number for cell in written)
            self._effects[block] = found
        return found
