"""Proofs of programs whose recursion has no bound: summaries of procedures, found and checked.

The claim is of the kind Hoare gave for recursive procedures ("Procedures and parameters: an axiomatic approach", 1971):
an activation that begins as its procedure requires, if it returns, returns as its procedure ensures, assuming the same
of all activations within it. It is partial correctness: a recursion that never returns or is too deep for the stack (a
fault) needs no proof. In the terms of TR1669 §3.5 these are summary edges of a nested word automaton whose predicates
relate a return to its call; there nothing about the code is assumed either: that a function returns where it was called
from, with the stack pointer and registers its caller goes on with, is claimed and proved like the rest.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mcveto.dpg.evidence import Evidence
from mcveto.dpg.strengthen.queries import OutOfTime
from mcveto.dpg.summaries import candidates
from mcveto.dpg.summaries.directed_inputs import inputs_into
from mcveto.dpg.summaries.houdini import Houdini
from mcveto.dpg.summaries.live import live_registers
from mcveto.dpg.summaries.paths import End, NotApplicable, Path, Paths
from mcveto.dpg.summaries.samples import Sampler, random_inputs
from mcveto.dpg.summaries.state import Names
from mcveto.dpg.summaries.summary import ProcedureClaims, ProcedureProof, Summary
from mcveto.dpg.summaries.tables import Signature, Tables
from mcveto.dpg.summaries.violation import violated_by
from mcveto.logic.solver import make_solver
from mcveto.logic.terms import Term
from mcveto.machine.faults import Unsupported
from mcveto.program.program import Program
from mcveto.verdict import Verdict

RUNS = 40
RUN_STEPS = 800
ALL_STEPS = 16000
SEEDS = 4
MODELS = 3
MODEL_ROUNDS = 12
MODEL_SECONDS = 5.0
LONG_RUN = 300_000
PRUNE_SECONDS = 0.3
# How many times the seconds there are it may take by the time of day, on a machine that is busy.
LONGEST_WAITING = 2.0


@dataclass
class Found:
    """What a proof consists of, or what is left open."""

    paths: dict[int | None, list[Path]]
    summaries: dict[int, Summary]
    open_ends: Sequence[Path]
    evidence: Evidence
    solver_calls: int = 0
    violation: Verdict | None = None


def verdict_by_summaries(program: Program, seconds: float, seed: int = 0) -> Verdict | None:
    """PROVED with its proof, which nobody has checked yet, or VIOLATED by a run; UNKNOWN if that takes more than so
    many seconds of processor time (or too long by the time of day); None if summaries do not decide."""
    if program.image.format == "while" or program.spec.models or program.image.import_area is not None:
        return None
    if any(item.name not in ("reach", "return-address") for item in program.spec.properties):
        return None
    started, worked = time.monotonic(), time.process_time()

    def remaining() -> float:
        return min(seconds - (time.process_time() - worked), seconds * LONGEST_WAITING - (time.monotonic() - started))

    try:
        found = prove(program, remaining, seed)
    except (NotApplicable, Unsupported):
        return None
    except OutOfTime:
        return Verdict("unknown", reason="time-out")
    if found.violation is not None or found.open_ends:
        return found.violation
    claims = tuple(
        ProcedureClaims(
            pc, tuple(found.summaries[pc].requires), tuple(found.summaries[pc].ensures), found.summaries[pc].frame
        )
        for pc in found.paths
        if pc is not None
    )
    lemmas = sum(len(item.requires) + len(item.ensures) for item in claims)
    statistics: dict[str, float | int] = {
        "seconds": round(time.monotonic() - started, 3),
        "concrete_runs": sum(found.evidence.endings.values()),
        "lemmas": lemmas,
        "solver_calls": found.solver_calls,
        "locations": len(found.paths),
    }
    return Verdict(
        "proved",
        assumptions=program.assumptions,
        statistics=statistics,
        proof=ProcedureProof(claims),
        evidence=found.evidence,
    )


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
    names.registers = live_registers(names, paths).registers(names)
    vocabulary = candidates.Vocabulary(names, paths)
    sampler = Sampler(program, procedures, vocabulary.cells())
    bits = max([call.bits for call in program.spec.input_calls], default=8)
    interesting = sorted(n for n in vocabulary.numbers if abs(n) < 1 << 16)
    directed = inputs_into(paths[None], pruning, lambda: min(PRUNE_SECONDS, max(0.01, remaining())))
    for number in range(RUNS):
        inputs = random_inputs(number, seed, interesting, bits)
        if number % 2 == 0 and directed:
            first = directed.pop(0)
            inputs = [*first, *inputs[len(first) :]]
        sampler.run(inputs, RUN_STEPS, seed + number % SEEDS)
        if sampler.violating:
            violation = violated_by(program, sampler.violating[-1], RUN_STEPS)
            if violation is not None:
                return Found(paths, {}, (), sampler.evidence(), violation=violation)
        if sampler.steps > ALL_STEPS:
            break
    summaries = {pc: candidates.convention(names, sampler.observed[pc], vocabulary, pc) for pc in procedures}
    while True:
        paths = Paths(program, names, feasible, summaries).all()
        vocabulary = candidates.Vocabulary(names, paths)
        houdini = Houdini(program, names, [path for found in paths.values() for path in found], remaining)
        if houdini.filter(summaries):
            break
    found = Found(paths, summaries, houdini.open_ends(summaries), sampler.evidence())
    conventions = {pc: dict(summary.ensures) for pc, summary in summaries.items()}
    stages = (candidates.relations,), (candidates.relations, candidates.by_condition), (candidates.by_argument,)
    for stage in stages:
        if not found.open_ends or found.violation is not None:
            break
        for pc, kind in itertools.product(procedures, stage):
            # What was not inductive alone may be beside what a condition decides of other procedures.
            more = kind(names, vocabulary, sampler.observed[pc], pc, summaries[pc])
            summaries[pc].requires.update(more.requires)
            summaries[pc].ensures.update(more.ensures)
        houdini.filter(summaries)
        found.open_ends = houdini.open_ends(summaries)
        if found.open_ends:
            found.violation = _violation(program, houdini, summaries, remaining)
        if found.open_ends and found.violation is None and candidates.relations in stage:
            _multiply(names, houdini, found, conventions, vocabulary, sampler)
    if found.open_ends and found.violation is None:
        everything = {pc: dict(summary.ensures) for pc, summary in summaries.items()}
        # A table alone is a shorter proof than one beside all that is known, and so is one with few columns.
        for kept, is_short in ((conventions, True), (conventions, False), (everything, False)):
            if found.open_ends:
                for pc, summary in summaries.items():
                    summary.ensures = dict(kept[pc])
                signatures = candidates.signatures(names, vocabulary, sampler.observed, found.paths, is_short)
                _tabulate(names, houdini, found, signatures, sampler, remaining)
    if not found.open_ends:
        houdini.reduce(summaries)
    found.solver_calls = sum(question.count for question in houdini.questions)
    return found


def _multiply(
    names: Names,
    houdini: Houdini,
    found: Found,
    conventions: Mapping[int, dict[Term, None]],
    vocabulary: candidates.Vocabulary,
    sampler: Sampler,
) -> None:
    """Claims that results are products, without all else that is known of results: bounds of products are true, and
    take a checker long."""
    summaries = found.summaries
    more = {
        pc: candidates.by_product(names, vocabulary, sampler.observed[pc], pc, summaries[pc]).ensures
        for pc in summaries
    }
    if not any(more.values()):
        return
    before = {pc: dict(summary.ensures) for pc, summary in summaries.items()}
    for pc, summary in summaries.items():
        summary.ensures = {**conventions[pc], **more[pc]}
    houdini.filter(summaries)
    found.open_ends = houdini.open_ends(summaries)
    if found.open_ends:
        for pc, summary in summaries.items():
            summary.ensures.update(before[pc])
        houdini.filter(summaries)
        found.open_ends = houdini.open_ends(summaries)


def _tabulate(
    names: Names,
    houdini: Houdini,
    found: Found,
    signatures: dict[int, Signature],
    sampler: Sampler,
    remaining: Callable[[], float],
) -> None:
    """Rows of tables for the arguments that activations began with, then for those that open ends still speak of."""
    summaries = found.summaries
    tables = Tables(names, found.paths, summaries, signatures)
    seen = {
        (pc, key) for pc, made in sampler.observed.items() for item in made.samples if (key := signatures[pc].key(item))
    }
    wanted = sorted(seen)
    for _ in range(MODEL_ROUNDS):
        before = len(tables.rows)
        tables.fill(wanted)
        if 2 * len(tables.rows) < len(seen):
            return  # What runs did is not computed: something that decides is no column.
        if len(tables.rows) == before or not found.open_ends or remaining() <= 0:
            return
        for pc, summary in summaries.items():
            summary.ensures.update(dict.fromkeys(tables.claims(pc)))
        houdini.filter(summaries)
        found.open_ends = houdini.open_ends(summaries)
        arguments = {pc: signature.arguments for pc, signature in signatures.items()}
        wanted = []
        for question in houdini.questions:
            if question.path in found.open_ends:
                wanted += question.activations(summaries, arguments, max(0.01, min(MODEL_SECONDS, remaining())))


def _violation(
    program: Program,
    houdini: Houdini,
    summaries: dict[int, Summary],
    remaining: Callable[[], float],
) -> Verdict | None:
    """A violation by inputs that the open ends of the program's own paths suggest."""
    for question in houdini.questions:
        tried: list[list[int]] = []
        while question.path.procedure is None and question.path.end is End.BAD and len(tried) < MODELS:
            seconds = min(MODEL_SECONDS, remaining())
            inputs = question.inputs(summaries, tried, seconds) if seconds > 0 else None
            if inputs is None:
                break
            tried.append(inputs)
            found = violated_by(program, inputs, LONG_RUN)
            if found is not None:
                return found
    return None
