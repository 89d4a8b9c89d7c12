"""A race: several engines in processes of their own, under one limit of time and one of memory.

The first definite answer wins and the others are ended. If several are there at the same look, the first in the order
of `entrants` is taken; should they contradict each other, none is. Which engine is first can differ from run to run,
the kind of the verdict cannot (every VIOLATED is replayed, every PROVED checked again).

If the processes together need more memory than allowed, the one that needs most is ended and the others go on.
"""

from __future__ import annotations

import math
import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcveto.limits import POLL_SECONDS, End, ResourceLimits, Send, Watch, start_limited
from mcveto.program.program import Program
from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.search import Question

Answer = Callable[["Question", Send], Verdict]


@dataclass
class _Runner:
    name: str
    watch: Watch
    verdict: Verdict | None = None
    reason: str = ""

    @property
    def is_running(self) -> bool:
        return self.verdict is None and not self.reason


def entrants(question: Question) -> Iterator[tuple[str, Question]]:
    """Who takes part, in the order in which simultaneous answers are taken."""
    yield "runs", replace(question, engine="runs", unwind=None, merge=False)
    yield "symex", replace(question, engine="symex", unwind=None)
    yield "dpg", replace(question, engine="dpg", strategy="auto", unwind=None, merge=False, alongside=False)
    yield "bmc", replace(question, engine="bmc", merge=False)
    yield "dpg, strategy paper", replace(question, engine="dpg", strategy="paper", unwind=None, merge=False)


def race(program: Program, question: Question, seconds: float, answer: Answer, send: Send) -> Verdict:
    """The first definite verdict; `answer` gives the verdict to a question within the process it is called in."""
    limits = ResourceLimits(None if math.isinf(seconds) else max(seconds, 0.0))
    runners = [_Runner(name, _started(entrant, answer, limits)) for name, entrant in entrants(question)]
    try:
        while any(runner.is_running for runner in runners):
            _look(runners, send)
            _keep_within(runners, question.memory_mb)
            definite = [r for r in runners if r.verdict is not None and r.verdict.kind != "unknown"]
            if definite:
                return _won(program, definite)
    finally:
        for runner in runners:
            runner.watch.close()
    reasons = "; ".join(f"{runner.name}: {_reason(runner)}" for runner in runners)
    return Verdict("unknown", reason=reasons, assumptions=program.assumptions)


def _started(question: Question, answer: Answer, limits: ResourceLimits) -> Watch:
    return start_limited(lambda send: answer(question, send), limits)


def _look(runners: list[_Runner], send: Send) -> None:
    running = [runner for runner in runners if runner.is_running]
    ready, _, _ = select.select([runner.watch.reader for runner in running], [], [], POLL_SECONDS)
    for runner in running:
        watch = runner.watch
        if watch.look(watch.reader in ready, send):
            if watch.error is not None:
                runner.reason = str(watch.error)
            elif isinstance(watch.result, Verdict):
                runner.verdict = watch.result
            else:
                runner.reason = watch.detail or watch.end.value


def _keep_within(runners: list[_Runner], memory_mb: int | None) -> None:
    """Ends the process that needs most if all together need too much."""
    if memory_mb is None:
        return
    needed = {runner.name: runner.watch.resident_mb for runner in runners if runner.is_running}
    if sum(needed.values()) > memory_mb:
        for runner in runners:
            if needed.get(runner.name) == max(needed.values()):
                runner.watch.stop = End.MEMORY
                return


def _won(program: Program, definite: list[_Runner]) -> Verdict:
    first = definite[0].verdict
    assert first is not None
    for other in definite[1:]:
        assert other.verdict is not None
        if other.verdict.kind != first.kind:
            return Verdict(
                "unknown",
                reason=f"internal error: {definite[0].name} and {other.name} contradict each other",
                assumptions=program.assumptions,
                is_internal_error=True,
            )
    return first


def _reason(runner: _Runner) -> str:
    return runner.verdict.reason if runner.verdict is not None else runner.reason
