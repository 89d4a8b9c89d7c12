"""A simulation that others may interrupt, without a record at first; what it proves is simulated again with one.

A record costs several times the time and memory: what a certificate has to say is kept of every state, and calls are
followed where a summary would do. Most large programs that are simulated are given up, or are proved by a record that
is too long for anybody to read; so the answer comes first.
"""

from __future__ import annotations

import time

from mcveto.dpg.location import Blocks
from mcveto.engines.exploration import Report
from mcveto.engines.simulation.simulate import Simulation, no_search_for_cycles, simulate
from mcveto.program.program import Program
from mcveto.verdict import Verdict

# What a record may take: so much of the time left and, unless somebody asked for it, seconds, or so many times as long
# as the proof took, if that is more; but no longer than that.
SHARE_OF_RECORD = 0.5
RECORD_SECONDS = 2.0
RECORD_TIMES = 2.0
LONGEST_RECORD = 8.0


class SimulatedByTurns:
    """A simulation that others interrupt: without a record at first, and, once it is a proof, again with one."""

    def __init__(
        self, program: Program, deadline: float, report: Report | None = None, must_record: bool = False
    ) -> None:
        """`must_record`: somebody asked for a certificate, and waits for it."""
        self._program = program
        self._deadline = deadline
        self._report = report
        self._must_record = must_record
        self._seconds = 0.0
        self._simulation = Simulation(program, Blocks(program), deadline, report)
        self._simulation.record_nothing()

    def advance(self, until: float) -> Verdict | None:
        """What is found by then; None if there is more to do."""
        begun = time.monotonic()
        with no_search_for_cycles():
            found = self._simulation.advance(until)
        self._seconds += time.monotonic() - begun
        return self._recorded(found) if found is not None and found.kind == "proved" else found

    def _recorded(self, found: Verdict) -> Verdict:
        """The same with its proof, if that does not take much longer; that is the end of this simulation."""
        del self._simulation  # It holds much memory.
        left = SHARE_OF_RECORD * (self._deadline - time.monotonic())
        if not self._must_record:
            left = min(left, max(RECORD_SECONDS, RECORD_TIMES * self._seconds), LONGEST_RECORD)
        recorded = simulate(self._program, left, self._report)
        return recorded if recorded.kind == "proved" else found


def simulate_twice(program: Program, seconds: float, report: Report | None, must_record: bool) -> Verdict:
    """All turns at once, for so many seconds."""
    deadline = time.monotonic() + seconds
    found = SimulatedByTurns(program, deadline, report, must_record).advance(deadline)
    return found if found is not None else Verdict("unknown", reason="time-out", assumptions=program.assumptions)
