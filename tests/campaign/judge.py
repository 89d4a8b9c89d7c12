"""Every verdict on a random program against the truth.

PROVED is wrong if some input violates a property. VIOLATED is wrong if its inputs, run in the reference emulator and
in Unicorn, do not violate what it says; or if they use only inputs of the spec and the truth, being complete, knows no
such violation. UNKNOWN is never wrong; crashes are counted by themselves.

A verdict may also rest on values that a program does not fix (a register at entry, a flag that the manual leaves
undefined). Random programs fix what they use, but not always: then the replay decides.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from importlib import import_module
from itertools import islice

from mcveto.check.counterexample import Counterexample, counterexample_of
from mcveto.check.lockstep import follow
from mcveto.check.reference_run import ReferenceRun, Violation, first_violation
from mcveto.check.replay import replay
from mcveto.check.unicorn_follower import UnicornFollower
from mcveto.dpg.violation_inputs import MEETS_UNDEFINED, RESTS_ON_UNDEFINED
from mcveto.program.program import Program
from mcveto.search import ALIASINGS, ENGINES, FOLDS, FRONTIERS, STEPS, STRATEGIES, Question, search
from mcveto.verdict import Verdict, VerdictInput

from .truth import MAX_STEPS, Executor, Truth, all_runs

Choice = tuple[str, ...]
# Which of the choices an engine makes use of; asking the others again would only repeat an answer.
_DPG = "dpg"
_USUAL = ("auto", "auto", "block", "path", "witness")


def choices() -> list[Choice]:
    """(engine, strategy, fold, steps, frontier, aliasing): what exists in this version.

    Frontiers and aliasing matter to the paper's strategy alone; they are varied by themselves, not with the rest.
    """
    found: list[Choice] = []
    for engine in (name for name, exists in ENGINES.items() if exists):
        if engine != _DPG:
            found.append((engine, *_USUAL))
            continue
        found += [
            (engine, strategy, fold, steps, *_USUAL[3:])
            for strategy, there in STRATEGIES.items()
            for fold, too in FOLDS.items()
            for steps, also in STEPS.items()
            if there and too and also
        ]
        found += [
            (engine, "paper", *_USUAL[1:3], frontier, aliasing)
            for frontier in FRONTIERS
            for aliasing in ALIASINGS
            if (frontier, aliasing) != _USUAL[3:]
        ]
    return found


@dataclass(frozen=True)
class Answered:
    """A verdict and what is wrong with it, if anything."""

    choice: Choice
    verdict: Verdict
    wrong: str = ""
    rests_on_unspecified: bool = False


def prepare() -> None:
    """Imports what every search needs, so that its child process finds it done."""
    for name in (
        "dpg.auto_driver",
        "dpg.fold_policy",
        "dpg.frontiers",
        "check.replay",
        "check.native_follower",
        "logic.solver.bitwuzla_backend",
    ):
        import_module(f"mcveto.{name}")
    for name in ("bitwuzla", "z3"):
        import_module(name)


def ask(program: Program, choice: Choice, seconds: float, seed: int = 0) -> Verdict:
    engine, strategy, fold, steps, frontier, aliasing = choice
    question = Question(engine, strategy, fold, steps, timeout=seconds, seed=seed, frontier=frontier, aliasing=aliasing)
    return search(lambda: program, question).verdict


def judge(program: Program, truth: Truth, choice: Choice, verdict: Verdict) -> Answered:
    if verdict.kind == "proved":
        wrong = f"PROVED, but {_shown(truth)}" if truth.is_violated else ""
        return Answered(choice, verdict, wrong)
    if verdict.kind != "violated":
        return Answered(choice, verdict)
    example = counterexample_of(verdict)
    rests_on_undefined = bool(example.undefined or {RESTS_ON_UNDEFINED, MEETS_UNDEFINED} & set(verdict.warnings))
    unspecified = bool(example.registers or example.memory or rests_on_undefined)
    repeated = replay(program, example, max_steps=100_000)
    wrong = ""
    if not repeated.confirmed:
        wrong = f"{verdict.headline} {_values(example)} is not confirmed: {repeated.problem}"
    elif not unspecified and truth.complete and verdict.about not in truth.violations:
        wrong = f"{verdict.headline} {_values(example)}, but no input does that ({_shown(truth)})"
    return Answered(choice, verdict, wrong, unspecified)


def _values(example: Counterexample) -> str:
    return f"with inputs {example.values}"


def _shown(truth: Truth) -> str:
    if not truth.violations:
        return f"all {truth.runs} inputs are harmless"
    return " and ".join(f"inputs {inputs} violate {about}" for about, inputs in sorted(truth.violations.items()))


def check_truth(program: Program, rng: random.Random, runs: int) -> str:
    """Repeats a share of the exhaustive runs in the reference emulator; what they disagree about, if anything.

    Values that the manual leaves undefined can make the two differ rightfully, and the emulator refuses what it was
    not checked for: such runs are left out.
    """
    results = list(islice(all_runs(program, Executor(program)), 5000))
    for inputs, expected in rng.sample(results, min(runs, len(results))):
        if expected.kind not in ("reach", "return-address", "halt", "fault"):
            continue
        example = Counterexample("reach", tuple(VerdictInput(value, 8, "input") for value in inputs))
        run = ReferenceRun(program, example)
        undefined = False
        found: Violation | str | None = None
        while found is None and run.steps <= MAX_STEPS:
            found = run.violation()
            if found is None:
                step = run.step()
                undefined |= run.chose_undefined
                found = step if isinstance(step, str) else run.violated_by(step)
        kind = found.about if isinstance(found, Violation) else "none"
        wanted = expected.kind if expected.kind in ("reach", "return-address") else "none"
        is_refused = isinstance(found, str) and "unsupported" in found
        if kind != wanted and not undefined and not is_refused:
            return f"inputs {inputs}: Unicorn says {expected.kind}, the reference emulator {found}"
    return ""


def lockstep_difference(program: Program, inputs: list[int], about: str) -> str:
    """The first difference between reference emulator and Unicorn on a violating run; empty if they agree."""
    example = Counterexample(about, tuple(VerdictInput(value, 8, "input") for value in inputs))
    found = first_violation(ReferenceRun(program, example), MAX_STEPS)
    if isinstance(found, str):
        return found
    comparison = follow(program, example, (), found, UnicornFollower(program))
    return "" if comparison.agrees or comparison.skipped else str(comparison)
