"""How far an access that leaves its object goes when inputs are changed a little.

Overflows by a fixed number of bytes stay what they are; what fills a structure to a length that the input gives goes
on to its end. From the inputs of a run we climb: numbers grow by 1 and by 16, and inputs are repeated (texts become
longer), one at a time; a change that leads farther is kept, and tried again. If the climb is not over when its time is,
nothing is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcveto.check.counterexample import Counterexample

if TYPE_CHECKING:
    from mcveto.check.object_crossings import Crossing

    Follow = Callable[[Counterexample, int], list[Crossing]]

_SECONDS = 6.0
_MOST_RUNS = 120
_CHANGED = 3
_FURTHER = 2_000


@dataclass(frozen=True, slots=True)
class Reach:
    """What is accessed from an object by some code: the lowest and the end, from the object's start."""

    start: int
    end: int

    def with_(self, other: Reach) -> Reach:
        return Reach(min(self.start, other.start), max(self.end, other.end))


class FartherRuns:
    """Runs near to one; `follow` gives the crossings of a run with other inputs, up to a number of steps."""

    def __init__(self, example: Counterexample, found: list[Crossing], follow: Follow) -> None:
        self._example = example
        self._found = found
        self._follow = follow
        self._known: dict[object, Reach | None] = {}

    def here(self, item: Crossing) -> Reach:
        """In the run itself."""
        return _reach(item, self._found) or Reach(0, item.extent)

    def reach(self, item: Crossing) -> Reach | None:
        """In all the runs; None if there might be more to it."""
        key = _key(item)
        if key not in self._known:
            self._known[key] = self._climb(item)
        return self._known[key]

    def _climb(self, item: Crossing) -> Reach | None:
        best, example = self.here(item), self._example
        deadline = time.process_time() + _SECONDS
        runs = 0
        is_higher = True
        while is_higher:
            is_higher = False
            for other in _changed(example):
                if time.process_time() > deadline or runs >= _MOST_RUNS:
                    return None
                runs += 1
                now = _reach(item, self._follow(other, 2 * item.steps + _FURTHER))
                if now is not None and best.with_(now) != best:
                    best, example, is_higher = best.with_(now), other, True
                    break
        return best


def _key(item: Crossing) -> tuple[int | None, int, int, int]:
    return (item.function, item.distance, item.extent, item.site)


def _reach(item: Crossing, found: list[Crossing]) -> Reach | None:
    reach: Reach | None = None
    for other in found:
        if _key(other) == _key(item):
            start = other.address - other.low
            one = Reach(min(start, 0), max(start + other.size, other.extent))
            reach = one if reach is None else reach.with_(one)
    return reach


def _changed(example: Counterexample) -> Iterator[Counterexample]:
    inputs = example.inputs
    places = sorted({*range(len(inputs))[:_CHANGED], *range(len(inputs))[-_CHANGED:]})
    for place in places:
        item = inputs[place]
        for more in (16, 1, -1):
            value = item.value + more & (1 << item.bits) - 1
            yield replace(example, inputs=(*inputs[:place], replace(item, value=value), *inputs[place + 1 :]))
        for times in (16, 1):
            yield replace(example, inputs=(*inputs[:place], *[item] * times, *inputs[place:]))
