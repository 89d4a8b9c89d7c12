"""What happened in a search, written down as it happens, for a person to look at afterwards.

The graph tells each of its changes (`Graph.observer`); the driver closes an event around them: a run that was folded
in, a node that was split, a step that was refuted or given up. Replaying the changes from the empty graph gives the
graph after each event. The record is bounded: events beyond MAX_EVENTS or MAX_CHANGES are only counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from mcveto.late_methods import dataclass
from mcveto.logic.infix import pretty

if TYPE_CHECKING:
    from mcveto.dpg.proof import Proof
    from mcveto.logic.terms import Term

MAX_EVENTS = 2_000
MAX_CHANGES = 30_000
MAX_TEXT = 400
MAX_INVARIANTS = 4_000

Change = tuple[str | int, ...]
"""("node", number, pc, is_start), ("edge" | "gone" | "given up", source, target, way), ("twin", number, twin) or
("unstart", number)."""


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    """begin, run, split, refuted, given up or stage."""
    seconds: float
    text: str
    at: int | None
    changes: tuple[Change, ...]
    graph: int = 0
    """Which graph changed: a strategy that takes over begins one of its own."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A predicate of the proof: at this program counter one of these conjunctions holds."""

    pc: int
    frames: tuple[int, ...] | None
    alternatives: tuple[tuple[str, ...], ...]


@dataclass
class History:
    events: list[Event] = field(default_factory=list)
    left_out: int = 0
    executed: set[int] = field(default_factory=set)
    """The program counters that some run executed."""
    claimed: tuple[Claimed, ...] = ()
    claims_left_out: int = 0
    _pending: list[Change] = field(default_factory=list)
    _changes: int = 0
    _graphs: int = 0
    _started: float = field(default_factory=time.monotonic)

    @property
    def is_full(self) -> bool:
        return len(self.events) >= MAX_EVENTS or self._changes >= MAX_CHANGES

    def change(self, *change: str | int) -> None:
        """A change of the graph, part of the event that is told next."""
        if not self.is_full and self._changes + len(self._pending) < 2 * MAX_CHANGES:
            self._pending.append(change)

    def begin(self, text: str) -> int:
        """A search with a graph of its own; returns the graph's number."""
        self._graphs += 1
        self.tell("begin", text, graph=self._graphs)
        return self._graphs

    def tell(self, kind: str, text: str, at: int | None = None, graph: int = 0) -> None:
        if self.is_full:
            self.left_out += 1
            self._pending.clear()
            return
        seconds = round(time.monotonic() - self._started, 3)
        self.events.append(Event(kind, seconds, text[:MAX_TEXT], at, tuple(self._pending), graph))
        self._changes += len(self._pending)
        self._pending.clear()

    def execute(self, pcs: Iterable[int]) -> None:
        self.executed.update(pcs)

    def claim(self, proof: Proof) -> None:
        """The invariants of a proof, in words, by location."""
        found: dict[tuple[int, tuple[int, ...] | None], list[tuple[str, ...]]] = {}
        for node in proof.nodes:
            key = (node.location.pc, node.location.frames)
            found.setdefault(key, []).append(tuple(shown(literal) for literal in node.literals))
        claims = [Claimed(pc, frames, tuple(alternatives)) for (pc, frames), alternatives in found.items()]
        claims.sort(key=lambda claim: (claim.pc, claim.frames or ()))
        self.claimed, self.claims_left_out = tuple(claims[:MAX_INVARIANTS]), max(0, len(claims) - MAX_INVARIANTS)


def shown(term: Term) -> str:
    """A predicate as people write it, cut where it gets long."""
    text = pretty(term)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … ({len(text)} characters)"
