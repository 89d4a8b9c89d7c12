"""What every report is made from: a question, its answer, and the runs that show it.

A run is cut into blocks: instructions that were executed one after the other, up to where control left them or an event
of a property happened. Nothing here knows how the answer was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mcveto.verdict import VerdictInput


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that ran from `pc` to `last_pc`, and how control left them."""

    pc: int
    size: int
    """In bytes; 0 where the spec replaces a function."""
    last_pc: int
    text: str
    """The last instruction."""
    way: str
    """fall, jump, branch (taken), no branch (not taken), call, return, or end."""
    next_pc: int
    depth: int
    """Calls that are open."""
    events: tuple[str, ...] = ()
    """What happens before the first instruction, as the properties see it."""
    states: Mapping[str, str] = field(default_factory=dict)
    """The state of each property's automaton after the block."""
    result: tuple[str, int, int] | None = None
    """Where a function returns an input: the register, its bits and the value."""


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A counterexample: what is violated, by which inputs, along which blocks."""

    about: str
    error: str
    """What is wrong, in a few words."""
    inputs: tuple[VerdictInput, ...]
    at: int
    """The address where it goes wrong; if a function must not be called, that of the call."""
    blocks: tuple[Block, ...] = ()
    confirmed_by: tuple[str, ...] = ()
    registers: tuple[tuple[str, int, int], ...] = ()
    """Registers of the entry state that the run depends on: name, bits, value."""
    memory: tuple[tuple[int, int], ...] = ()
    """Bytes of the entry state that the run depends on."""


@dataclass(frozen=True, slots=True)
class ModelStep:
    """A configuration of a run of a pushdown model: how it was reached, its stack with the top first, the automaton."""

    kind: str
    stack: tuple[str, ...]
    state: str
    events: tuple[str, ...]
    changes: bool


@dataclass(frozen=True, slots=True)
class ModelRun:
    about: str
    error: str
    meaning: str
    steps: tuple[ModelStep, ...]


@dataclass(frozen=True, slots=True)
class AskedProperty:
    name: str
    about: str
    """One sentence: what a violation is."""
    places: tuple[int, ...] = ()
    """Addresses that it is about, if it is about any."""


@dataclass(frozen=True, slots=True)
class Module:
    """The file in question, and where in memory it is. Models have neither addresses nor an instruction set."""

    path: str
    sha256: str = ""
    isa: str = ""
    base: int = 0
    end: int = 0
    entry: int = 0
    address_bits: int = 0
    segments: tuple[tuple[int, int], ...] = ()
    symbols: tuple[tuple[int, str], ...] = ()
    """Sorted by address."""

    def name_of(self, pc: int) -> tuple[str, int]:
        """The nearest symbol before an address in the same segment, and the distance from it; ("", 0) without one."""
        from bisect import bisect_right

        at = bisect_right(self.symbols, (pc, "\U0010ffff")) - 1
        if at < 0:
            return "", 0
        address, name = self.symbols[at]
        return (name, pc - address) if any(start <= address and pc < end for start, end in self.segments) else ("", 0)

    def shown(self, pc: int) -> str:
        name, offset = self.name_of(pc)
        return (f"{name}+{offset:#x}" if offset else name) or f"{pc:#x}"


@dataclass(frozen=True, slots=True)
class Invariant:
    """What holds whenever control is at an address, in SMT-LIB over registers and `mem`."""

    pc: int
    is_loop_head: bool
    text: str


@dataclass(frozen=True, slots=True)
class Reported:
    version: str
    command: tuple[str, ...]
    exit_code: int
    kind: str
    """proved, violated or unknown."""
    about: str
    reason: str
    properties: tuple[AskedProperty, ...]
    module: Module | None
    """None if the search was ended before the program was loaded."""
    runs: tuple[ReportedRun, ...] = ()
    model_runs: tuple[ModelRun, ...] = ()
    more: int = 0
    """Counterexamples that are known but not listed."""
    is_complete: bool = False
    """Whether the runs listed and counted are all counterexamples."""
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    executed: tuple[tuple[int, int], ...] = ()
    """Blocks (address, size) that the runs of the search executed."""

    def executed_blocks(self) -> Iterator[tuple[int, int]]:
        """Every block that some run executed, each once, sorted."""
        found = {(block.pc, block.size) for run in self.runs for block in run.blocks if block.size}
        return iter(sorted(found | {item for item in self.executed if item[1]}))
