"""Predicate abstraction in turns, beside a search for invariants.

Drivers and protocol engines have many paths and few facts that matter; regions find these facts where invariants that
runs suggest do not. On loops that count it finds one predicate for every turn of the loop and never ends, so that it
gets a part of the time and no more.
"""

from __future__ import annotations

import math
import time

from mcveto.engines.cegar.engine import Engine, Report
from mcveto.engines.cegar.treatment import Treatment
from mcveto.program.program import Program
from mcveto.verdict import Verdict

# Seconds for one question to the solver, which others have to wait for.
QUERY_SECONDS = 1.0
# Of all the time there is.
SHARE = 0.25


class PredicateTurns:
    got_stuck = False
    """Starting over would find the same."""

    def __init__(self, program: Program, seconds: float, report: Report | None, must_recheck: bool) -> None:
        self._engine = Engine(program, seconds, report, Treatment.INTERPRETED, 0, must_recheck, QUERY_SECONDS)
        self._left = SHARE * seconds

    def advance(self, states: float = math.inf, until: float = math.inf) -> Verdict | None:
        """What is found until a time on the monotonic clock; UNKNOWN if that is all it will find."""
        started = time.monotonic()
        verdict = self._engine.advance(min(until, started + self._left))
        self._left -= time.monotonic() - started
        if verdict is None and self._left <= 0:
            return Verdict("unknown", reason="predicates: out of time")
        return verdict
