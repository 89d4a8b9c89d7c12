"""Memory variables of a trace: aggregate-structure identification over its memory accesses.

Ramalingam, Field and Tip, "Aggregate structure identification and its application to program analysis" (POPL 1999):
memory is cut into atoms, the coarsest partition such that every access is a sequence of whole atoms, and such that
ranges copied to each other are cut alike. There the accesses are those of a program's text; here, as in TR1669 §3.2,
those a trace made, so every range has a concrete address. Atoms are the variables that the speculative analyses
track; the most frequently accessed ones are chosen.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple

from mcveto.dpg.location import Location
from mcveto.dpg.runs import Run
from mcveto.late_methods import dataclass
from mcveto.machine.emulator import Machine
from mcveto.machine.pcode import FreshOrigin
from mcveto.machine.tracked_cells import MemoryCell
from mcveto.program.program import Program


class Copy(NamedTuple):
    """`size` bytes moved from one address to another."""

    source: int
    target: int
    size: int


class RankedVariable(NamedTuple):
    cell: MemoryCell
    accesses: int


@dataclass
class Accesses:
    """What some runs did to memory."""

    counts: Counter[MemoryCell] = field(default_factory=Counter)
    copies: set[Copy] = field(default_factory=set)
    written: dict[tuple[Location, int], set[MemoryCell]] = field(default_factory=dict)
    """The cells that the instruction at a program counter wrote, by the location of its block."""
    needed: dict[Location, set[MemoryCell]] = field(default_factory=dict)
    """The cells some visit of a location read before it wrote them."""
    overwritten: dict[Location, set[MemoryCell]] = field(default_factory=dict)
    """The cells every visit of a location wrote without having read them."""


def identify(accesses: Iterable[tuple[MemoryCell, int]], copies: Iterable[Copy] = ()) -> list[RankedVariable]:
    """The atoms of memory, given each accessed cell with how often it was accessed; most frequent first."""
    ranges = [item for item in accesses if item[0].size > 0]
    cuts = sorted({end for cell, _ in ranges for end in (cell.address, cell.address + cell.size)})
    _cut_alike(cuts, list(copies))
    counts: Counter[MemoryCell] = Counter()
    for cell, count in ranges:
        first, last = bisect_left(cuts, cell.address), bisect_left(cuts, cell.address + cell.size)
        for at in range(first, last):
            counts[MemoryCell(cuts[at], cuts[at + 1] - cuts[at])] += count
    return [RankedVariable(*item) for item in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _cut_alike(cuts: list[int], copies: list[Copy]) -> None:
    """Carries cuts inside copied ranges over to the other side until nothing changes."""
    known = set(cuts)
    changed = True
    while changed:
        changed = False
        for copy in copies:
            for here, there in ((copy.source, copy.target), (copy.target, copy.source)):
                for cut in cuts[bisect_right(cuts, here) : bisect_left(cuts, here + copy.size)]:
                    other = cut - here + there
                    if other not in known:
                        known.add(other)
                        insort(cuts, other)
                        changed = True


def choose(variables: Iterable[RankedVariable], most: int, sizes: Iterable[int] | None = None) -> list[MemoryCell]:
    """The cells of the highest rank, at most so many, of these sizes."""
    allowed = None if sizes is None else set(sizes)
    return [v.cell for v in variables if allowed is None or v.cell.size in allowed][:most]


def observe(program: Program, run: Run, into: Accesses) -> None:
    """Runs `run` again on the emulator and takes note of its accesses."""
    machine = _machine(program, run)
    for number, visit in enumerate(run.visits):
        last = run.visits[number + 1].step if number + 1 < len(run.visits) else run.steps
        read: set[MemoryCell] = set()
        written: set[MemoryCell] = set()
        for step in range(visit.step, last):
            pc = machine.pc
            if machine.step() is not None:
                return
            made = machine.trace.accesses(step)
            for position, access in enumerate(made):
                cell = MemoryCell(access.address, access.size)
                into.counts[cell] += 1
                if not access.is_write:
                    if cell not in written:
                        read.add(cell)
                    continue
                written.add(cell)
                into.written.setdefault((visit.location, pc), set()).add(cell)
                for other in made[:position]:
                    if not other.is_write and (other.size, other.value) == (access.size, access.value):
                        into.copies.add(Copy(other.address, access.address, access.size))
        into.needed.setdefault(visit.location, set()).update(read)
        into.overwritten.setdefault(visit.location, written - read).intersection_update(written - read)


def _machine(program: Program, run: Run) -> Machine:
    """An emulator about to make the run, logging its accesses."""
    values = iter([value for _, _, value in run.execution.fresh_values])

    def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
        return next(values, usual)

    choices = run.choices
    return program.machine_from(fresh, choices.registers, choices.memory, choices.seed, log_accesses=True)
