"""One campaign in several processes: seeds are dealt out in batches, and the counts of the batches are added up.

A batch is a hundred programs or so in a process of its own, so that nothing a program leaves behind reaches those after
it, and so that what was counted is there whenever the campaign ends: by time, by number or by hand.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context

from .campaign import Counts, Wrong, minimal, run_campaign, save
from .generate import ISAS
from .items import to_text

BATCH = 120


@dataclass(frozen=True)
class Plan:
    """What to ask, how often and for how long."""

    first: int
    programs: int | None
    seconds: float
    limit: float
    per_program: int
    isas: tuple[str, ...] = ISAS
    jobs: int = 1

    def batches(self) -> Iterator[range]:
        """The seeds in their order; a batch of 120 has each of six instruction sets equally often."""
        last = None if self.programs is None else self.first + self.programs
        for start in itertools.count(self.first, BATCH):
            if last is not None and start >= last:
                return
            yield range(start, start + BATCH if last is None else min(start + BATCH, last))


def run_plan(plan: Plan, on_progress: Callable[[Counts], None] = lambda counts: None) -> Counts:
    """The counts of every batch that was finished; a batch under way when time is up counts as far as it came."""
    counts = Counts()
    started = time.monotonic()
    batches = plan.batches()
    # Fresh processes, not copies: a copy would share open solvers with its parent.
    with ProcessPoolExecutor(plan.jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        waiting: set[Future[Counts]] = set()
        try:
            while True:
                remaining = plan.seconds - (time.monotonic() - started)
                while remaining > 0 and len(waiting) < plan.jobs and (batch := next(batches, None)) is not None:
                    waiting.add(pool.submit(_run_batch, batch, plan, remaining))
                if not waiting:
                    return counts
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    counts.add(future.result())
                on_progress(counts)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            return counts


def _run_batch(seeds: range, plan: Plan, remaining: float) -> Counts:
    return run_campaign(
        iter(seeds),
        isas=plan.isas,
        seconds=plan.limit,
        per_program=plan.per_program,
        until=time.monotonic() + remaining,
        on_wrong=lambda wrong: _report(wrong, plan.limit),
    )


def _report(wrong: Wrong, limit: float) -> None:
    answered = wrong.answered
    print(f"WRONG: {wrong.program.isa} seed {wrong.seed} {'/'.join(answered.choice)}: {answered.wrong}", flush=True)
    smallest = minimal(wrong, 4 * limit)
    print(f"  {save(smallest, wrong)}")
    for line in to_text(smallest.items):
        print(f"    {line}", flush=True)
