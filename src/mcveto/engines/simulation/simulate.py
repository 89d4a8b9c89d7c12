"""Property simulation: all paths at once, by abstract states that are kept apart only where the property needs it.

After ESP (Das, Lerner, Seigle, PLDI 2002): where paths meet, their states are joined into one that says what both say
(`join`), except that states which differ in what the property depends on stay apart, each with its own path. So "the
lock is held, and bit 2 of the request is set" and "the lock is free, and it is not" go through a handler side by side,
and everything else about the handler is forgotten at its end. The cost grows with the code, not with its paths; loops
end when a state comes back that is covered. Where a loop's end does not depend on inputs it is simply run.

Deviations: what the property depends on is not given but found. At first nothing is kept apart; when a target seems to
be reached because a join forgot something, that place (a cell, or a register within one function) is kept apart from
then on, and the simulation goes back to a checkpoint before that join. Calls are followed, and where no certificate is
wanted they are summarised (`summaries`). The solver is asked only about branches that can matter (`relevance`), until
that does not suffice.

When a target still seems to be reached, a real path to it is looked for (`directed`): a violation, after replay;
a target that only abstract states reach makes the answer UNKNOWN. When nothing is left and no target was reached the
property is proved: the abstract states are an invariant. Every "no" of the solver is asked again of another.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from mcveto.dpg.location import Blocks
from mcveto.engines.exploration import Report
from mcveto.engines.memory import Value
from mcveto.engines.order import Order
from mcveto.engines.queries import Queries
from mcveto.engines.recheck import recheck
from mcveto.engines.simulation.activation import Activation
from mcveto.engines.simulation.apart import Item, KeptApart, changed
from mcveto.engines.simulation.arrivals import settle
from mcveto.engines.simulation.asking import Asking
from mcveto.engines.simulation.certain_loops import CertainLoops, RunLoops
from mcveto.engines.simulation.checkpoints import Checkpoint, Checkpoints, Key, Refined, Slot, again, left, run_of
from mcveto.engines.simulation.coarse_executor import CoarseExecutor
from mcveto.engines.simulation.coarse_memory import Unknowns
from mcveto.engines.simulation.covering import Covering
from mcveto.engines.simulation.deciding_flags import deciding, flags_among
from mcveto.engines.simulation.directed import Node
from mcveto.engines.simulation.doubts import Doubts
from mcveto.engines.simulation.early_turns import EarlyTurns, outermost
from mcveto.engines.simulation.exit_tests import ExitTests, exits
from mcveto.engines.simulation.frames import OUTSIDE, Frames, Unfit
from mcveto.engines.simulation.frontier import Frontier
from mcveto.engines.simulation.guards import Flag
from mcveto.engines.simulation.join import Joins
from mcveto.engines.simulation.liveness import Liveness
from mcveto.engines.simulation.meeting import Setting
from mcveto.engines.simulation.relevance import Relevance
from mcveto.engines.simulation.searches import Searches
from mcveto.engines.simulation.summaries import FEWEST_BLOCKS, Replay, Summaries, outside
from mcveto.engines.simulation.sweeping import Sweeping
from mcveto.engines.simulation.turns import Turns
from mcveto.engines.state import PathState, Place
from mcveto.logic.terms import Term
from mcveto.machine.pcode import Transfer
from mcveto.program.program import Program
from mcveto.verdict import Verdict

QUERY_SECONDS = 1.0
# Questions are about different handlers: what a solver has learned is a burden.
QUESTIONS_PER_SOLVER = 12
MOST_JOINS = 40
# Flags that one block reads.
MOST_GUESSED = 4
DEEPEST_RECURSION = 12
# Instructions of all turns of a loop; another one is made each time that a guess was wrong.
LONG_TURNS = 20_000
# Of the time left, to ask again what a proof rests on.
SHARE_OF_RECHECK = 0.3


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """The tables of terms have no cycles; looking for some took a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # All that was made meanwhile counts as old without being looked at; else it would be at once.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def simulate(program: Program, seconds: float, report: Report | None = None, is_recorded: bool = True) -> Verdict:
    """`is_recorded`: whether a proof is handed over, which takes time and much memory."""
    with no_search_for_cycles():
        simulation = Simulation(program, Blocks(program), time.monotonic() + seconds, report)
        if not is_recorded:
            simulation.record_nothing()
        return simulation.run()


class Simulation:
    def __init__(self, program: Program, code: Blocks, deadline: float, report: Report | None) -> None:
        self._program = program
        self._started = time.monotonic()
        self._deadline = self._until = deadline
        self._has_begun = False
        self._report = report
        self._apart = KeptApart(program)
        self._queries = Queries(program, deadline, QUERY_SECONDS, QUESTIONS_PER_SOLVER)
        self._unknowns = Unknowns()
        self._executor = CoarseExecutor(program, self._queries, self._unknowns)
        self._executor.share(code)
        self._executor.states, self._executor.variables = self._apart.states, self._apart.variables
        turns = Turns()
        self._covering = Covering(program, self._executor, self._queries.table, turns)
        flags = self._apart.guards.deciding
        self._order = Order(code.fixed_block, True, program.decoder.row.mode_mask, code.end_before)
        self._liveness = Liveness(program, self._order, lambda: self._executor.instructions)
        setting = Setting(
            program, self._executor, self._queries.table, turns, self._covering, flags, self._liveness
        )  # fmt: skip
        self._joins = Joins(setting)
        self._early = EarlyTurns(setting, self._joins)
        self._exits = ExitTests()
        self._relevance = Relevance(program, code.fixed_block)
        self._searches = Searches(
            program, code, self._executor, self._order, self._apart, self._relevance, self._queries.table,
            self._branch_matters, self._tell, deadline, QUESTIONS_PER_SOLVER,
        )  # fmt: skip
        self._sweeping = Sweeping(self._queries.table, self._searches.queries.table)
        self._asking = Asking(self._order, self._relevance, self._unknowns)
        self._executor.matters = self._matters
        self._executor.asks_all = self._asks_all_about
        self._here = Frontier()
        self._checkpoints = Checkpoints(lambda: self._executor.instructions)
        self._frames = self._executor.frames = Frames(program, self._apart.stack_pointer, self._apart.stack)
        self._summaries = Summaries(program, self._executor, self._frames)
        self._loops = CertainLoops(self._unknowns)
        self._doubts = Doubts(
            self._apart, self._unknowns, self._queries.table, self._asking, self._searches, self._summaries,
            self._checkpoints, self._here, self._loops,
        )  # fmt: skip
        self._executor.note_store = self._note_store
        self._following: list[int] = []
        """Functions of which summaries are being made, outermost first."""
        self._pushed = 0
        self._executed: set[int] = set()
        self._deciding: dict[int, frozenset[int]] = {}
        """Of blocks, which of their loads decide whether a target is reached next."""

    def record_nothing(self) -> None:
        self._executor.recorder.give_up()

    def run(self) -> Verdict:
        found = self.advance(self._deadline)
        return found if found is not None else self._unknown("time-out" + self._suspicion())

    def _begin(self) -> None:
        self._has_begun = True
        self._first = self._executor.initial()
        self._order.start(self._first)
        self._searches.begin(self._first)
        self._doubts.begin(self._first)
        first = self._first.fork(self._first.pc, dict(self._first.registers), self._first.memory.copy(), None)
        self._order.start(first)
        first.model = self._first.model
        self._push(first, frozenset(), None)

    def advance(self, until: float) -> Verdict | None:
        """What is found by then; None if there is more to do, which the next call goes on with."""
        self._until = min(until, self._deadline)
        if not self._has_begun:
            self._begin()
        while self._here.slots:
            if time.monotonic() > self._until:
                return None
            if self._checkpoints.is_due():
                self._keep()
            key = self._next()
            slot = self._here.slots.pop(key)
            try:
                found = self._explore(slot, key)
            except Refined as refined:
                self._back(refined.serial)
                continue
            if found is not None:
                return found
            if not self._here.slots:
                try:
                    found = self._doubts.at_end(self._until)
                except Refined as refined:
                    self._back(refined.serial)
                    continue
                if found is not None:
                    return self._with_statistics(found)
        return self._finished()

    def _next(self) -> Key:
        """What is executed next."""
        if not self._unknowns.is_recorded:
            hurried = self._early.hurried(self._here.slots, self._executor.instructions)
            if hurried is not None:
                return hurried
            if self._early.has_arrived(self._here.slots):
                self._begin_again()
        return self._here.first_waiting()

    def _begin_again(self) -> None:
        """Drops what waits within a loop, and puts states at its head of which all that was there is part."""
        turn, instructions, here = self._early.turn, self._executor.instructions, self._here
        assert turn is not None
        states = self._early.states_again({where: state for where, (state, _) in here.heads.items()}, here.slots)
        if not states:
            self._early.postpone(instructions)
            return
        for key in [key for key, slot in here.slots.items() if turn.has(slot)]:
            del here.slots[key]
        arrived = {key: here.slots.pop(key) for key in states if key in here.slots}
        for key, state in states.items():
            self._push(state, arrived[key].marks if key in arrived else frozenset({state.pc}), None)
            here.slots[self._key(state)].is_begun_again = True
        self._early.begin_again(instructions)

    def _keep(self) -> None:
        here = self._here
        for slot in here.slots.values():
            slot.is_kept = True
        slots = {key: replace(slot, is_kept=True) for key, slot in here.slots.items()}
        point = Checkpoint(
            self._unknowns.count, slots, dict(here.heads), dict(here.joined), dict(here.open),
            dict(self._executor.gaps), len(here.edges), len(here.replays), self._executor.recorder.upcoming,
            self._executor.instructions, self._summaries.met, dict(self._asking.begun), self._early.turn,
        )  # fmt: skip
        self._checkpoints.keep(point)

    def _back(self, serial: int) -> None:
        """To the last checkpoint before a variable was made."""
        last, here = self._checkpoints.back(serial), self._here
        here.heads, here.joined, here.open = dict(last.heads), dict(last.joined), dict(last.open)
        self._executor.gaps.clear()
        self._executor.gaps.update(last.gaps)
        del here.edges[last.steps :]
        del here.replays[last.replays :]
        self._executor.recorder.back(last.nodes)
        self._asking.begun = dict(last.begun)
        self._early.restore(last.turn)
        self._summaries.back(last.met)
        here.drop_all()
        for key, slot in last.slots.items():
            state = again(slot.state)
            now, before = self._key(state), key
            if now != before:  # more is kept apart than then
                here.edges.append((before[1:], now[1:]))  # type: ignore[arg-type]
            self._push(state, slot.marks, None, slot.passed)
            here.slots[now].is_begun_again |= slot.is_begun_again
        here.name_heads_again(self._apart.values)

    def _matters(self, state: PathState) -> bool:
        place = state.place
        # Whether a recursion ends is decided by branches that seem to matter to nobody.
        if place is None or self._asks_all_about(state) or place.function in place.within:
            return True
        return self._branch_matters(place) or self._may_be_only_turn(place)

    def _asks_all_about(self, state: PathState) -> bool:
        return self._doubts.asks_all or (state.place is not None and state.place.function in self._asking.functions)

    def _may_be_only_turn(self, place: Place) -> bool:
        """Whether a branch decides if a loop has a second turn: what an unrolled loop leaves over often has none, and
        what a turn too many stores to would be anything."""
        if not place.loops or place.loops[-1][1]:
            return False
        return place.loops[-1][0] in self._order.function(place.function).successors(place.pc)

    def _branch_matters(self, place: Place) -> bool:
        return self._relevance.matters(self._order, place.function, place.pc)

    # The pool.

    def _key(self, state: PathState) -> Key:
        """The place, and what is kept apart there."""
        return (state.key, state.pc, state.calls, self._apart.values(state))

    def _push(self, state: PathState, marks: frozenset[int], source: Node | None, passed: int | None = None) -> None:
        if source is not None and len(state.arrivals) == 1:
            settle(state)
        if source is not None and len(state.arrivals) == 1:
            state.arrivals = (state.arrivals[0]._replace(path=tuple(state.path.terms)),)
        key = self._key(state)
        if source is not None:
            node = key[1:]
            self._here.edges.append((source, node))  # type: ignore[arg-type]
            if changed(source[2], key[3]):  # type: ignore[arg-type]
                assert state.place is not None
                self._relevance.note_change(state.place.function, source[0])
        slot = self._here.slots.get(key)
        if slot is not None:
            slot.state = self._joins.joined(slot.state, state, is_loop=False)
            slot.is_kept = False
            slot.marks |= marks
            if slot.passed != passed:
                slot.passed = None
            return
        self._pushed += 1
        self._here.add(key, Slot(state, marks, passed=passed))

    # One place.

    def _explore(self, slot: Slot, key: Key) -> Verdict | None:
        program, row = self._program, self._program.decoder.row
        self._sweeping.if_due()
        if slot.is_kept:
            slot.state = again(slot.state)
        state = slot.state
        node: Node = key[1:]  # type: ignore[assignment]
        self._asking.note(state)
        address = row.code_address(state.pc)
        if address in program.targets:
            return self._hit(state, node, f"{address:#x}")
        if address in program.halts or address == row.code_address(program.return_sentinel):
            self._executor.recorder.halted(state)
            return None
        if state.calls is not None and state.calls.occurrences > DEEPEST_RECURSION:
            self._here.open["recursion"] = None
            return None
        marks = self._at_head(slot, key)
        if marks is None:
            return None
        state = slot.state
        self._executed.add(state.pc)
        source = state.place.pc if state.place is not None else state.pc
        around = state.place.loops if state.place is not None else ()
        function = state.place.function if state.place is not None else 0
        frame = state.calls
        self._executor.forked = False
        self._executor.deciding = self._loads_that_decide(state)
        self._executor.decided, self._executor.decided_among = set(), set()
        flags_set = self._apart.guards.set_in(state) if self._executor.deciding else frozenset()
        self._executor.watched = None
        activation = self._executor.activation
        if activation is not None:
            if state.place is None or state.place.function in self._apart.of:
                raise Unfit
            self._executor.watched = footprint = activation.footprint()
        exited = self._exited(state.place)
        heads = [head for head, turn in exited if not turn]
        # Held here: a call that is followed for a summary compares things of its own.
        compared: dict[tuple[Value, ...], int] = {}
        self._executor.compared = compared if heads else None
        tested: set[Value] = set()
        self._executor.tested = tested if exited else None
        here = (state.pc, state.calls)
        moved: list[PathState] = []
        returned: list[PathState] = []
        pending, results = [state], []
        while pending:
            results.append(self._executor.run(pending.pop()))
            pending.extend(results[-1].again)
        # All ways of the block first: where they lead may show that it ends sooner.
        for result in results:
            for lost in result.mismatches:
                found = self._hit(lost, node, f"return at {source:#x}")
                if found is not None:
                    return found
            if len(result.successors) > 2 and result.successors[0][0] is Transfer.JUMP:
                self._note_jumps(state, source, [to for _, to in result.successors])
            for transfer, successor in result.successors:
                if activation is not None:
                    activation.goes(here, (successor.pc, successor.calls))
                    if successor.pc == OUTSIDE:
                        self._ends(activation, successor, node)
                        continue
                self._order.move(successor, transfer, source)
                ends = self._summarised(successor, node) if transfer is Transfer.CALL else None
                if ends is None:
                    moved.append(successor)
                else:
                    returned += ends
        for head in heads:
            self._here.note_compared(head, frame, compared)
        for head, _ in exited:
            self._here.tested.setdefault((head, frame), set()).update(tested)
        if activation is not None:
            activation.executed(here, function, footprint)
        if self._executor.decided:
            self._guess_apart(self._executor.decided, flags_set)
        elif self._executor.decided_among:
            # The lock of one of several devices. What else is looked at beside it (how it was taken) has a value that
            # depends on which device it is; by that, states are not kept apart from the beginning.
            self._guess_apart(self._executor.decided_among, flags_set, only_noted=bool(self._apart.items))
        if self._executor.forked:
            graph, ways = self._order.function(function), (*moved, *returned)
            is_end = self._relevance.is_target
            marks |= {h for h, _ in around if any(left(way, h, frame) for way in ways) or graph.is_endless(h, is_end)}
        for successor in moved:
            self._push(successor, marks, node, slot.passed)
        for end in returned:
            self._push(end, marks, None, slot.passed)  # the way there is that of the summary
        self._tell(source)
        return None

    def _exited(self, place: Place | None) -> list[tuple[int, int]]:
        """The heads of the loops that a block can leave, and in which turn they are."""
        if place is None or not place.loops:
            return []
        turns = dict(place.loops)
        return [(head, turns[head]) for head in exits(self._order.function(place.function), place.pc, place)]

    def _note_jumps(self, state: PathState, source: int, successors: list[PathState]) -> None:
        """Jumps through a table may show that there is a loop around: its head was executed as if it were none, and its
        first turn would be followed in vain. If that was just now, it is begun again."""
        assert state.place is not None
        graph = self._order.function(state.place.function)
        known = graph.place(source)[1]
        self._order.note_jumps(successors[0], source, [to.pc for to in successors])
        if self._executor.activation is None and graph.place(source)[1] != known:
            begun = self._asking.when_begun(state.calls, state.place.function)
            if not self._checkpoints.is_far_back(begun):
                raise Refined(begun)

    # Calls.

    def _summarised(self, state: PathState, node: Node) -> list[PathState] | None:
        """The states after a call, by a summary of it; None if the call is to be followed."""
        place = state.place
        assert place is not None and state.calls is not None
        function = place.function
        if (
            self._unknowns.is_recorded
            or not self._doubts.trusts_summaries
            or function in self._asking.functions
            or function in self._apart.of
        ):
            return None
        if len(self._order.function(function).blocks()) < FEWEST_BLOCKS:
            return None
        found = self._summaries.fitting(state, function)
        if found is None:
            if (
                function in self._following
                or function in place.within
                or not self._summaries.is_due(function, self._early.is_later(state))
            ):
                return None
            unused = self._summaries.unused
            if not self._summarise(state, function) and (
                self._summaries.unused == unused or not self._summarise(state, function)
            ):
                self._summaries.failed(function)
                return None
            found = self._summaries.fitting(state, function)
            if found is None:
                return None
        summary, names = found
        before = self._unknowns.count
        activation = self._executor.activation
        if activation is not None:
            self._summaries.note(activation, state, summary, names)
        ends: list[PathState] = []
        nodes: list[Node] = []
        for end in self._summaries.ends(state, summary, names):
            if end is None:
                nodes.append(outside(()))
                continue
            ends.append(end)
            if activation is not None:
                activation.goes((state.pc, state.calls), (end.pc, end.calls))
            self._order.move(end, Transfer.RETURN, place.pc)
            nodes.append(self._key(end)[1:])  # type: ignore[arg-type]
        self._loops.note_summary(summary.functions, before)
        self._here.replays.append(Replay(node, state.calls, summary, tuple(nodes)))
        return ends

    def _summarise(self, state: PathState, function: int) -> bool:
        """Follows a call from a general state; whether that gave a summary."""
        while True:
            try:
                return self._follow(state, function)
            except RunLoops:
                continue  # never twice for the same loop

    def _follow(self, state: PathState, function: int) -> bool:
        """The same; raises `RunLoops` where that is to be begun again."""
        general = self._summaries.general(state, self._apart.guards.idle_cells(state))
        if general is None:
            return False
        executor = self._executor
        activation = Activation(general, self._frames)
        outer = (
            self._here, executor.activation, dict(executor.gaps), executor.forked, executor.watched, executor.deciding,
            executor.decided, executor.decided_among,
        )  # fmt: skip
        here = self._here = Frontier()
        executor.activation = activation
        executor.gaps.clear()
        self._following.append(function)
        try:
            first = general.state
            self._order.start(first)
            entry: Node = self._key(first)[1:]  # type: ignore[assignment]
            self._push(first, frozenset(), None)
            while here.slots:
                if time.monotonic() > self._until:
                    return False
                key = here.first_waiting()
                self._explore(here.slots.pop(key), key)
            if here.open or executor.gaps:
                return False
            summary = self._summaries.add(activation, entry)
            summary.edges, summary.replays = here.edges, here.replays
            return True
        except Unfit:
            return False
        finally:
            self._following.pop()
            (
                self._here, executor.activation, gaps, executor.forked, executor.watched, executor.deciding,
                executor.decided, executor.decided_among,
            ) = outer  # fmt: skip
            executor.gaps.clear()
            executor.gaps.update(gaps)

    def _ends(self, activation: Activation, state: PathState, source: Node) -> None:
        """A call that is followed for a summary has returned."""
        state.place = None
        node = outside(self._apart.values(state))
        self._here.edges.append((source, node))
        other = activation.exits.get(node)
        activation.exits[node] = state if other is None else self._joins.joined(other, state, is_loop=False)

    def _loads_that_decide(self, state: PathState) -> frozenset[int]:
        """The instructions of a block whose loads decide about a target: a lock that it gets a pointer to is another
        one each time."""
        place = state.place
        if place is None or self._apart.has_states:
            return frozenset()
        if place.pc not in self._deciding:
            is_last = self._relevance.is_last(self._order, place.function, place.pc)
            block = self._order.function(place.function).block(place.pc) if is_last else ()
            self._deciding[place.pc] = deciding(block)
        return self._deciding[place.pc]

    def _guess_apart(self, loaded: set[int], others: frozenset[Flag], only_noted: bool = False) -> None:
        """A flag that decides about a target will have to be kept apart: nothing need be done again, if it is from
        the beginning. `others`: the flags that are set."""
        flags = [*flags_among(loaded, self._program.space, self._first.memory)]
        guards = self._apart.guards
        guards.deciding |= loaded
        guards.note(flags, self._first)
        is_new = False
        for flag in flags if len(flags) <= MOST_GUESSED and not only_noted else ():
            item: Item = ("memory", *flag, None)
            if item in self._apart.items:
                if guards.narrow(flag, others):
                    self._summaries.kept_apart(item)
                    is_new = True
            elif not self._apart.on_stack(flag[0]) and all(
                self._apart.place_of(origin) != item for origin in self._unknowns.first
            ):
                guards.begin(flag, others)
                self._doubts.keep_apart(item)
                is_new = True
        if is_new:
            self._here.name_heads_again(self._apart.values)

    def _at_head(self, slot: Slot, key: Key) -> frozenset[int] | None:
        """What to do at the head of a loop; None if nothing, because an earlier state covers this one."""
        state, marks = slot.state, slot.marks
        place, here = state.place, self._here
        if place is None or not place.loops or place.loops[-1][0] != place.pc:
            return marks
        turns = place.loops[-1][1]
        outside = tuple(item for item in place.loops[:-1] if item[0] not in marks)
        where: Key = (place.pc, state.calls, outside, key[3])
        old = here.heads.get(where)
        is_certain = place.pc not in marks
        if turns == 0:
            self._loops.begin(place.pc)
            here.tested.pop((place.pc, state.calls), None)
            marks -= {place.pc}
            here.joined.pop(where, None)
            here.arrived[where] = self._executor.instructions
        elif slot.is_begun_again:
            here.joined[where] = here.joined.get(where, 0) + 1
        elif not is_certain or self._loops.is_due(place.pc, turns, self._has_run(where)):
            activation = self._executor.activation
            rigid = activation.general.variables.keys() if activation is not None else ()
            names = self._covering.covers(old[0], state, rigid) if old is not None else None
            if old is not None and names is not None:
                self._executor.recorder.covered_by(state, old[1], names)
                return None
            count = here.joined[where] = here.joined.get(where, 0) + 1
            if count > MOST_JOINS:
                here.open[f"the loop at {place.pc:#x} does not come to rest"] = None
                return None
            # One of the loop's last run (a loop around it has gone on since) would be joined with what that counted.
            if old is not None and run_of(old[0]) == run_of(state):
                since = here.arrived.get(where, here.entered.get(where, 0))
                is_cheap = self._executor.instructions - since < LONG_TURNS
                numbers = self._exits.numbers(self._order.function(place.function), place)
                tests = here.compared.get((place.pc, state.calls), {})
                tested = here.tested.get((place.pc, state.calls), set())
                before = self._unknowns.count
                slot.state = self._joins.joined(old[0], state, True, is_cheap, numbers, tests, tested)
                if is_certain:
                    self._loops.note_joined(place, before)
        here.entered[where] = self._executor.instructions
        # Executing a state uses it up.
        here.heads[where] = again(slot.state), self._executor.recorder.upcoming
        turn = outermost(state) if self._executor.activation is None else None
        if turn is not None:
            slot.passed = self._early.enter(turn, here.heads[where][0], self._executor.instructions)
        return marks

    def _has_run(self, where: Key) -> int:
        """The instructions since a loop was come to from outside."""
        return self._executor.instructions - self._here.arrived.get(where, 0)

    def _note_store(self, state: PathState, address: Term, ranges: Sequence[tuple[int, int]], is_bounded: bool) -> None:
        """Where a store has lost its bounds because a loop was joined that could be run, it is run."""
        heads = self._loops.of_store(state.place, ranges, is_bounded)
        if not heads and not is_bounded:
            heads = self._loops.of_term(address, self._queries.table)
        if heads:
            serial = self._doubts.run_loops(heads)
            raise RunLoops if self._executor.activation is not None else Refined(serial)

    def _hit(self, state: PathState, node: Node, where: str) -> Verdict | None:
        """A target seems to be reached."""
        if self._executor.activation is not None:
            raise Unfit
        found = self._doubts.about(state, node, self._until)
        if found is not None:
            return self._with_statistics(found)
        if self._doubts.asks_all:
            self._here.open[f"{where} may be reached, but no input was found that does"] = None
        return None

    def _suspicion(self) -> str:
        return "".join(f"; {reason}" for reason in [*self._here.open][:1])

    # Ends.

    def _finished(self) -> Verdict:
        gaps = [*self._here.open, *self._executor.gaps]
        gaps += [f"{place[0]:#x} may be reached" for place in sorted(self._doubts.open)]
        if self._program.image.unspecified:
            gaps.append("the file depends on code or data that is not in it (imports)")
        if gaps:
            return self._unknown("; ".join(gaps[:5]))
        # A proof in hand is worth some of the time of others.
        now = time.monotonic()
        problem = recheck(self._queries, max(self._until, now + SHARE_OF_RECHECK * (self._deadline - now)))
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
            "solver_calls": self._queries.count + self._searches.queries.count,
            "instructions_executed": self._executor.instructions,
            "distinct_instructions": len(self._executor.seen),
            "locations": len(self._executed),
            "nodes": self._pushed,
            "refinements": len(self._apart.items),
        }

    def _tell(self, pc: int) -> None:
        if self._report is not None:
            self._report(self.statistics(), f"{pc:#x}")
