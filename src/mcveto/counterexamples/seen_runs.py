"""Runs that ended at an error, whatever trace they were meant for.

The search for an input along one trace makes runs that leave it, and some of them reach an error all the same; so does
the input that `verify` found. What such a run passed is kept, and so a trace that it follows (`along_trace`) needs no
search of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcveto.counterexamples.along_trace import Configuration, Progress, Surroundings
from mcveto.counterexamples.entry_values import Confirmed, EntryValues, consumed_input, machine_with
from mcveto.machine.pcode import FreshOrigin, Transfer
from mcveto.program.inputs import ConsumedInput
from mcveto.program.program import Program

MAX_STEPS = 20_000
MAX_KEPT = 200

Choose = Callable[[int, FreshOrigin, int], int]
"""Given the number of a fresh value, its origin and the usual value: the value."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run passed, and what it is made from."""

    passed: tuple[Configuration, ...]
    nodes: frozenset[Configuration]
    confirmed: Confirmed


class SeenRuns:
    """`size_at` is the size of the instruction at a program counter."""

    def __init__(self, program: Program, surroundings: Surroundings, size_at: Callable[[int], int]) -> None:
        self.program = program
        self._surroundings = surroundings
        self._size_at = size_at
        self.kept: list[Seen] = []

    def find(self, trace: Sequence[Configuration]) -> Confirmed | None:
        """A run that follows the trace to its error."""
        for seen in self.kept:
            if seen.passed[-1] == trace[-1] and seen.nodes.issuperset(trace) and self._follows(seen, trace):
                return seen.confirmed
        return None

    def _follows(self, seen: Seen, trace: Sequence[Configuration]) -> bool:
        progress = Progress(trace, self._surroundings)
        return all(progress.arrive(configuration) for configuration in seen.passed[1:]) and progress.is_at_end

    def offer(self, inputs: Sequence[int]) -> None:
        """Makes the run with these inputs, in the order consumed."""
        left = list(reversed(inputs))

        def choose(number: int, origin: FreshOrigin, usual: int) -> int:
            if origin is FreshOrigin.INPUT:
                return left.pop() if left else 0
            return usual

        self.make(choose, {}, {})

    def make(self, choose: Choose, registers: dict[str, int], memory: dict[int, int], is_limited: bool = True) -> None:
        """Makes a run, and keeps it if it ends at an error; if it `is_limited`, not too many of them."""
        if is_limited and len(self.kept) >= MAX_KEPT:
            return
        program = self.program
        values: list[int] = []
        consumed: list[ConsumedInput] = []

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            value = choose(len(values), origin, usual) & ((1 << bits) - 1)
            values.append(value)
            if origin is FreshOrigin.INPUT:
                consumed.append(consumed_input(program, usual, value))
            return value

        machine = machine_with(program, EntryValues((), registers, memory), fresh)
        outcome = machine.run(MAX_STEPS)
        if outcome.kind != "target":
            return
        row, nodes = program.decoder.row, self._surroundings.nodes
        frames: Configuration = ()
        passed: list[Configuration] = [(program.entry,)]
        for step in machine.trace:
            if step.transfer is Transfer.CALL:
                frames = ((step.pc + self._size_at(step.pc)) & row.address_mask, *frames)
            elif step.transfer is Transfer.RETURN:
                frames = frames[1:]
            if step.next_pc in nodes:
                passed.append((step.next_pc, *frames))
        entry = EntryValues(tuple(values), registers, memory)
        error = row.code_address(outcome.pc)
        confirmed = Confirmed((*entry.inputs(program), *consumed), error, entry, outcome.steps)
        seen = Seen(tuple(passed), frozenset(passed), confirmed)
        if all(other.passed != seen.passed for other in self.kept):
            self.kept.append(seen)
