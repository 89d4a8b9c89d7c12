"""From a question to its verdict: the engine that was asked for, in a watched process, within its limits.

Whatever ends the search early (time, memory, an interrupt, a crash) gives UNKNOWN with the counts last reported.
Choices that exist in the contract but not yet in this version are refused before anything runs.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass
from mcveto.limits import End, Finished, ResourceLimits, Send, run_limited
from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.crossings import Crossed
    from mcveto.dpg.driver import Progress
    from mcveto.dpg.history import History
    from mcveto.engines.second_process import Apart
    from mcveto.program.program import Program
    from mcveto.program.spec import Spec
    from mcveto.property.attach import Attached, EventPoint

Counts = dict[str, float | int]
DEFAULT_TIMEOUT = 300.0
_REPORT_SECONDS = 0.05
# Reports that are kept of a search.
_LOGGED = 100
# Of the time left, and never more than so many seconds: the other ways should have their turn.
SUMMARIES_SHARE = 0.4
LONGEST_SUMMARIES = 300.0
# Seconds of random runs: what they find, they mostly find soon.
LONGEST_RUNS = 30.0
# Of the time there is for a large program, and for one that is too large for anything else.
_SHARE_OF_SIMULATION = 0.6
_SHARE_IF_VERY_LARGE = 0.9
# Of the time, and in seconds: predicates on code that is large, but not very.
_SHARE_OF_CEGAR = 0.4
_LONGEST_CEGAR = 60.0
# Before that: mistakes that are near the entry are found by following paths.
_SHARE_OF_GLANCE = 0.06
# Seconds that a search which waits for another process ends before its time.
_BEFORE_THE_END = 0.1
_LONGEST_GLANCE = 4.0
# Random runs of large code: before its simulation, and of what that left over.
_SHARE_OF_RUNS = 0.025
_LONGEST_FIRST_RUNS = 2.0
_SHARE_OF_LAST_RUNS = 0.2
_SHARE_OF_LAST_RUNS_IF_VERY_LARGE = 0.8

# Of the time left, to check an invariant where a simulation may find another proof.
_SHARE_OF_CHECK = 0.75

# Every choice of the contract; those that exist are marked.
ENGINES = {
    "dpg": True,
    "bmc": True,
    "symex": True,
    "simulation": True,
    "cegar": True,
    "runs": True,
    "portfolio": True,
}
STRATEGIES = {"auto": True, "paper": True}
BITWISE = {"interpreted": True, "semi": True, "uninterpreted": True}
FOLDS = {"auto": True, "frame": True, "pc": True}
STEPS = {"block": True, "instruction": True}
FRONTIERS = {"path": True, "all": True, "start": True, "target": True}
ALIASINGS = {"witness": True, "symbolic": True}
PROPERTIES = {
    "reach": True,
    "return-address": True,
    "memory-safety": True,
    "no-fault": True,
    "typestate": True,
}


@dataclass(frozen=True, slots=True)
class Question:
    """How to search; what is asked is in the program's spec."""

    engine: str = "dpg"
    strategy: str = "auto"
    fold: str = "auto"
    steps: str = "block"
    timeout: float | None = DEFAULT_TIMEOUT
    memory_mb: int | None = None
    seed: int = 0
    frontier: str = "path"
    closest: int = 1
    aliasing: str = "witness"
    after_violation: bool = False
    self_check: bool = True
    events: tuple[EventPoint, ...] = ()
    """Where events of typestate properties happen, beyond what their files say."""
    unwind: int | None = None
    """For bmc: how often a loop is entered again."""
    merge: bool = False
    """For symex: whether paths that meet become one."""
    alongside: bool = True
    """For strategy auto: whether paths are explored in turns with it."""
    certificate: bool = False
    """Whether a certificate is wanted, however long."""
    keeps_history: bool = False
    """Whether what happens in the search is written down (dpg only)."""
    bitwise: str = "interpreted"
    """For cegar: what the solver is told about bitwise operations."""

    def __post_init__(self) -> None:
        for what, value, known in (
            ("engine", self.engine, ENGINES),
            ("strategy", self.strategy, STRATEGIES),
            ("fold", self.fold, FOLDS),
            ("steps", self.steps, STEPS),
            ("frontier", self.frontier, FRONTIERS),
            ("aliasing", self.aliasing, ALIASINGS),
            ("bitwise", self.bitwise, BITWISE),
        ):
            if not (what == "engine" and value.startswith("external:")):
                require_available(what, value, known)
        if self.timeout is not None and not (math.isfinite(self.timeout) and self.timeout > 0):
            raise UsageError(f"the time limit must be a positive number of seconds, not {self.timeout}")
        if self.closest <= 0:
            raise UsageError(f"at least one frontier must be tried in a round, not {self.closest}")
        if self.memory_mb is not None and self.memory_mb <= 0:
            raise UsageError(f"the memory limit must be a positive number of megabytes, not {self.memory_mb}")
        if self.unwind is not None and self.engine not in ("bmc", "portfolio"):
            raise UsageError("--unwind is for engine bmc", "add --engine bmc")
        if self.unwind is not None and self.unwind < 1:
            raise UsageError(f"the number of turns must be positive, not {self.unwind}")
        if self.merge and self.engine not in ("symex", "portfolio"):
            raise UsageError("--merge is for engine symex", "engine bmc always merges, dpg never does")
        if self.bitwise != "interpreted" and self.engine != "cegar":
            raise UsageError("--bitwise is for engine cegar", "add --engine cegar")


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """How to load a program, in words that can be sent to another process."""

    binary: str | None
    spec: Spec

    def __call__(self) -> Program:
        from mcveto.program.program import load_program

        return load_program(self.binary, self.spec)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of the program once it is loaded."""

    path: str
    sha256: str
    targets: tuple[int, ...]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    typestates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """What the search last said of itself."""

    counts: Counts = field(default_factory=dict)
    frontier: str = ""
    seconds: float = 0.0
    executed: tuple[tuple[int, int], ...] = ()
    """Blocks that runs have executed so far, if what happens is written down."""
    followed: tuple[tuple[int, int], ...] = ()
    """Blocks that symbolic paths have gone through."""


@dataclass(frozen=True, slots=True)
class Answer:
    verdict: Verdict
    subject: Subject | None
    """None if the search was ended before the program was loaded."""
    log: tuple[SearchProgress, ...] = ()
    """What the search said of itself on the way, if that was to be written down."""


def require_available(what: str, value: str, known: dict[str, bool]) -> None:
    if value not in known:
        raise UsageError(f"there is no {what} '{value}'", f"one of {', '.join(known)}")
    if not known[value]:
        available = ", ".join(name for name, exists in known.items() if exists)
        raise UsageError(f"{what} {value} is not available yet", f"available: {available}")


def search(
    load: Callable[[], Program],
    question: Question,
    on_progress: Callable[[SearchProgress], None] = lambda progress: None,
) -> Answer:
    """Loads the program and answers the question, all of it within the limits; raises what loading raises."""
    started = time.monotonic()
    subject: Subject | None = None
    last = SearchProgress()
    log: list[SearchProgress] = []

    def on_message(message: Subject | SearchProgress) -> None:
        nonlocal subject, last
        if isinstance(message, Subject):
            subject = message
        else:
            last = message
            if question.keeps_history:
                log.append(replace(message, seconds=time.monotonic() - started, executed=(), followed=()))
                if len(log) > _LOGGED:
                    # Of a long search half of it is enough, and so on.
                    del log[1::2]

    def on_tick() -> None:
        on_progress(replace(last, seconds=time.monotonic() - started))

    finished = run_limited(
        partial(_search_here, load, question, started),
        ResourceLimits(question.timeout, question.memory_mb),
        on_message,
        on_tick,
    )
    verdict = finished.result or _cut_short(finished, subject, last, question)
    statistics: Counts = {
        **verdict.statistics,
        "seconds": finished.seconds,
        "cpu_seconds": finished.cpu_seconds,
        "peak_rss_mb": finished.peak_rss_mb,
    }
    if finished.result is None:
        verdict = replace(verdict, executed=last.executed, followed=last.followed)
    return Answer(replace(verdict, statistics=statistics), subject, tuple(log))


def _search_here(load: Callable[[], Program], question: Question, started: float, send: Send) -> Verdict:
    program = load()
    for item in program.spec.properties:
        require_available("property", item.name, PROPERTIES)
    from mcveto.property.attach import attach

    image, targets = program.image, tuple(sorted(program.targets))
    attached = attach(program, question.events)
    program = attached.program
    send(Subject(image.path, image.sha256, targets, program.assumptions, program.notes, attached.names))

    def remaining() -> float:
        return math.inf if question.timeout is None else question.timeout - (time.monotonic() - started)

    if question.engine.startswith("external:"):
        from mcveto.translate.external_tool import verify_externally

        if attached.guarded is not None:
            raise UsageError("memory safety and faults are not translated for other verifiers yet", "use --engine dpg")
        seconds = None if question.timeout is None else remaining()
        return attached.explained(verify_externally(program, question.engine, seconds))
    if question.engine == "portfolio":
        from mcveto.engines.portfolio import race

        return race(
            program, question, remaining(), lambda entrant, told: _answer(attached, entrant, remaining, told), send
        )
    return _answer(attached, question, remaining, send)


def _answer(attached: Attached, question: Question, remaining: Callable[[], float], send: Send) -> Verdict:
    """The verdict of one engine, in this process, with what supports it."""
    from mcveto.dpg import executed

    program = attached.program
    executed.forget()
    begun = time.monotonic()
    told = [0.0]

    owner = os.getpid()

    def tell(counts: Counts, frontier: str) -> None:
        now = time.monotonic()
        # A process that was divided off has nobody to tell.
        if now - told[0] >= _REPORT_SECONDS and os.getpid() == owner:
            told[0] = now
            blocks = (executed.executed(), executed.followed()) if question.keeps_history else ((), ())
            send(SearchProgress(counts, frontier, 0.0, *blocks))

    history = None
    if question.keeps_history and question.engine == "dpg":
        from mcveto.dpg.history import History

        history = History()
    from mcveto.crossings import Crossed

    crossed = Crossed()

    def finish(found: Verdict) -> Verdict:
        return _finished(attached, question, remaining, tell, crossed, time.monotonic() - begun, found)

    while True:
        # Accesses that leave their objects are looked into between searches, by this process.
        by_itself = finish if attached.guarded is None and history is None else None
        found = _found(program, question, remaining, tell, history, by_itself)
        other = attached.wider(found.reason) if found.kind == "unknown" else crossed.without(attached, found)
        if other is None or remaining() <= 0:
            break
        attached, program = other, other.program
    if found.is_finished:
        return found
    if history is not None:
        from mcveto.dpg.proof import Proof

        if isinstance(found.proof, Proof):
            history.claim(found.proof)
        found = replace(found, history=history)
    return finish(found)


def _finished(
    attached: Attached,
    question: Question,
    remaining: Callable[[], float],
    tell: Callable[[Counts, str], None],
    crossed: Crossed,
    taken: float,
    found: Verdict,
) -> Verdict:
    """What was found, which took so long, with what supports it: replayed, or checked again."""
    from mcveto.dpg import executed

    program = attached.program
    found = crossed.considered(attached, found)
    verdict = _confirmed(attached, found)
    if question.after_violation and verdict.about == "return-address" and verdict.at is not None:
        from mcveto.dpg.after_violation import explore
        from mcveto.dpg.driver import Limits

        after = explore(program, Limits(seconds=remaining()), question.seed, verdict.at, lambda progress: None)
        verdict = replace(verdict, aftermath=after.lines(verdict.at))
    from mcveto.self_check import supported

    is_second_possible = verdict.kind == "proved" and verdict.found_by != "simulation" and found.history is None
    share = _SHARE_OF_CHECK if is_second_possible and _is_simulated(attached.program, question) else 1.0
    answer = supported(attached, verdict, question, share * remaining(), taken)
    if share < 1 and answer.kind == "unknown" and not answer.is_internal_error and remaining() > 0:
        # An invariant that the checker cannot decide soon: another proof of the same may be simpler.
        from mcveto.engines.simulation.by_turns import simulate_twice

        second = simulate_twice(attached.program, remaining(), tell, question.certificate)
        if second.kind == "proved":
            second = crossed.considered(attached, replace(second, found_by="simulation"))
            answer = supported(attached, second, question, remaining(), taken)
    answer = attached.explained(answer)
    return replace(answer, executed=executed.executed(), followed=executed.followed())


def _is_simulated(program: Program, question: Question) -> bool:
    """Whether the simulation is one of the engines that are asked, and there is enough code for it."""
    from mcveto.engines.simulation.size import SMALL, is_large

    return _is_auto(question) and question.alongside and is_large(program, SMALL)


def _is_auto(question: Question) -> bool:
    return question.engine == "dpg" and question.strategy == "auto" and question.fold == "auto"


def _found(
    program: Program,
    question: Question,
    remaining: Callable[[], float],
    tell: Callable[[Counts, str], None],
    history: History | None = None,
    finish: Callable[[Verdict], Verdict] | None = None,
) -> Verdict:
    """What is found; large programs are simulated first."""
    is_auto = _is_auto(question)
    if is_auto or question.engine == "cegar":
        from mcveto.engines.simulation.size import VERY_LARGE, is_large

        is_very_large = is_large(program, VERY_LARGE)
        if is_very_large or (is_auto and is_large(program)):
            verdict = _of_large_code(program, question, remaining, tell, is_very_large)
            if verdict is not None:
                return verdict
        elif question.engine == "cegar" and is_large(program):
            return _cegar_then_simulation(program, question, remaining, tell)
    return _engine(program, question, remaining, tell, history, finish)


def _of_large_code(
    program: Program,
    question: Question,
    remaining: Callable[[], float],
    tell: Callable[[Counts, str], None],
    is_very_large: bool,
) -> Verdict | None:
    """What a simulation finds, or random runs before it, beside it and after it."""
    from mcveto.dpg.auto_ends import Decided
    from mcveto.engines.runs_beside import RunsBeside
    from mcveto.engines.simulation.by_turns import simulate_twice
    from mcveto.engines.simulation.simulate import simulate

    share = _SHARE_IF_VERY_LARGE if is_very_large else _SHARE_OF_SIMULATION
    # The certificate of very large code would be too long for anybody who does not ask for it.
    simulated = simulate if is_very_large else simulate_twice
    if not _is_auto(question):
        verdict = simulated(program, share * remaining(), tell, question.certificate)
        return replace(verdict, found_by="simulation") if verdict.kind != "unknown" else None
    from mcveto.engines.alongside import glance

    # They begin while this process holds little; what it finds itself in a moment is found the same way each time.
    with RunsBeside(program, remaining(), question.seed, question.memory_mb) as runs:
        found = glance(program, min(_LONGEST_GLANCE, _SHARE_OF_GLANCE * remaining()), tell)
        if found is None and not runs.are_running:
            found = _by_runs(program, question.seed, min(_LONGEST_FIRST_RUNS, _SHARE_OF_RUNS * remaining()), tell)
        if found is not None:
            return found
        try:
            verdict = simulated(program, share * remaining(), runs.watched(tell), question.certificate)
        except Decided as decided:
            return decided.verdict
        if verdict.kind != "unknown":
            return replace(verdict, found_by="simulation")
        rest = _SHARE_OF_LAST_RUNS_IF_VERY_LARGE if is_very_large else _SHARE_OF_LAST_RUNS
        if runs.are_running:
            return runs.look(min(rest * remaining(), LONGEST_RUNS))
        return _by_runs(program, question.seed + 1, rest * remaining(), tell)


def _by_runs(program: Program, seed: int, seconds: float, tell: Callable[[Counts, str], None]) -> Verdict | None:
    """A violation that a random run shows: what happens on many ways is found sooner so than by any thought."""
    from mcveto.engines.random_runs import random_runs

    verdict = random_runs(program, min(seconds, LONGEST_RUNS), seed, tell)
    return replace(verdict, found_by="runs") if verdict.kind == "violated" else None


def _cegar_then_simulation(
    program: Program, question: Question, remaining: Callable[[], float], tell: Callable[[Counts, str], None]
) -> Verdict:
    """Where predicates do not suffice for large code in a part of the time, the rest is for a simulation."""
    from mcveto.engines.simulation.simulate import simulate

    end = time.monotonic() + min(_SHARE_OF_CEGAR * remaining(), _LONGEST_CEGAR)
    verdict = _engine(program, question, lambda: end - time.monotonic(), tell)
    if verdict.kind != "unknown" or remaining() <= 0:
        return verdict
    other = simulate(program, _SHARE_IF_VERY_LARGE * remaining(), tell)
    return replace(other, found_by="simulation") if other.kind != "unknown" else verdict


def _engine(
    program: Program,
    question: Question,
    remaining: Callable[[], float],
    tell: Callable[[Counts, str], None],
    history: History | None = None,
    finish: Callable[[Verdict], Verdict] | None = None,
) -> Verdict:
    """What the engine that was asked for finds; with `finish`, partners of the default one may have a process of their
    own, which does that with what they find."""
    if question.engine == "symex":
        from mcveto.engines.symex import symex

        return symex(program, remaining(), tell, question.merge)
    if question.engine == "runs":
        from mcveto.engines.random_runs import random_runs

        return random_runs(program, min(remaining(), LONGEST_RUNS), question.seed, tell)
    if question.engine == "simulation":
        from mcveto.engines.simulation.simulate import simulate

        return simulate(program, remaining(), tell)
    if question.engine == "bmc":
        from mcveto.engines.bmc import bmc

        return bmc(program, remaining(), tell, question.unwind)
    if question.engine == "cegar":
        from mcveto.engines.cegar.engine import cegar
        from mcveto.engines.cegar.treatment import Treatment

        treatment = Treatment(question.bitwise)
        return cegar(program, remaining(), tell, treatment, question.seed, must_recheck=not question.self_check)
    counted: Counts = {}
    turns: Callable[[float | None], Verdict | None] | None = None
    apart: Apart | None = None
    if question.strategy == "auto" and question.fold != "pc" and question.alongside:
        from mcveto.engines.alongside import Alongside, is_final

        def report_turn(counts: Counts, place: str) -> None:
            tell({**counts, **{name: count for name, count in counted.items() if count}}, place)

        # Much is decided by the first turn; then nothing else needs to be loaded.
        alongside = Alongside(
            program, remaining(), report_turn, not question.self_check, must_record=question.certificate
        )
        if history is None:
            decided = alongside.turn(None)
            if is_final(decided, question.certificate):
                assert decided is not None
                return decided
            turns = alongside.after(decided)
            if finish is not None:
                from mcveto.engines.second_process import Apart

                turns = apart = Apart(alongside, turns, finish, remaining, question.memory_mb)
        else:
            turns = alongside.turn
    from mcveto.dpg.auto_ends import Decided
    from mcveto.dpg.driver import Limits, Method, Progress
    from mcveto.dpg.fold_policy import run_with_fold
    from mcveto.dpg.frontiers import FrontierChoice
    from mcveto.engines.alongside import is_final

    def report(progress: Progress) -> None:
        counted.update(progress.statistics())
        tell(counted, progress.frontier)
        if apart is not None and (answer := apart.look()) is not None and is_final(answer, question.certificate):
            raise Decided(answer)

    report(Progress())
    single_steps = question.steps == "instruction"
    method = Method(
        frontier=FrontierChoice(question.frontier),
        closest=question.closest,
        symbolic_aliasing=question.aliasing == "symbolic",
    )

    def by_splitting(limits: Limits, is_recursive: bool = False) -> Verdict:
        fold = "pc" if is_recursive and question.fold == "auto" else question.fold
        return run_with_fold(program, fold, limits, question.seed, single_steps, report, method, history)

    limits = Limits(seconds=remaining())
    if question.strategy == "auto" and question.fold != "pc":
        from mcveto.dpg.auto_driver import AutoDriver

        def by_summaries(seconds: float) -> Verdict | None:
            from mcveto.dpg.summaries.prove import verdict_by_summaries

            return verdict_by_summaries(program, min(SUMMARIES_SHARE * seconds, LONGEST_SUMMARIES), question.seed)

        ask = by_summaries if question.fold == "auto" else None
        final = partial(is_final, must_record=question.certificate)
        is_apart = (lambda: apart.is_apart) if apart is not None else (lambda: False)
        driver = AutoDriver(
            program, limits, question.seed, single_steps, report, by_splitting, turns, ask, history, final, is_apart
        )
        try:
            verdict = driver.run()
            if verdict.kind == "unknown" and apart is not None:
                verdict = apart.look(remaining() - _BEFORE_THE_END) or verdict
            return verdict
        except Decided as decided:
            return decided.verdict
        finally:
            if apart is not None:
                apart.close()
    return by_splitting(limits)


def _confirmed(attached: Attached, verdict: Verdict) -> Verdict:
    """A violation is answered only after it was replayed by other means.

    The error states of a typestate property are known to our own machines only; forbidden accesses and faults are
    judged by a monitor, on the program without guards."""
    if verdict.kind != "violated" or verdict.at in attached.errors:
        return verdict
    from mcveto.check.replay import confirmed

    if attached.guarded is not None and verdict.at in attached.guarded.errors:
        # Which of the two it is, the monitor says.
        verdict = replace(verdict, about="memory-safety")
    return confirmed(attached.plain, verdict)


def _cut_short(
    finished: Finished[Verdict], subject: Subject | None, last: SearchProgress, question: Question
) -> Verdict:
    end = finished.end
    reason = end.value
    if end is End.MEMORY:
        reason = f"memory limit of {question.memory_mb} MB" if question.memory_mb is not None else "out of memory"
    elif end is End.CRASHED:
        reason = f"internal error: {finished.detail}"
    elif finished.detail:
        reason = finished.detail
    return Verdict(
        "unknown",
        reason=reason,
        assumptions=subject.assumptions if subject is not None else (),
        statistics=last.counts,
        is_internal_error=end is End.CRASHED,
    )
