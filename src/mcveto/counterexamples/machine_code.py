"""All counterexamples of a binary: those of its pushdown model, each tried on the program.

The model over-approximates data (see `extraction`), so a trace counts only once an input takes the program along it, in
symbolic execution and again in the emulator. Traces of the model that differ only behind the error are one. Where
traces to an error stay undecided (an input may decide how often a loop is gone round) and none was confirmed, directed
proof generation is asked whether that error is reached at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mcveto.counterexamples.along_trace import Configuration, Surroundings
from mcveto.counterexamples.entry_values import Confirmed
from mcveto.counterexamples.extraction import Extracted, extract
from mcveto.counterexamples.feasible import Dies, Follower, NeverReached, Open, Outcome
from mcveto.counterexamples.finder import Enough, Found, Request, find_counterexamples
from mcveto.counterexamples.model import Model
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.run_to_witness import witness_of
from mcveto.counterexamples.trace import Witness
from mcveto.program.program import Program
from mcveto.property.ghost import Bindings, Watched, watch
from mcveto.property.typestate import Typestate

PROOF_SECONDS = 60.0
MAX_TRIED = 2_000
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
) -> MachineFound:
    """Traces are tried, shortest first, until as many as requested run. `report` is told how many were tried, and how
    many are wanted. Raises UsageError."""
    deadline = time.monotonic() + seconds
    watched = watch(program, automaton, bindings)
    extracted = extract(program, automaton, watched.events, watched.system_calls)
    follower = Follower(watched.program, Surroundings(extracted.model, extracted.addresses), deadline)
    tried: list[Tried] = []
    seen: set[tuple[Configuration, ...]] = set()
    dead = DeadPrefixes()
    started = time.monotonic()

    def trace_of(witness: Witness) -> tuple[Configuration, ...]:
        return tuple(tuple(extracted.addresses[name] for name in witness.stack(at)) for at in range(len(witness)))

    def runs(witness: Witness) -> bool:
        trace = trace_of(witness)
        if trace in seen:
            return False
        if len(tried) >= MAX_TRIED:
            raise Enough(f"only {MAX_TRIED} traces were tried")
        has_run = any(isinstance(item.outcome, Confirmed) for item in tried)
        if time.monotonic() > (deadline if has_run else started + TRYING * seconds):
            raise Enough(f"traces were tried for {time.monotonic() - started:.0f} seconds")
        report(len(tried), request.count)
        seen.add(trace)
        outcome = dead.find(trace) or follower.follow(trace)
        dead.add(trace, outcome)
        tried.append(Tried(witness, outcome))
        return isinstance(outcome, Confirmed)

    found = find_counterexamples(extracted.model, extracted.automaton, request, runs)
    if not tried:
        # Every trace needs recursion that counts as unnecessary; the shortest one is tried nevertheless.
        for witness in found.witnesses:
            runs(witness)
    for pending in MORE_RECURSION if request.recursion is None and has_recursion(extracted.model) else ():
        # What the automaton does not need, data may.
        if any(isinstance(item.outcome, Confirmed) for item in tried) or not found.is_violated:
            break
        deeper = find_counterexamples(extracted.model, extracted.automaton, replace(request, recursion=pending), runs)
        note = f"no trace without unnecessary recursion runs; these have up to {pending} pending calls of a kind"
        found = replace(deeper, notes=(*deeper.notes, note))
    targets = dict(zip(automaton.errors, watched.errors, strict=True))
    decided = _decided(watched.program, targets, tried, deadline, follower)
    has_run = any(isinstance(item.outcome, Confirmed) for item in decided)
    if found.is_violated and not found.is_exhaustive and not has_run:
        # Some of the traces that nobody came to may run; if so, an input shows one.
        for target in targets.values():
            if not follower.seen.kept:
                _is_reached(watched.program, target, deadline, follower)
    confirmed = list(_seen(decided, follower, trace_of))
    confirmed += _others(
        found.product, extracted, follower, {error: name for name, error in targets.items()}, confirmed
    )
    return MachineFound(found, extracted, tuple(confirmed), watched)


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


def _others(
    product: Product, extracted: Extracted, follower: Follower, errors: dict[int, str], tried: Sequence[Tried]
) -> Iterator[Tried]:
    """Where no trace that was tried runs: what other runs to an error show."""
    if any(isinstance(item.outcome, Confirmed) for item in tried):
        return
    known = set()
    for seen in follower.seen.kept:
        witness = witness_of(product, extracted, seen.passed, errors[seen.confirmed.error])
        if witness is not None and witness.key not in known:
            known.add(witness.key)
            yield Tried(witness, seen.confirmed)


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
