"""All counterexamples of a binary: those of its pushdown model, each tried on the program.

The model over-approximates data (see `extraction`), so a trace counts only once an input takes the program along it, in
symbolic execution and again in the emulator. Traces of the model that differ only behind the error are one. Where
all runs of the program can be explored, the list is read from them, which decides every trace at once (`explored`,
`graph_list`): state machines have few states and very many traces that do not run. Otherwise, where
traces to an error stay undecided (an input may decide how often a loop is gone round) and none was confirmed, directed
proof generation is asked whether that error is reached at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mcveto.counterexamples.along_trace import Configuration, Surroundings
from mcveto.counterexamples.entry_values import Confirmed
from mcveto.counterexamples.explored import Explored
from mcveto.counterexamples.extraction import Extracted, MetTargets, extract
from mcveto.counterexamples.feasible import Dies, Follower, NeverReached, Open, Outcome
from mcveto.counterexamples.finder import Enough, Found, Request, find_counterexamples
from mcveto.counterexamples.graph_list import list_from_graph, make_run
from mcveto.counterexamples.model import Model
from mcveto.counterexamples.run_to_witness import witness_of
from mcveto.counterexamples.trace import Witness
from mcveto.errors import UsageError
from mcveto.program.program import Program
from mcveto.property.ghost import Bindings, Watched, watch
from mcveto.property.typestate import Typestate

PROOF_SECONDS = 60.0
# To prove that an error which an undecided trace leads to is never reached, before anything that takes longer.
QUICK_PROOF = 3.0
# Beyond those to be shown, further ones are listed without being shown, in this share of the time.
MOST_LISTED = 200
LISTING = 0.25
MAX_TRIED = 2_000
# Traces that are tried first, the part of the time for it, and seconds for each of them.
TRIED_QUICKLY, QUICKLY, QUICK_TRACE = 10, 0.05, 2.0
# So much of the time is for exploring all runs, where that was not enough and once more where the rest does not end.
EXPLORING_FIRST, EXPLORING = 0.1, 0.4
# In seconds, enough for most programs with finitely many states; others do not come to an end anyway.
MOST_FIRST, MOST_EXPLORING = 3.0, 12.0
# Traces that are tried, the part of the time for it, or the first undecided one, before exploring goes on.
TRIED_FIRST = 40
TRYING_FIRST = 0.2
MAX_OFFERED, OFFERING = 40, 0.05
# For the list of an exploration that used the time up.
LEAST_LISTING = 10.0
# Traces of the model that are shown to be infeasible where all runs are known, and seconds to find them.
MAX_SHOWN, SHOWING_SECONDS = 40, 5.0
# As long as no trace runs, so much of the time is for trying them; the rest is for `verify`.
TRYING = 0.6
# Pending calls with the same continuation, where traces without unnecessary recursion do not run.
MORE_RECURSION = (2, 3, 5)


@dataclass(frozen=True, slots=True)
class Tried:
    witness: Witness
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class MachineFound:
    found: Found
    """The answer for the model."""
    extracted: Extracted
    tried: tuple[Tried, ...]
    watched: Watched
    """The program with the property's ghost state, in which the traces were tried."""
    is_proved: bool = False
    """Whether it has been proved, by other means, that there is no violation at all."""

    @property
    def errors(self) -> dict[int, tuple[str, str]]:
        """What the targets that stand for errors mean."""
        return self.watched.errors

    @property
    def confirmed(self) -> list[Tried]:
        return [item for item in self.tried if isinstance(item.outcome, Confirmed)]

    @property
    def is_exhaustive(self) -> bool:
        """Whether every minimum-recursion loop-free run that violates the property is among the confirmed ones."""
        if self.is_proved:
            return True
        found = self.found
        is_open = any(isinstance(item.outcome, Open) for item in self.tried)
        return not is_open and not self.extracted.gaps and not found.more and found.is_exhaustive and not found.notes


class DeadPrefixes:
    """Beginnings of traces that no input takes to their end.

    How far runs get along a trace depends only on the configurations up to the first that none of them reaches, so
    every trace that begins in the same way dies in the same place."""

    def __init__(self) -> None:
        self._known: dict[tuple[Configuration, ...], Dies] = {}
        self._lengths: set[int] = set()

    def add(self, trace: tuple[Configuration, ...], outcome: Outcome) -> None:
        if isinstance(outcome, Dies) and outcome.position + 2 <= len(trace):
            self._known[trace[: outcome.position + 2]] = outcome
            self._lengths.add(outcome.position + 2)

    def find(self, trace: tuple[Configuration, ...]) -> Dies | None:
        for length in sorted(self._lengths):
            found = self._known.get(trace[:length]) if length <= len(trace) else None
            if found is not None:
                return found
        return None


def machine_counterexamples(
    program: Program,
    automaton: Typestate,
    bindings: Bindings,
    request: Request,
    seconds: float,
    report: Callable[[int, int], None] = lambda done, total: None,
    most: int = 0,
) -> MachineFound:
    """Traces are tried, shortest first, until as many as requested run, or `most` if that does not take long. `report`
    is told how many were tried, and how many are wanted. Raises UsageError."""
    watched = watch(program, automaton, bindings)
    if program.return_sentinel in watched.events:
        what = ", ".join(watched.events[program.return_sentinel])
        why = "the entry has a computed jump, or goes on in another function"
        raise UsageError(f"where '{what}' happens is not certain: {why}", "watch addresses: reach")
    return _Search(program, automaton, watched, request, seconds, report, most).result()


class _Search:
    def __init__(
        self,
        program: Program,
        automaton: Typestate,
        watched: Watched,
        request: Request,
        seconds: float,
        report: Callable[[int, int], None],
        most: int,
    ) -> None:
        self._wanted = request.count
        self._request = replace(request, count=max(request.count, most))
        self._seconds = seconds
        self._report = report
        self._started = time.monotonic()
        self._deadline = self._started + seconds
        self._watched = watched
        self._targets = dict(zip(automaton.errors, watched.errors, strict=True))
        self._explored = Explored(watched, seconds)
        self._has_begun = self._has_gone_on = False
        self._offered = 0
        self._tried: list[Tried] = []
        self._asked: set[str] = set()
        self._never: set[str] = set()
        """Errors that a proof was looked for of, and those that are never reached."""
        self._untried: list[Witness] = []
        self._traces: set[tuple[Configuration, ...]] = set()
        self._dead = DeadPrefixes()
        self._extracted = extract(program, automaton, watched.events, watched.system_calls)
        if self._extracted.uncertain:
            self._explore()
            if not self._is_explored:
                self._go_on()
            met = MetTargets(self._explored.targets, self._is_explored)
            self._extracted = extract(program, automaton, watched.events, watched.system_calls, met)
        surroundings = Surroundings(self._extracted.model, self._extracted.addresses)
        self._follower = Follower(watched.program, surroundings, self._deadline)
        self._offer_runs()

    def result(self) -> MachineFound:
        extracted, request = self._extracted, self._request
        if self._is_explored:
            limits = replace(request.limits, seconds=SHOWING_SECONDS)
            return self._from_graph(
                find_counterexamples(extracted.model, extracted.automaton, replace(request, limits=limits), self._runs)
            )
        found = find_counterexamples(extracted.model, extracted.automaton, request, self._runs)
        self._prove()
        if found.is_violated and not self._made(found).is_exhaustive and not found.more:
            self._explore()
            self._go_on()
            self._offer_runs()
        if self._is_explored:
            return self._from_graph(found)
        if not self._tried:
            # Every trace needs recursion that counts as unnecessary; the shortest one is tried nevertheless.
            for witness in found.witnesses:
                self._runs(witness)
        for pending in MORE_RECURSION if request.recursion is None and has_recursion(extracted.model) else ():
            # What the automaton does not need, data may.
            if self._has_run or not found.is_violated:
                break
            deeper = find_counterexamples(
                extracted.model, extracted.automaton, replace(request, recursion=pending), self._runs
            )
            note = f"no trace without unnecessary recursion runs; these have up to {pending} pending calls of a kind"
            found = replace(deeper, notes=(*deeper.notes, note))
        self._tried = _decided(self._watched.program, self._targets, self._tried, self._deadline, self._follower)
        is_open = not found.is_exhaustive or bool(extracted.gaps)
        if is_open and not self._has_run:
            # Some of the traces that nobody came to may run; if so, an input shows one.
            for target in self._targets.values():
                if not self._follower.seen.kept:
                    _is_reached(self._watched.program, target, self._deadline, self._follower)
        self._tried = list(_seen(self._tried, self._follower, self._trace_of))
        return self._made(self._add_others(found))

    def _made(self, found: Found) -> MachineFound:
        return MachineFound(found, self._extracted, tuple(self._tried), self._watched)

    @property
    def _confirmed(self) -> list[Tried]:
        return [item for item in self._tried if isinstance(item.outcome, Confirmed)]

    @property
    def _has_run(self) -> bool:
        return bool(self._confirmed)

    @property
    def _is_explored(self) -> bool:
        return self._explored.is_complete

    def _trace_of(self, witness: Witness) -> tuple[Configuration, ...]:
        addresses = self._extracted.addresses
        return tuple(tuple(addresses[name] for name in witness.stack(at)) for at in range(len(witness)))

    def _runs(self, witness: Witness) -> bool:
        """Whether a trace of the model runs; raises Enough."""
        if self._is_explored:
            self._untried.append(witness)
            if len(self._untried) >= MAX_SHOWN:
                raise Enough("all runs are known")
            return False
        trace = self._trace_of(witness)
        if trace in self._traces:
            return False
        tried, elapsed = self._tried, time.monotonic() - self._started
        if not self._has_begun and (len(tried) >= TRIED_QUICKLY or elapsed > QUICKLY * self._seconds):
            self._explore()
            self._offer_runs()
        self._prove()
        if witness.automaton_state(len(witness)) in self._never:
            self._traces.add(trace)
            tried.append(Tried(witness, NeverReached()))
            return False
        is_slow = len(tried) >= TRIED_FIRST or elapsed > TRYING_FIRST * self._seconds
        if is_slow or (tried and isinstance(tried[-1].outcome, Open)):
            self._go_on()
            self._offer_runs()
        if self._is_explored:
            return self._runs(witness)
        if len(tried) >= MAX_TRIED:
            raise Enough(f"only {MAX_TRIED} traces were tried")
        elapsed = time.monotonic() - self._started
        if elapsed > self._seconds * (1 if self._has_run else TRYING):
            raise Enough(f"traces were tried for {elapsed:.0f} seconds")
        if elapsed > LISTING * self._seconds and self._request.count > self._wanted <= len(self._confirmed):
            raise Enough(f"more than {self._wanted} traces were tried for {elapsed:.0f} seconds")
        self._report(len(tried), self._wanted)
        self._traces.add(trace)
        outcome: Outcome | None = self._dead.find(trace)
        if outcome is None and not self._has_begun:
            outcome = self._follower.follow(trace, QUICK_TRACE)
            if isinstance(outcome, Open) and self._is_never(witness):
                outcome = NeverReached()
            if isinstance(outcome, Open):
                self._explore()
                self._offer_runs()
                if self._is_explored:
                    self._untried.append(witness)
                    return False
                outcome = None
        if outcome is None:
            outcome = self._follower.follow(trace)
        self._dead.add(trace, outcome)
        tried.append(Tried(witness, outcome))
        return isinstance(outcome, Confirmed)

    def _prove(self) -> None:
        """Decides undecided traces to errors that are quickly proved to be never reached."""
        for number, item in enumerate(self._tried):
            if isinstance(item.outcome, Open) and self._is_never(item.witness):
                self._tried[number] = Tried(item.witness, NeverReached())

    def _is_never(self, witness: Witness) -> bool:
        """Whether it is known, or quickly proved, that nothing reaches the error which a trace leads to."""
        error = witness.automaton_state(len(witness))
        if error not in self._asked and not self._is_explored:
            self._asked.add(error)
            deadline = min(self._deadline, time.monotonic() + QUICK_PROOF)
            outcome = _is_reached(self._watched.program, self._targets[error], deadline, self._follower)
            if isinstance(outcome, NeverReached):
                self._never.add(error)
        return error in self._never

    # All runs.

    def _explore(self) -> None:
        """Begins to explore, if that was not done yet."""
        if not self._has_begun:
            self._has_begun = True
            self._explored.explore(min(EXPLORING_FIRST * self._seconds, MOST_FIRST))

    def _go_on(self) -> None:
        """Goes on with it, once."""
        if not self._has_gone_on:
            self._has_gone_on = True
            most = max(MOST_EXPLORING, EXPLORING_FIRST * self._seconds / 2)
            self._explored.explore(min(EXPLORING * (self._deadline - time.monotonic()), most))

    def _offer_runs(self) -> None:
        """Runs to an error that the exploration met show traces, also if it was not completed."""
        if self._is_explored:
            return
        until = time.monotonic() + OFFERING * self._seconds
        found = [choices for state in self._explored.states for choices in state.errors.values()]
        for choices in found[self._offered : self._offered + MAX_OFFERED]:
            if time.monotonic() > until:
                break
            self._offered += 1
            make_run(self._follower.seen, choices)

    def _from_graph(self, found: Found) -> MachineFound:
        """The list that the exploration gives; what was tried before is in it, or dies."""
        errors = {target: name for name, target in self._targets.items()}
        deadline = max(self._deadline, time.monotonic() + LEAST_LISTING)
        made = list_from_graph(
            self._explored, self._extracted, found.product, errors, self._request, self._follower, deadline
        )
        listed = {item.trace for item in made.listed}
        tried = [Tried(item.witness, item.outcome) for item in made.listed]
        for item in self._tried:
            trace = self._trace_of(item.witness)
            if trace in listed:
                continue
            outcome = item.outcome
            if isinstance(outcome, Open):
                position, pc = made.traces.farthest(trace)
                outcome = outcome if position == len(trace) - 1 else Dies(position, pc)
            tried.append(Tried(item.witness, outcome))
        for witness in self._untried:
            trace = self._trace_of(witness)
            if trace not in listed and trace not in self._traces:
                self._traces.add(trace)
                position, pc = made.traces.farthest(trace)
                if position < len(trace) - 1:
                    tried.append(Tried(witness, Dies(position, pc)))
        self._tried = tried
        is_all = not made.stopped
        return self._made(replace(found, more=made.more, is_exhaustive=is_all, stopped=made.stopped, notes=()))

    def _add_others(self, found: Found) -> Found:
        """What runs to an error show that follow none of the traces that were tried. Returns what is found then: a run
        that the model does not have means that the model does not have all."""
        errors = {target: name for name, target in self._targets.items()}
        known = {self._trace_of(item.witness) for item in self._confirmed}
        for seen in self._follower.seen.kept:
            if len(known) >= self._request.count:
                break
            witness = witness_of(found.product, self._extracted, seen.passed, errors[seen.confirmed.error])
            if witness is None:
                found = replace(found, is_exhaustive=False, stopped=found.stopped or "a run leaves the model")
            elif self._trace_of(witness) not in known:
                known.add(self._trace_of(witness))
                self._tried.append(Tried(witness, seen.confirmed))
        return found


def has_recursion(model: Model) -> bool:
    """Whether a procedure may be called again before it has returned."""
    following: dict[int, set[int]] = {}
    called: dict[int, set[int]] = {}
    for rule in model.rules():
        following.setdefault(rule.symbol, set()).update(rule.pushed)
        if len(rule.pushed) == 2:
            called.setdefault(rule.symbol, set()).add(rule.pushed[0])
    for caller, entries in called.items():
        reached: set[int] = set()
        worklist = list(entries)
        while worklist:
            symbol = worklist.pop()
            if symbol == caller:
                return True
            if symbol not in reached:
                reached.add(symbol)
                worklist += following.get(symbol, ())
    return False


def _seen(
    tried: Sequence[Tried], follower: Follower, trace_of: Callable[[Witness], tuple[Configuration, ...]]
) -> Iterator[Tried]:
    """The traces, with undecided ones that some run follows, as it turned out meanwhile, confirmed."""
    for item in tried:
        confirmed = follower.seen.find(trace_of(item.witness)) if isinstance(item.outcome, Open) else None
        yield item if confirmed is None else Tried(item.witness, confirmed)


def _decided(
    program: Program, targets: dict[str, int], tried: list[Tried], deadline: float, follower: Follower
) -> list[Tried]:
    """The traces, with undecided ones to errors that are proved to be never reached told apart."""
    errors = [item.witness.automaton_state(len(item.witness)) for item in tried]
    known = {error for error, item in zip(errors, tried, strict=True) if isinstance(item.outcome, Confirmed)}
    answers: dict[str, Outcome] = {}
    result = []
    for error, item in zip(errors, tried, strict=True):
        if isinstance(item.outcome, Open) and error not in known:
            if error not in answers:
                answers[error] = _is_reached(program, targets[error], deadline, follower) or item.outcome
            item = Tried(item.witness, answers[error])
        result.append(item)
    return result


def _is_reached(program: Program, target: int, deadline: float, follower: Follower) -> Outcome | None:
    """Whether an error is reached, all others being the end of a run; None if that is not known."""
    from mcveto.dpg.driver import Limits, Method
    from mcveto.dpg.fold_policy import run_with_fold

    seconds = min(PROOF_SECONDS, deadline - time.monotonic())
    if seconds <= 0:
        return None
    asked = replace(program, targets=frozenset({target}), halts=program.halts | (program.targets - {target}))
    verdict = run_with_fold(asked, "auto", Limits(seconds=seconds), 0, False, lambda progress: None, Method())
    if verdict.kind == "proved":
        return NeverReached()
    if verdict.kind == "violated" and verdict.at == target:
        follower.seen.offer([item.value for item in verdict.inputs])
        values = ", ".join(str(item.value) for item in verdict.inputs)
        return Open(f"verify reaches this error, perhaps on another trace, with inputs {values or 'none'}")
    return None
