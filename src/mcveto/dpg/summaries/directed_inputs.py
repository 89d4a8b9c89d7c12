"""Inputs with which the program comes to begin an activation at all: small ones first.

Programs refuse most arguments before they recurse (`if (n < 1 || n > 31) return`); runs with random inputs then show
nothing. The guards of the program's own paths to an activation are solved instead, with ever larger bounds on the
inputs, because small arguments are those whose activations return soon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcveto.dpg.summaries.paths import End, Path
from mcveto.logic import terms as t
from mcveto.logic.solver import Solver

BOUNDS = (2, 4, 6, 12, 24, 50)
PER_BOUND = 2
MAX_INPUTS = 20


def inputs_into(paths: Sequence[Path], solver: Solver, seconds: Callable[[], float]) -> list[list[int]]:
    """Inputs, in the order in which they are consumed, of runs that begin an activation."""
    found: list[list[int]] = []
    for bound in BOUNDS:
        for path in paths:
            made = [item for item in path.fresh if str(item.data).startswith("input!")]
            if path.end is not End.BEGIN or not made:
                continue
            for _ in range(PER_BOUND):
                small = [t.ule(item, t.const(bound, item.width)) for item in made if item.width > bound.bit_length()]
                new = [
                    t.disj(t.ne(item, t.const(value, item.width)) for item, value in zip(made, values, strict=True))
                    for values in found
                    if len(values) == len(made)
                ]
                if len(found) >= MAX_INPUTS or solver.check([*path.guard, *small, *new], seconds()) != "sat":
                    break
                found.append([solver.value(item) for item in made])
    return found
