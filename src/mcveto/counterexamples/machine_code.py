"""All counterexamples of a binary: those of its pushdown model, each tried on the program.

The model over-approximates data (see `extraction`), so a trace counts only once an input takes the program along it, in
symbolic execution and again in the emulator. Traces of the model that differ only behind the error are one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mcveto.counterexamples.along_trace import Configuration, Surroundings
from mcveto.counterexamples.extraction import Extracted, extract
from mcveto.counterexamples.feasible import Confirmed, Follower, Open, Outcome
from mcveto.counterexamples.finder import Found, Request, find_counterexamples
from mcveto.counterexamples.trace import Witness
from mcveto.program.program import Program
from mcveto.property.ghost import Bindings, watch
from mcveto.property.typestate import Typestate


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
    errors: dict[int, tuple[str, str]]

    @property
    def confirmed(self) -> list[Tried]:
        return [item for item in self.tried if isinstance(item.outcome, Confirmed)]

    @property
    def is_exhaustive(self) -> bool:
        """Whether every minimum-recursion loop-free run that violates the property is among the confirmed ones."""
        found = self.found
        is_open = any(isinstance(item.outcome, Open) for item in self.tried)
        return not is_open and not self.extracted.gaps and not found.more and found.is_exhaustive and not found.notes


def machine_counterexamples(
    program: Program,
    automaton: Typestate,
    bindings: Bindings,
    request: Request,
    seconds: float,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> MachineFound:
    """`report` is told how many of how many traces were tried. Raises UsageError."""
    deadline = time.monotonic() + seconds
    watched = watch(program, automaton, bindings)
    extracted = extract(program, automaton, watched.events)
    found = find_counterexamples(extracted.model, extracted.automaton, request)
    follower = Follower(watched.program, Surroundings(extracted.model, extracted.addresses), deadline)
    tried: list[Tried] = []
    seen: set[tuple[Configuration, ...]] = set()
    for number, witness in enumerate(found.witnesses):
        report(number, len(found.witnesses))
        trace = tuple(tuple(extracted.addresses[name] for name in witness.stack(at)) for at in range(len(witness)))
        if trace not in seen:
            seen.add(trace)
            tried.append(Tried(witness, follower.follow(trace)))
    return MachineFound(found, extracted, tuple(tried), watched.errors)
