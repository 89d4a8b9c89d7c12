"""Algorithm 1 of TR1669: runs and refinements until a violation is run, no path is left, or we must say UNKNOWN.

Each round takes a shortest path from the start to TS in the graph; on it, the frontier (n, m): the last node with a
witness and its successor without. If the witness's run can be changed to make the step, the new run is folded into the
graph; if not, n is split. Contract of a round: the graph afterwards accepts every feasible trace it accepted before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from mcveto.dpg.feasibility import Feasibility, Feasible, Undecided
from mcveto.dpg.graph import TS, Graph, Witness
from mcveto.dpg.location import Blocks
from mcveto.dpg.outcomes import Outcome, OutcomeTable
from mcveto.dpg.proof import proof_of
from mcveto.dpg.proof_check import recheck
from mcveto.dpg.refinement import Refuted, refinement_predicate
from mcveto.dpg.replay import confirm
from mcveto.dpg.runs import Choices, Ending, Run, Runner
from mcveto.dpg.speculate import Speculation, apply
from mcveto.dpg.steps import Literals, Steps
from mcveto.dpg.violation_inputs import violation_inputs
from mcveto.logic.terms import FALSE
from mcveto.program.program import Program
from mcveto.verdict import Verdict


@dataclass
class Limits:
    seconds: float = 60.0
    query_seconds: float = 5.0
    run_steps: int = 20_000


@dataclass
class Progress:
    """Counts shown while working and reported at the end."""

    runs: int = 0
    symbolic_runs: int = 0
    refinements: int = 0
    solver_calls: int = 0
    instructions: int = 0
    distinct_instructions: int = 0
    nodes: int = 0
    locations: int = 0
    frontier: str = ""
    """Where the step starts that was tried last."""

    def statistics(self) -> dict[str, float | int]:
        return {
            "concrete_runs": self.runs,
            "symbolic_runs": self.symbolic_runs,
            "refinements": self.refinements,
            "solver_calls": self.solver_calls,
            "instructions_executed": self.instructions,
            "distinct_instructions": self.distinct_instructions,
            "locations": self.locations,
            "nodes": self.nodes,
        }


class Driver:
    def __init__(
        self,
        program: Program,
        limits: Limits,
        seed: int = 0,
        single_steps: bool = False,
        report: Callable[[Progress], None] | None = None,
        speculate: bool = True,
    ) -> None:
        self._program = program
        self._limits = limits
        self._seed = seed
        self._report = report
        self._blocks = Blocks(program, single_steps)
        self._speculation = Speculation(program, self._blocks) if speculate else None
        self._runs: list[Run] = []
        self._speculated = 0
        self._steps = Steps(program, self._blocks, OutcomeTable(program))
        self._runner = Runner(program, self._blocks, limits.run_steps, seed)
        self._feasibility = Feasibility(program)
        self.graph = Graph()
        self.progress = Progress()
        self._started = time.monotonic()
        self._undecided: set[tuple[int, int]] = set()
        self._reasons: dict[str, None] = {}
        self._code_seen: set[tuple[int, bytes]] = set()
        self._instructions_seen: set[tuple[int, bytes]] = set()

    def run(self) -> Verdict:
        first = self._execute(Choices(seed=self._seed))
        if isinstance(first, Verdict):
            return first
        self._entry = first.visits[0].state if first.visits else None
        if self._entry is None:
            return self._unknown(f"the entry cannot run: {first.detail}")
        self._tell()
        while True:
            if self._speculation is not None and len(self._runs) >= 2 * self._speculated:
                self._speculated = len(self._runs)
                deadline = self._started + self._limits.seconds
                apply(self.graph, self._speculation.candidates(self.graph, self._runs, deadline))
            if self._remaining() <= 0:
                return self._unknown("time-out")
            path = self.graph.path()
            if path is None:
                return self._proved()
            frontier = self._frontier(path)
            if frontier is None:
                return self._unknown("; ".join(self._reasons) or "no frontier can be decided")
            found = self._cross(*frontier)
            if isinstance(found, Verdict):
                return found
            self._tell()

    def _frontier(self, path: list[int]) -> tuple[int, int] | None:
        """The last step of the path from a node with a witness to one without that was not given up."""
        for source, target in reversed(list(pairwise(path))):
            has = bool(self.graph.nodes[source].witnesses)
            next_has = target != TS and bool(self.graph.nodes[target].witnesses)
            if has and not next_has:
                return None if (source, target) in self._undecided else (source, target)
        return None

    def _cross(self, source: int, target: int) -> Verdict | None:
        """Extends a run across the frontier, or refines the source so that its witness no longer suggests it."""
        node = self.graph.nodes[source]
        self.progress.frontier = str(node.location)
        witness = node.witnesses[0]
        refuted: list[Refuted] = []
        asked: list[Literals] = []
        for outcome, literals in self._ways(source, target):
            self.progress.symbolic_runs += 1
            budget = max(0.1, min(self._limits.query_seconds, self._remaining()))
            answer = self._feasibility.ask(witness, literals, budget)
            if isinstance(answer, Feasible):
                if outcome.unsupported:
                    self._give_up(source, target, outcome.unsupported)
                    return None
                return self._try(answer.choices, source, target)
            if isinstance(answer, Undecided):
                self._give_up(source, target, answer.why)
                return None
            refuted.append(Refuted(outcome, answer.core))
            asked.append(literals)
        # What the node's predicate already rules out needs no split, only the edge's removal.
        budget = max(0.1, min(1.0, self._limits.query_seconds, self._remaining()))
        open_ways = [
            item
            for item, literals in zip(refuted, asked, strict=True)
            if not self._feasibility.excluded(node.literals, literals, budget)
        ]
        return self._refine(source, target, witness, open_ways)

    def _try(self, choices: Choices, source: int, target: int) -> Verdict | None:
        before = self._explored(target)
        run = self._execute(choices)
        if isinstance(run, Verdict):
            return run
        if self._explored(target) == before:
            self._give_up(source, target, run.detail or "a run did not go where the solver sent it")
        return None

    def _explored(self, target: int) -> tuple[int, int]:
        """What must grow when a run crosses a frontier: the known steps, or the witnesses of the node aimed at."""
        witnesses = 0 if target == TS else len(self.graph.nodes[target].witnesses)
        return sum(map(len, self.graph.successors.values())), witnesses

    def _refine(self, source: int, target: int, witness: Witness, refuted: list[Refuted]) -> Verdict | None:
        rho = refinement_predicate(witness, refuted, self._feasibility.solver, self._limits.query_seconds)
        if rho is None:
            self._give_up(source, target, "no predicate separates the witness (projection of inputs)")
            return None
        self.progress.refinements += 1
        if rho is FALSE:
            self.graph.remove_edge(source, target)
            return None
        stays, moved = self.graph.split(source, rho)
        self.graph.remove_edge(stays, target)
        node = self.graph.nodes[moved]
        if node.is_start and not node.witnesses:
            assert self._entry is not None
            first = self.graph.nodes[stays].witnesses[0].run
            entry = Witness(first, first.visits[0])
            answer = self._feasibility.ask(entry, node.literals, self._limits.query_seconds)
            if not isinstance(answer, (Feasible, Undecided)):
                self.graph.unstart(moved)
        return None

    def _ways(self, source: int, target: int) -> Iterator[tuple[Outcome, Literals]]:
        """The ways a state of one node can step into another, or into TS."""
        location = self.graph.nodes[source].location
        for outcome in self._steps.outcomes(location):
            if target == TS:
                for literals in self._steps.outside(location, outcome, self.graph.successors[location]):
                    yield outcome, literals
            else:
                goal = self.graph.nodes[target]
                into = self._steps.into(location, outcome, goal.location, goal.literals)
                if into is not None:
                    yield outcome, into

    def _execute(self, choices: Choices) -> Run | Verdict:
        run = self._runner.run(choices)
        self.progress.runs += 1
        self.progress.instructions += run.steps
        self._note_instructions(run)
        if run.ending in (Ending.TARGET, Ending.VIOLATION):
            return self._violated(run)
        if run.ending is Ending.UNSUPPORTED:
            self._reasons[run.detail] = None
        self.graph.fold(run)
        self._runs.append(run)
        return run

    def _give_up(self, source: int, target: int, why: str) -> None:
        self._undecided.add((source, target))
        self._reasons[why] = None

    def _violated(self, run: Run) -> Verdict:
        name = "reach" if run.ending is Ending.TARGET else "return-address"
        reason = f"{run.pc:#x} is reached" if name == "reach" else run.detail
        inputs = violation_inputs(self._program, run)
        confirmed = confirm(self._program, run)
        if not confirmed:
            return self._unknown("self-check failed: the counterexample does not replay")
        return Verdict("violated", name, reason, inputs, confirmed, self._program.assumptions, self._statistics())

    def _proved(self) -> Verdict:
        assert self._entry is not None
        if self._program.image.import_area is not None or self._program.image.unspecified:
            # What is outside the file cannot be followed: a jump there is not the fault it looks like.
            return self._unknown("the file depends on code or data that is not in it (imports)")
        proof = proof_of(self.graph, self.graph.reachable())
        problem = recheck(self._program, proof, self._steps, self._entry, max(10.0, self._limits.query_seconds))
        if problem:
            return self._unknown(f"self-check failed: {problem}")
        return Verdict("proved", assumptions=self._program.assumptions, statistics=self._statistics())

    def _unknown(self, reason: str) -> Verdict:
        return Verdict("unknown", reason=reason, assumptions=self._program.assumptions, statistics=self._statistics())

    def _remaining(self) -> float:
        return self._limits.seconds - (time.monotonic() - self._started)

    def _note_instructions(self, run: Run) -> None:
        for pc, code in {(visit.location.pc, visit.location.code) for visit in run.visits} - self._code_seen:
            self._code_seen.add((pc, code))
            block = self._blocks.fixed_block(pc) or self._blocks.single(pc, code)
            self._instructions_seen.update((instruction.pc, instruction.bytes) for instruction in block)

    def _tell(self) -> None:
        if self._report is not None:
            self._count()
            self._report(self.progress)

    def _count(self) -> None:
        self.progress.solver_calls = self._feasibility.queries
        self.progress.distinct_instructions = len(self._instructions_seen)
        self.progress.nodes = len(self.graph.nodes)
        self.progress.locations = len(self.graph.by_location)

    def _statistics(self) -> dict[str, float | int]:
        self._count()
        return {"seconds": round(time.monotonic() - self._started, 3), **self.progress.statistics()}
