"""Smaller inputs for a violation that lies behind a very long run.

A run that skips the turns of its loops gets to a violation behind thousands of millions of them; no other machine
follows it there, and who reads the report would rather see a small number. So the inputs that the run consumed are cut
to fewer bits, one after the other, each to the fewest with which the violation still happens within a run that others
can follow. A search of a fraction of a second, in the spirit of delta debugging (Zeller and Hildebrandt 2002); no
smaller inputs need exist, and nothing is claimed by it: what is found is a run like any other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

# Runs of more instructions are not followed by others.
LONGEST = 20_000_000
MOST_INPUTS = 6
SECONDS = 1.5


class Run(Protocol):
    @property
    def length(self) -> int:
        """The instructions of the whole run, skipped ones included."""


R = TypeVar("R", bound=Run)


def shorter(found: R, inputs: Sequence[int], attempt: Callable[[Sequence[int], int], R | None]) -> R:
    """`found`, or a run that is short enough; `attempt` makes one with such inputs, None if it violates nothing within
    so many instructions."""
    if found.length <= LONGEST or not 0 < len(inputs) <= MOST_INPUTS:
        return found
    end = time.process_time() + SECONDS
    values = list(inputs)
    for number, value in enumerate(values):
        for bits in range(max(value, 0).bit_length()):
            if time.process_time() > end:
                return found
            values[number] = value >> value.bit_length() - bits
            made = attempt(values, LONGEST)
            if made is not None:
                return made
        values[number] = value
    return found
