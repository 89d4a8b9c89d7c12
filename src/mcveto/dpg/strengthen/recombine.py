"""Longer runs from pieces of known ones: the inputs of loop iterations, put together in other orders.

Between two visits of a loop head a run consumes a piece of its inputs. Where the iterations of a loop differ by the
inputs they get, any sequence of pieces is a run too, and a long random one visits states that no short run does: it
refutes false candidates and finds branches that need a history.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

from mcveto.dpg.location import Location
from mcveto.dpg.runs import Choices, Run

MAX_PIECES = 24
MAX_INPUTS = 400

Values = tuple[int, ...]


def recombined(runs: Sequence[Run], heads: Iterable[Location], seed: int, length: int) -> list[Choices]:
    """For each loop head a run made of `length` random iterations seen so far."""
    found: list[Choices] = []
    for head in heads:
        pieces: dict[tuple[Location, ...], Values] = {}
        start: tuple[Run, Values] | None = None
        end: Values = ()
        for run in runs:
            values = tuple(value for _, _, value in run.execution.fresh_values)
            visits = [visit for visit in run.visits if visit.location == head]
            if not visits:
                continue
            if start is None:
                start = run, values[: visits[0].fresh_count]
            end = values[visits[-1].fresh_count :]
            for here, there in pairwise(visits):
                trail = tuple(visit.location for visit in run.visits[here.number : there.number])
                if len(pieces) < MAX_PIECES:
                    pieces.setdefault(trail, values[here.fresh_count : there.fresh_count])
        if start is None or not any(pieces.values()):
            continue
        run, tape = start
        generator = random.Random(f"{seed}/{head}")
        choices = list(pieces.values())
        for _ in range(length):
            tape += generator.choice(choices)
            if len(tape) > MAX_INPUTS:
                break
        tape += end
        old = run.choices
        found.append(Choices(dict(enumerate(tape)), old.registers, old.memory, old.seed))
    return found
