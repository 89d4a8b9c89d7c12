"""Which branches can matter to the property: those whose ways differ in what happens next.

An *event* is a block that can go to a target, that moves a typestate automaton, that was seen to change something kept
apart, or that calls a function with an event in it (or nobody knows which). From every block of a function there is a
set of events, and the function's end, that can come next. Where both ways of a branch have the same set, it is only
computed something: such a branch is taken both ways without asking the solver, which can only add states. Most branches
of a large driver are of this kind, and the conditions of many are hard.
"""

from __future__ import annotations

from mcveto.engines.order import BlockAt, Function, Order
from mcveto.machine.faults import MachineError
from mcveto.machine.pcode import Instruction, Space
from mcveto.program.program import Program

_END = 1


class Relevance:
    def __init__(self, program: Program, block_at: BlockAt) -> None:
        self._block_at = block_at
        self._targets = program.targets
        self._row = program.decoder.row
        layout = program.decoder.layout
        added = [name for name, _ in self._row.extra]
        self._ghosts = {layout.names[name] for name in added if name in layout.names}
        self._calls: dict[int, dict[int, int | None]] = {}
        """Per function: the blocks that call, and whom; None if nobody knows."""
        self._own: dict[int, set[int]] = {}
        self._changes: set[int] = set()
        self._eventful: set[int] = set()
        self._next: dict[int, tuple[int, dict[int, bool]]] = {}
        self._version = 0

    def note_change(self, function: int, pc: int) -> None:
        """The block changes something that is kept apart."""
        if pc not in self._changes:
            self._changes.add(pc)
            if function in self._own:
                self._own[function].add(pc)
                self._spread()

    def matters(self, order: Order, function: int, pc: int) -> bool:
        """Whether the ways out of a block can differ in what happens next."""
        return self._known(order, function).get(pc, True)

    def all_matter(self, order: Order, function: int) -> bool:
        return all(self._known(order, function).values())

    def _known(self, order: Order, function: int) -> dict[int, bool]:
        if function not in self._own:
            self._discover(order, function)
        graph = order.function(function)
        edges = self._version << 32 | graph.edges
        known = self._next.get(function)
        if known is None or known[0] != edges:
            known = self._next[function] = (edges, self._differing(function, graph))
        return known[1]

    def is_last(self, order: Order, function: int, pc: int) -> bool:
        """Whether a block branches, and one of its ways goes to a target and nowhere else."""
        ways = order.function(function).successors(pc)
        return len(ways) > 1 and any(map(self.is_target, ways))

    def is_target(self, pc: int) -> bool:
        """Whether a block is a target, or goes to one and nowhere else."""
        if self._row.code_address(pc) in self._targets:
            return True
        block = self._block(pc)
        return block is not None and self._goes(pc) and all(op.opcode != "CBRANCH" for op in block[-1].ops)

    def _goes(self, pc: int) -> bool:
        """Whether a block goes to a target, or may do so."""
        block = self._block(pc)
        if not block:
            return False
        goes = [op.inputs[0] for op in block[-1].ops if op.opcode in ("BRANCH", "CBRANCH", "CALL")]
        return any(to.space is Space.RAM and self._row.code_address(to.offset) in self._targets for to in goes)

    def _discover(self, order: Order, entry: int) -> None:
        pending = [entry]
        while pending:
            function = pending.pop()
            if function in self._own:
                continue
            graph = order.function(function)
            calls = self._calls[function] = {}
            own = self._own[function] = set()
            for pc in graph.blocks():
                block = self._block(pc)
                if not block or pc in self._changes or self._is_event(pc, block):
                    own.add(pc)
                    continue
                callees = _callees(block[-1], self._row.mode_mask)
                for callee in callees:
                    calls[pc] = callee
                    if callee is None:
                        own.add(pc)
                    else:
                        pending.append(callee)
        self._spread()

    def _block(self, pc: int) -> tuple[Instruction, ...] | None:
        try:
            return self._block_at(pc)
        except MachineError:
            return ()

    def _is_event(self, pc: int, block: tuple[Instruction, ...]) -> bool:
        if self._row.code_address(pc) in self._targets:
            return True
        for instruction in block:
            for op in instruction.ops:
                to = op.output
                if to is not None and to.space is Space.REGISTER and (to.offset, to.size) in self._ghosts:
                    return True
        return self._goes(pc)

    def _spread(self) -> None:
        """Functions with an event in them, and those that call them."""
        callers: dict[int, list[int]] = {}
        for function, calls in self._calls.items():
            for callee in calls.values():
                if callee is not None:
                    callers.setdefault(callee, []).append(function)
        pending = [function for function, own in self._own.items() if own]
        found = set(pending)
        while pending:
            for caller in callers.get(pending.pop(), ()):
                if caller not in found:
                    found.add(caller)
                    pending.append(caller)
        self._version += 1
        self._eventful = found

    def _differing(self, function: int, graph: Function) -> dict[int, bool]:
        """For every block, whether what can come next differs between its successors."""
        own, calls = self._own[function], self._calls[function]
        successors = {pc: graph.successors(pc) for pc in graph.blocks()}
        events = [pc for pc in successors if pc in own or calls.get(pc) in self._eventful]
        numbers = {pc: 1 << index + 1 for index, pc in enumerate(events)}
        sets: dict[int, int] = {pc: numbers.get(pc, 0 if ways else _END) for pc, ways in successors.items()}
        predecessors: dict[int, list[int]] = {}
        for pc, ways in successors.items():
            for way in ways:
                predecessors.setdefault(way, []).append(pc)
        pending = [pc for pc, content in sets.items() if content]
        while pending:
            pc = pending.pop()
            content = sets[pc]
            for before in predecessors.get(pc, ()):
                if before not in numbers and sets[before] | content != sets[before]:
                    sets[before] |= content
                    pending.append(before)
        return {pc: len(ways) < 2 or len({sets[way] for way in ways}) > 1 for pc, ways in successors.items()}


def _callees(last: Instruction, mode_mask: int) -> list[int | None]:
    found: list[int | None] = []
    for op in last.ops:
        if op.opcode == "CALL" and op.inputs[0].space is Space.RAM:
            found.append(op.inputs[0].offset | (last.pc & mode_mask))
        elif op.opcode in ("CALL", "CALLIND"):
            found.append(None)
    return found
