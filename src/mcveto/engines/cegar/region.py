"""Abstract states: a location, the predicates that hold there, and what is constant there.

States of one location with the same predicates are one region, whose constants are what they have in common; the values
of code that was executed from writable memory are kept apart, too. So there are as many regions as there are different
combinations of predicates, however many paths lead to them.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from mcveto.dpg.location import Location
from mcveto.dpg.outcomes import Outcome
from mcveto.engines.cegar.constants import Constants
from mcveto.late_methods import dataclass
from mcveto.logic.terms import Term

Cube = tuple[Term, ...]
Code = tuple[int | None, ...]


class Kind(Enum):
    """Why a step must not be taken."""

    TARGET = "reach"
    RETURN = "return-address"
    GAP = "gap"
    """Nobody knows how it goes on."""
    UNRESOLVED = "unresolved"
    """Where it goes on depends on a value that the abstraction has lost."""


@dataclass(frozen=True, eq=False, slots=True)
class Error:
    source: Region
    outcome: Outcome
    literals: tuple[Term, ...]
    """When the step is taken, over the state before it."""
    kind: Kind
    reason: str = ""
    about: tuple[Term, ...] = ()
    """The values that were lost, over the state before the step."""


@dataclass(frozen=True, eq=False, slots=True)
class Edge:
    source: Region
    outcome: Outcome
    target: Region
    literals: tuple[Term, ...]
    """When the step is taken and ends at the target's location, over the state before it."""


@dataclass(eq=False, slots=True)
class Region:
    location: Location
    cube: Cube
    constants: Constants
    order: tuple[int, ...]
    arrived: Edge | None = None
    """The step by which it was found; None at the entry."""
    edges: list[Edge] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    used: dict[Term, None] = field(default_factory=dict)
    """The terms whose values, given the constants, decided what the successors are."""
    is_waiting: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Successor:
    """Where one outcome of a region leads."""

    outcome: Outcome
    location: Location
    literals: tuple[Term, ...]
    cube: Cube
    code: Code
    constants: Constants


@dataclass(eq=False, slots=True)
class Expansion:
    successors: list[Successor] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    used: dict[Term, None] = field(default_factory=dict)
