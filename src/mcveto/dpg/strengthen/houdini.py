"""Houdini (Flanagan and Leino, FME 2001): the largest inductive subset of candidate invariants.

Candidates of a cut point must follow from those of the source of each step into it. A model of a step that breaks some
refutes all the candidates it breaks at once; what is left when no step has such a model is inductive. A candidate the
solver cannot decide is dropped: fewer candidates are only less useful, never wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcveto.dpg.location import Location
from mcveto.dpg.strengthen.quantified import instances
from mcveto.dpg.strengthen.queries import Model, Unsat
from mcveto.logic import terms as t
from mcveto.logic.terms import Term

if TYPE_CHECKING:
    from mcveto.dpg.strengthen.big_steps import BigStep
    from mcveto.dpg.strengthen.system import System

Candidates = dict[Location, dict[Term, None]]
Rebuild = Callable[[Location, Mapping[Term, None], Location | None], None]
QUERY_SECONDS = 1.0
# For candidates that are asked about one by one: each, and all together.
LONGEST_SECONDS = 3.0
ALL_SECONDS = 8.0


def surviving(
    system: System,
    candidates: Candidates,
    rebuild: Rebuild = lambda cut, kept, source: None,
    background: Candidates | None = None,
) -> Candidates:
    """The inductive part of the candidates relative to `background`; `rebuild` is told what a cut point still has when
    the steps from a source made it lose some, and may change the steps from there."""
    waiting: dict[Location | None, None] = dict.fromkeys(system.sources)
    known = background or {}
    while waiting:
        source = next(iter(waiting))
        del waiting[source]
        lost: dict[Location, None] = {}
        for step in system.steps_from[source]:
            if step.target is None or not candidates.get(step.target):
                continue
            assumed = [] if source is None else list(candidates.get(source, ()))
            fixed = {} if source is None else known.get(source, {})
            broken = _broken(system, step, assumed, fixed, candidates[step.target])
            if broken:
                for candidate in broken:
                    del candidates[step.target][candidate]
                lost[step.target] = None
        for cut in lost:
            rebuild(cut, candidates[cut], source)
            waiting[cut] = None
    return candidates


def _broken(
    system: System, step: BigStep, assumed: list[Term], fixed: Mapping[Term, None], wanted: Mapping[Term, None]
) -> dict[Term, None]:
    """The candidates that the step does not establish."""
    at_entry = step.source is None
    broken: dict[Term, None] = {}
    asked = [*step.guard, *(step.pre(candidate) for candidate in wanted)]
    assumed = [*assumed, *instances([*assumed, *fixed], asked)]
    given = set(assumed) | set(step.guard)
    pending: list[tuple[Term, Term]] = []
    never: list[Term] = []
    for candidate in wanted:
        before = step.pre(candidate)
        if before is t.FALSE:
            never.append(candidate)
        elif before is not t.TRUE and before not in given:
            pending.append((candidate, before))
    if never:
        if system.queries.refutes([*assumed, *step.guard], at_entry, QUERY_SECONDS, step.source, fixed):
            return broken  # a step that cannot be taken breaks nothing
        broken.update(dict.fromkeys(never))
    while pending:
        some = t.bnot(t.conj(before for _, before in pending))
        answer = system.queries.ask([*assumed, *step.guard, some], at_entry, QUERY_SECONDS, step.source, fixed)
        if isinstance(answer, Unsat):
            break
        if isinstance(answer, Model):
            refuted = [item for item in pending if not answer.value(item[1])]
            if refuted:
                broken.update((candidate, None) for candidate, _ in refuted)
                pending = [item for item in pending if item[0] not in broken]
                continue
        # Undecided together: one by one, with more time where they are few, or the others were quick.
        until = time.monotonic() + ALL_SECONDS
        for number, (candidate, before) in enumerate(pending):
            share = (until - time.monotonic()) / (len(pending) - number)
            seconds = max(QUERY_SECONDS / 4, min(LONGEST_SECONDS, share))
            literals = [*assumed, *step.guard, t.bnot(before)]
            if not system.queries.refutes(literals, at_entry, seconds, step.source, fixed):
                broken[candidate] = None
        break
    return broken
