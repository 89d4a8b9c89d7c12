"""Algorithm 1 of TR1669: runs and refinements until a violation is run, no path is left, or we must say UNKNOWN.

Each round takes a shortest path from the start to TS in the graph; on it, the frontier (n, m): the last node with a
witness and its successor without. If the witness's run can be changed to make the step, the new run is folded into the
graph; if not, n is split. Contract of a round: the graph afterwards accepts every feasible trace it accepted before.

A step that cannot be decided is given up and the search goes on without it; then the end is a violation or UNKNOWN.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from mcveto.dpg.evidence import evidence_of
from mcveto.dpg.feasibility import Feasibility, Feasible, Undecided
from mcveto.dpg.frontiers import FrontierChoice, frontiers
from mcveto.dpg.graph import TS, Edge, Frontier, Graph, Node, Witness, holds
from mcveto.dpg.history import History, shown
from mcveto.dpg.location import Blocks, Fold, Location
from mcveto.dpg.nested_graph import NestedGraph
from mcveto.dpg.outcomes import Outcome, OutcomeTable
from mcveto.dpg.proof import proof_of
from mcveto.dpg.proof_check import recheck
from mcveto.dpg.refinement import Refuted, refinement_predicate
from mcveto.dpg.replay import confirm
from mcveto.dpg.runs import Choices, Ending, Run, Runner
from mcveto.dpg.speculate import Speculation, apply
from mcveto.dpg.steps import Literals, Steps
from mcveto.dpg.violation_inputs import violation_inputs, violation_warnings
from mcveto.dpg.ways import Kind, Way
from mcveto.late_methods import dataclass
from mcveto.logic.terms import FALSE, Term
from mcveto.program.program import Program
from mcveto.verdict import Verdict, self_check_reason


@dataclass
class Limits:
    seconds: float = 60.0
    query_seconds: float = 5.0
    run_steps: int = 20_000


@dataclass(frozen=True, slots=True)
class Method:
    """The choices TR1669 leaves open."""

    fold: Fold = Fold.FRAME
    frontier: FrontierChoice = FrontierChoice.PATH
    closest: int = 1
    """How many of the closest frontiers a round tries."""
    symbolic_aliasing: bool = False
    """Aliasing is decided as all runs along the witness's path do (§3.4), not as the witness does."""
    deepest_recursion: int | None = None
    """How often one return address may be pending before a call string is given up as too long."""
    most_targets: int | None = None
    """After how many targets of one step its other targets are not looked for."""
    keep_going: bool = False
    """A target that is reached does not end the search, only the run."""


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
        method: Method | None = None,
        history: History | None = None,
    ) -> None:
        self._method = method or Method()
        fold = self._method.fold
        self._program = program
        self._limits = limits
        self._seed = seed
        self._report = report
        self.blocks = Blocks(program, single_steps)
        self._speculation = Speculation(program, self.blocks) if speculate else None
        self.runs: list[Run] = []
        self._speculated = 0
        self._steps = Steps(program, self.blocks, OutcomeTable(program), fold)
        self._runner = Runner(program, self.blocks, limits.run_steps, seed, fold, self._method.deepest_recursion)
        self._feasibility = Feasibility(program)
        nested = fold is Fold.PC
        self.graph = NestedGraph(self._steps.exits, program.return_sentinel) if nested else Graph()
        self._history = history
        if history is not None:
            self.graph.observer = history.change
            self._graph_number = history.begin(f"the search begins; all is one unexplored node (fold: {fold.value})")
        self.violation: Verdict | None = None
        """The first violation, where the search goes on after one."""
        if self._method.keep_going:
            self._steps.ends = sorted({*self._steps.ends, *program.targets})
        self.progress = Progress()
        self._started = time.monotonic()
        self._reasons: dict[str, None] = {}
        self._new_steps: dict[tuple[Location, Way, Location], int] = {}
        """The steps between locations that runs made, with the first run that did."""
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
            if self._speculation is not None and len(self.runs) >= 2 * self._speculated:
                self._speculated = len(self.runs)
                deadline = self._started + self._limits.seconds
                apply(self.graph, self._speculation.candidates(self.graph, self.runs, deadline))
            if self._remaining() <= 0:
                return self._unknown("; ".join(["time-out", *self._reasons]))
            found = frontiers(self.graph, self._method.frontier, self._method.closest)
            if not found:
                return self._proved()
            for frontier in found:
                if not self._is_open(frontier):
                    continue
                verdict = self._cross(frontier)
                if verdict is not None:
                    return verdict
                self._tell()

    def _is_open(self, frontier: Frontier) -> bool:
        """Whether a frontier is one still, after others of its round were crossed."""
        edge, node = frontier.edge, self.graph.nodes[frontier.edge.source]
        still_there = edge.target in node.edges.get(edge.way, ()) and edge not in self.graph.given_up
        return still_there and frontier.witness in node.witnesses

    def _cross(self, frontier: Frontier) -> Verdict | None:
        """Extends a run across the frontier, or refines its source so that the witness no longer suggests it."""
        edge, witness = frontier.edge, frontier.witness
        node = self.graph.nodes[edge.source]
        self.progress.frontier = str(node.location)
        refuted: list[Refuted] = []
        asked: list[Literals] = []
        if self._has_enough_targets(edge):
            self._give_up(edge, f"more than {self._method.most_targets} places to go to from {node.location}")
            return None
        for outcome, literals in self._ways(edge):
            self.progress.symbolic_runs += 1
            budget = max(0.1, min(self._limits.query_seconds, self._remaining()))
            answer = self._feasibility.ask(witness, literals, budget)
            if isinstance(answer, Feasible):
                if outcome.unsupported:
                    self._give_up(edge, outcome.unsupported)
                    return None
                return self._try(answer.choices, frontier)
            if isinstance(answer, Undecided):
                self._give_up(edge, answer.why)
                return None
            refuted.append(Refuted(outcome, answer.core))
            asked.append(literals)
        # What the node's predicate already rules out needs no split, only the edge's removal.
        budget = max(0.1, min(1.0, self._limits.query_seconds, self._remaining()))
        open_ways = [
            item
            for item, literals in zip(refuted, asked, strict=True)
            if not self._feasibility.excluded(node.literals, literals, item.core, budget)
        ]
        return self._refine(edge, witness, open_ways)

    def _has_enough_targets(self, edge: Edge) -> bool:
        most = self._method.most_targets
        known = self.graph.successors[self.graph.nodes[edge.source].location]
        return most is not None and edge.target == TS and len(known) >= most

    def _try(self, choices: Choices, frontier: Frontier) -> Verdict | None:
        """Makes the run that the solver promised; it must repeat the witness's visits and then take the step."""
        edge, witness = frontier.edge, frontier.witness
        run = self._execute(choices)
        if isinstance(run, Verdict):
            return run
        number = witness.visit.number
        at = run.visits[number].location if number < len(run.visits) else None
        if at != witness.visit.location or not self._made_progress(run, number, edge):
            self._give_up(edge, run.detail or "a run did not go where the solver sent it")
        return None

    def _made_progress(self, run: Run, number: int, edge: Edge) -> bool:
        """Whether the visit after the given one, now folded into the graph, lies where the edge leads.

        For TS that is a step not known before: as soon as the run is folded, the same step is no longer one to TS.
        """
        if number + 1 >= len(run.visits):
            return False
        visit = run.visits[number + 1]
        if edge.target == TS:
            return self._first_time(run, number)
        node = self.graph.nodes[edge.target]
        return visit.location == node.location and all(holds(literal, Witness(run, visit)) for literal in node.literals)

    def _first_time(self, run: Run, number: int) -> bool:
        """Whether no earlier run made the step that this run makes after its given visit."""
        step = (run.visits[number].location, run.visits[number + 1].way, run.visits[number + 1].location)
        return self._new_steps.get(step) == run.number

    def _refine(self, edge: Edge, witness: Witness, refuted: list[Refuted]) -> Verdict | None:
        timeout = self._limits.query_seconds

        def is_certain(condition: Term) -> bool:
            return not self._method.symbolic_aliasing or self._feasibility.is_certain(witness, condition, timeout)

        rho = refinement_predicate(witness, refuted, self._feasibility.solver, timeout, is_certain)
        if rho is None:
            self._give_up(edge, "no predicate separates the witness (projection of inputs)")
            return None
        self.progress.refinements += 1
        location = self.graph.nodes[edge.source].location
        where = f"from {location} to {self._name(edge.target)}"
        if rho is FALSE:
            self.graph.remove_edge(edge)
            self._record("refuted", f"no state steps {where}: the edge is removed", location.pc)
            return None
        stays, moved = self.graph.split(edge.source, rho)
        self.graph.remove_edge(replace(edge, source=stays))
        if self._history is not None:
            self._record("split", f"only states with {shown(rho)} can step {where}: {location} is split", location.pc)
        node = self.graph.nodes[moved]
        return self._restart(node, stays) if node.is_start and not node.witnesses else None

    def _restart(self, node: Node, twin: int) -> Verdict | None:
        """A part of the start without a witness: either no entry state belongs to it, or a run from there is made."""
        first = self.graph.nodes[twin].witnesses[0].run
        entry = Witness(first, first.visits[0])
        answer = self._feasibility.ask(entry, node.literals, self._limits.query_seconds)
        if isinstance(answer, Feasible):
            run = self._execute(answer.choices)
            if isinstance(run, Verdict):
                return run
        elif not isinstance(answer, Undecided):
            self.graph.unstart(node.number)
        if node.is_start and not node.witnesses:
            for edge in list(node.steps()):
                self._give_up(edge, "whether a run can begin in some state is not decided")
        return None

    def _ways(self, edge: Edge) -> Iterator[tuple[Outcome, Literals]]:
        """The ways a state of the edge's source can make the step into its target."""
        location = self.graph.nodes[edge.source].location
        expected = edge.way.address if edge.way.kind is Kind.RETURN else None
        for outcome in self._steps.outcomes(location):
            way = self._steps.way(outcome, expected)
            if edge.target == TS:
                if self.graph.ts_way(way) == edge.way:
                    for literals in self._steps.outside(location, outcome, self.graph.known(location, way), expected):
                        yield outcome, literals
            elif way == edge.way:
                goal = self.graph.nodes[edge.target]
                into = self._steps.into(location, outcome, goal.location, goal.literals, expected)
                if into is not None:
                    yield outcome, into

    def _execute(self, choices: Choices) -> Run | Verdict:
        run = self._runner.run(choices)
        self.progress.runs += 1
        self.progress.instructions += run.steps
        self._note_instructions(run)
        if run.ending in (Ending.TARGET, Ending.VIOLATION):
            if not self._method.keep_going:
                self._record_run(run)
                return self._violated(run)
            self.violation = self.violation or self._violated(run)
        if run.ending is Ending.UNSUPPORTED:
            self._reasons[run.detail] = None
        self.graph.fold(run)
        self._record_run(run)
        self.runs.append(run)
        for one, other in pairwise(run.visits):
            self._new_steps.setdefault((one.location, other.way, other.location), run.number)
        return run

    def _give_up(self, edge: Edge, why: str) -> None:
        self.graph.give_up(edge)
        self._reasons[why] = None
        location = self.graph.nodes[edge.source].location
        self._record("given up", f"from {location} to {self._name(edge.target)}: {why}", location.pc)

    def _name(self, number: int) -> str:
        return "the unexplored" if number == TS else str(self.graph.nodes[number].location)

    def _record(self, kind: str, text: str, at: int | None = None) -> None:
        if self._history is not None:
            self._history.tell(kind, text, at, self._graph_number)

    def _record_run(self, run: Run) -> None:
        if self._history is not None:
            self._history.execute(pc for pc, _ in self._instructions_seen)
            values = ", ".join(str(item.value) for item in run.consumed[:8])
            inputs = f" with inputs {values}{', …' if len(run.consumed) > 8 else ''}" if run.consumed else ""
            end = f"{run.ending.value}{f' ({run.detail})' if run.detail else ''}"
            self._record("run", f"run {run.number}{inputs}: {run.steps} instructions, {end}", run.pc)

    def _violated(self, run: Run) -> Verdict:
        name = "reach" if run.ending is Ending.TARGET else "return-address"
        reason = f"{run.pc:#x} is reached" if name == "reach" else run.detail
        inputs = violation_inputs(self._program, run)
        confirmed = confirm(self._program, run, must_match=self._method.fold is not Fold.UNMATCHED)
        if not confirmed:
            return self._unknown("self-check failed: the counterexample does not replay")
        at = run.pc if name == "reach" else run.came_from
        verdict = Verdict(
            "violated", name, reason, inputs, confirmed, self._program.assumptions, self._statistics(), at
        )
        return replace(verdict, warnings=violation_warnings(run))

    def _proved(self) -> Verdict:
        assert self._entry is not None
        if self.graph.undecided():
            return self._unknown("; ".join(self._reasons) or "no frontier can be decided")
        if self._program.image.unspecified:
            # What is outside the file cannot be followed: a jump there is not the fault it looks like.
            return self._unknown("the file depends on code or data that is not in it (imports)")
        proof = proof_of(self.graph)
        problem = recheck(self._program, proof, self._steps, self._entry, max(10.0, self._limits.query_seconds))
        if problem:
            return self._unknown(self_check_reason(problem))
        evidence = evidence_of(self._program, self.graph)
        assumptions, statistics = self._program.assumptions, self._statistics()
        return Verdict("proved", assumptions=assumptions, statistics=statistics, proof=proof, evidence=evidence)

    def _unknown(self, reason: str) -> Verdict:
        return Verdict("unknown", reason=reason, assumptions=self._program.assumptions, statistics=self._statistics())

    def _remaining(self) -> float:
        return self._limits.seconds - (time.monotonic() - self._started)

    def _note_instructions(self, run: Run) -> None:
        for pc, code in {(visit.location.pc, visit.location.code) for visit in run.visits} - self._code_seen:
            self._code_seen.add((pc, code))
            block = self.blocks.fixed_block(pc) or self.blocks.single(pc, code)
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
