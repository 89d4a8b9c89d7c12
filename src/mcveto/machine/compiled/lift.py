"""One instruction as values: the interpreter run over the graph domain.

Branches inside an instruction (cmov, traps, conditional execution) are explored by running it again with the decisions
scripted. A way that ends in a trap becomes a check; two ways that differ in registers only are merged into selections;
what remains is a small tree of ways. Instructions with too many ways, inputs, or anything unsupported raise
`NotCompiled` and are left to the reference emulator.
"""

from __future__ import annotations

from dataclasses import field

from mcveto.late_methods import dataclass

from ..faults import Fault, Unsupported
from ..interpreter import Interpreter
from ..pcode import FreshOrigin, Instruction, Transfer
from ..registers import Cell, RegisterLayout
from .nodes import Graph, Node

_MAX_WAYS = 8


class NotCompiled(Exception):
    """This instruction is executed by the reference emulator."""


class _Undecided(Exception):
    def __init__(self, condition: Node, events: int) -> None:
        self.condition = condition
        self.events = events


@dataclass(slots=True)
class Load:
    address: Node
    size: int
    value: Node
    ordinal: int


@dataclass(slots=True)
class Store:
    address: Node
    size: int
    value: Node
    ordinal: int


@dataclass(slots=True)
class Check:
    """Execution goes on only if the condition is false; otherwise the reference emulator takes over."""

    condition: Node


Event = Load | Store | Check
# What memory is known to hold: (serial number of the base node, or 0; offset; size) -> value.
Known = dict[tuple[int, int, int], Node]


@dataclass(slots=True)
class Way:
    """A straight way through the instruction: effects in order, then the register changes and where it goes."""

    events: list[Event]
    writes: dict[int, Node]
    transfer: Transfer
    target: Node
    known: Known


@dataclass(slots=True)
class Fork:
    events: list[Event]
    condition: Node
    taken: Fork | Way
    other: Fork | Way


@dataclass(slots=True)
class _Run:
    cells: dict[int, Node]
    known: Known
    writes: dict[int, Node] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    script: tuple[bool, ...] = ()
    decided: int = 0
    accesses: int = 0


class GraphDomain:
    """The domain whose values are nodes, given registers and known memory before the instruction.

    A load from where this path has just loaded or stored is that value (`forward`: whatever is writable is readable, so
    that leaving the load out cannot hide a fault).
    """

    def __init__(self, graph: Graph, layout: RegisterLayout, address_bits: int, forward: bool) -> None:
        self.graph = graph
        self._layout = layout
        self._address_bits = address_bits
        self._forward = forward
        self._run = _Run({}, {})
        self._loads: dict[tuple[int, tuple[bool, ...]], Node] = {}

    def begin(self, cells: dict[int, Node], known: Known, script: tuple[bool, ...]) -> _Run:
        if not script:
            self._loads.clear()
        self._run = _Run(cells, dict(known), script=script)
        return self._run

    def cell(self, number: int) -> Node:
        return self.graph.cell(number, self._layout.significant_bits(self._layout.cells[number]))

    def constant(self, value: int, bits: int) -> Node:
        return self.graph.const(value & ((1 << bits) - 1))

    def apply(self, opcode: str, arguments: tuple[Node, ...], input_bits: int, output_bits: int) -> Node:
        return self.graph.apply(opcode, arguments, input_bits, output_bits)

    def shift(self, opcode: str, value: Node, amount: Node, bits: int, amount_bits: int) -> Node:
        return self.graph.shift(opcode, value, amount, bits)

    def extract(self, value: Node, low: int, bits: int, total_bits: int) -> Node:
        return self.graph.extract(value, low, bits)

    def insert(self, old: Node, value: Node, low: int, bits: int, total_bits: int) -> Node:
        return self.graph.insert(old, value, low, bits, total_bits)

    def concatenate(self, high: Node, low: Node, high_bits: int, low_bits: int) -> Node:
        return self.graph.concatenate(high, low, low_bits)

    def read_register(self, cell: Cell) -> Node:
        number = cell.number
        value = self._run.writes.get(number) or self._run.cells.get(number)
        return self.cell(number) if value is None else value

    def write_register(self, cell: Cell, value: Node) -> None:
        if value.width > self._layout.significant_bits(cell):
            raise NotCompiled(f"{cell.name} may leave its range")
        self._run.writes[cell.number] = value

    def load(self, address: Node, size: int) -> Node:
        run = self._run
        run.accesses += 1
        base, offset = self.graph.linear(address, self._address_bits)
        where = (0 if base is None else base.serial, offset, size)
        value = run.known.get(where)
        if value is not None:
            return value
        key = (run.accesses, run.script[: run.decided])
        value = self._loads.get(key)
        if value is None:
            value = self._loads[key] = self.graph.load(8 * size)
        run.events.append(Load(address, size, value, run.accesses - 1))
        run.known[where] = value
        return value

    def store(self, address: Node, value: Node, size: int) -> None:
        run = self._run
        run.accesses += 1
        run.events.append(Store(address, size, value, run.accesses - 1))
        base, offset = self.graph.linear(address, self._address_bits)
        number = 0 if base is None else base.serial
        run.known = {
            where: held
            for where, held in run.known.items()
            if where[0] == number and (where[1] >= offset + size or where[1] + where[2] <= offset)
        }
        if self._forward:
            run.known[number, offset, size] = value

    def decide(self, condition: Node) -> bool:
        run = self._run
        if condition.op == "CONST":
            return condition.value != 0
        if run.decided == len(run.script):
            raise _Undecided(condition, len(run.events))
        run.decided += 1
        return run.script[run.decided - 1]

    def fresh(self, bits: int, origin: FreshOrigin, usual: Node) -> Node:
        if origin is not FreshOrigin.UNDEFINED:
            raise NotCompiled("input")
        return usual


class Lifter:
    def __init__(self, interpreter: Interpreter[Node], domain: GraphDomain) -> None:
        self._interpreter = interpreter
        self._domain = domain
        self._known: Known = {}
        self._ways = 0

    def lift(self, instruction: Instruction, cells: dict[int, Node], known: Known) -> Fork | Way:
        """The ways through `instruction` started in `cells`; raises NotCompiled."""
        self._ways = 0
        self._known = known
        result = self._explore(instruction, cells, (), 0)
        if result is None:
            raise NotCompiled("always traps")
        return result

    def _explore(
        self, instruction: Instruction, cells: dict[int, Node], script: tuple[bool, ...], skip: int
    ) -> Fork | Way | None:
        """The rest after `script`, with the first `skip` events left out; None if it ends in a trap."""
        run = self._domain.begin(cells, self._known, script)
        try:
            transfer, target = self._interpreter.execute(instruction, self._domain)
        except _Undecided as fork:
            self._ways += 1
            if self._ways > _MAX_WAYS:
                raise NotCompiled("too many ways through the instruction") from None
            events = run.events[skip:]
            other = self._explore(instruction, cells, (*script, False), fork.events)
            taken = self._explore(instruction, cells, (*script, True), fork.events)
            return self._joined(events, fork.condition, taken, other, cells)
        except Fault:
            return None
        except Unsupported as error:
            # Under a condition this is a trap as well; the reference emulator will say so.
            if not script:
                raise NotCompiled(str(error)) from None
            return None
        assert isinstance(target, Node)
        return Way(run.events[skip:], run.writes, transfer, target, run.known)

    def _joined(
        self,
        events: list[Event],
        condition: Node,
        taken: Fork | Way | None,
        other: Fork | Way | None,
        cells: dict[int, Node],
    ) -> Fork | Way | None:
        graph = self._domain.graph
        if taken is None and other is None:
            return None
        if taken is None or other is None:
            failing = condition if taken is None else graph.apply("INT_EQUAL", (condition, graph.const(0)), 8, 8)
            check = Check(failing)
            rest = taken or other
            assert rest is not None
            rest.events[:0] = [*events, check]
            return rest
        if (
            isinstance(taken, Way)
            and isinstance(other, Way)
            and not taken.events
            and not other.events
            and taken.target is other.target
            and taken.transfer is other.transfer
        ):
            merged: dict[int, Node] = {}
            for number in sorted(taken.writes.keys() | other.writes.keys()):
                before = cells.get(number) or self._domain.cell(number)
                a, b = taken.writes.get(number, before), other.writes.get(number, before)
                merged[number] = graph.apply("SELECT", (condition, a, b), 8, max(a.width, b.width, 1))
            return Way(events, merged, taken.transfer, taken.target, taken.known)
        return Fork(events, condition, taken, other)
