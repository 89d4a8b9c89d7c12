"""Symbolic execution: every path of the program, one at a time (King, CACM 1976; Cadar et al., OSDI 2008).

At each fork both ways are asked for, so that every path that is followed is one that some input takes. The next path
is one that is at code executed least often so far, then one with few open calls and few steps: new code first, and no
loop starves the rest. With merging, paths that meet become one state (`merge`) and the order is that of the code
(`order`), loops being unrolled in rounds of 1, 2, 4, … turns.

Ends with PROVED where all paths end or return to a state that was seen (`subsume`), and nothing was left out.
"""

from __future__ import annotations

from mcveto.engines.exploration import Exploration, Policy, Report
from mcveto.program.program import Program
from mcveto.verdict import Verdict


def symex(program: Program, seconds: float, report: Report | None = None, merges: bool = False) -> Verdict:
    return Exploration(program, Policy(merges=merges, asks_at_forks=True), seconds, report).run()
