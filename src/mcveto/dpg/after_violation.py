"""Where control can go once a return does not match its call (TR1669 §3.5, last paragraph).

The search runs again without giving calls and returns any special treatment (the paper's purely intraprocedural mode):
a return is a jump like any other. It says to which addresses the offending return can go, and whether a target can be
reached by executions that are not acceptable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mcveto.dpg.driver import Driver, Limits, Method, Progress
from mcveto.dpg.location import Fold
from mcveto.dpg.runs import Ending
from mcveto.program.program import Program
from mcveto.verdict import Verdict

# A return through an address that the input chooses freely has millions of targets.
MOST_TARGETS = 64
MOST_SECONDS = 60.0
ENDS_SOMEWHERE = (Ending.TARGET, Ending.HALTED)


@dataclass(frozen=True, slots=True)
class Aftermath:
    returns_to: tuple[int, ...]
    """Where the return was seen to go."""
    is_complete: bool
    """Whether it can go nowhere else (faults aside)."""
    verdict: Verdict
    """About the targets, without matching of calls and returns."""

    def lines(self, return_at: int) -> tuple[str, ...]:
        places = ", ".join(f"{address:#x}" for address in self.returns_to) or "no executable address"
        others = "nowhere else" if self.is_complete else "perhaps elsewhere"
        where = f"without matching of calls and returns, the return at {return_at:#x} can go to {places}, and {others}"
        match self.verdict.kind:
            case "violated":
                values = ", ".join(str(item.value) for item in self.verdict.inputs) or "none"
                return (where, f"then {self.verdict.reason} (inputs: {values})")
            case "proved":
                return (where, "no target can be reached even so")
        return (where, f"whether a target can be reached so is unknown: {self.verdict.reason}")


def explore(
    program: Program, limits: Limits, seed: int, return_at: int, report: Callable[[Progress], None]
) -> Aftermath:
    """What the program can do if its returns are jumps; `return_at` is the address of the offending one."""
    method = Method(fold=Fold.UNMATCHED, most_targets=MOST_TARGETS, keep_going=True)
    driver = Driver(
        program, replace(limits, seconds=min(limits.seconds, MOST_SECONDS)), seed, report=report, method=method
    )
    verdict = driver.run()
    found: set[int] = set()
    for location, successors in driver.graph.successors.items():
        if driver.blocks.of(location)[-1].pc == return_at:
            found.update(successor.pc for successor in successors)
    found.update(run.pc for run in driver.runs if run.came_from == return_at and run.ending in ENDS_SOMEWHERE)
    return Aftermath(tuple(sorted(found)), verdict.kind == "proved", driver.violation or verdict)
