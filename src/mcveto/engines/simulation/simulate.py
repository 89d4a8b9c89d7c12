"""Property simulation: all paths at once, by abstract states that are kept apart only where the property needs it.

After ESP (Das, Lerner, Seigle, PLDI 2002): where paths meet, their states are joined into one that says what both say
(`join`), except that states which differ in what the property depends on stay apart, each with its own path. So "the
lock is held, and bit 2 of the request is set" and "the lock is free, and it is not" go through a handler side by side,
and everything else about the handler is forgotten at its end. The cost grows with the code, not with its paths; loops
end when a state comes back that is covered. Where a loop's end does not depend on inputs it is simply run.

Deviations: what the property depends on is not given but found. At first nothing is kept apart; when a target seems to
be reached because a join forgot something, that place (a cell, or a register within one function) is kept apart from
then on, and the simulation starts again. Calls are followed, each by itself, not summarised.

When a target still seems to be reached, it is all done once more, and each abstract state takes a few real paths along
(`representatives`). A target reached by one of these is a violation, after replay; a target that only abstract states
reach makes the answer UNKNOWN. When nothing is left and no target was reached the property is proved: the abstract
states are an invariant. Every "no" of the solver is asked again of another.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from mcveto.dpg.location import Blocks
from mcveto.engines.exploration import Report
from mcveto.engines.order import Order
from mcveto.engines.queries import Queries
from mcveto.engines.recheck import recheck
from mcveto.engines.replay import replayed
from mcveto.engines.simulation.coarse_executor import CoarseExecutor
from mcveto.engines.simulation.coarse_memory import CoarseMemory, Unknowns
from mcveto.engines.simulation.join import Joins
from mcveto.engines.simulation.relevance import Relevance
from mcveto.engines.simulation.representatives import LONG_PATH, RunExecutor, freeze
from mcveto.engines.state import Calls, PathState
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program
from mcveto.verdict import Verdict

QUERY_SECONDS = 1.0
RUN_QUERY_SECONDS = 0.3
MOST_RUNS = 2
MOST_TURNS = 300
MOST_JOINS = 40
MOST_VALUES = 8
FEW_HITS = 2
MOST_REFINEMENTS = 24
DEEPEST_RECURSION = 3

Apart = tuple[object, ...]
"""A place whose values are kept apart: ("memory", address, size, function) or ("register", number, function)."""
Key = tuple[object, ...]


@dataclass
class Slot:
    """A place that waits to be executed, with the abstract state of all that arrived there."""

    state: PathState
    marks: frozenset[int]
    """Heads of loops around it whose end depends on inputs."""
    runs: list[PathState] = field(default_factory=list)


class Refined(Exception):
    """Something more is kept apart: everything is to be done again."""


class Suspected(Exception):
    """A target seems to be reached whatever is kept apart: real paths are to go along."""


def simulate(program: Program, seconds: float, report: Report | None = None) -> Verdict:
    deadline = time.monotonic() + seconds
    apart: dict[Apart, None] = {}
    code = Blocks(program)
    hits: dict[Key, int] = {}
    with_runs = False
    relevance = Relevance(program, code.fixed_block)
    for _ in range(MOST_REFINEMENTS):
        simulation = Simulation(program, code, deadline, apart, hits, with_runs, relevance, report)
        try:
            return simulation.run()
        except Refined:
            continue
        except Suspected:
            with_runs = True
    return Verdict("unknown", reason="what the property depends on was not found", assumptions=program.assumptions)


class Simulation:
    def __init__(
        self,
        program: Program,
        code: Blocks,
        deadline: float,
        apart: dict[Apart, None],
        hits: dict[Key, int],
        with_runs: bool,
        relevance: Relevance | None,
        report: Report | None,
    ) -> None:
        self._hits = hits
        self._with_runs = with_runs
        self._program = program
        self._started = time.monotonic()
        self._deadline = deadline
        self._apart = apart
        self._report = report
        self._queries = Queries(program, deadline, QUERY_SECONDS)
        self._unknowns = Unknowns()
        self._executor = CoarseExecutor(program, self._queries, self._unknowns)
        self._run_queries = Queries(program, deadline, RUN_QUERY_SECONDS)
        self._runner = RunExecutor(program, self._run_queries)
        for executor in (self._executor, self._runner):
            executor.recorder.give_up()  # no certificate is written
        self._executor.share(code)
        self._runner.share(code, self._executor)
        self._joins = Joins(program, self._executor, self._queries.table)
        self._order = Order(code.fixed_block, True, program.decoder.row.mode_mask)
        self._relevance = relevance
        self._executor.matters = self._matters
        self._pool: list[tuple[tuple[int, ...], int, Key]] = []
        self._slots: dict[Key, Slot] = {}
        self._places: dict[Key, list[Key]] = {}
        self._heads: dict[Key, PathState] = {}
        self._joined: dict[Key, int] = {}
        self._open: dict[str, None] = {}
        self._values: dict[Apart, set[object]] = {}
        self._pushed = 0
        self._executed: set[int] = set()
        layout, row = program.decoder.layout, program.decoder.row
        (pointer,) = layout.named(row.stack_pointer)
        self._stack_pointer = pointer.cell.number
        added = {name for name, _ in row.extra}
        self._ghosts = {cell.number for cell in layout.cells if cell.name in added}
        first = program.registers.get(self._stack_pointer)
        self._stack = None if first is None else program.space.region_at(first - 1)

    def run(self) -> Verdict:
        first, run = self._executor.initial(), self._runner.initial()
        run.calls = first.calls  # equal call strings are the same object only below the same root
        self._order.start(first)
        self._order.start(run)
        self._push(first, frozenset())
        if self._with_runs:
            self._accompany([run])
        while self._pool:
            if time.monotonic() > self._deadline:
                return self._unknown("time-out")
            _, _, key = heapq.heappop(self._pool)
            slot = self._slots.pop(key)
            self._places.pop(key[:3], None)
            found = self._explore(slot, key)
            if found is not None:
                return found
        return self._finished()

    def _matters(self, state: PathState) -> bool:
        place = state.place
        if self._relevance is None or place is None:
            return True
        return self._relevance.matters(self._order, place.function, place.pc)

    # The pool.

    def _key(self, state: PathState) -> Key:
        """The place, and what is kept apart there."""
        function = state.place.function if state.place is not None else 0
        values: list[object] = [self._known(state.registers.get(self._stack_pointer))]
        for item in self._apart:
            if item[0] == "memory":
                _, address, size, owner = item
                if owner in (None, function):
                    values.append(self._few(item, state.memory.load(address, size)))  # type: ignore[arg-type]
            elif item[2] in (None, function):
                values.append(self._few(item, state.registers.get(item[1])))  # type: ignore[call-overload]
        return (state.key, state.pc, state.calls, tuple(values))

    def _known(self, value: object) -> object:
        return "?" if isinstance(value, Term) else value

    def _few(self, item: Apart, value: object) -> object:
        """What is kept apart may have a few values; a place with many is a counter, and is joined like any other."""
        if isinstance(value, Term):
            return "?"
        seen = self._values.setdefault(item, set())
        if len(seen) < MOST_VALUES:
            seen.add(value)
        return value if value in seen else "?"

    def _push(self, state: PathState, marks: frozenset[int]) -> None:
        key = self._key(state)
        slot = self._slots.get(key)
        if slot is not None:
            slot.state = self._joins.joined(slot.state, state, is_loop=False)
            slot.marks |= marks
            return
        self._pushed += 1
        self._slots[key] = Slot(state, marks)
        self._places.setdefault(key[:3], []).append(key)
        heapq.heappush(self._pool, (state.key, self._pushed, key))

    def _accompany(self, runs: list[PathState]) -> None:
        """Real paths join the abstract states they belong to."""
        for run in runs:
            key = self._key(run)
            there = self._places.get(key[:3], [])
            fitting = [other for other in there if _fits(key[3], other[3])]  # type: ignore[arg-type]
            for other in sorted(fitting, key=lambda other: other != key):
                slot = self._slots[other]
                if len(slot.runs) < MOST_RUNS:
                    slot.runs.append(run)
                    break

    # One place.

    def _explore(self, slot: Slot, key: Key) -> Verdict | None:
        program, row, state = self._program, self._program.decoder.row, slot.state
        address = row.code_address(state.pc)
        if address in program.targets:
            return self._hit(state, slot.runs, f"{address:#x}")
        if address in program.halts or address == row.code_address(program.return_sentinel):
            return None
        if state.calls is not None and state.calls.occurrences > DEEPEST_RECURSION:
            self._open["recursion"] = None
            return None
        marks = self._at_head(slot, key)
        if marks is None:
            return None
        state = slot.state
        self._executed.add(state.pc)
        source = state.place.pc if state.place is not None else state.pc
        around = state.place.loops if state.place is not None else ()
        frame = state.calls
        self._executor.forked = False
        moved: list[PathState] = []
        pending = [state]
        while pending:
            result = self._executor.run(pending.pop())
            pending.extend(result.again)
            for lost in result.mismatches:
                found = self._hit(lost, self._mismatching(slot.runs), f"return at {source:#x}")
                if found is not None:
                    return found
            for transfer, successor in result.successors:
                self._order.move(successor, transfer, source)
                moved.append(successor)
        if self._executor.forked:
            marks |= {head for head, _ in around if any(_left(item, head, frame) for item in moved)}
        for successor in moved:
            self._push(successor, marks)
        self._tell(source)
        self._advance(slot.runs, source)
        return None

    def _at_head(self, slot: Slot, key: Key) -> frozenset[int] | None:
        """What to do at the head of a loop; None if nothing, because an earlier state covers this one."""
        state, marks = slot.state, slot.marks
        place = state.place
        if place is None or not place.loops or place.loops[-1][0] != place.pc:
            return marks
        turns = place.loops[-1][1]
        outside = tuple(item for item in place.loops[:-1] if item[0] not in marks)
        where: Key = (place.pc, state.calls, outside, key[3])
        memory = state.memory
        assert isinstance(memory, CoarseMemory)
        memory.looked = {}
        old = self._heads.get(where)
        if turns == 0:
            marks -= {place.pc}
        elif place.pc in marks or turns > MOST_TURNS:
            if old is not None and self._joins.covers(old, state):
                return None
            count = self._joined[where] = self._joined.get(where, 0) + 1
            if count > MOST_JOINS:
                self._open[f"the loop at {place.pc:#x} does not come to rest"] = None
                return None
            if old is not None:
                slot.state = self._joins.joined(old, state, is_loop=True)
        # Executing a state uses it up.
        kept = slot.state.fork(slot.state.pc, dict(slot.state.registers), slot.state.memory.copy(), slot.state.model)
        self._heads[where] = kept
        return marks

    # Real paths.

    def _advance(self, runs: list[PathState], source: int) -> None:
        moved: list[PathState] = []
        pending = list(runs)
        while pending:
            result = self._runner.run(pending.pop())
            pending.extend(result.again)
            for transfer, run in result.successors:
                self._order.move(run, transfer, source)
                if transfer is Transfer.RETURN and len(run.path.terms) > LONG_PATH:
                    freeze(run, self._run_queries.table)
                moved.append(run)
        self._accompany(moved)

    def _mismatching(self, runs: list[PathState]) -> list[PathState]:
        found: list[PathState] = []
        for run in runs:
            twin = run.fork(run.pc, dict(run.registers), run.memory.copy(), run.model)
            found += self._runner.run(twin).mismatches
        return found

    def _hit(self, state: PathState, runs: list[PathState], where: str) -> Verdict | None:
        for run in runs:
            found = replayed(self._program, run)
            if isinstance(found, Verdict):
                return self._with_statistics(found)
        place: Key = (state.pc, tuple(_addresses(state.calls)))
        self._hits[place] = self._hits.get(place, 0) + 1
        if not self._with_runs and self._hits[place] > FEW_HITS:
            raise Suspected
        if self._refine(state):
            raise Refined
        if not self._with_runs:
            raise Suspected
        self._open[f"{where} may be reached, but no input was found that does"] = None
        return None

    def _refine(self, state: PathState) -> bool:
        """Keeps apart what a join forgot and the way here depends on; latest first."""
        origins, table = self._unknowns.origins, self._queries.table
        for term in reversed(state.path.terms):
            for variable in sorted((v for v in table.of(term) if v in origins), key=lambda v: -v.serial):
                item: Apart = origins[variable]
                if item[0] == "memory" and not self._on_stack(item[1]):
                    item = (*item[:3], None)
                elif item[0] == "register" and item[1] in self._ghosts:
                    item = (*item[:2], None)
                if item not in self._apart:
                    self._apart[item] = None
                    return True
        return False

    def _on_stack(self, address: object) -> bool:
        assert isinstance(address, int)
        return self._stack is not None and self._stack.start <= address < self._stack.end

    # Ends.

    def _finished(self) -> Verdict:
        gaps = [*self._open, *self._executor.gaps]
        if self._program.image.import_area is not None or self._program.image.unspecified:
            gaps.append("the file depends on code or data that is not in it (imports)")
        if gaps:
            return self._unknown("; ".join(gaps[:5]))
        problem = recheck(self._queries, self._deadline)
        if problem:
            return self._unknown(problem)
        return self._with_statistics(Verdict("proved", assumptions=self._program.assumptions))

    def _unknown(self, reason: str) -> Verdict:
        return self._with_statistics(Verdict("unknown", reason=reason, assumptions=self._program.assumptions))

    def _with_statistics(self, verdict: Verdict) -> Verdict:
        return replace(verdict, statistics=self.statistics())

    def statistics(self) -> dict[str, float | int]:
        return {
            "seconds": round(time.monotonic() - self._started, 3),
            "solver_calls": self._queries.count + self._run_queries.count,
            "instructions_executed": self._executor.instructions,
            "distinct_instructions": len(self._executor.seen),
            "locations": len(self._executed),
            "nodes": self._pushed,
            "refinements": len(self._apart),
        }

    def _tell(self, pc: int) -> None:
        if self._report is not None:
            self._report(self.statistics(), f"{pc:#x}")


def _addresses(calls: Calls | None) -> Iterator[int]:
    while calls is not None:
        yield calls.address
        calls = calls.parent


def _fits(run: tuple[object, ...], abstract: tuple[object, ...]) -> bool:
    """Whether a path may belong to an abstract state, by what is known of what is kept apart."""
    return all(b in ("?", a) or a == "?" for a, b in zip(run, abstract, strict=True))


def _left(state: PathState, head: int, frame: Calls | None) -> bool:
    """Whether a state has left the loop, seen from the same call."""
    return state.calls is frame and state.place is not None and all(item != head for item, _ in state.place.loops)
