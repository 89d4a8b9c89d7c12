"""The folding policies of `--fold`: `frame`, `pc`, and `auto`, which is `frame` as long as call strings stay bounded.

Call strings in the locations make stack addresses constant and leave almost no aliasing to decide, but they cannot fold
recursion: every depth is a location of its own. When a run has one return address pending too often, `auto` starts over
with the nested graph of the `pc` fold, in which all depths of a recursion are one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from mcveto.dpg.driver import Driver, Limits, Method, Progress
from mcveto.dpg.history import History
from mcveto.dpg.location import Fold
from mcveto.dpg.runs import CallStringTooLong
from mcveto.program.program import Program
from mcveto.verdict import Verdict

# Recursion up to this depth is unfolded rather than summarised.
DEEPEST_UNFOLDED = 100


def run_with_fold(
    program: Program,
    fold: str,
    limits: Limits,
    seed: int,
    single_steps: bool,
    report: Callable[[Progress], None],
    method: Method,
    history: History | None = None,
) -> Verdict:
    """The verdict of directed proof generation under a folding policy."""
    started = time.monotonic()
    kind = Fold.PC if fold == "pc" else Fold.FRAME
    deepest = DEEPEST_UNFOLDED if fold == "auto" else None
    try:
        chosen = replace(method, fold=kind, deepest_recursion=deepest)
        return Driver(program, limits, seed, single_steps, report, method=chosen, history=history).run()
    except CallStringTooLong:
        rest = replace(limits, seconds=limits.seconds - (time.monotonic() - started))
        chosen = replace(method, fold=Fold.PC)
        return Driver(program, rest, seed, single_steps, report, method=chosen, history=history).run()
