"""The campaign: random programs, their truth, the verdicts on them, and counts per engine and instruction set.

A wrong verdict is shrunk and saved as a file of `tests/regressions`, which `test_regressions` replays from then on.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mcveto.verdict import Verdict

from .generate import ISAS, RandomProgram, random_program
from .items import TooLong, to_text
from .judge import Answered, Choice, ask, check_truth, choices, judge, prepare
from .shrink import shrink
from .subject import program_of
from .truth import MAX_RUNS, Truth, truth_of

REGRESSIONS = Path(__file__).parents[1] / "regressions"
MAX_LOAD = 8.0
Ask = Callable[[Any, Choice, float, int], Verdict]
Known = Callable[[str, int], tuple[RandomProgram, Truth] | None]
"""The program of a seed and the truth about it, where that was found out earlier."""


@dataclass
class Wrong:
    program: RandomProgram
    seed: int
    answered: Answered


@dataclass
class Counts:
    """What happened, by instruction set and by choice."""

    programs: Counter[str] = field(default_factory=Counter)
    truths: Counter[tuple[str, str]] = field(default_factory=Counter)
    verdicts: Counter[tuple[Choice, str, str]] = field(default_factory=Counter)
    flavours: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[Choice, float] = field(default_factory=partial(defaultdict, float))
    crosschecked: int = 0
    disputed: list[str] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Counts what happened elsewhere too."""
        self.programs += other.programs
        self.truths += other.truths
        self.verdicts += other.verdicts
        self.flavours += other.flavours
        self.reasons += other.reasons
        for choice, seconds in other.seconds.items():
            self.seconds[choice] += seconds
        self.crosschecked += other.crosschecked
        self.disputed += other.disputed
        self.wrong += other.wrong

    def lines(self) -> Iterator[str]:
        total = sum(self.programs.values())
        yield f"{total} programs, {sum(self.verdicts.values())} verdicts, {len(self.wrong)} wrong"
        yield f"truth cross-checked in the reference emulator for {self.crosschecked}, disputed {len(self.disputed)}"
        for isa in sorted(self.programs):
            known = ", ".join(f"{count} {kind}" for (name, kind), count in sorted(self.truths.items()) if name == isa)
            yield f"{isa}: {self.programs[isa]} programs ({known})"
        for choice in sorted({key[0] for key in self.verdicts}):
            by_kind = Counter[str]()
            for (which, _, kind), count in self.verdicts.items():
                if which == choice:
                    by_kind[kind] += count
            asked = sum(by_kind.values())
            share = 100 * by_kind["unknown"] / asked
            yield (
                f"{'/'.join(choice)}: {asked} asked, {by_kind['proved']} proved, {by_kind['violated']} violated, "
                f"{by_kind['unknown']} unknown ({share:.1f} %), {by_kind['crash']} crashed, "
                f"{self.seconds[choice] / asked:.2f} s each"
            )
            for isa in sorted(self.programs):
                row = {kind: self.verdicts[choice, isa, kind] for kind in ("proved", "violated", "unknown", "crash")}
                if sum(row.values()):
                    yield f"    {isa}: " + ", ".join(f"{count} {kind}" for kind, count in row.items())
        yield "unknown by feature: " + ", ".join(
            f"{name} {100 * count / max(1, self.flavours[name, 'asked']):.0f} %"
            for (name, kind), count in sorted(self.flavours.items())
            if kind == "unknown"
        )
        for reason, count in self.reasons.most_common(8):
            yield f"    {count} x UNKNOWN({reason})"


def run_campaign(
    seeds: Iterator[int],
    *,
    isas: tuple[str, ...] = ISAS,
    seconds: float = 1.0,
    per_program: int = 2,
    asked: list[Choice] | None = None,
    crosscheck: float = 0.05,
    until: float = float("inf"),
    max_runs: int = MAX_RUNS,
    ask_with: Ask = ask,
    known: Known = lambda isa, seed: None,
    on_wrong: Callable[[Wrong], None] = lambda wrong: None,
) -> Counts:
    """Programs for one seed after the other, the instruction sets in turn, until `until` on the monotonic clock."""
    prepare()
    counts = Counts()
    every = asked if asked is not None else choices()
    for number, seed in enumerate(seeds):
        if time.monotonic() > until:
            break
        isa = isas[number % len(isas)]
        rng = random.Random(f"campaign/{isa}/{seed}")
        found = known(isa, seed)
        if found is not None:
            generated, truth = found
            program = program_of(generated.subject())
            load = os.getloadavg()[0] / (os.cpu_count() or 1)
        else:
            try:
                generated = random_program(isa, seed)
            except TooLong:
                continue
            started, started_cpu = time.monotonic(), time.process_time()
            program = program_of(generated.subject())
            truth = truth_of(program, max_runs)
            load = (time.monotonic() - started) / max(1e-3, time.process_time() - started_cpu)
        _count_program(counts, generated, truth)
        if rng.random() < crosscheck:
            counts.crosschecked += 1
            dispute = check_truth(program, rng, 12)
            if dispute:
                counts.disputed.append(f"{isa} seed {seed}: {dispute}")
                continue
        for choice in rng.sample(every, min(per_program, len(every))):
            started = time.monotonic()
            # On a machine that is busy with other things, the same work takes longer.
            verdict = ask_with(program, choice, seconds * min(max(load, 1.0), MAX_LOAD), 0)
            counts.seconds[choice] += time.monotonic() - started
            answered = judge(program, truth, choice, verdict)
            _count_verdict(counts, generated, answered)
            if answered.wrong:
                wrong = Wrong(generated, seed, answered)
                counts.wrong.append(wrong)
                on_wrong(wrong)
    return counts


def _count_program(counts: Counts, generated: RandomProgram, truth: Truth) -> None:
    counts.programs[generated.isa] += 1
    kind = "violated" if truth.is_violated else "safe" if truth.complete else "open"
    counts.truths[generated.isa, kind] += 1


def _count_verdict(counts: Counts, generated: RandomProgram, answered: Answered) -> None:
    verdict = answered.verdict
    kind = "crash" if verdict.is_internal_error else verdict.kind
    counts.verdicts[answered.choice, generated.isa, kind] += 1
    counts.flavours[generated.flavour, "asked"] += 1
    if kind in ("unknown", "crash"):
        counts.flavours[generated.flavour, "unknown"] += 1
        counts.reasons[_without_addresses(verdict.reason)] += 1


def _without_addresses(reason: str) -> str:
    import re

    return re.sub(r"0x[0-9a-f]+", "…", reason)[:160]


def is_wrong(program: RandomProgram, choice: Choice, seconds: float, ask_with: Ask = ask) -> str:
    """What is wrong with the verdict on a program, or nothing."""
    try:
        loaded = program_of(program.subject())
    except TooLong:
        return ""
    truth = truth_of(loaded)
    return judge(loaded, truth, choice, ask_with(loaded, choice, seconds, 0)).wrong


def minimal(wrong: Wrong, seconds: float, budget: float = 120.0, ask_with: Ask = ask) -> RandomProgram:
    """The shrunk program: wrong in the same way (proved or violated) for the same choice."""
    kind = wrong.answered.verdict.kind

    def still(program: RandomProgram) -> bool:
        found = is_wrong(program, wrong.answered.choice, seconds, ask_with)
        return bool(found) and found.startswith("PROVED") == (kind == "proved")

    return shrink(wrong.program, still, budget)


def save(program: RandomProgram, wrong: Wrong, folder: Path = REGRESSIONS) -> Path:
    """Writes a program as a file that `test_regressions` replays."""
    subject = program.subject()
    truth = truth_of(program_of(subject))
    record = {
        "what": wrong.answered.wrong,
        "choice": list(wrong.answered.choice),
        "seed": wrong.seed,
        "items": to_text(program.items),
        "subject": subject.record(),
        "truth": {"violations": truth.violations, "complete": truth.complete, "runs": truth.runs},
    }
    kind = wrong.answered.verdict.kind
    path = folder / f"{program.isa}-{program.flavour}-{kind}-{wrong.seed}.json"
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path
