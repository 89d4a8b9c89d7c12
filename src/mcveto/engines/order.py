"""In which order states are explored, so that paths that can meet do meet.

Bourdoncle, "Efficient chaotic iteration strategies with widenings" (FMPA 1993): a weak topological order of a
function's control-flow graph nests its loops. The place of a state is the list of its positions in the components
around it, each with the number of turns its loop has made: a state is explored only when no other can still arrive at
its place from before, so all paths through a branching statement wait for each other behind it. A call is a place of
its own behind its call site and before what follows it.

The graph is read from the code of the binary (direct jumps; a call is followed by its return address) and grows by the
indirect jumps that are met. It only decides about the order and about which loop a turn is counted for: nothing that
is proved depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from mcveto.engines.state import Loops, PathState, Place
from mcveto.machine.faults import MachineError
from mcveto.machine.pcode import Instruction, Space, Transfer

BlockAt = Callable[[int], tuple[Instruction, ...] | None]
EndBefore = Callable[[Iterable[int]], Iterable[int]]
MAX_BLOCKS = 20_000
# Position within the surrounding component, heads of the components around it (outermost first).
Nesting = tuple[tuple[int, ...], tuple[int, ...]]


class Function:
    """The control-flow graph of the code reached from one entry without following calls."""

    def __init__(self, entry: int, block_at: BlockAt, mode_mask: int = 0, end_before: EndBefore | None = None) -> None:
        """`mode_mask`: the bits of a program counter that say how to decode; a jump keeps them. `end_before` is told
        where loops begin, and says which blocks end there now that went on: a block that comes before a loop and goes
        on into it would make another block the head, in the middle of a turn, where what the turn has computed already
        meets what the one before had."""
        self._entry = entry
        self._block_at = block_at
        self._mode_mask = mode_mask
        self.edges = 0
        """Grows with what is known of the graph."""
        self._successors: dict[int, list[int]] = {}
        self._places: dict[int, Nesting] | None = None
        self._endless: tuple[int, dict[int, bool]] = (0, {})
        self._end_before = end_before
        self._discover([entry])
        if end_before is not None:
            end_before(self._heads(self._successors))
            self._successors = {}
            self._discover([entry])

    def _heads(self, blocks: Iterable[int]) -> list[int]:
        """Where direct jumps of these blocks lead back to."""
        last = {pc: block[-1].pc for pc in blocks if (block := self.block(pc))}
        return [to for pc in last for to in self._successors[pc] if to <= last[pc]]

    def _discover_behind(self, source: int, target: int) -> None:
        """An edge leads to code that was not known, such as the ways of a jump through a table; loops begin there."""
        known = len(self._successors)
        self._discover([source, target])
        if self._end_before is None or len(self._successors) == known:
            return
        found = list(islice(self._successors, known, None))
        shorter = [pc for pc in self._end_before(self._heads(found)) if pc in self._successors]
        for pc in shorter:
            del self._successors[pc]
        self._discover(shorter)

    def place(self, pc: int) -> Nesting:
        if pc not in self._successors:
            self._discover([pc])
        if self._places is None:
            self._places = _nesting(self._entry, self._successors)
        found = self._places.get(pc)
        if found is None:  # reached by an edge that is not known yet: behind everything
            found = self._places[pc] = ((len(self._successors) + pc,), ())
        return found

    def is_endless(self, head: int, is_end: Callable[[int], bool] = lambda pc: False) -> bool:
        """Whether no known edge leads out of a loop, other than to where everything ends."""
        if self._endless[0] != self.edges:
            self._endless = (self.edges, {})
        known = self._endless[1].get(head)
        if known is None:
            inside = {pc for pc in self._successors if head in self.place(pc)[1]}
            known = all(to in inside or is_end(to) for pc in inside for to in self._successors[pc])
            self._endless[1][head] = known
        return known

    def note_edge(self, source: int, target: int) -> None:
        """An edge that was taken; those of indirect jumps are new."""
        known = self._successors.get(source)
        if known is None or target not in known:
            self._discover_behind(source, target)
            if target not in self._successors[source]:
                self._successors[source].append(target)
            self._places = None
            self.edges += 1

    def blocks(self) -> list[int]:
        return list(self._successors)

    def successors(self, pc: int) -> list[int]:
        return self._successors.get(pc, [])

    def block(self, pc: int) -> tuple[Instruction, ...]:
        """The code of a block, none if it cannot be told."""
        try:
            return self._block_at(pc) or ()
        except MachineError:
            return ()

    def _discover(self, pending: list[int]) -> None:
        while pending and len(self._successors) < MAX_BLOCKS:
            pc = pending.pop()
            if pc in self._successors:
                continue
            self._places = None
            self.edges += 1
            self._successors[pc] = found = list(self._direct(pc))
            pending.extend(found)
        for pc in pending:
            self._successors.setdefault(pc, [])

    def _direct(self, pc: int) -> Iterator[int]:
        block = self.block(pc)
        if not block:
            return
        last = block[-1]
        following = last.pc + last.size
        falls, skips = True, False  # skips: what comes next in the instruction may be left out, such as a return
        for op in last.ops:
            if op.opcode in ("BRANCH", "CBRANCH"):
                if op.inputs[0].space is not Space.CONST:
                    target = op.inputs[0].offset | (last.pc & self._mode_mask)
                    if target != following:
                        yield target
                    falls = skips or op.opcode == "CBRANCH" or target == following
                    skips = skips or (op.opcode == "CBRANCH" and target == following)
                elif op.opcode == "CBRANCH":
                    skips = True
            elif op.opcode in ("BRANCHIND", "RETURN"):
                falls = skips
            elif op.opcode in ("CALL", "CALLIND"):
                falls = True
        if falls and last.size:
            yield following


def _nesting(entry: int, successors: dict[int, list[int]]) -> dict[int, Nesting]:
    """The place of every node in a weak topological order."""
    places: dict[int, Nesting] = {}

    def visit(nodes: set[int], start: int, prefix: tuple[int, ...], heads: tuple[int, ...]) -> None:
        # Explicit work list instead of recursion: components within components.
        pending = [(nodes, start, prefix, heads)]
        while pending:
            inside, first, position, around = pending.pop()
            for number, component in enumerate(_components(inside, first, successors), start=1):
                if len(component) == 1 and component[0] not in successors.get(component[0], ()):
                    places[component[0]] = ((*position, number), around)
                    continue
                head = component[0]
                places[head] = ((*position, number, 0), (*around, head))
                rest = set(component) - {head}
                if rest:
                    pending.append((rest, -1, (*position, number), (*around, head)))

    visit(set(successors), entry, (), ())
    return places


def _components(nodes: set[int], first: int, successors: dict[int, list[int]]) -> list[list[int]]:
    """Strongly connected components of a subgraph in topological order, each starting with its first-visited node.

    Tarjan's algorithm, iterative. Without a first node, the search starts at the nodes entered from outside.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    found: list[list[int]] = []
    if first in nodes:
        roots = [first, *sorted(nodes - {first})]
    else:
        entered = {t for s, ts in successors.items() if s not in nodes for t in ts if t in nodes}
        roots = [*sorted(entered), *sorted(nodes - entered)]
    for root in roots:
        if root in index:
            continue
        work = [(root, iter(successors.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            for target in edges:
                if target not in nodes:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(successors.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    component.reverse()
                    found.append(component)
    found.reverse()
    return found


class Order:
    def __init__(self, block_at: BlockAt, keyed: bool, mode_mask: int = 0, end_before: EndBefore | None = None) -> None:
        """`keyed` says whether states are explored in this order; if not, only loops and recursion are told.
        `end_before`: see `Function`."""
        self._block_at = block_at
        self._mode_mask = mode_mask
        self._end_before = end_before
        self._keyed = keyed
        self._functions: dict[int, Function] = {}

    def start(self, state: PathState) -> None:
        state.place = Place(None, state.pc, state.pc, self._loops(state.pc, None, state.pc, ()), frozenset())
        self._key(state)

    def move(self, state: PathState, transfer: Transfer, source: int) -> None:
        """Puts a state that has just left the block at `source` at its new place."""
        place, pc = state.place, state.pc
        assert place is not None
        if transfer is Transfer.CALL:
            within = place.within if place.function in place.within else place.within | {place.function}
            state.place = Place(place, pc, pc, self._loops(pc, None, pc, ()), within)
        else:
            if transfer is Transfer.RETURN and place.caller is not None:
                place = place.caller
                source = place.pc
            loops = self._loops(place.function, source, pc, place.loops)
            state.place = place._replace(pc=pc, loops=loops)
        self._key(state)

    def note_jumps(self, state: PathState, source: int, targets: list[int]) -> None:
        """Edges that are all new at once: the order is found once, not once for each."""
        assert state.place is not None
        graph = self.function(state.place.function)
        for target in targets:
            graph.note_edge(source, target)

    def known(self) -> list[int]:
        """The entries of all functions that were looked at, in that order."""
        return list(self._functions)

    def function(self, entry: int) -> Function:
        found = self._functions.get(entry)
        if found is None:
            found = self._functions[entry] = Function(entry, self._block_at, self._mode_mask, self._end_before)
        return found

    def _loops(self, function: int, source: int | None, pc: int, loops: Loops) -> Loops:
        """The turns of the loops around a place that is entered from `source`."""
        graph = self.function(function)
        if source is not None:
            graph.note_edge(source, pc)
        _, heads = graph.place(pc)
        turns = dict(loops)
        result = []
        for head in heads:
            if head == pc:
                result.append((head, turns[head] + 1 if head in turns else 0))
            else:
                result.append((head, turns.get(head, 0)))
        return tuple(result)

    def _key(self, state: PathState) -> None:
        """For every call, outermost first: the function (a call through a pointer goes to several, one after the
        other), and the position in each component, each with the turns of its loop."""
        if not self._keyed:
            return
        parts: list[list[int]] = []
        place = state.place
        while place is not None:
            position, heads = self.function(place.function).place(place.pc)
            turns = dict(place.loops)
            part = [place.function]
            for level, number in enumerate(position):
                part.append(number)
                if level < len(heads):
                    part.append(turns.get(heads[level], 0))
            part.append(-1)
            parts.append(part)
            place = place.caller
        state.key = tuple(number for part in reversed(parts) for number in part)
