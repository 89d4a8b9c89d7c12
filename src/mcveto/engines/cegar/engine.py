"""The loop: abstract, model check, validate, refine (Clarke, Grumberg, Jha, Lu and Veith, CAV 2000).

All abstract states are explored under the predicates found so far. If no step is left that must not be taken, the
reached regions are the proof, which is proved again before anything is said. Otherwise the nearest such steps are
validated, many in one round: predicates are added, or a path has a model, which is run. The run decides: a model that
does not reach a violation when it is run, as can happen where bitwise operations are uninterpreted, is not one.

The loop can be left when a turn is over and taken up again where it was (`advance`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from mcveto.dpg.evidence import Evidence
from mcveto.dpg.location import ANY, Blocks, Location
from mcveto.dpg.proof import Proof
from mcveto.dpg.proof_check import recheck
from mcveto.dpg.replay import confirm
from mcveto.dpg.runs import Choices, Ending, Run, Runner
from mcveto.dpg.strengthen.path_state import entry_state
from mcveto.dpg.strengthen.queries import OutOfTime
from mcveto.dpg.violation_inputs import violation_inputs, violation_warnings
from mcveto.engines.cegar.claim import Claim
from mcveto.engines.cegar.constants import Constants, ImageBytes
from mcveto.engines.cegar.post import Post
from mcveto.engines.cegar.reachability import Reachability, reachable
from mcveto.engines.cegar.refine import Found, Refined, Refinement, Stuck
from mcveto.engines.cegar.region import Error, Region
from mcveto.engines.cegar.treatment import Oracle, Treatment
from mcveto.machine.faults import Fault, Unsupported
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.verdict import Verdict

Report = Callable[[dict[str, float | int], str], None]

QUERY_SECONDS = 10.0
# Steps of the pieces of paths that are looked at first; then as many as there are.
LENGTHS = (64, None)
# When something was learned, and then nothing from so many errors, the abstraction is explored again.
FAILURES_AFTER_SUCCESS = 24
SPURIOUS = "a path that is possible does not lead to a violation when it is run"
UNINTERPRETED = "a counterexample is spurious: bitwise operations are uninterpreted"
# Symbolic runs keep the states of all blocks; a run is given up beyond this many instructions.
RUN_STEPS = 2_000_000
EVIDENCE_STEPS = 20_000


def cegar(
    program: Program,
    seconds: float,
    report: Report | None = None,
    treatment: Treatment = Treatment.INTERPRETED,
    seed: int = 0,
    must_recheck: bool = True,
) -> Verdict:
    """`must_recheck`: the proof is proved again here, because nobody else is going to."""
    return Engine(program, seconds, report, treatment, seed, must_recheck).run()


class _TurnIsOver(Exception):
    """What was found so far is kept."""


class Engine:
    def __init__(
        self,
        program: Program,
        seconds: float,
        report: Report | None,
        treatment: Treatment,
        seed: int,
        must_recheck: bool,
        query_seconds: float = QUERY_SECONDS,
    ) -> None:
        self._program = program
        self._started = time.monotonic()
        self._deadline = self._started + seconds
        self._report = report
        self._seed = seed
        self._must_recheck = must_recheck
        self._turn_ends = math.inf
        self._oracle = Oracle(program, treatment, self._remaining, query_seconds)
        self._blocks = Blocks(program)
        self._post = Post(program, self._blocks, self._oracle)
        is_exact = treatment is not Treatment.UNINTERPRETED
        self._refinement = Refinement(program, self._post, self._oracle, is_exact, seed)
        self._iterations = 0
        self._refinements = 0
        self._runs = 0
        self._steps = 0
        self._regions = 0
        self._locations: set[Location] = set()
        self._exploration: Reachability | None = None
        """The one that is under way."""
        self._code_known = 0
        """Bytes of writable memory that were known to be code when it began."""

    def run(self) -> Verdict:
        verdict = self.advance(math.inf)
        assert verdict is not None
        return verdict

    def advance(self, until: float) -> Verdict | None:
        """Goes on until a time on the monotonic clock, or a little longer; None if nothing is decided by then."""
        self._turn_ends = until
        try:
            return self._search()
        except _TurnIsOver:
            return None
        except OutOfTime:
            return self._unknown("time-out")

    def _search(self) -> Verdict:
        while True:
            if self._exploration is None:
                constants = Constants(ImageBytes(self._program.space), dict(self._program.registers), {}, ())
                first = self._first(constants)
                if isinstance(first, Verdict):
                    return first
                self._iterations += 1
                self._exploration = Reachability(self._post, self._tick, first, constants)
                self._code_known = len(self._post.precision.code)
            entry = self._exploration.explore()
            self._exploration = None
            self._post.precision.give_up()
            regions = reachable(entry)
            errors = [error for region in regions for error in region.errors]
            if not errors:
                return self._proved(regions)
            found = self._refine(errors)
            if isinstance(found, Verdict):
                return found
            if not found and len(self._post.precision.code) == self._code_known:
                return self._unknown(self._why)

    def _first(self, constants: Constants) -> Location | Verdict:
        program, row = self._program, self._program.decoder.row
        pointers = [constants.registers.get(number, ANY) for number in self._post.pointers]
        address = row.code_address(program.entry)
        if address in program.targets or address in program.halts or pointers[0] == ANY:
            return self._by_running()
        try:
            location = self._post.location(program.entry, constants, (program.return_sentinel,), pointers)
        except (Unsupported, Fault) as problem:
            return self._unknown(f"the entry cannot run: {problem}")
        if location is None:
            return self._unknown("the entry cannot run: its code is not known")
        return location

    def _by_running(self) -> Verdict:
        """Where the entry is a target or an end."""
        run = self._run(Choices(seed=self._seed), 1)
        violated = self._violated(run)
        return violated if violated is not None else self._unknown("the entry cannot run")

    def _refine(self, errors: list[Error]) -> Verdict | bool:
        """A verdict, or whether something was learned; `_why` says why not.

        Short pieces of paths are tried for all errors before longer ones for any."""
        reasons: dict[str, None] = {}
        for longest in LENGTHS:
            learned = failed = 0
            for error in errors:
                if learned or failed:
                    self._check_time()
                result = self._refinement.refine(error, longest)
                self._tell(f"{error.source.location}")
                if isinstance(result, Refined):
                    learned += 1
                    failed = 0
                    self._refinements += 1
                    continue
                if isinstance(result, Found):
                    run = self._run(result.choices, RUN_STEPS)
                    verdict = self._violated(run)
                    if verdict is not None:
                        return verdict
                    reasons[SPURIOUS if result.is_exact else UNINTERPRETED] = None
                elif isinstance(result, Stuck):
                    reasons[result.why] = None
                failed += 1
                if learned and failed >= FAILURES_AFTER_SUCCESS:
                    break
            if learned:
                return True
        self._why = "; ".join(reasons)
        return False

    def _run(self, choices: Choices, steps: int) -> Run:
        run = Runner(self._program, self._blocks, steps, self._seed).run(choices)
        self._runs += 1
        self._steps += run.steps
        return run

    def _violated(self, run: Run) -> Verdict | None:
        """The violation that a run ends with, if the emulator confirms it."""
        if run.ending not in (Ending.TARGET, Ending.VIOLATION):
            return None
        confirmed = confirm(self._program, run)
        if not confirmed:
            return self._unknown("self-check failed: the counterexample does not replay")
        name = "reach" if run.ending is Ending.TARGET else "return-address"
        reason = f"{run.pc:#x} is reached" if name == "reach" else run.detail
        at = run.pc if name == "reach" else run.came_from
        return Verdict(
            "violated",
            name,
            reason,
            violation_inputs(self._program, run),
            confirmed,
            self._program.assumptions,
            self._statistics(),
            at,
            path=self._assembly(run),
            warnings=violation_warnings(run),
        )

    def _assembly(self, run: Run) -> tuple[str, ...]:
        """The instructions that a run executed, with the names of the functions that are known."""
        names = {address: name for name, address in sorted(self._program.image.symbols.items(), reverse=True)}
        lines: list[str] = []
        for visit in run.visits:
            for instruction in self._blocks.of(visit.location):
                address = self._program.decoder.row.code_address(instruction.pc)
                label = f"{names[address]}: " if address in names else ""
                lines.append(f"{address:#x}  {label}{instruction.text}")
        return tuple(lines[: run.steps])

    def _proved(self, regions: list[Region]) -> Verdict:
        # What may be done by something outside the file, the checker finds; we do not.
        is_open = self._program.image.import_area is not None and self._must_recheck
        if is_open or self._program.image.unspecified:
            return self._unknown("the file depends on code or data that is not in it (imports)")
        proof = Claim(self._program, self._post).proof(regions)
        problem = self._problem(proof)
        if problem:
            return self._unknown(problem)
        assumptions = self._program.assumptions
        evidence = self._evidence()
        return Verdict("proved", assumptions=assumptions, statistics=self._statistics(), proof=proof, evidence=evidence)

    def _problem(self, proof: Proof) -> str:
        """What is wrong with the proof, or "" if it holds."""
        if not self._must_recheck:
            return ""
        entry = entry_state(self._program)
        problem = recheck(self._program, proof, self._post.steps, entry, QUERY_SECONDS)
        return f"self-check failed: {problem}" if problem else ""

    def _evidence(self) -> Evidence:
        """One run, for what it shows to be reachable."""
        machine = self._program.machine(InputSource((), self._seed), self._seed)
        outcome = machine.run(EVIDENCE_STEPS)
        self._runs += 1
        self._steps += outcome.steps
        return Evidence(outcome.steps > 0, {outcome.kind: 1}, outcome.kind in ("halted", "exited"), (), ())

    def _tick(self, location: Location, regions: int) -> None:
        self._regions = regions
        self._locations.add(location)
        if regions & 15 == 0:
            self._check_time()
            self._tell(str(location))

    def _check_time(self) -> None:
        if self._remaining() <= 0:
            raise OutOfTime
        if time.monotonic() > self._turn_ends:
            raise _TurnIsOver

    def _remaining(self) -> float:
        return self._deadline - time.monotonic()

    def _tell(self, where: str) -> None:
        if self._report is not None:
            self._report(self._statistics(), where)

    def _statistics(self) -> dict[str, float | int]:
        return {
            "seconds": round(time.monotonic() - self._started, 3),
            "concrete_runs": self._runs,
            "iterations": self._iterations,
            "refinements": self._refinements,
            "predicates": self._post.precision.count,
            "solver_calls": self._oracle.questions,
            "instructions_executed": self._steps,
            "locations": len(self._locations),
            "nodes": self._regions,
        }

    def _unknown(self, reason: str) -> Verdict:
        return Verdict("unknown", reason=reason, assumptions=self._program.assumptions, statistics=self._statistics())
