"""Typestate automata: extended finite-state automata that watch the events of a program.

Basu, Saha, Lin and Smolka, "Generation of All Counter-Examples for Push-Down Systems", section 2: an 8-tuple
(Q, Q0, F, X, E, G, A, T). An automaton describes what must NOT happen: a run that brings it into an error state
violates the property. All enabled transitions may be taken (the automaton may be nondeterministic, which is how "some
object" is said: record one or let it pass). We deviate in two ways: guards also compare, signed and unsigned; and where
the paper's product blocks because no transition is enabled, the automaton stays in its state, so that events nobody
mentions need no self-loops. A state without outgoing transitions is therefore a sink, which is the paper's blocking.

Values are integers, or texts (on models only). Integers compare as machine words of WORD_BITS bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from enum import Enum
from typing import NamedTuple

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass

Value = int | str
WORD_BITS = 64
ANY = "any"


class Label(NamedTuple):
    """An event that happens: its name and the values of its arguments."""

    name: str
    arguments: tuple[Value, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(shown, self.arguments))})" if self.arguments else self.name


class Name(NamedTuple):
    """A variable of the automaton, or a parameter of the transition's event."""

    name: str


class Constant(NamedTuple):
    value: Value


Operand = Name | Constant


class Relation(Enum):
    EQUAL = "=="
    DIFFERENT = "!="
    SIGNED_LESS = "<s"
    SIGNED_LESS_EQUAL = "<=s"
    UNSIGNED_LESS = "<u"
    UNSIGNED_LESS_EQUAL = "<=u"


class Guard(NamedTuple):
    relation: Relation
    left: Operand
    right: Operand


class Assignment(NamedTuple):
    variable: str
    value: Operand


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a transition waits for: an event by name, `any` for every step. `parameters` are names to bind, constants
    the argument must equal, or None for arguments that do not matter; further arguments are not looked at."""

    event: str
    parameters: tuple[Operand | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    source: str
    target: str
    pattern: Pattern
    guards: tuple[Guard, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    line: int = field(default=0, compare=False)


UNDEFINED = "undefined"


def state_cell(number: int) -> str:
    """The ghost register that holds the state of the program's automaton of that number."""
    return f"ghost{number}_state"


class PointKind(Enum):
    CALL = "call"
    RETURN = "return"
    REACH = "reach"
    SYSTEM_CALL = "syscall"


@dataclass(frozen=True, slots=True)
class Point:
    """Where in a program an event happens: a call of or return from a function, an address, a system call."""

    kind: PointKind
    where: int | str
    only_undefined: bool = False
    """Nowhere in a file that defines the function, or another one of the same event: what a function of the file does
    is seen by what it calls itself, or counts as a whole."""

    def __str__(self) -> str:
        undefined = f" {UNDEFINED}" if self.only_undefined else ""
        return f"{self.kind.value}{undefined} {self.where if isinstance(self.where, str) else hex(self.where)}"


class Parameter(NamedTuple):
    """An argument of an event by name. `bits`: how much of the machine word it takes, as a signed number; 0 is all."""

    name: str
    bits: int = 0

    def __str__(self) -> str:
        return f"{self.name}:{self.bits}" if self.bits else self.name


class Event(NamedTuple):
    """A declared event: its arguments, and the program points where it happens (none on models)."""

    parameters: tuple[Parameter, ...] = ()
    points: tuple[Point, ...] = ()


class Configuration(NamedTuple):
    """A state of the automaton with the values of its variables, in the order of declaration."""

    state: str
    values: tuple[Value, ...]


class NotComparable(UsageError):
    """A guard asks which of two values is less, and one of them is a text."""


@dataclass(frozen=True, slots=True)
class Typestate:
    name: str
    states: tuple[str, ...]
    starts: tuple[str, ...]
    errors: dict[str, str]
    """Error states, each with what it means ("" if nobody said)."""
    variables: dict[str, Value]
    """Initial values."""
    events: dict[str, Event]
    transitions: tuple[Transition, ...]
    about: str = ""
    path: str | None = field(default=None, compare=False)

    def initial(self) -> tuple[Configuration, ...]:
        return tuple(Configuration(state, tuple(self.variables.values())) for state in self.starts)

    def from_state(self, state: str) -> list[Transition]:
        return [transition for transition in self.transitions if transition.source == state]

    def successors(self, configuration: Configuration, labels: Sequence[Label]) -> tuple[Configuration, ...]:
        """Where one step with these events may lead, each once; the configuration itself if nothing is enabled."""
        found: dict[Configuration, None] = {}
        for transition in self.transitions:
            if transition.source == configuration.state:
                for label in (Label(ANY),) if transition.pattern.event == ANY else labels:
                    following = self.fired(transition, configuration, label)
                    if following is not None:
                        found[following] = None
        return tuple(found) or (configuration,)

    def fired(self, transition: Transition, configuration: Configuration, label: Label) -> Configuration | None:
        """The configuration after the transition; None if it is not enabled by the event."""
        pattern = transition.pattern
        if pattern.event != label.name or len(pattern.parameters) > len(label.arguments):
            return None
        values: dict[str, Value] = dict(zip(self.variables, configuration.values, strict=True))
        for parameter, argument in zip(pattern.parameters, label.arguments, strict=False):
            match parameter:
                case Name(name):
                    values[name] = argument
                case Constant(value):
                    if not _equal(value, argument):
                        return None
        if not all(_holds(guard, values) for guard in transition.guards):
            return None
        new = {assignment.variable: _value(assignment.value, values) for assignment in transition.assignments}
        return Configuration(
            transition.target,
            tuple(new.get(name, old) for name, old in zip(self.variables, configuration.values, strict=True)),
        )

    def closure(self, label_sets: Iterable[Sequence[Label]]) -> tuple[Configuration, ...]:
        """All configurations that these steps lead to from any state with the initial values."""
        sets = list(dict.fromkeys(tuple(labels) for labels in label_sets))
        initial = tuple(self.variables.values())
        found = dict.fromkeys(Configuration(state, initial) for state in self.states)
        worklist = list(found)
        while worklist:
            configuration = worklist.pop()
            for labels in sets:
                for following in self.successors(configuration, labels):
                    if following not in found:
                        found[following] = None
                        worklist.append(following)
        return tuple(found)


def shown(value: Value) -> str:
    """A value as the files write it."""
    if isinstance(value, int):
        return str(value) if -10 < value < 10 else hex(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _value(operand: Operand, values: dict[str, Value]) -> Value:
    return values[operand.name] if isinstance(operand, Name) else operand.value


def _word(value: Value) -> int:
    if isinstance(value, str):
        raise NotComparable(f"'{value[:40]}' is a text and has no order")
    return value & ((1 << WORD_BITS) - 1)


def _signed(value: Value) -> int:
    word = _word(value)
    return word - (1 << WORD_BITS) if word >> (WORD_BITS - 1) else word


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, int) and isinstance(right, int):
        return _word(left) == _word(right)
    return left == right


def _holds(guard: Guard, values: dict[str, Value]) -> bool:
    left, right = _value(guard.left, values), _value(guard.right, values)
    match guard.relation:
        case Relation.EQUAL:
            return _equal(left, right)
        case Relation.DIFFERENT:
            return not _equal(left, right)
        case Relation.SIGNED_LESS:
            return _signed(left) < _signed(right)
        case Relation.SIGNED_LESS_EQUAL:
            return _signed(left) <= _signed(right)
        case Relation.UNSIGNED_LESS:
            return _word(left) < _word(right)
        case Relation.UNSIGNED_LESS_EQUAL:
            return _word(left) <= _word(right)
