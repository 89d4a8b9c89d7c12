"""Cut points: the locations that carry invariants; between them the program is loop-free.

Every loop head is one. So is a location that too many loop-free paths lead to, because steps between cut points are
enumerated path by path: a row of n branches that join again costs n cut points instead of 2^n steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from mcveto.dpg.liveness import registers_of
from mcveto.dpg.location import Blocks, Location
from mcveto.dpg.loop_heads import reverse_postorder
from mcveto.program.program import Program

MAX_PATHS = 32


class Shape:
    """The explored locations in an order in which every step that is not into a loop head goes forward."""

    def __init__(self, entry: Location, successors: Mapping[Location, Set[Location]]) -> None:
        self.entry = entry
        self.successors = {location: sorted(found) for location, found in successors.items()}
        self.order, self._heads = reverse_postorder(entry, self.successors)
        self.heads = [location for location in self.order if location in self._heads]
        self.cuts = self._with_joins(self._heads)

    def _with_joins(self, heads: set[Location]) -> list[Location]:
        cuts = set(heads)
        paths: dict[Location, int] = dict.fromkeys(self.order, 0)
        paths[self.entry] = 1
        for location in self.order:
            if location in cuts:
                paths[location] = 1
            elif paths[location] > MAX_PATHS:
                cuts.add(location)
                paths[location] = 1
            for following in self.successors[location]:
                paths[following] += paths[location]
        return [location for location in self.order if location in cuts]


def live_registers(program: Program, blocks: Blocks, shape: Shape) -> dict[Location, set[int]]:
    """Numbers of the registers whose value on arrival at a location some explored path reads."""
    layout = program.decoder.layout
    read: dict[Location, set[int]] = {}
    written: dict[Location, set[int]] = {}
    for location in shape.order:
        reads, writes = registers_of(blocks.of(location), layout)
        read[location] = {cell.number for cell in reads}
        written[location] = {cell.number for cell in writes}
    live = {location: set(found) for location, found in read.items()}
    changed = True
    while changed:
        changed = False
        for location in reversed(shape.order):
            after: set[int] = set().union(*(live[following] for following in shape.successors[location]))
            arriving = read[location] | (after - written[location])
            if arriving != live[location]:
                live[location] = arriving
                changed = True
    return live
