"""Whether a program is one for the simulation: asked of every program, without loading the engine."""

from __future__ import annotations

from mcveto.machine.memory import EXECUTE, WRITE
from mcveto.program.program import Program

LARGE = 12_000
VERY_LARGE = 60_000


def is_large(program: Program, size: int = LARGE) -> bool:
    """Whether the code that no run can change is too large for engines that look at it path by path, or as a whole."""
    regions = program.space.regions
    fixed = [region for region in regions if region.permissions & EXECUTE and not region.permissions & WRITE]
    return sum(len(region.content) for region in fixed) >= size
