"""One path under exploration: where it is, what it knows, and how it got there."""

from __future__ import annotations

from typing import NamedTuple

from mcveto.engines.memory import PathMemory, Value
from mcveto.engines.path import Path
from mcveto.engines.queries import Model
from mcveto.late_methods import dataclass
from mcveto.logic.terms import Term
from mcveto.machine.pcode import FreshOrigin


class Drawn(NamedTuple):
    """A fresh value was made after those of `before`."""

    before: Log
    variable: Term
    origin: FreshOrigin
    usual: Value
    pc: int


class Joined(NamedTuple):
    """Two paths met; where the condition holds, the first was taken."""

    condition: Term
    first: Log
    second: Log


Log = Drawn | Joined | None


def drawn(log: Log, model: Model) -> list[Drawn]:
    """The fresh values in the order they were made, on the path the model takes."""
    found: list[Drawn] = []
    while log is not None:
        if isinstance(log, Joined):
            log = log.first if model.value(log.condition) else log.second
        else:
            found.append(log)
            log = log.before
    found.reverse()
    return found


class Script(NamedTuple):
    """How the next instruction is to be executed again: its decisions, and the fresh values it made."""

    decisions: tuple[bool, ...] = ()
    fresh: tuple[Term, ...] = ()


START = Script()
# (head of a loop, how often it was come back to), outermost first.
Loops = tuple[tuple[int, int], ...]


class Calls:
    """The return addresses that are expected, innermost first: equal ones are the same object, however deep."""

    __slots__ = ("_inner", "address", "occurrences", "parent")

    def __init__(self, address: int, parent: Calls | None = None) -> None:
        self.address = address
        self.parent = parent
        outer = parent
        while outer is not None and outer.address != address:
            outer = outer.parent
        self.occurrences: int = 1 if outer is None else outer.occurrences + 1
        """How often this address is expected."""
        self._inner: dict[int, Calls] = {}

    def push(self, address: int) -> Calls:
        found = self._inner.get(address)
        if found is None:
            found = self._inner[address] = Calls(address, self)
        return found


class Place(NamedTuple):
    """Where a call is: its function, the block, the turns of the loops around it, and the functions it is within."""

    caller: Place | None
    function: int
    pc: int
    loops: Loops
    within: frozenset[int]


class Arrival(NamedTuple):
    """A node of a simulation's record that a state comes from (see `simulation.arrivals`)."""

    node: int
    names: dict[Term, Term]
    """What variables are in terms of the node's."""
    memory: Term
    """The memory in terms of that at the node."""
    drawn: int
    """How many values the node's block left open on the way."""
    path: tuple[Term, ...]
    """The condition when the state left the node."""


@dataclass(slots=True)
class PathState:
    pc: int
    registers: dict[int, Value]
    memory: PathMemory
    path: Path
    calls: Calls | None
    model: Model | None
    """Inputs that take this path; None if nobody has asked yet whether there are any."""
    log: Log = None
    steps: int = 0
    script: Script = START
    resumes: bool = False
    """Goes on in the middle of what another state was doing, which is therefore no earlier state of its own."""
    place: Place | None = None
    key: tuple[int, ...] = ()
    """Its place in the order of exploration."""
    origins: tuple[int, ...] = ()
    """The nodes of the record that it comes from (see `record`)."""
    rank: int = 0
    """How new it was at the last head of a loop (see `novelty`)."""
    arrivals: tuple[Arrival, ...] = ()
    """The same in a simulation."""
    equations: tuple[tuple[Term, Term, Term], ...] = ()
    """Inputs that equations of the path determine, their values, and the equations (see `solved_equations`)."""
    looked_at: int = 0
    """How many conditions of the path have been looked at for that."""

    def fork(self, pc: int, registers: dict[int, Value], memory: PathMemory, model: Model | None) -> PathState:
        return PathState(
            pc,
            registers,
            memory,
            self.path.copy(),
            self.calls,
            model,
            self.log,
            self.steps,
            START,
            False,
            self.place,
            origins=self.origins,
            rank=self.rank,
            arrivals=self.arrivals,
            equations=self.equations,
            looked_at=self.looked_at,
        )
