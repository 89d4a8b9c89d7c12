"""What a simulation did, as a proof: one node for each abstract state that was executed, with the steps between them.

An abstract state stands for every machine state that some values of its variables make of it. So a step must say what
the variables of the next node are: a value that the block drew, what memory held where it was read, or the term that a
join or a covering gave a new name. These are terms over the variables of the node before and its memory (`NOW`); they
become notes of a certificate (see `certify_paths`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcveto.engines.memory import Value
from mcveto.engines.record import Accesses, Node, PathProof, Recorder, _live
from mcveto.engines.simulation.coarse_memory import CoarseMemory, Unknowns
from mcveto.engines.state import Arrival, Drawn, Joined, PathState
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Instruction

Log = Drawn | Joined | None


def settle(state: PathState) -> None:
    """What was read and stored since the state left its nodes becomes part of what is known of its arrivals."""
    memory = state.memory
    assert isinstance(memory, CoarseMemory)
    start = memory.start
    if memory.now is start and not memory.introduced:
        return
    if not memory.unknowns.is_recorded:
        memory.now, memory.introduced, state.arrivals = start, {}, ()
        return
    arrivals = []
    for arrival in state.arrivals:
        names = dict(arrival.names)
        for variable, value in memory.introduced.items():
            names[variable] = Substitution({start: arrival.memory, **names}).apply(value)
        changed = Substitution({start: arrival.memory, **names}).apply(memory.now)
        arrivals.append(arrival._replace(names=names, memory=changed))
    state.arrivals = tuple(arrivals)
    memory.now, memory.introduced = start, {}


def joined_arrivals(state: PathState, new: Iterable[tuple[Term, Value]]) -> tuple[Arrival, ...]:
    """The arrivals of a state that became part of another one: what the other's new variables are."""
    pairs = list(new)
    result = []
    for arrival in state.arrivals:
        said = Substitution(dict(arrival.names)).apply
        more = {v: t.const(value, v.width) if isinstance(value, int) else said(value) for v, value in pairs}
        result.append(arrival._replace(names={**arrival.names, **more}))
    return tuple(result)


class CoarseRecorder(Recorder):
    def __init__(self, unknowns: Unknowns) -> None:
        super().__init__()
        self._unknowns = unknowns

    def give_up(self) -> None:
        super().give_up()
        self._unknowns.is_recorded = False

    def enter(self, state: PathState, block: tuple[Instruction, ...]) -> Accesses | None:
        if not self._has_room(state):
            state.arrivals = ()
            return None
        settle(state)
        number = len(self.nodes)
        for arrival in state.arrivals:
            self._step(arrival, number, {})
        memory = state.memory
        assert isinstance(memory, CoarseMemory)
        node = Node(
            state.pc,
            block,
            dict(state.registers),
            memory.copy(),
            _frames(state),
            tuple(state.path.terms),
            None,
            {},
            Accesses(),
        )
        self.nodes.append(node)
        state.arrivals = (Arrival(number, {}, memory.start, 0, ()),)
        return node.accesses

    def _step(self, arrival: Arrival, number: int, more: Mapping[Term, Term]) -> None:
        node = self.nodes[arrival.node]
        names = {**arrival.names, **more}
        if number in node.steps:
            # Another way to the same place: which of the two it is, the conditions of this one say.
            known = set(node.path)
            here = Substitution(dict(arrival.names)).apply(t.conj([c for c in arrival.path if c not in known]))
            others = dict(node.renamings.get(number, ()))
            for variable in names.keys() | others.keys():
                one, other = names.get(variable, variable), others.get(variable, variable)
                names[variable] = one if one is other else t.ite(here, one, other)
        node.steps[number] = None
        node.renamings[number] = tuple(names.items())

    def accesses(self, state: PathState) -> Accesses | None:
        return None if self._given_up else self.nodes[state.arrivals[0].node].accesses

    def halted(self, state: PathState) -> None:
        for arrival in () if self._given_up else state.arrivals:
            self.nodes[arrival.node].halts = True

    def covered_by(self, state: PathState, by: int, names: Mapping[Term, Term]) -> None:
        """A state that an earlier node covers: what the node's variables are in it."""
        if self._given_up:
            return
        settle(state)
        for arrival in joined_arrivals(state, names.items()):
            self._step(arrival, by, {})

    def back(self, count: int) -> None:
        """All but the first nodes are forgotten."""
        del self.nodes[count:]
        for node in self.nodes:
            if any(step >= count for step in node.steps):
                node.steps = {step: None for step in node.steps if step < count}
                node.renamings = {step: names for step, names in node.renamings.items() if step < count}

    def proof(self) -> PathProof | None:
        if self._given_up or not self.nodes:
            return None
        registers = _live(self.nodes, [(n.accesses.read, n.accesses.written) for n in self.nodes])
        memory = _live(self.nodes, [(n.accesses.loaded, n.accesses.stored) for n in self.nodes])
        looked = _live(self.nodes, [(n.accesses.looked, n.accesses.made) for n in self.nodes])
        for node, live in zip(self.nodes, looked, strict=True):
            node.path = (*node.path, *_read_again(node, live))
        return PathProof(tuple(self.nodes), registers, memory, tuple(frozenset(node.path) for node in self.nodes))


def _read_again(node: Node, live: frozenset[object]) -> Iterable[Term]:
    """What was read through addresses that are not constant is still there, within its bounds."""
    memory = node.memory
    assert isinstance(memory, CoarseMemory)
    for (address, size), (value, low, high) in memory.looked.items():
        if (address, size) in live:
            yield t.eq(t.load(memory.start, address, size, memory.is_big_endian), value)
            yield t.ule(t.const(low, address.width), address)
            yield t.ule(address, t.const(high - size, address.width))


def _frames(state: PathState) -> tuple[int, ...]:
    frames: list[int] = []
    calls = state.calls
    while calls is not None:
        frames.append(calls.address)
        calls = calls.parent
    return tuple(reversed(frames))
