"""Exploration of all paths: the loop that symbolic execution and bounded model checking share.

A pool of states, the next one by the policy's order; each is executed for one block. A state ends at a halt, at a
fault, at a target (a violation, once it has been run), or because what it can do was done already from another state.
All states ended and nothing left out: no input violates the property.

Every "no" of the solver that something was left out for is asked again of another solver before PROVED is said (see
`recheck`); what was explored is handed over as an invariant that can be checked step by step (see `record`).
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable

from mcveto.dpg.evidence import Evidence
from mcveto.dpg.location import Blocks
from mcveto.engines.execute import Executor, Result
from mcveto.engines.merge import merged
from mcveto.engines.novelty import Novelty
from mcveto.engines.order import Order
from mcveto.engines.queries import Queries
from mcveto.engines.recheck import recheck
from mcveto.engines.replay import replayed
from mcveto.engines.solved_equations import solve_new
from mcveto.engines.state import PathState
from mcveto.engines.subsume import Visited
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.program.program import Program
from mcveto.verdict import Verdict

Report = Callable[[dict[str, float | int], str], None]
# Reasons of an UNKNOWN that are told; there can be thousands.
_GAPS_TOLD = 5


@dataclass(frozen=True, slots=True)
class Policy:
    merges: bool
    """Paths that meet become one state."""
    asks_at_forks: bool
    """Ask at every fork whether both ways are possible; otherwise when a loop is entered again, and at targets."""
    unwind: int | None = None
    """How often a loop is entered again, and a function from itself; None: until there is no time left."""
    query_seconds: float = 20.0


class Exploration:
    def __init__(self, program: Program, policy: Policy, seconds: float, report: Report | None = None) -> None:
        self._program = program
        self._policy = policy
        self._started = time.monotonic()
        self._deadline = self._started + seconds
        self._report = report
        self._queries = Queries(program, self._deadline, policy.query_seconds)
        self._executor = Executor(program, self._queries, policy.asks_at_forks)
        self._order = Order(Blocks(program).fixed_block, policy.merges, program.decoder.row.mode_mask)
        self._visited = Visited(self._queries, t.memory("mem", program.space.address_bits))
        self._pool: list[tuple[tuple[int, ...], int, PathState | tuple[object, ...]]] = []
        self._by_novelty: list[tuple[tuple[int, ...], int, PathState | tuple[object, ...]]] = []
        self._novelty = Novelty(program)
        self._turn = 0
        self._taken: set[int] = set()
        self._waiting: dict[tuple[object, ...], PathState] = {}
        self._parked: list[PathState] = []
        self._bound = 1 if policy.unwind is None else policy.unwind
        self._completed = 0
        self._pushed = 0
        self._paths = 0
        self._executed: dict[int, int] = {}
        self._joined = 0
        self._halted = False
        self._faults = 0
        self._assumed = {pc for pc, hook in program.hooks.items() if hook.mnemonic == "assume"}
        self._called: set[int] = set()
        self._met: set[int] = set()

    def run(self) -> Verdict:
        verdict = self.advance()
        assert verdict is not None
        return verdict

    def advance(self, states: float = math.inf, until: float = math.inf) -> Verdict | None:
        """Explores so many states more, or until a time on the monotonic clock; None if there are more to explore."""
        if not self._pushed:
            self._begin(self._executor.initial())
        while states > 0 and time.monotonic() < until:
            states -= 1
            state = self._next()
            if state is None:
                return self._finished()
            if time.monotonic() > self._deadline:
                return self._unknown(self._out_of_time())
            found = self._explore(state)
            if found is not None:
                return found
        return None

    def begin_within(self, change: Callable[[PathState], None]) -> None:
        """Begins with the entry state as `change` leaves it, in the middle of a run: then nothing can be proved."""
        self._executor.gaps["the exploration began in the middle of a run"] = None
        self._executor.recorder.give_up()
        first = self._executor.initial()
        change(first)
        self._begin(first)

    def _begin(self, state: PathState) -> None:
        self._order.start(state)
        self._push(state)

    @property
    def got_stuck(self) -> bool:
        """Whether more time for a question could have changed the outcome."""
        return self._queries.got_stuck

    # The pool.

    def _push(self, state: PathState) -> None:
        self._pushed += 1
        program = self._program
        if self._policy.merges:
            if not state.resumes:
                key: tuple[object, ...] = (state.key, state.pc, state.calls)
                other = self._waiting.get(key)
                if other is not None:
                    joined = merged(other, state, self._queries, program)
                    if joined is not None:
                        self._joined += 1
                        self._waiting[key] = joined
                        return
                    key = (*key, self._pushed)
                self._waiting[key] = state
                heapq.heappush(self._pool, (state.key, self._pushed, key))
                return
            heapq.heappush(self._pool, (state.key, self._pushed, state))
            return
        priority = (self._executed.get(state.pc, 0), state.steps)
        heapq.heappush(self._pool, (priority, self._pushed, state))
        heapq.heappush(self._by_novelty, ((state.rank, *priority), self._pushed, state))

    def _next(self) -> PathState | None:
        state = self._first()
        if state is None:
            self._unpark()
            state = self._first()
        return state

    def _first(self) -> PathState | None:
        """Without merging: in turns what is at new code and what is in a new configuration; each state is in both
        queues."""
        if self._policy.merges:
            if not self._pool:
                return None
            _, _, item = heapq.heappop(self._pool)
            return item if isinstance(item, PathState) else self._waiting.pop(item)
        self._turn += 1
        while self._pool and self._by_novelty:
            _, number, state = heapq.heappop(self._by_novelty if self._turn % 2 else self._pool)
            if number not in self._taken:
                self._taken.add(number)
                assert isinstance(state, PathState)
                return state
            self._taken.discard(number)
        return None

    def _unpark(self) -> None:
        """Everything up to the bound is explored: goes on with a larger one."""
        self._completed = self._bound
        if self._policy.unwind is not None:
            return
        self._bound *= 2
        parked, self._parked = self._parked, []
        for state in parked:
            self._push(state)

    def _beyond(self, state: PathState) -> bool:
        """Whether the state is outside the bound."""
        if not self._policy.merges and self._policy.unwind is None:
            return False
        if state.place is not None and any(turns > self._bound for _, turns in state.place.loops):
            return True
        return state.calls is not None and state.calls.occurrences > self._bound + 1

    # One state.

    def _explore(self, state: PathState) -> Verdict | None:
        program, row, recorder = self._program, self._program.decoder.row, self._executor.recorder
        address = row.code_address(state.pc)
        if address in program.targets:
            return self._violated(state) if self._executor.feasible(state) else None
        if address in program.halts or address == row.code_address(program.return_sentinel):
            self._paths += 1
            recorder.halted(state)
            self._halted = self._halted or self._executor.feasible(state)
            return None
        if not state.resumes and self._repeats(state):
            if not self._executor.feasible(state):
                return None
            is_due = self._visited.is_due(state)
            covering = self._visited.covers(state) if is_due else None
            if covering is not None:
                recorder.covered(state, covering.number, covering.renaming)
                return None
            if self._beyond(state):
                self._parked.append(state)
                return None
            if is_due:
                self._visited.remember(recorder.upcoming)
            if not self._policy.merges:
                state.rank = self._novelty.rank(state)
        self._executed[state.pc] = self._executed.get(state.pc, 0) + 1
        source = state.place.pc if state.place is not None else state.pc
        result = self._executor.run(state)
        return self._take(result, source)

    def _take(self, result: Result, source: int) -> Verdict | None:
        self._note(result, source)
        for state in result.mismatches:
            if self._executor.feasible(state):
                verdict = self._violated(state)
                if verdict is not None:
                    return verdict
        for state in result.again:
            self._push(state)
        for transfer, state in result.successors:
            self._executor.recorder.left(state)
            solve_new(state)
            self._order.move(state, transfer, source)
            self._push(state)
        self._tell(source)
        return None

    def _note(self, result: Result, source: int) -> None:
        """What happens in the runs: how they end, and whether assumptions hold."""
        if not result.successors and not result.again and not result.mismatches:
            self._faults += 1
        if source in self._assumed and source not in self._met:
            self._called.add(source)
            if any(self._executor.feasible(state) for _, state in result.successors):
                self._met.add(source)

    def _evidence(self) -> Evidence:
        address = self._program.decoder.row.code_address
        return Evidence(
            entered=self._executor.instructions > 0,
            endings={"fault": self._faults} if self._faults else {},
            halted=self._halted or self._executor.exited,
            assumptions_met=tuple(sorted(map(address, self._met))),
            assumptions_missed=tuple(sorted(set(map(address, self._called)) - set(map(address, self._met)))),
        )

    def _repeats(self, state: PathState) -> bool:
        """Whether the state is at the head of a loop or at the entry of a function that is being called already."""
        place = state.place
        if place is None:
            return False
        if place.loops and place.loops[-1][0] == place.pc:
            return True
        return place.pc == place.function and place.function in place.within

    # Ends.

    def _violated(self, state: PathState) -> Verdict | None:
        found = replayed(self._program, state)
        if isinstance(found, Verdict):
            return self._with_statistics(found)
        self._executor.gaps[found] = None
        return None

    def _finished(self) -> Verdict:
        gaps = list(self._executor.gaps)
        if self._parked:
            gaps.insert(0, f"no violation up to {self._completed}")
        if self._program.image.unspecified:
            gaps.append("the file depends on code or data that is not in it (imports)")
        if gaps:
            more = [f"and {len(gaps) - _GAPS_TOLD} more reasons"] if len(gaps) > _GAPS_TOLD else []
            return self._unknown("; ".join([*gaps[:_GAPS_TOLD], *more]))
        problem = recheck(self._queries, self._deadline)
        if problem:
            return self._unknown(problem)
        proof = self._executor.recorder.proof()
        evidence = self._evidence()
        verdict = Verdict("proved", assumptions=self._program.assumptions, proof=proof, evidence=evidence)
        return self._with_statistics(verdict)

    def _out_of_time(self) -> str:
        return "time-out" if not self._completed else f"time-out, no violation up to {self._completed}"

    def _unknown(self, reason: str) -> Verdict:
        return self._with_statistics(Verdict("unknown", reason=reason, assumptions=self._program.assumptions))

    def _with_statistics(self, verdict: Verdict) -> Verdict:
        from dataclasses import replace

        return replace(verdict, statistics=self.statistics())

    def statistics(self) -> dict[str, float | int]:
        return {
            "seconds": round(time.monotonic() - self._started, 3),
            "symbolic_runs": self._paths,
            "solver_calls": self._queries.count,
            "instructions_executed": self._executor.instructions,
            "distinct_instructions": len(self._executor.seen),
            "locations": len(self._executed),
            "nodes": self._pushed,
        }

    def _tell(self, pc: int) -> None:
        if self._report is not None:
            self._report(self.statistics(), f"{pc:#x}")
