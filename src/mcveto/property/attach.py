"""The typestate properties of a program's spec, compiled into the program; and verdicts in their terms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mcveto.errors import UsageError
from mcveto.program.program import Program
from mcveto.program.spec import PropertySpec, Spec
from mcveto.property.ghost import watch
from mcveto.property.library import TypestateSource, find_typestate, find_typestate_source
from mcveto.property.typestate import Point, PointKind, Typestate
from mcveto.property.typestate_parser import parse_typestate
from mcveto.verdict import Verdict

EventPoint = tuple[str, Point | None]
"""An event and a program point where it happens; None: it never happens."""


@dataclass(frozen=True, slots=True)
class Attached:
    program: Program
    names: tuple[str, ...] = ()
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)
    watched: frozenset[int] = frozenset()
    """The program counters at which events happen."""
    sources: tuple[TypestateSource, ...] = ()
    """The files of the properties, from which all of this can be derived again."""
    events: tuple[EventPoint, ...] = ()

    def explained(self, verdict: Verdict) -> Verdict:
        """A violation by one of the properties' targets, told as the property's."""
        if verdict.kind != "violated" or verdict.at is None or verdict.at not in self.errors:
            return verdict
        about, reason = self.errors[verdict.at]
        # A fresh value at a watched place is the automaton's choice, not something that a manual leaves open.
        places = {f"undefined value at {pc:#x}": f"choice of property {about} at {pc:#x}" for pc in self.watched}
        inputs = tuple(replace(item, where=places.get(item.where, item.where)) for item in verdict.inputs)
        return replace(verdict, about=about, reason=reason, inputs=inputs)


def attach(program: Program, events: Sequence[EventPoint] = ()) -> Attached:
    """The program with its spec's typestate properties watched; raises UsageError or InputFileError."""
    return attach_sources(program, typestate_sources(program.spec), events)


def typestate_sources(spec: Spec) -> list[TypestateSource]:
    """The files of a spec's typestate properties; raises UsageError or InputFileError."""
    return [_find(spec, str(item.argument)) for item in spec.properties if item.name == "typestate"]


def attach_sources(program: Program, sources: Sequence[TypestateSource], events: Sequence[EventPoint]) -> Attached:
    """The program with the properties that these texts describe watched; raises UsageError or InputFileError."""
    automata = [parse_typestate(source.text, source.path) for source in sources]
    bindings = bindings_of(events, automata)
    attached = Attached(program)
    for number, automaton in enumerate(automata):
        own = {event: points for event, points in bindings.items() if event in automaton.events}
        watched = watch(attached.program, automaton, own, number)
        attached = Attached(
            watched.program,
            (*attached.names, automaton.name),
            {**attached.errors, **watched.errors},
            attached.watched | watched.events.keys(),
        )
    return replace(attached, sources=tuple(sources), events=tuple(events))


def bindings_of(events: Sequence[EventPoint], automata: Sequence[Typestate]) -> dict[str, list[Point]]:
    """The points of each event that was given some; raises UsageError for events that no automaton has."""
    known = {event for automaton in automata for event in automaton.events}
    bindings: dict[str, list[Point]] = {}
    for event, point in events:
        if event not in known:
            there = f"events are {', '.join(sorted(known))}" if known else "no typestate property is asked for"
            raise UsageError(f"--event: no property has an event '{event}'", there)
        bindings.setdefault(event, [])
        if point is not None:
            bindings[event].append(point)
    return bindings


def with_typestates(spec: Spec, names: Sequence[str]) -> Spec:
    """The spec with more properties, by file or by name; refuses at once what cannot be found."""
    for name in names:
        find_typestate(name)
    return replace(spec, properties=(*spec.properties, *(PropertySpec("typestate", name) for name in names)))


def parse_event(text: str) -> EventPoint:
    """NAME=KIND:WHERE, or NAME=none."""
    name, equals, point = text.partition("=")
    kind, colon, where = point.partition(":")
    hint = "e.g. lock=call:0x8049000, end=return:main, done=reach:0x8049012, or end=none"
    if not name.strip() or not equals:
        raise UsageError(f"--event: '{text[:60]}' is not NAME=KIND:ADDRESS", hint)
    if point.strip() == "none":
        return name.strip(), None
    kinds = {item.value: item for item in PointKind}
    if kind.strip() not in kinds or not colon or not where.strip():
        raise UsageError(f"--event: '{text[:60]}' is not NAME=KIND:ADDRESS", hint)
    where = where.strip()
    number = re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", where, re.ASCII)
    return name.strip(), Point(kinds[kind.strip()], int(where, 0 if "x" in where.lower() else 10) if number else where)


def event_text(event: EventPoint) -> str:
    """As `parse_event` reads it."""
    name, point = event
    if point is None:
        return f"{name}=none"
    return f"{name}={point.kind.value}:{point.where if isinstance(point.where, str) else hex(point.where)}"


def _find(spec: Spec, name: str) -> TypestateSource:
    """Relative to the spec file if it is there, else as on the command line."""
    if spec.path is not None:
        beside = Path(spec.path).parent / name
        if beside.is_file():
            return find_typestate_source(str(beside))
    return find_typestate_source(name)
