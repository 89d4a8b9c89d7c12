"""What an exploration did, as a proof: one node for each state that was explored, with the steps between them.

A node is the state before a block, in terms of what the run drew earlier (inputs, undefined values, registers and
memory at entry). It describes every state that gets there: an invariant, once those values are remembered, which is the
history of a certificate (see `check.certificate`). States that were merged are one node; a state that an earlier one
covers is a step back to that node, with its values under the earlier one's names.

Only what is read later is kept of a state: registers and bytes that are live, by a pass backwards over the nodes. Where
a symbolic address with many cells is read later, the whole memory is live.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TypeVar

from mcveto.engines.memory import ByteOf, PathMemory, Value
from mcveto.engines.state import Drawn, Log, PathState
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Instruction

T = TypeVar("T")
# Stands for the address of every byte.
EVERYWHERE = -1
# The memory before a step, in what a step makes of variables.
NOW = "mem!now"
# Terms in all states of a proof that is better found in another way.
BULKY = 60_000
# Registers and bytes in all nodes together; beyond, the proof would be too long to be of use.
MAX_VALUES = 4_000_000


@dataclass(slots=True)
class Accesses:
    """What a block reads of the state before it, and what it certainly overwrites."""

    read: set[int] = field(default_factory=set)
    """Numbers of register cells."""
    written: set[int] = field(default_factory=set)
    loaded: set[int] = field(default_factory=set)
    """Addresses."""
    stored: set[int] = field(default_factory=set)
    looked: set[object] = field(default_factory=set)
    """Addresses that are terms, with the size, of which it matters what was read there before (simulation)."""
    made: set[object] = field(default_factory=set)
    """Those that are read or written for the first time."""
    is_certain: bool = True
    """Whether what is executed now is executed on every way through the block."""

    def read_register(self, number: int) -> None:
        if number not in self.written:
            self.read.add(number)

    def write_register(self, number: int) -> None:
        if self.is_certain:
            self.written.add(number)

    def load(self, address: int, size: int) -> None:
        self.loaded.update(at for at in range(address, address + size) if at not in self.stored)

    def load_anywhere(self) -> None:
        self.loaded.add(EVERYWHERE)

    def store(self, address: int, size: int) -> None:
        if self.is_certain:
            self.stored.update(range(address, address + size))

    def store_perhaps(self, address: int, size: int) -> None:
        """What is there afterwards depends on what was there."""
        self.load(address, size)


Renaming = tuple[tuple[Term, Term], ...]
"""Variables of a node with the variables or constants that they stand for."""


@dataclass(slots=True)
class Node:
    pc: int
    block: tuple[Instruction, ...]
    registers: dict[int, Value]
    memory: PathMemory
    frames: tuple[int, ...]
    path: tuple[Term, ...]
    log: Log
    values: dict[Term, int]
    """A model of the path."""
    accesses: Accesses
    steps: dict[int, None] = field(default_factory=dict)
    halts: bool = False
    drawn: tuple[Term, ...] = ()
    """The values that the block leaves open, in order."""
    renamings: dict[int, Renaming] = field(default_factory=dict)
    """For steps to a node that covers the state."""
    relied: set[Term] = field(default_factory=set)
    """Conditions because of which something was left out at this node or on the way from it to the next."""
    is_merged: bool = False


@dataclass(frozen=True, slots=True)
class PathProof:
    """All that was explored; the first node is the entry."""

    nodes: tuple[Node, ...]
    live_registers: tuple[frozenset[int], ...]
    live_bytes: tuple[frozenset[int], ...]
    needed: tuple[frozenset[Term], ...]
    """Conditions of each node's path that something was left out for, there or behind."""

    def is_bulky(self) -> bool:
        """Whether the terms that a certificate would spell out, of all nodes together, are more than a checker can be
        expected to read: a loop that was unrolled many times says at every turn what happened in those before."""
        size = 0
        for node, registers, places, needed in zip(
            self.nodes, self.live_registers, self.live_bytes, self.needed, strict=True
        ):
            values: list[object] = [node.registers.get(register) for register in registers]
            if EVERYWHERE in places:
                values.append(node.memory.whole())
            else:
                cells = (node.memory.cells.get(place) for place in places)
                values += [cell.word if isinstance(cell, ByteOf) else cell for cell in cells]
            pending = [*needed, *(value for value in values if isinstance(value, Term))]
            seen: set[Term] = set()
            while pending:
                term = pending.pop()
                if term not in seen:
                    seen.add(term)
                    pending.extend(term.args)
            size += len(seen)
            if size > BULKY:
                return True
        return False


class Recorder:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._values = 0
        self._given_up = False

    def give_up(self) -> None:
        """No proof will be handed over."""
        self._given_up = True
        self.nodes.clear()

    def _has_room(self, state: PathState) -> bool:
        """Whether the state is recorded; from the first that is too much on, nothing is."""
        self._values += len(state.registers) + len(state.memory.cells) + len(state.path.terms)
        if self._values > MAX_VALUES and not self._given_up:
            self.give_up()
        return not self._given_up

    @property
    def upcoming(self) -> int:
        return len(self.nodes)

    def enter(self, state: PathState, block: tuple[Instruction, ...]) -> Accesses | None:
        """A state is about to be executed; None if nothing is recorded."""
        if not self._has_room(state):
            return None
        number = len(self.nodes)
        origins = state.origins
        for origin in origins:
            self.nodes[origin].steps[number] = None
        state.origins = (number,)
        frames: list[int] = []
        calls = state.calls
        while calls is not None:
            frames.append(calls.address)
            calls = calls.parent
        node = Node(
            state.pc,
            block,
            dict(state.registers),
            state.memory.frozen(),
            tuple(reversed(frames)),
            tuple(state.path.terms),
            state.log,
            state.model.values if state.model is not None else {},
            Accesses(),
        )
        node.is_merged = len(origins) > 1
        self.nodes.append(node)
        return node.accesses

    def relied(self, origins: Iterable[int], conditions: Iterable[Term]) -> None:
        for origin in () if self._given_up else origins:
            self.nodes[origin].relied.update(conditions)

    def accesses(self, state: PathState) -> Accesses | None:
        """Of the node that the state goes on from."""
        return None if self._given_up else self.nodes[state.origins[0]].accesses

    def left(self, state: PathState) -> None:
        """A state has left its block: what the block has drawn."""
        if self._given_up:
            return
        (number,) = state.origins
        node = self.nodes[number]
        drawn: list[Term] = []
        log = state.log
        while log is not node.log:
            if not isinstance(log, Drawn):
                self.give_up()
                return
            drawn.append(log.variable)
            log = log.before
        drawn.reverse()
        shared = min(len(drawn), len(node.drawn))
        if tuple(drawn[:shared]) != node.drawn[:shared]:
            self.give_up()
        elif len(drawn) > shared:
            node.drawn = tuple(drawn)

    def halted(self, state: PathState) -> None:
        for origin in () if self._given_up else state.origins:
            self.nodes[origin].halts = True

    def covered(self, state: PathState, by: int, renaming: Renaming) -> None:
        """A state that an earlier node covers, under the node's names for its values."""
        if self._given_up or by >= len(self.nodes):
            return
        node = self.nodes[by]
        pairs = [(old, new) for old, new in renaming if old is not new]
        free = _no_longer_met(node, set(state.path.terms), {old for old, _ in renaming})
        if any(variable.op != "var" for variable in free):
            self.give_up()
            return
        pairs += [(v, t.const(node.values.get(v, 0), v.width)) for v in free]
        for origin in state.origins:
            steps = self.nodes[origin]
            if by in steps.steps and steps.renamings.get(by, ()) != tuple(pairs):
                self.give_up()
                return
            steps.steps[by] = None
            steps.renamings[by] = tuple(pairs)

    def proof(self) -> PathProof | None:
        if self._given_up or not self.nodes:
            return None
        registers = _live(self.nodes, [(n.accesses.read, n.accesses.written) for n in self.nodes])
        memory = _live(self.nodes, [(n.accesses.loaded, n.accesses.stored) for n in self.nodes])
        return PathProof(tuple(self.nodes), registers, memory, _needed(self.nodes))


def _no_longer_met(node: Node, known: set[Term], named: set[Term]) -> list[Term]:
    """The values, other than those that are named, of which the node's path may say what is not known to hold.

    With all that they are connected to: together they can be given the values that they had at the node."""
    variables = {term: [v for v in t.free_variables([term]) if v not in named] for term in node.path}
    found: dict[Term, None] = {}
    unmet = [term for term in node.path if term not in known]
    while unmet:
        for term in unmet:
            found.update(dict.fromkeys(variables.pop(term)))
        unmet = [term for term, connected in variables.items() if any(v in found for v in connected)]
    return list(found)


def _needed(nodes: list[Node]) -> tuple[frozenset[Term], ...]:
    """The conditions that matter at each node: those relied on there, and those that a node behind needs."""
    paths = [set(node.path) for node in nodes]
    needed: list[set[Term]] = [node.relied & path for node, path in zip(nodes, paths, strict=True)]
    before: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for step in node.steps:
            before[step].append(number)
            if nodes[step].is_merged:
                # What became "the one or the other" there.
                needed[number] |= paths[number] - paths[step]
    pending = list(range(len(nodes)))
    while pending:
        number = pending.pop()
        for origin in before[number]:
            pairs = nodes[origin].renamings.get(number, ())
            rename = Substitution(dict(pairs)).apply if pairs else None
            wanted = needed[number] if rename is None else set(map(rename, needed[number]))
            more = (wanted & paths[origin]) - needed[origin]
            if more:
                needed[origin] |= more
                pending.append(origin)
    return tuple(map(frozenset, needed))


def _live(nodes: list[Node], used: Iterable[tuple[set[T], set[T]]]) -> tuple[frozenset[T], ...]:
    """What is read at a node, or at one behind it before it is overwritten."""
    sets = list(used)
    live = [set(read) for read, _ in sets]
    before: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for step in node.steps:
            before[step].append(number)
    pending = list(range(len(nodes)))
    waiting = set(pending)
    while pending:
        number = pending.pop()
        waiting.discard(number)
        for origin in before[number]:
            more = live[number] - sets[origin][1] - live[origin]
            if more:
                live[origin] |= more
                if origin not in waiting:
                    waiting.add(origin)
                    pending.append(origin)
    return tuple(frozenset(item) for item in live)
