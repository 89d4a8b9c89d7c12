"""Exploration of all abstract states, under the predicates found so far.

Regions wait in the order of the code: by the return addresses of the calls they are in, then by address. A callee is
finished before its caller goes on, and joins come after what they join, so that most regions are expanded once. One
whose constants become fewer because another path arrives waits again; they can only become fewer, so this ends.

Exploration goes on past steps that must not be taken; all of them are refined together. It can be interrupted after
every expansion, and goes on there when it is asked again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace

from mcveto.dpg.location import Location
from mcveto.engines.cegar.constants import Constants
from mcveto.engines.cegar.post import Post
from mcveto.engines.cegar.region import Code, Cube, Edge, Expansion, Region, Successor

Key = tuple[Location, Cube, Code]


class Reachability:
    def __init__(
        self, post: Post, tick: Callable[[Location, int], None], location: Location, constants: Constants
    ) -> None:
        """`location` and `constants` are those of the entry; `tick` is told the location and the number of regions
        after every expansion; it may raise."""
        self._post = post
        self._tick = tick
        self._regions: dict[Key, Region] = {}
        self._waiting: list[tuple[tuple[int, ...], int, Region]] = []
        self._pushed = 0
        self.expansions = 0
        self._entry = Region(location, (), constants, _order(location))
        code = post.precision.told_apart(constants)
        self._regions[location, (), code] = self._entry
        self._push(self._entry)

    def explore(self) -> Region:
        """The region of the entry, with all that can be reached from it."""
        while self._waiting:
            region = self._waiting[0][2]
            expansion = self._post.expand(region)
            heapq.heappop(self._waiting)
            region.is_waiting = False
            self._expand(region, expansion)
            self._tick(region.location, len(self._regions))
        return self._entry

    def _expand(self, region: Region, expansion: Expansion) -> None:
        self.expansions += 1
        region.errors = [replace(error, source=region) for error in expansion.errors]
        region.used = expansion.used
        region.edges = []
        for successor in expansion.successors:
            self._arrive(region, successor)

    def _arrive(self, source: Region, successor: Successor) -> None:
        key = (successor.location, successor.cube, successor.code)
        target = self._regions.get(key)
        if target is None:
            target = Region(successor.location, successor.cube, successor.constants, _order(successor.location))
            self._regions[key] = target
            self._push(target)
        else:
            joined = target.constants.joined(successor.constants)
            if joined is not target.constants:
                target.constants = joined
                self._push(target)
        source.edges.append(Edge(source, successor.outcome, target, successor.literals))

    def _push(self, region: Region) -> None:
        if not region.is_waiting:
            region.is_waiting = True
            self._pushed += 1
            heapq.heappush(self._waiting, (region.order, self._pushed, region))


def reachable(entry: Region) -> list[Region]:
    """All regions that steps lead to, nearest first, each with the step of a shortest path to it."""
    seen = {entry}
    waiting = [entry]
    entry.arrived = None
    for region in waiting:
        for edge in region.edges:
            if edge.target not in seen:
                seen.add(edge.target)
                edge.target.arrived = edge
                waiting.append(edge.target)
    return waiting


def _order(location: Location) -> tuple[int, ...]:
    frames = location.frames or ()
    return (*(2 * address - 1 for address in frames[1:]), 2 * location.pc)
