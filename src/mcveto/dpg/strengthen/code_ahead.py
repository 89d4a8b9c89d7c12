"""Code that no run has reached: the locations behind an exit that invariants do not exclude and tests do not take.

A loop that turns a million times is not run to its end, so what is behind it would stay TS, which no invariant
excludes: the exit can be taken. The block in front of the exit says where it leads; from there the code is followed,
block by block, along all outcomes whose target, stack and frame pointer are plain. Nothing is claimed by that: a
location is a name for states, and whatever arrives elsewhere still leaves the graph. Where a frame pointer is restored
from memory, the one seen in the same activation is tried; were it another, that would be an exit to be excluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mcveto.dpg.graph import Graph
from mcveto.dpg.location import ANY, Blocks, Location, frame_pointer_of
from mcveto.dpg.outcomes import Outcome
from mcveto.dpg.steps import Steps
from mcveto.logic import terms as t
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program

MAX_NEW = 300
DEEPEST = 12


class CodeAhead:
    def __init__(self, program: Program, steps: Steps, blocks: Blocks, graph: Graph) -> None:
        self._program = program
        self._steps = steps
        self._blocks = blocks
        self._graph = graph
        layout, row = program.decoder.layout, program.decoder.row
        (stack,), (frame,) = layout.named(row.stack_pointer), layout.named(row.frame_pointer)
        self._stack = t.var(stack.cell.name, stack.cell.bits)
        self._frame = t.var(frame.cell.name, frame.cell.bits)

    def add_behind(self, exits: Iterable[Location]) -> int:
        """Adds the locations that the code behind these leads to, and steps to them or to known ones; returns how many
        were added. A step alone counts: the end of a long loop often leads to where shorter ways led before.

        The graph accepts all traces it accepted: locations and steps are only added."""
        frame_pointers = self._frame_pointers()
        waiting = sorted(set(exits))
        added = steps = 0
        while waiting:
            location = waiting.pop()
            for following in self._successors(location, frame_pointers):
                if following in self._graph.successors[location]:
                    continue
                if following not in self._graph.by_location:
                    if added >= MAX_NEW:
                        continue
                    added += 1
                    self._graph.add_location(following)
                    waiting.append(following)
                self._graph.add_successor(location, following)
                steps += 1
        return added + steps

    def _frame_pointers(self) -> dict[tuple[int, ...] | None, int]:
        """The usual frame pointer of each activation."""
        seen: dict[tuple[int, ...] | None, Counter[int]] = {}
        for location in sorted(self._graph.by_location):
            if location.frame_pointer != ANY:
                seen.setdefault(location.frames, Counter())[location.frame_pointer] += 1
        return {frames: counts.most_common(1)[0][0] for frames, counts in seen.items()}

    def _successors(self, location: Location, frame_pointers: dict[tuple[int, ...] | None, int]) -> Iterator[Location]:
        if location.stack_pointer == ANY:
            return
        known = {self._stack: t.const(location.stack_pointer, self._stack.width)}
        if location.frame_pointer != ANY:
            known[self._frame] = t.const(location.frame_pointer, self._frame.width)
        here = Substitution(known)
        for outcome in self._steps.outcomes(location):
            if outcome.unsupported:
                continue
            following = self._following(location, outcome, here, frame_pointers)
            if following is not None:
                yield following

    def _following(
        self,
        location: Location,
        outcome: Outcome,
        here: Substitution,
        frame_pointers: dict[tuple[int, ...] | None, int],
    ) -> Location | None:
        frames = location.frames
        if self._steps.is_return(outcome):
            pc = self._steps.expected_return(location, None)
            frames = None if frames is None else frames[:-1]
        else:
            target = here.apply(outcome.target)
            pc = target.data if target.op == "const" else None
            if outcome.transfer is Transfer.CALL and frames is not None:
                frames = (*frames, outcome.following)
        row = self._program.decoder.row
        if pc is None or (frames is not None and len(frames) > DEEPEST):
            return None
        address = row.code_address(pc)
        if address in self._program.targets or address in self._steps.ends:
            return None
        stack = self._after(outcome, self._stack, here)
        frame = self._after(outcome, self._frame, here)
        if stack is None:
            return None
        if frame is None:
            frame = frame_pointers.get(frames, ANY)
        frame = frame_pointer_of(self._program.space, stack, frame)
        try:
            block = self._blocks.fixed_block(pc)
        except (Fault, Unsupported):
            return None
        if block is None:
            return None
        return Location(pc, b"".join(instruction.bytes for instruction in block), stack, frame, frames)

    def _after(self, outcome: Outcome, register: Term, here: Substitution) -> int | None:
        value = here.apply(outcome.state.get(register, register))
        return value.data if value.op == "const" else None
