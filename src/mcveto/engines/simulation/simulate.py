"""Property simulation: all paths at once, by abstract states that are kept apart only where the property needs it.

After ESP (Das, Lerner, Seigle, PLDI 2002): where paths meet, their states are joined into one that says what both say
(`join`), except that states which differ in what the property depends on stay apart, each with its own path. So "the
lock is held, and bit 2 of the request is set" and "the lock is free, and it is not" go through a handler side by side,
and everything else about the handler is forgotten at its end. The cost grows with the code, not with its paths; loops
end when a state comes back that is covered. Where a loop's end does not depend on inputs it is simply run.

Deviations: what the property depends on is not given but found. At first nothing is kept apart; when a target seems to
be reached because a join forgot something, that place (a cell, or a register within one function) is kept apart from
then on, and the simulation goes back to a checkpoint before that join. Calls are followed, each by itself, not
summarised. The solver is asked only about branches that can matter (`relevance`), until that does not suffice.

When a target still seems to be reached, a real path to it is looked for (`directed`): a violation, after replay;
a target that only abstract states reach makes the answer UNKNOWN. When nothing is left and no target was reached the
property is proved: the abstract states are an invariant. Every "no" of the solver is asked again of another.
"""

from __future__ import annotations

import gc
import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mcveto.dpg.location import Blocks
from mcveto.engines.exploration import Report
from mcveto.engines.order import Order
from mcveto.engines.queries import Queries
from mcveto.engines.recheck import recheck
from mcveto.engines.simulation.arrivals import settle
from mcveto.engines.simulation.coarse_executor import CoarseExecutor
from mcveto.engines.simulation.coarse_memory import CoarseMemory, Unknowns
from mcveto.engines.simulation.directed import DirectedSearch, Node, Values
from mcveto.engines.simulation.join import Joins
from mcveto.engines.simulation.relevance import Relevance
from mcveto.engines.simulation.representatives import RunExecutor
from mcveto.engines.state import Calls, PathState, Place
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program
from mcveto.verdict import Verdict

QUERY_SECONDS = 1.0
RUN_QUERY_SECONDS = 0.3
# Questions are about different handlers: what a solver has learned is a burden.
QUESTIONS_PER_SOLVER = 12
MOST_TURNS = 300
MOST_JOINS = 40
MOST_VALUES = 8
FEW_HITS = 3
MOST_APART = 500
MOST_SEARCHES = 6
SHARE_OF_SEARCH = 0.5
STRETCH = 2000
MOST_CHECKPOINTS = 16
DEEPEST_RECURSION = 12
# Instructions; what a turn costs that is made once more because a guess was wrong.
LONG_TURN = 20_000
# Variables, and the part of all of them, that were made lately.
LATELY = 5000
SHARE_OF_LATELY = 10

Apart = tuple[object, ...]
"""A place whose values are kept apart: ("memory", address, size, function) or ("register", number, function)."""
Key = tuple[object, ...]


@dataclass
class Slot:
    """A place that waits to be executed, with the abstract state of all that arrived there."""

    state: PathState
    marks: frozenset[int]
    """Heads of loops around it whose end depends on inputs."""
    is_kept: bool = False
    """Whether a checkpoint has the state, too: executing uses it up."""


@dataclass
class Checkpoint:
    """All that a part of the simulation can be done again from."""

    serial: int
    """Variables made later are newer."""
    slots: dict[Key, Slot]
    heads: dict[Key, tuple[PathState, int]]
    joined: dict[Key, int]
    open: dict[str, None]
    gaps: dict[str, None]
    steps: int
    """Edges of the abstract graph that were known."""
    nodes: int
    """States that had been executed (of those that are recorded)."""


class Refined(Exception):
    """Something more is kept apart: what was done since the variable with this number was made is to be done again."""

    def __init__(self, serial: int) -> None:
        super().__init__()
        self.serial = serial


def simulate(program: Program, seconds: float, report: Report | None = None, is_recorded: bool = True) -> Verdict:
    """`is_recorded`: whether a proof is handed over, which takes time and much memory."""
    # The tables of terms have no cycles; looking for some took a quarter of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        simulation = Simulation(program, Blocks(program), time.monotonic() + seconds, report)
        if not is_recorded:
            simulation.record_nothing()
        return simulation.run()
    finally:
        if was_enabled:
            gc.enable()


class Simulation:
    def __init__(self, program: Program, code: Blocks, deadline: float, report: Report | None) -> None:
        self._program = program
        self._started = time.monotonic()
        self._deadline = deadline
        self._report = report
        self._hits: dict[Key, int] = {}
        self._searches = 0
        self._apart: dict[Apart, int] = {}
        self._apart_in: dict[int | None, list[tuple[int, Apart]]] = {}
        """By function, None for all: what is kept apart there, with its number."""
        self._queries = Queries(program, deadline, QUERY_SECONDS, QUESTIONS_PER_SOLVER)
        self._unknowns = Unknowns()
        self._executor = CoarseExecutor(program, self._queries, self._unknowns)
        self._run_queries = Queries(program, deadline, RUN_QUERY_SECONDS, QUESTIONS_PER_SOLVER)
        self._runner = RunExecutor(program, self._run_queries)
        self._runner.recorder.give_up()  # paths to a violation only
        self._executor.share(code)
        self._runner.share(code, self._executor)
        self._joins = Joins(program, self._executor, self._queries.table)
        self._order = Order(code.fixed_block, True, program.decoder.row.mode_mask)
        self._relevance = Relevance(program, code.fixed_block)
        self._asks_all = False
        self._asked: set[int] = set()
        """Functions of which every branch is asked about."""
        self._begun: dict[Calls, int] = {}
        """How many variables there were when a call was made first."""
        self._executor.matters = self._matters
        self._pool: list[tuple[tuple[int, ...], int, Key]] = []
        self._slots: dict[Key, Slot] = {}
        self._edges: list[tuple[Node, Node]] = []
        self._checkpoints: list[Checkpoint] = []
        self._next_checkpoint = 0
        self._heads: dict[Key, tuple[PathState, int]] = {}
        """States at the heads of loops, with their number in the record."""
        self._joined: dict[Key, int] = {}
        self._entered: dict[Key, int] = {}
        """The instructions that had been executed when a head was executed last."""
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

    def record_nothing(self) -> None:
        self._executor.recorder.give_up()

    def run(self) -> Verdict:
        self._first = self._executor.initial()
        self._order.start(self._first)
        first = self._first.fork(self._first.pc, dict(self._first.registers), self._first.memory.copy(), None)
        self._order.start(first)
        first.model = self._first.model
        self._push(first, frozenset(), None)
        while self._pool:
            if time.monotonic() > self._deadline:
                return self._unknown("time-out" + self._suspicion())
            if self._executor.instructions >= self._next_checkpoint:
                self._keep()
            key = heapq.heappop(self._pool)[2]
            slot = self._slots.pop(key)
            try:
                found = self._explore(slot, key)
            except Refined as refined:
                self._back(refined.serial)
                continue
            if found is not None:
                return found
        return self._finished()

    def _keep(self) -> None:
        """A checkpoint; of the older ones, every other is forgotten when they are many."""
        self._next_checkpoint = self._executor.instructions + STRETCH
        for slot in self._slots.values():
            slot.is_kept = True
        slots = {key: Slot(slot.state, slot.marks, True) for key, slot in self._slots.items()}
        kept = self._checkpoints
        kept.append(
            Checkpoint(
                self._unknowns.count,
                slots,
                dict(self._heads),
                dict(self._joined),
                dict(self._open),
                dict(self._executor.gaps),
                len(self._edges),
                self._executor.recorder.upcoming,
            )
        )
        if len(kept) > MOST_CHECKPOINTS:
            kept[:] = [point for index, point in enumerate(kept) if index % 2 == 0 or index >= len(kept) - 4]

    def _back(self, serial: int) -> None:
        """To the last checkpoint before a variable was made."""
        kept = self._checkpoints
        while len(kept) > 1 and kept[-1].serial >= serial:
            kept.pop()
        last = kept[-1]
        self._heads, self._joined, self._open = dict(last.heads), dict(last.joined), dict(last.open)
        self._executor.gaps.clear()
        self._executor.gaps.update(last.gaps)
        del self._edges[last.steps :]
        self._executor.recorder.back(last.nodes)
        self._slots, self._pool = {}, []
        for key, slot in last.slots.items():
            state = _again(slot.state)
            now, before = self._key(state), key
            if now != before:  # more is kept apart than then
                self._edges.append((before[1:], now[1:]))  # type: ignore[arg-type]
            self._push(state, slot.marks, None)
        self._next_checkpoint = self._executor.instructions + STRETCH

    def _matters(self, state: PathState) -> bool:
        place = state.place
        # Whether a recursion ends is decided by branches that seem to matter to nobody.
        if self._asks_all or place is None or place.function in self._asked or place.function in place.within:
            return True
        return self._branch_matters(place)

    def _branch_matters(self, place: Place) -> bool:
        return self._relevance.matters(self._order, place.function, place.pc)

    # The pool.

    def _key(self, state: PathState) -> Key:
        """The place, and what is kept apart there."""
        return (state.key, state.pc, state.calls, self.apart(state))

    def apart(self, state: PathState, is_real: bool = False) -> Values:
        """The values of what is kept apart, by number; those of real paths are compared, but not learned."""
        function = state.place.function if state.place is not None else 0
        values: list[tuple[int, object]] = [(-1, self._known(state.registers.get(self._stack_pointer)))]
        for owner in (None, function):
            for number, item in self._apart_in.get(owner, ()):
                if item[0] == "memory":
                    value: object = state.memory.load(item[1], item[2])  # type: ignore[arg-type]
                else:
                    value = state.registers.get(item[1])  # type: ignore[call-overload]
                values.append((number, self._few(item, value, is_real)))
        return tuple(values)

    def _known(self, value: object) -> object:
        return "?" if isinstance(value, Term) else value

    def _few(self, item: Apart, value: object, is_real: bool) -> object:
        """What is kept apart may have a few values; a place with many is a counter, and is joined like any other."""
        if isinstance(value, Term):
            return "?"
        seen = self._values.setdefault(item, set())
        if len(seen) < MOST_VALUES and not is_real:
            seen.add(value)
        return value if value in seen else "?"

    def _push(self, state: PathState, marks: frozenset[int], source: Node | None) -> None:
        if source is not None and len(state.arrivals) == 1:
            settle(state)
        if source is not None and len(state.arrivals) == 1:
            state.arrivals = (state.arrivals[0]._replace(path=tuple(state.path.terms)),)
        key = self._key(state)
        if source is not None:
            node = key[1:]
            if state.calls is not None and state.calls is not source[1]:
                self._begun.setdefault(state.calls, self._unknowns.count)
            self._edges.append((source, node))  # type: ignore[arg-type]
            if _changed(source[2], key[3]):  # type: ignore[arg-type]
                assert state.place is not None
                self._relevance.note_change(state.place.function, source[0])
        slot = self._slots.get(key)
        if slot is not None:
            slot.state = self._joins.joined(slot.state, state, is_loop=False)
            slot.is_kept = False
            slot.marks |= marks
            return
        self._pushed += 1
        self._slots[key] = Slot(state, marks)
        heapq.heappush(self._pool, (state.key, self._pushed, key))

    # One place.

    def _explore(self, slot: Slot, key: Key) -> Verdict | None:
        program, row = self._program, self._program.decoder.row
        if slot.is_kept:
            slot.state = _again(slot.state)
        state = slot.state
        node: Node = key[1:]  # type: ignore[assignment]
        address = row.code_address(state.pc)
        if address in program.targets:
            return self._hit(state, node, f"{address:#x}")
        if address in program.halts or address == row.code_address(program.return_sentinel):
            self._executor.recorder.halted(state)
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
                found = self._hit(lost, node, f"return at {source:#x}")
                if found is not None:
                    return found
            if len(result.successors) > 2 and result.successors[0][0] is Transfer.JUMP:
                self._order.note_jumps(result.successors[0][1], source, [to.pc for _, to in result.successors])
            for transfer, successor in result.successors:
                self._order.move(successor, transfer, source)
                moved.append(successor)
        if self._executor.forked:
            marks |= {head for head, _ in around if any(_left(item, head, frame) for item in moved)}
        for successor in moved:
            self._push(successor, marks, node)
        self._tell(source)
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
            names = self._joins.covers(old[0], state) if old is not None else None
            if old is not None and names is not None:
                self._executor.recorder.covered_by(state, old[1], names)
                return None
            count = self._joined[where] = self._joined.get(where, 0) + 1
            if count > MOST_JOINS:
                self._open[f"the loop at {place.pc:#x} does not come to rest"] = None
                return None
            if old is not None:
                is_cheap = self._executor.instructions - self._entered.get(where, 0) < LONG_TURN
                slot.state = self._joins.joined(old[0], state, is_loop=True, guesses=is_cheap)
        self._entered[where] = self._executor.instructions
        # Executing a state uses it up.
        self._heads[where] = _again(slot.state), self._executor.recorder.upcoming
        return marks

    # A target seems to be reached.

    def _hit(self, state: PathState, node: Node, where: str) -> Verdict | None:
        place: Key = (state.pc, tuple(_addresses(state.calls)))
        self._hits[place] = self._hits.get(place, 0) + 1
        if self._hits[place] <= FEW_HITS and len(self._apart) < MOST_APART:
            serial = self._refine(state)
            if serial is not None:
                raise Refined(serial)
        serial = self._ask_around(state) if not self._asks_all else None
        if serial is not None:
            del self._hits[place]
            raise Refined(serial)
        self._searches += 1
        if self._searches <= MOST_SEARCHES:
            seconds = SHARE_OF_SEARCH * (self._deadline - time.monotonic())
            search = DirectedSearch(
                self._program,
                self._runner,
                self._run_queries,
                self._order,
                self.apart,
                self._branch_matters,
                self._tell,
            )
            found = search.run(self._first, self._edges, node, seconds, is_first=not self._asks_all)
            if found is not None:
                return self._with_statistics(found)
        if not self._asks_all:
            # Once more from the start, with every branch asked about.
            self._asks_all = True
            self._hits.clear()
            raise Refined(0)
        self._open[f"{where} may be reached, but no input was found that does"] = None
        return None

    def _ask_around(self, state: PathState) -> int | None:
        """From now on asks about every branch of the functions that were entered lately and led here: what is forgotten
        where a target seems to be reached was mostly forgotten nearby. None if that was done before."""
        now = self._unknowns.count
        earliest = now - max(LATELY, now // SHARE_OF_LATELY)
        functions: set[int] = set()
        serial = None
        place, calls = state.place, state.calls
        while place is not None and calls is not None:
            begun = self._begun.get(calls, 0)
            if begun < earliest:
                break
            functions.add(place.function)
            serial = begun
            place, calls = place.caller, calls.parent
        if functions <= self._asked:
            return None
        self._asked |= functions
        return serial

    def _suspicion(self) -> str:
        return "".join(f"; {reason}" for reason in [*self._open][:1])

    def _refine(self, state: PathState) -> int | None:
        """Keeps apart what a join forgot and the way here depends on; latest first. The number of its variable."""
        origins, table = self._unknowns.origins, self._queries.table
        for term in reversed(state.path.terms):
            if term in self._unknowns.bounds:
                continue
            for variable in sorted((v for v in table.of(term) if v in origins), key=lambda v: -v.serial):
                item = self._place_of(origins[variable])
                if item not in self._apart:
                    number = self._apart[item] = len(self._apart)
                    self._apart_in.setdefault(item[-1], []).append((number, item))  # type: ignore[arg-type]
                    # What was joined there earlier would still be one state.
                    first = self._unknowns.first
                    return min(number for other, number in first.items() if self._place_of(other) == item)
        return None

    def _place_of(self, origin: Apart) -> Apart:
        """Globals and ghosts are the same in all functions."""
        if origin[0] == "memory" and not self._on_stack(origin[1]):
            return (*origin[:3], None)
        if origin[0] == "register" and origin[1] in self._ghosts:
            return (*origin[:2], None)
        return origin

    def _on_stack(self, address: object) -> bool:
        assert isinstance(address, int)
        return self._stack is not None and self._stack.start <= address < self._stack.end

    # Ends.

    def _finished(self) -> Verdict:
        gaps = [*self._open, *self._executor.gaps]
        if self._program.image.unspecified:
            gaps.append("the file depends on code or data that is not in it (imports)")
        if gaps:
            return self._unknown("; ".join(gaps[:5]))
        problem = recheck(self._queries, self._deadline)
        if problem:
            return self._unknown(problem)
        proof = self._executor.recorder.proof()
        return self._with_statistics(Verdict("proved", assumptions=self._program.assumptions, proof=proof))

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


def _changed(before: Values, after: Values) -> bool:
    """Whether something kept apart has another value; the stack pointer does not count."""
    old = dict(before)
    return any(number >= 0 and old.get(number, value) != value for number, value in after)


def _again(state: PathState) -> PathState:
    """A copy that can be executed."""
    twin = state.fork(state.pc, dict(state.registers), state.memory.copy(), state.model)
    twin.key = state.key
    return twin


def _left(state: PathState, head: int, frame: Calls | None) -> bool:
    """Whether a state has left the loop, seen from the same call."""
    return state.calls is frame and state.place is not None and all(item != head for item, _ in state.place.loops)
