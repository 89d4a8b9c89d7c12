"""Bounded model checking: all paths at once, up to a number of turns of each loop (Biere et al., TACAS 1999).

Paths that meet are merged, in the order of the code, so that each place of the unrolled program is executed once and
the formula grows with the unrolling, not with the number of paths; forks are not asked for. What is asked: whether a
loop can be entered once more (also the unwinding assertion of CBMC: Clarke et al., TACAS 2004), whether a function can
call itself once more, whether a target can be reached or a return can go astray. One solver answers them all,
incrementally.

If no loop can be entered more often than the bound allows, everything is covered: PROVED. Otherwise the answer is
UNKNOWN(no violation up to N). Without a bound, it is 1, 2, 4, … until something is known or there is no time left.
"""

from __future__ import annotations

from mcveto.engines.exploration import Exploration, Policy, Report
from mcveto.program.program import Program
from mcveto.verdict import Verdict


def bmc(program: Program, seconds: float, report: Report | None = None, unwind: int | None = None) -> Verdict:
    return Exploration(program, Policy(merges=True, asks_at_forks=False, unwind=unwind), seconds, report).run()
