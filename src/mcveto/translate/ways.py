"""All ways through one instruction, as values: the interpreter run over the nodes of `machine/compiled`.

The interpreter is the one that defines the machine; here its domain writes down what happens instead of doing it. A
decision inside the instruction (a trap, a conditional move, conditional execution) is explored by running it again
with the decisions so far scripted, which gives a tree: events in the order they happen, then either a fork or an end.
Registers change only at an end, so a fault leaves them as they were before the instruction, as the emulator does.

Unlike compiled execution, nothing may be left to another executor: faults, inputs and undefined values are part of the
result. What cannot be expressed raises Unsupported and becomes an explicit trap of the translation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcveto.machine.compiled.nodes import Graph, Node
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.isa import Decoder
from mcveto.machine.isa.table import IsaRow
from mcveto.machine.pcode import FreshOrigin, Instruction, Transfer
from mcveto.machine.registers import Cell, RegisterLayout

MAX_DECISIONS = 256
_LANE = 16


@dataclass(slots=True)
class Load:
    address: Node
    size: int
    value: Node


@dataclass(slots=True)
class Store:
    address: Node
    size: int
    value: Node


@dataclass(slots=True)
class Fresh:
    origin: FreshOrigin
    bits: int
    usual: Node
    value: Node


Event = Load | Store | Fresh


@dataclass(slots=True)
class Leave:
    """Control leaves: the registers change, the program counter becomes `target`."""

    events: list[Event]
    writes: dict[int, Node]
    transfer: Transfer
    target: Node


@dataclass(slots=True)
class Stop:
    """The run ends here: a fault of the machine, or (None) something outside what is modelled."""

    events: list[Event]
    kind: FaultKind | None
    detail: str


@dataclass(slots=True)
class Fork:
    events: list[Event]
    condition: Node
    taken: Way
    other: Way


Way = Leave | Stop | Fork


class _Undecided(Exception):
    def __init__(self, condition: Node) -> None:
        self.condition = condition


@dataclass(slots=True)
class _Run:
    script: tuple[bool, ...]
    writes: dict[int, Node] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    decided: int = 0
    values: int = 0


class _Recorder:
    """The domain that writes down what an instruction does."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.run = _Run(())
        self._values: dict[tuple[int, tuple[bool, ...]], Node] = {}

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
        value = self.run.writes.get(cell.number)
        return self.graph.cell(cell.number, cell.bits) if value is None else value

    def write_register(self, cell: Cell, value: Node) -> None:
        self.run.writes[cell.number] = value

    def load(self, address: Node, size: int) -> Node:
        value = self._new_value(8 * size)
        self.run.events.append(Load(address, size, value))
        return value

    def store(self, address: Node, value: Node, size: int) -> None:
        self.run.events.append(Store(address, size, value))

    def decide(self, condition: Node) -> bool:
        run = self.run
        if condition.op == "CONST":
            return condition.value != 0
        if run.decided == len(run.script):
            raise _Undecided(condition)
        run.decided += 1
        return run.script[run.decided - 1]

    def fresh(self, bits: int, origin: FreshOrigin, usual: Node) -> Node:
        value = self._new_value(bits)
        self.run.events.append(Fresh(origin, bits, usual, value))
        return value

    def _new_value(self, bits: int) -> Node:
        """The value of the next event; the same node whenever the same decisions lead to it."""
        run = self.run
        run.values += 1
        key = (run.values, run.script[: run.decided])
        value = self._values.get(key)
        if value is None:
            value = self._values[key] = self.graph.load(bits)
        return value


class Explorer:
    """Explores instructions of one decoder."""

    def __init__(self, decoder: Decoder) -> None:
        self._interpreter: Interpreter[Node] = Interpreter(decoder)
        self._decisions = 0

    def explore(self, instruction: Instruction) -> Way:
        """The tree of ways through an instruction; raises Unsupported if there are too many."""
        self._decisions = 0
        return self._explore(instruction, _Recorder(), (), 0)

    def _explore(self, instruction: Instruction, domain: _Recorder, script: tuple[bool, ...], skip: int) -> Way:
        """The rest after `script`, with the first `skip` events left out: they happened before the fork."""
        run = domain.run = _Run(script)
        try:
            transfer, target = self._interpreter.execute(instruction, domain)
        except _Undecided as fork:
            self._decisions += 1
            if self._decisions > MAX_DECISIONS:
                raise Unsupported("too many ways through the instruction", instruction.pc, instruction.text) from None
            taken = self._explore(instruction, domain, (*script, True), len(run.events))
            other = self._explore(instruction, domain, (*script, False), len(run.events))
            return Fork(run.events[skip:], fork.condition, taken, other)
        except Fault as fault:
            return Stop(run.events[skip:], fault.kind, fault.kind.label)
        except Unsupported as error:
            return Stop(run.events[skip:], None, error.what)
        assert isinstance(target, Node)
        return Leave(run.events[skip:], run.writes, transfer, target)


def translation_decoder(row: IsaRow) -> Decoder:
    """A decoder of its own whose register cells are at most 128 bits: vector registers are split into lanes.

    Instructions remember operands resolved to cells, so these instructions must not be mixed with other decoders'.
    """
    decoder = Decoder(row)
    layout = decoder.layout
    named = [(name, offset, size) for name, (offset, size) in layout.names.items()]
    wide = [(name, offset, size) for name, offset, size in named if size > _LANE]
    taken = {(offset, size) for _, offset, size in named}
    lanes = {
        (at, min(_LANE, offset + size - at)): f"{name}_{at - offset}"
        for name, offset, size in sorted(wide, key=lambda item: -item[2])
        for at in range(offset, offset + size, _LANE)
        if (at, _LANE) not in taken
    }
    split = frozenset({*row.split, *(name for name, _, _ in wide)})
    significant = {**dict.fromkeys(row.one_bit, 1), **dict(row.significant_bits)}
    registers = [*named, *((name, offset, size) for (offset, size), name in sorted(lanes.items()))]
    decoder.layout = RegisterLayout(registers, row.registers_big_endian, split, significant)
    return decoder
