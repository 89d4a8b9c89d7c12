"""Strategy `auto`: the same runs, graph and TS as Algorithm 1, but proofs from invariants instead of splits.

Rounds of: directed tests until the states known lead nowhere new; the steps between cut points under the constants the
runs suggest; candidate invariants in stages, filtered by Houdini; property-directed strengthening. Whatever excludes
every exit is turned into a proof and checked again; a path to an exit is run as a test, and what it explores starts the
next round. Nothing found is believed: PROVED needs `recheck`, VIOLATED needs `confirm`.

Where this gives up, or does not come to an end in its share of the time, summaries of procedures are tried (see
`summaries.prove`), and the strategy of the paper takes over.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable

from mcveto.dpg.auto_ends import Decided, GiveUp, TooManyLocations
from mcveto.dpg.driver import Driver, Limits, Progress
from mcveto.dpg.evidence import evidence_of
from mcveto.dpg.history import History
from mcveto.dpg.location import Location
from mcveto.dpg.proof_check import recheck
from mcveto.dpg.runs import CallStringTooLong, Choices, Ending, Run, Runner
from mcveto.dpg.strengthen.big_steps import TooManyPaths
from mcveto.dpg.strengthen.candidates import Thresholds, thresholds, tightest
from mcveto.dpg.strengthen.certify import CannotCertify, certify
from mcveto.dpg.strengthen.code_ahead import CodeAhead
from mcveto.dpg.strengthen.cuts import Shape
from mcveto.dpg.strengthen.explicit_values import ExplicitValues
from mcveto.dpg.strengthen.explore import Explorer
from mcveto.dpg.strengthen.fuzz import Fuzzer
from mcveto.dpg.strengthen.houdini import Candidates
from mcveto.dpg.strengthen.inductive_core import inductive_core
from mcveto.dpg.strengthen.path_inputs import inputs_for
from mcveto.dpg.strengthen.pdr import Path, Strengthening, Undecided
from mcveto.dpg.strengthen.places import Samples
from mcveto.dpg.strengthen.queries import OutOfTime, Queries
from mcveto.dpg.strengthen.recombine import recombined
from mcveto.dpg.strengthen.stages import FEW_CLAUSES, Stages
from mcveto.dpg.strengthen.system import System
from mcveto.dpg.strengthen.widen import Widening
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.program.program import Program
from mcveto.verdict import Verdict, self_check_reason

FIRST_SEEDS = 3
# Steps of the first run, of the other first ones and of directed tests; `Limits.run_steps` is for runs that must go on.
FIRST_STEPS = 4000
FURTHER_STEPS = 400
DIRECTED_STEPS = 4000
MAX_LOCATIONS = 1500
DEEPEST_UNFOLDED = 30
MAX_LEVELS = 200
LEVELS_AT_ONCE = 3
LEVELS_BEFORE_DEAR = 6
FIRST_TURN = 1.0
LONGEST_TURN = 8.0
# Of the time that this strategy has taken since the last turn of the others: the first few times, and later, when they
# have shown that they do not find it soon.
TURNS_SHARE = 0.7
LATER_SHARE = 0.5
FIRST_TURNS = 5
# Seconds before summaries of a recursion are looked for: many end by themselves.
BEFORE_SUMMARIES = 1.0
PROOF_SECONDS = 2.0
HELD_SHARE = 0.5
PAUSE_AFTER = 15.0
PAUSE_SECONDS = 6.0
PAUSE_SHARE = 0.3
RECURSION_AFTER = 2.0
RECURSION_SHARE = 0.4
MANY_LOCATIONS = 150
PATHS_SECONDS = 6.0
PATHS_SHARE = 0.2
GIVE_UP_SHARE = 0.4
SUMMARIES_SHARE = 0.6
SUMMARIES_TIMES = 2
SHALLOW = 3
EXPLORE_SHARE = 0.3
VARY_SECONDS = 0.5
VARIED_AT_ONCE = 10
LOOP_VISITS = 30
FUZZ_RUNS = 24
FUZZ_STEPS = 300
WIDENING_ROUNDS = 8
WIDENING_RUNS = 60
STEPS_BEHIND = 40
WIDENING_INSTRUCTIONS = 6000
RECOMBINED_RUNS = 3
RECOMBINED_INSTRUCTIONS = 3000
RECOMBINED_ITERATIONS = 12

# A verdict within limits; told whether recursion is what made call strings useless.
Otherwise = Callable[[Limits, bool], Verdict]
# What is found in so many seconds, or in a turn that is not measured in time (None).
Alongside = Callable[[float | None], Verdict | None]
# What summaries of procedures decide in so many seconds, if anything; UNKNOWN if they would need more.
BySummaries = Callable[[float], Verdict | None]


class _Runner(Runner):
    """Runs of bounded length, the bound to be chosen."""

    def limit(self, steps: int) -> None:
        self._max_steps = steps


class AutoDriver(Driver):
    """`Driver` with another way to refine; its runs, folding, verdicts and counts are the same."""

    def __init__(
        self,
        program: Program,
        limits: Limits,
        seed: int = 0,
        single_steps: bool = False,
        report: Callable[[Progress], None] | None = None,
        otherwise: Otherwise | None = None,
        alongside: Alongside | None = None,
        by_summaries: BySummaries | None = None,
        history: History | None = None,
        is_final: Callable[[Verdict], bool] = lambda verdict: verdict.kind != "proved" or verdict.proof is not None,
        is_apart: Callable[[], bool] = lambda: False,
    ) -> None:
        """`otherwise` is the strategy to ask where this one does not get on, `alongside` one to take turns with (and
        `is_final` whether what that says is to be left at that, `is_apart` whether it has a process of its own, so that
        a turn is only a look at it), `by_summaries` what is made for recursion."""
        super().__init__(program, limits, seed, single_steps, report, speculate=False, history=history)
        self._runner = self._bounded = _Runner(
            program, self.blocks, limits.run_steps, seed, deepest_recursion=DEEPEST_UNFOLDED
        )
        self._queries = Queries(program, self._remaining_after_turns)
        self._explorer = Explorer(self.graph, self._steps, self._feasibility)
        self._code_ahead = CodeAhead(program, self._steps, self.blocks, self.graph)
        self._thresholds = Thresholds()
        self._otherwise = otherwise
        self._summaries = by_summaries
        self._summaries_asked = 0
        self._summaries_from = self._started + RECURSION_AFTER
        self._alongside = alongside
        self._is_final = is_final
        self._is_apart = is_apart
        self._turn_seconds = 0.0
        self._turns = 0
        self._held: Verdict | None = None
        self._own_since = self._started
        self._paused = False
        self._ran_longer: set[Location] = set()
        self._fuzzed = False
        self._looked_at = 0
        self._recurses = False
        self._is_confirming = False
        """Whether what is asked is the last thing missing in a proof."""
        self._rounds = 0
        self._widening = Widening(self._feasibility, self.blocks)
        self._learned: Candidates = {}
        self._varied: set[tuple[Location, Term]] = set()

    def run(self) -> Verdict:
        verdict = self._run()
        return self._held if verdict.kind == "unknown" and self._held is not None else verdict

    def _run(self) -> Verdict:
        is_recursive = False
        try:
            return self._search()
        except (CallStringTooLong, TooManyLocations):
            is_recursive = True
            reason = "too many call strings"
        except (GiveUp, TooManyPaths, CannotCertify, Undecided) as problem:
            reason = str(problem) or "the solver ran out of time"
        except OutOfTime:
            return self._unknown("time-out")
        except Decided as decided:
            return decided.verdict
        try:
            self._take_turns(min(BEFORE_SUMMARIES, 0.1 * self._remaining()))
        except Decided as decided:
            return decided.verdict
        answer = self._by_summaries(self._remaining() * (SUMMARIES_SHARE if is_recursive else GIVE_UP_SHARE))
        if answer is not None:
            return answer
        try:
            self._take_turns(0.5 * self._remaining())
        except Decided as decided:
            return decided.verdict
        answer = self._by_splitting(self._remaining(), is_recursive)
        return answer if answer is not None else self._unknown(reason)

    def _by_splitting(self, seconds: float, is_recursive: bool = False) -> Verdict | None:
        """What the paper's strategy finds in so many seconds, if it decides."""
        if self._otherwise is None or seconds <= 0:
            return None
        self._record("stage", "the strategy of the paper takes over")
        verdict = self._otherwise(dataclasses.replace(self._limits, seconds=seconds), is_recursive)
        if verdict.kind == "unknown":
            return None
        spent = {"seconds": round(time.monotonic() - self._started, 3)}
        return dataclasses.replace(verdict, statistics={**verdict.statistics, **spent})

    def _by_summaries(self, seconds: float) -> Verdict | None:
        """What summaries of procedures prove or violate. They are asked once, and if they could not end, once more with
        twice the share of the time, when this strategy has had as much."""
        ask, self._summaries = self._summaries, None
        if ask is None or seconds <= 0:
            return None
        began = time.monotonic()
        answer = ask(min(seconds * (1 + self._summaries_asked), self._remaining()))
        self._summaries_asked += 1
        if answer is None or answer.kind != "unknown":
            return answer
        if self._summaries_asked < SUMMARIES_TIMES:
            ended = time.monotonic()
            self._summaries, self._summaries_from = ask, ended + (ended - began)
        return None

    def _is_recursive(self) -> bool:
        """Whether calls were seen to recurse more than once or twice; asked often, so looked at when locations come."""
        if len(self.graph.by_location) > self._looked_at:
            self._looked_at = len(self.graph.by_location)
            strings = {location.frames for location in self.graph.by_location}
            self._recurses = any(count > SHALLOW for frames in strings for count in Counter(frames or ()).values())
        return self._recurses

    def _pause(self) -> None:
        """What others solve quickly should not have to wait for us: takes turns with paths, and asks splitting once."""
        if self._summaries is not None and time.monotonic() > self._summaries_from and self._is_recursive():
            self._take_turns(min(BEFORE_SUMMARIES, 0.1 * self._remaining()))
            answer = self._by_summaries(RECURSION_SHARE * self._remaining())
            if answer is not None:
                raise Decided(answer)
        own = time.monotonic() - self._own_since
        if self._turn_seconds and (own >= self._turn_seconds or self._is_apart()):
            share = TURNS_SHARE if self._turns < FIRST_TURNS else LATER_SHARE
            self._take_turns(min(share * own, 0.5 * self._remaining()))
        if not self._paused and time.monotonic() - self._started > PAUSE_AFTER:
            self._paused = True
            # What is split again and again must be small to be decided in a few seconds.
            is_small = len(self.graph.by_location) <= MANY_LOCATIONS
            answer = self._by_splitting(min(PAUSE_SECONDS, PAUSE_SHARE * self._remaining())) if is_small else None
            if answer is not None:
                raise Decided(answer)

    def _remaining_after_turns(self) -> float:
        """Asked before every question to a solver: no stage is so long that nobody else gets a turn."""
        if not self._is_confirming:
            self._pause()
        return self._remaining()

    def _take_turns(self, seconds: float | None) -> None:
        answer = self._alongside(seconds) if self._alongside is not None else None
        if answer is not None:
            spent = time.monotonic() - self._started
            statistics = {**answer.statistics, "seconds": round(spent, 3)}
            answer = dataclasses.replace(answer, statistics=statistics)
            if self._is_final(answer):
                raise Decided(answer)
            # A proof that cannot be written down, or read: as much time again for one that can, and not all there is,
            # or who ends us then would end this one, too.
            self._held, self._alongside = answer, None
            left = self._limits.seconds - spent
            longest = spent + min(spent + PROOF_SECONDS, HELD_SHARE * left)
            self._limits = dataclasses.replace(self._limits, seconds=min(self._limits.seconds, longest))
        self._turn_seconds = FIRST_TURN if seconds is None else min(2 * self._turn_seconds, LONGEST_TURN)
        self._turns += 1
        self._own_since = time.monotonic()

    def _search(self) -> Verdict:
        self._take_turns(None)
        self._bounded.limit(min(FIRST_STEPS, self._limits.run_steps))
        for seed in range(self._seed, self._seed + FIRST_SEEDS):
            found = self._execute(Choices(seed=seed))
            if isinstance(found, Verdict):
                return found
            if not found.visits:
                return self._unknown(f"the entry cannot run: {found.detail}")
            if seed == self._seed:
                self._entry = found.visits[0].state
                self._bounded.limit(min(FURTHER_STEPS, self._limits.run_steps))
        self._bounded.limit(min(DIRECTED_STEPS, self._limits.run_steps))
        while True:
            self._pause()
            violated = self._explore()
            if violated is not None:
                return violated
            paths = self._strengthen()
            if isinstance(paths, Verdict):
                return paths
            violated = self._follow_all(paths)
            if violated is not None:
                return violated

    def _explore(self) -> Verdict | None:
        until = time.monotonic() + EXPLORE_SHARE * self._remaining()
        while (choices := self._explorer.next_test(lambda: until - time.monotonic())) is not None:
            self.progress.symbolic_runs = self._explorer.questions
            found = self._execute(choices)
            if isinstance(found, Verdict):
                return found
            self._tell()
            self._pause()
            if len(self.graph.by_location) > MAX_LOCATIONS:
                raise TooManyLocations
        return None

    def _strengthen(self) -> Verdict | list[Path]:
        if len(self.graph.by_location) > MAX_LOCATIONS:
            raise TooManyLocations
        entry = min(node.location for node in self.graph.nodes.values() if node.is_start)
        size = self._size()
        shape = Shape(entry, self.graph.successors)
        samples = Samples(self.runs, shape.cuts)
        system = System(self._program, self._steps, self.blocks, shape, samples, self._queries)
        system.assume_constants(self._thresholds.bounds)
        system.invariants = {cut: tightest(found) for cut, found in system.invariants.items()}
        self._record_invariants(system, "what was constant in all runs, where it stays so")
        stages = Stages(system, self._learned, lambda what: self._record("stage", what))
        if stages.is_safe() or stages.by_k_induction(FEW_CLAUSES):
            return self._certified(system)
        self._rounds += 1
        ahead = self._run_longer() or self._fuzz(system) or self._vary(system) or self._look_ahead(stages)
        if ahead is None and self._size() == size:
            ahead = self._explicit(stages)
        if ahead is None and self._rounds > 1 and self._size() == size:
            # It was not enough before to know the states of the runs.
            ahead = self._widen(system) or self._look_ahead(stages)
        if ahead is not None:
            return ahead
        if self._size() > size:
            return []
        if any(stages.first()):
            return self._certified(system)
        if self._turns == 1:
            self._take_turns(None)
        violated = self._widen(system) or self._recombine(shape)
        if violated is not None:
            return violated
        if self._size() > size:
            return []
        system.samples = Samples(self.runs, shape.cuts)
        ahead = self._look_ahead(stages)
        if ahead is not None:
            return ahead
        if any(stages.again()) or any(stages.later()):
            return self._certified(system)
        if self._look_behind(stages):
            return []
        strengthening, dear = Strengthening(system), stages.dear()
        found: list[Path] | bool = False
        try:
            while not found and strengthening.level < MAX_LEVELS:
                found = strengthening.run(LEVELS_AT_ONCE)
                self._tell()
                if not found and strengthening.level >= LEVELS_BEFORE_DEAR:
                    found = next(dear, False)
        finally:
            self.progress.refinements += strengthening.count
            learned = f"{strengthening.count} lemmas up to level {strengthening.level}"
            self._record("stage", f"property-directed strengthening: {learned}")
            self._remember(system, strengthening)
        if isinstance(found, list):
            return found
        if not found:
            raise GiveUp(f"no invariant within {MAX_LEVELS} levels")
        return self._certified(system)

    def _explicit(self, stages: Stages) -> Verdict | list[Path] | None:
        """Enumerates the states of a protocol, if it is one: a proof, or tests that explore more."""
        found = ExplicitValues(stages.system, stages.open_exits()).search()
        size = self._size()
        for path in found.paths:
            result = self._follow(path)
            if isinstance(result, Verdict):
                return result
        if self._size() > size:
            # Tests find the states of a protocol one after the other; the code of all of them is known now.
            self._look_behind(stages)
            return []
        if found.is_safe:
            self._is_confirming = True
            try:
                stages.keep(found.invariants)
                if stages.is_safe():
                    return self._certified(stages.system)
            finally:
                self._is_confirming = False
        return None

    def _fuzz(self, system: System) -> Verdict | None:
        """Once, random inputs of the kind that the guards care about."""
        if self._fuzzed or not self._program.spec.input_calls:
            return None
        self._fuzzed = True
        numbers = sorted({number for found in thresholds(system).values() for number in found if abs(number) < 1 << 16})
        self._bounded.limit(min(FUZZ_STEPS, self._limits.run_steps))
        for choices in Fuzzer(self._program, self._seed).tests(FUZZ_RUNS, FUZZ_STEPS, numbers):
            found = self._execute(choices)
            if isinstance(found, Verdict):
                return found
        self._bounded.limit(min(DIRECTED_STEPS, self._limits.run_steps))
        return None

    def _vary(self, system: System) -> Verdict | None:
        """Runs in which what was constant so far has other values; they are samples for the next time."""
        refuted = [item for item in system.refuted_at_entry.items() if item[0] not in self._varied]
        for (cut, place), value in refuted[:VARIED_AT_ONCE]:
            self._varied.add((cut, place))
            differs = t.ne(place, t.const(value, place.width))
            for step in system.steps_from[None]:
                if step.target == cut and step.pre(differs) is not t.FALSE:
                    path = Path((step,))
                    choices = inputs_for(self._program, self._queries, path, self._seed, VARY_SECONDS, [differs])
                    if choices is not None:
                        found = self._execute(choices)
                        if isinstance(found, Verdict):
                            return found
                        break
        system.samples = Samples(self.runs, system.cuts)
        return None

    def _look_ahead(self, stages: Stages) -> Verdict | list[Path] | None:
        """Tests along whole paths out of the graph; what is to be done next if there was one."""
        open_exits = stages.open_exits()
        until = time.monotonic() + EXPLORE_SHARE * self._remaining()
        size = self._size()
        while True:
            choices = self._explorer.next_test_ahead(
                open_exits, stages.system.samples.visits, lambda: until - time.monotonic()
            )
            if choices is None:
                return None if self._size() == size else []
            found = self._execute(choices)
            if isinstance(found, Verdict):
                return found

    def _look_behind(self, stages: Stages) -> bool:
        """Adds the code behind exits that are neither excluded nor taken; whether there was any."""
        return self._code_ahead.add_behind(step.trail[-1] for step in stages.open_exits()) > 0

    def _record_invariants(self, system: System, how: str) -> None:
        count = sum(map(len, system.invariants.values()))
        self._record("stage", f"{how}: {count} conditions at {len(system.cuts)} cut points")

    def _remember(self, system: System, strengthening: Strengthening) -> None:
        for cut in system.cuts:
            learned = self._learned.setdefault(cut, {})
            learned.update(dict.fromkeys(lemma.clause for lemma in strengthening.lemmas[cut]))
            learned.update(system.invariants[cut])

    def _certified(self, system: System) -> Verdict:
        if self._program.image.unspecified:
            return self._unknown("the file depends on code or data that is not in it (imports)")
        if self._is_recursive() and len(system.shape.order) > MANY_LOCATIONS:
            # A proof that lists every call string takes longer to check than to find; a path or a summary is short.
            self._take_turns(min(PATHS_SECONDS, PATHS_SHARE * self._remaining()))
            answer = self._by_summaries(RECURSION_SHARE * self._remaining())
            if answer is not None:
                return answer
        self._is_confirming = True
        try:
            return self._confirmed(system)
        finally:
            self._is_confirming = False

    def _confirmed(self, system: System) -> Verdict:
        invariants = inductive_core(system)
        if invariants is None:
            raise GiveUp("an invariant could not be confirmed")
        proof = certify(system, self._steps, invariants)
        self._record("stage", "the invariant excludes every step into the unexplored")
        assert self._entry is not None
        problem = recheck(self._program, proof, self._steps, self._entry, max(10.0, self._limits.query_seconds))
        if problem:
            raise GiveUp(self_check_reason(problem))
        evidence = evidence_of(self._program, self.graph)
        assumptions, statistics = self._program.assumptions, self._statistics()
        return Verdict("proved", assumptions=assumptions, statistics=statistics, proof=proof, evidence=evidence)

    def _run_longer(self) -> Verdict | None:
        """Runs that were cut off in a loop, once per loop, to the full length: what is behind it is explored then."""
        self._bounded.limit(self._limits.run_steps)
        for run in list(self.runs):
            where = run.visits[-1].location
            if run.ending is not Ending.LIMIT or where in self._ran_longer or run.steps >= self._limits.run_steps:
                continue
            self._ran_longer.update(visit.location for visit in run.visits[-LOOP_VISITS:])
            found = self._execute(run.choices)
            if isinstance(found, Verdict):
                return found
        self._bounded.limit(min(DIRECTED_STEPS, self._limits.run_steps))
        return None

    def _widen(self, system: System) -> Verdict | None:
        """Runs that pass the cut points in states not seen yet, breadth first."""
        before = self.progress.instructions
        runs = 0
        try:
            for _ in range(WIDENING_ROUNDS):
                found_any = False
                for choices, length in self._widening.tests(system):
                    self._bounded.limit(min(length + STEPS_BEHIND, self._limits.run_steps))
                    found = self._execute(choices)
                    if isinstance(found, Verdict):
                        return found
                    found_any = True
                    runs += 1
                    if runs >= WIDENING_RUNS or self.progress.instructions - before > WIDENING_INSTRUCTIONS:
                        return None
                if not found_any:
                    break
                system.samples = Samples(self.runs, system.cuts)
        finally:
            self._bounded.limit(min(DIRECTED_STEPS, self._limits.run_steps))
            system.samples = Samples(self.runs, system.cuts)
        return None

    def _recombine(self, shape: Shape) -> Verdict | None:
        """A few long runs made of known iterations."""
        before = self.progress.instructions
        for number in range(RECOMBINED_RUNS):
            for choices in recombined(self.runs, shape.heads, self._seed + number, RECOMBINED_ITERATIONS):
                if self.progress.instructions - before > RECOMBINED_INSTRUCTIONS:
                    return None
                found = self._execute(choices)
                if isinstance(found, Verdict):
                    return found
        return None

    def _follow_all(self, paths: list[Path]) -> Verdict | None:
        """Runs paths to exits as tests; one of them must explore something new."""
        before = self._size()
        problems: dict[str, None] = {}
        for path in paths:
            found = self._follow(path)
            if isinstance(found, Verdict):
                return found
            problems[found] = None
        if paths and self._size() == before:
            raise GiveUp("; ".join(problems))
        return None

    def _follow(self, path: Path) -> Verdict | str:
        """The violation that a path leads to, or why it does not."""
        if path.steps[-1].unsupported:
            return path.steps[-1].unsupported
        budget = max(0.1, min(4 * self._limits.query_seconds, self._remaining()))
        choices = inputs_for(self._program, self._queries, path, self._seed, budget)
        if choices is None:
            return "no inputs for a path that seems feasible"
        self._bounded.limit(self._limits.run_steps)
        found = self._execute(choices)
        self._bounded.limit(min(DIRECTED_STEPS, self._limits.run_steps))
        self._tell()
        return found if isinstance(found, Verdict) else _detail(found)

    def _size(self) -> int:
        return sum(map(len, self.graph.successors.values())) + len(self.graph.by_location)

    def _count(self) -> None:
        super()._count()
        self.progress.solver_calls += self._queries.count


def _detail(run: Run) -> str:
    if run.ending is Ending.UNSUPPORTED:
        return run.detail
    return "a run did not go where the solver sent it"
