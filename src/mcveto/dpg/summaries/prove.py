"""Proofs of programs whose recursion has no bound: summaries of procedures, found and checked.

The claim is of the kind Hoare gave for recursive procedures ("Procedures and parameters: an axiomatic approach",
1971): an activation that begins as its procedure requires, if it returns, returns as its procedure ensures, assuming the
same of all activations within it. It is partial correctness: a recursion that never returns or is too deep for the
stack (a fault) needs no proof. In the terms of TR1669 §3.5 these are summary edges of a nested word automaton whose
predicates relate a return to its call; there nothing about the code is assumed either: that a function returns where
it was called from, with the stack pointer and registers its caller goes on with, is claimed and proved like the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcveto.dpg.summaries import candidates
from mcveto.dpg.summaries.houdini import Houdini
from mcveto.dpg.summaries.paths import NotApplicable, Path, Paths
from mcveto.dpg.summaries.samples import Sampler, random_inputs
from mcveto.dpg.summaries.state import Names
from mcveto.dpg.summaries.summary import Summary
from mcveto.logic import terms as t
from mcveto.logic.solver import make_solver
from mcveto.logic.terms import Term
from mcveto.program.program import Program

RUNS = 40
RUN_STEPS = 800
ALL_STEPS = 16000
SEEDS = 4
PRUNE_SECONDS = 0.3


@dataclass
class Found:
    """What a proof consists of, or what is left open."""

    paths: dict[int | None, list[Path]]
    summaries: dict[int, Summary]
    open_ends: Sequence[Path]


def prove(program: Program, remaining: Callable[[], float], seed: int = 0) -> Found:
    """Raises NotApplicable or OutOfTime."""
    names = Names(program)
    pruning = make_solver()

    def feasible(guard: Sequence[Term], at_entry: bool) -> bool:
        return pruning.check(guard, min(PRUNE_SECONDS, max(0.01, remaining()))) != "unsat"

    paths = Paths(program, names, feasible).all()
    procedures = [pc for pc in paths if pc is not None]
    if not procedures:
        raise NotApplicable("there is no recursion")
    names.registers = candidates.relevant_registers(names, [path for found in paths.values() for path in found])
    vocabulary = candidates.Vocabulary(names, paths)
    sampler = Sampler(program, procedures, vocabulary.cells())
    bits = max([call.bits for call in program.spec.input_calls], default=8)
    interesting = sorted(n for n in vocabulary.numbers if abs(n) < 1 << 16)
    for number in range(RUNS):
        sampler.run(random_inputs(number, seed, interesting, bits), RUN_STEPS, seed + number % SEEDS)
        if sampler.steps > ALL_STEPS:
            break
    summaries = {pc: candidates.convention(names, sampler.observed[pc], vocabulary, pc) for pc in procedures}
    while True:
        paths = Paths(program, names, feasible, summaries).all()
        vocabulary = candidates.Vocabulary(names, paths)
        houdini = Houdini(program, names, [path for found in paths.values() for path in found], remaining)
        if houdini.filter(summaries):
            break
    found = Found(paths, summaries, houdini.open_ends(summaries))
    for stage in (candidates.relations, candidates.by_condition):
        if not found.open_ends:
            break
        for pc in procedures:
            more = stage(names, vocabulary, sampler.observed[pc], pc, summaries[pc])
            summaries[pc].requires.update(more.requires)
            summaries[pc].ensures.update(more.ensures)
        houdini.filter(summaries)
        found.open_ends = houdini.open_ends(summaries)
    return found
