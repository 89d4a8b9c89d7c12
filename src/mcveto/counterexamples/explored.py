"""All runs of a program as a finite graph, where symbolic execution comes to an end.

Every path is explored, also behind a first violation; a state that returns to an earlier one (`instances`) leads back
to it, so that state machines in endless loops have finitely many states. If nothing was left out, every run of the
program is a path of the graph, and computed jumps have the targets that were met and no others. Steps back to an
earlier state forget what is known beyond it, so that not every path of the graph need be a run: each trace that is
read from it (`graph_traces`) is run before it counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from mcveto.counterexamples.along_trace import Configuration
from mcveto.counterexamples.instances import Instances
from mcveto.dpg.runs import Choices
from mcveto.engines.execute import Executor
from mcveto.engines.exploration import Exploration, Policy
from mcveto.engines.queries import Queries
from mcveto.engines.record import Accesses, PathProof, Recorder, Renaming
from mcveto.engines.replay import choices_of
from mcveto.engines.state import Calls, PathState
from mcveto.logic import terms as t
from mcveto.machine.pcode import Instruction, Transfer
from mcveto.property.ghost import Watched
from mcveto.verdict import Verdict

QUERY_SECONDS = 10.0
# States that are followed at once along a path of the graph.
_ABREAST = 16


@dataclass(slots=True)
class ExploredState:
    """The state before a block; where the block leads."""

    pcs: tuple[int, ...]
    """The instructions of the block."""
    frames: Configuration
    """Where pending calls return to, innermost first."""
    automaton: int | None
    """The automaton's state, None if that depends on the input."""
    steps: dict[int, None] = field(default_factory=dict)
    back: set[int] = field(default_factory=set)
    """Steps to a state that was explored already."""
    errors: dict[int, Choices] = field(default_factory=dict)
    """Errors that the block leads to, and what a run to them is made from."""


class _Graph(Recorder):
    """Records the states and steps alone; these are never too many for it."""

    def __init__(self, automaton_cell: int, bottom: int) -> None:
        super().__init__()
        self.states: list[ExploredState] = []
        self._cell = automaton_cell
        self._bottom = bottom

    def give_up(self) -> None:
        pass

    @property
    def upcoming(self) -> int:
        return len(self.states)

    def enter(self, state: PathState, block: tuple[Instruction, ...]) -> Accesses | None:
        number = len(self.states)
        for origin in state.origins:
            self.states[origin].steps[number] = None
        state.origins = (number,)
        value = state.registers.get(self._cell)
        self.states.append(
            ExploredState(
                tuple(instruction.pc for instruction in block),
                frames_of(state.calls, self._bottom),
                value if isinstance(value, int) else None,
            )
        )
        return None

    def relied(self, origins: Iterable[int], conditions: Iterable[t.Term]) -> None:
        pass

    def accesses(self, state: PathState) -> Accesses | None:
        return None

    def left(self, state: PathState) -> None:
        pass

    def halted(self, state: PathState) -> None:
        pass

    def covered(self, state: PathState, by: int, renaming: Renaming) -> None:
        for origin in state.origins:
            self.states[origin].steps[by] = None
            self.states[origin].back.add(by)

    def proof(self) -> PathProof | None:
        return None


def frames_of(calls: Calls | None, bottom: int) -> Configuration:
    found: list[int] = []
    while calls is not None:
        found.append(calls.address)
        calls = calls.parent
    return tuple(found[:-1] if found and found[-1] == bottom else found)


class Explored(Exploration):
    """`states` is the graph; the entry is its first state."""

    def __init__(self, watched: Watched, seconds: float) -> None:
        program = watched.program
        super().__init__(program, Policy(merges=False, asks_at_forks=True, query_seconds=QUERY_SECONDS), seconds)
        self._cell = program.decoder.layout.by_name[watched.state_cell].number
        self._graph = _Graph(self._cell, program.return_sentinel)
        self._executor.recorder = self._graph
        self._visited = Instances(self._queries, t.memory("mem", program.space.address_bits))
        self._is_over = False
        self.stopped = "not begun"
        """Why the graph is not complete; "" if it is."""

    @property
    def states(self) -> Sequence[ExploredState]:
        return self._graph.states

    @property
    def is_complete(self) -> bool:
        return not self.stopped

    @property
    def targets(self) -> Mapping[int, Mapping[int, Transfer]]:
        """Where instructions were seen to lead by calls and jumps."""
        found: dict[int, dict[int, Transfer]] = {}
        for state in self.states:
            for step in state.steps:
                following = self.states[step]
                is_call = len(following.frames) > len(state.frames)
                is_jump = len(following.frames) == len(state.frames)
                if is_call or is_jump:
                    transfer = Transfer.CALL if is_call else Transfer.JUMP
                    found.setdefault(state.pcs[-1], {})[following.pcs[0]] = transfer
        return found

    def explore(self, seconds: float) -> None:
        """Explores for so long, or to the end; may be told to go on."""
        if self._is_over:
            return
        verdict = self.advance(until=time.monotonic() + seconds)
        self._is_over = verdict is not None
        if verdict is None:
            self.stopped = "out of time"
        else:
            self.stopped = "" if verdict.kind == "proved" else verdict.reason or verdict.kind

    def _violated(self, state: PathState) -> Verdict | None:
        program = self._program
        error = program.decoder.row.code_address(state.pc)
        if error not in program.targets:
            self._executor.gaps["a return does not go back to its call"] = None
            return None
        assert state.model is not None
        (origin,) = state.origins
        self._graph.states[origin].errors.setdefault(error, choices_of(program, state, state.model))
        return None

    def choices_along(self, path: Sequence[int], error: int, deadline: float) -> Choices | None:
        """What a run is made from that passes these states of the graph, one after the other, to the error."""
        program, states = self._program, self.states
        if not any(after in states[before].back for before, after in pairwise(path)):
            return states[path[-1]].errors.get(error)
        executor = Executor(program, Queries(program, deadline, QUERY_SECONDS), eager=False)
        executor.recorder = _Graph(self._cell, program.return_sentinel)
        current = [executor.initial()]
        for number in (*path[1:], None):
            found: list[PathState] = []
            while current and time.monotonic() < deadline:
                result = executor.run(current.pop())
                current += result.again
                for _, state in result.successors:
                    if self._is_at(state, None if number is None else states[number], error):
                        found.append(state)
            if len(found) > 1 or number is None:
                found = [state for state in found if executor.feasible(state)]
            current = found[:_ABREAST]
        for state in current:
            assert state.model is not None
            return choices_of(program, state, state.model)
        return None

    def _is_at(self, state: PathState, there: ExploredState | None, error: int) -> bool:
        if there is None:
            return self._program.decoder.row.code_address(state.pc) == error
        value = state.registers.get(self._cell)
        return (
            state.pc == there.pcs[0]
            and (there.automaton is None or there.automaton == value)
            and frames_of(state.calls, self._program.return_sentinel) == there.frames
        )
