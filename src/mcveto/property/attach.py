"""The typestate properties of a program's spec, compiled into the program; and verdicts in their terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mcveto.errors import UsageError
from mcveto.late_methods import dataclass
from mcveto.program.models import MODEL_INPUT
from mcveto.program.program import Program, make_program
from mcveto.program.spec import RETURNS_ANYTHING, Address, InputCall, PropertySpec, Spec
from mcveto.property.library import TypestateSource, find_typestate, find_typestate_source
from mcveto.property.system_calls import WatchingDecoder
from mcveto.property.typestate import Point, PointKind, Typestate
from mcveto.property.typestate_parser import parse_typestate
from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.property.safety.guard_program import Bounds, Guarded, Watching

EventPoint = tuple[str, Point | Address | None]
"""An event and a program point where it happens, or an address, the kind of the point being that of the automaton's
file; None: it never happens."""

# Properties that guards watch.
SAFETY = ("memory-safety", "no-fault")
MOST_NAMES = 10
_HINT = "e.g. lock=call:0x8049000, end=return:main, done=reach:0x8049012, quit=syscall:exit, or end=none"


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
    places: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The events at each program counter that is watched."""
    cells: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """The cell that holds the state of each automaton, with the property's name and the states."""
    automata: tuple[Typestate, ...] = ()
    unguarded: Program | None = None
    """The program without the guards of memory safety and faults, if it has some."""
    guarded: Guarded | None = None

    @property
    def plain(self) -> Program:
        """The program to replay violations on."""
        return self.unguarded or self.program

    def wider(self, reason: str) -> Attached | None:
        """The same with more calls or heap blocks watched, if `reason` says that those were too few."""
        if self.guarded is None or self.unguarded is None:
            return None
        from mcveto.property.safety.guards import TOO_DEEP, TOO_MANY

        if not (TOO_DEEP in reason or TOO_MANY in reason):
            return None
        bounds = self.guarded.bounds.doubled(TOO_DEEP in reason)
        return None if bounds is None else self._guarded_anew(bounds, self.guarded.watching)

    def watching(self, watching: Watching) -> Attached | None:
        """The same with something else made of accesses that leave their object."""
        return None if self.guarded is None else self._guarded_anew(self.guarded.bounds, watching)

    def _guarded_anew(self, bounds: Bounds, watching: Watching) -> Attached | None:
        from mcveto.property.safety.guard_program import guard

        assert self.unguarded is not None
        guarded = guard(self.unguarded, bounds, watching)
        return None if guarded is None else replace(self, program=guarded.program, guarded=guarded)

    def explained(self, verdict: Verdict) -> Verdict:
        """A violation by one of the properties' targets, told as the property's; what a user could add."""
        if verdict.kind == "unknown":
            return replace(verdict, warnings=(*verdict.warnings, *self._undefined_function(verdict.reason)))
        if verdict.kind == "violated" and verdict.about == "return-address":
            return replace(verdict, warnings=(*verdict.warnings, *self._pointers_to_the_stack(verdict)))
        if verdict.kind != "violated" or verdict.at is None or verdict.at not in self.errors:
            return verdict
        about, reason = self.errors[verdict.at]
        # A fresh value at a watched place is the automaton's choice, not something that a manual leaves open.
        decoder = self.program.decoder
        calls = decoder.places if isinstance(decoder, WatchingDecoder) else {}
        watched = self.watched | calls.keys()
        places = {f"undefined value at {pc:#x}": f"choice of property {about} at {pc:#x}" for pc in watched}
        inputs = tuple(replace(item, where=places.get(item.where, item.where)) for item in verdict.inputs)
        return replace(verdict, about=about, reason=reason, inputs=inputs)

    def _undefined_function(self, reason: str) -> tuple[str, ...]:
        """Calling a function that is not in the file ends a path as not supported until somebody says what it does."""
        found = re.search(r"\bjump to import (\S+?)(?=[\s,;)]|$)", reason)
        if found is None or found[1] not in self.program.image.imports:
            return self._open_functions(reason)
        name = found[1]
        ways = [f"--input {name}:32 (it returns anything)", f"--halt {name} (it does not return)"]
        ways += [f"--assume {name} (its argument is not zero)"]
        ways += [f"--event EVENT={name}"] if self.names else []
        ways += [f"--undefined {RETURNS_ANYTHING} (so does every function that is not defined)"]
        return (f"{name} is not defined in the file; say what it does: {', '.join(ways)}",)

    def _open_functions(self, reason: str) -> tuple[str, ...]:
        """Who waits until the time is over should know that it was in vain if one of these is called."""
        program = self.program
        if program.image.import_area is None or not reason.startswith("time-out"):
            return ()
        undefined = sorted(program.image.imports.keys() - program.image.symbols.keys())
        names = [name for name in undefined if _is_open(program, name)]
        if not names:
            return ()
        shown = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        return (
            f"nothing can be proved if one of these is called, which the file does not define: {shown}; say what they "
            f"do, e.g. --undefined {RETURNS_ANYTHING}",
        )

    def _pointers_to_the_stack(self, verdict: Verdict) -> tuple[str, ...]:
        """A return that goes astray because an argument points to the return address: few mean that to be possible."""
        program = self.program
        row = program.decoder.row
        (pointer,) = program.decoder.layout.named(row.stack_pointer)
        first = program.registers.get(pointer.cell.number)
        stack = None if first is None else program.space.region_at(first - 1)
        names = {f"unspecified register {name} at entry": number for number, name in enumerate(row.arguments, 1)}
        return tuple(
            f"argument {names[item.where]} of the entry, of which nothing is said, points into the stack; "
            f"if it has an object of its own, say so: --pointer {names[item.where]}:SIZE"
            for item in verdict.inputs
            if stack is not None and item.where in names and stack.start <= item.value < stack.end
        )


def attach(program: Program, events: Sequence[EventPoint] = ()) -> Attached:
    """The program with its spec's typestate properties watched; raises UsageError or InputFileError."""
    return attach_sources(program, typestate_sources(program.spec), events)


def typestate_sources(spec: Spec) -> list[TypestateSource]:
    """The files of a spec's typestate properties; raises UsageError or InputFileError."""
    return [_find(spec, str(item.argument)) for item in spec.properties if item.name == "typestate"]


def attach_sources(
    program: Program,
    sources: Sequence[TypestateSource],
    events: Sequence[EventPoint],
    bounds: tuple[int, ...] | None = None,
) -> Attached:
    """The program with the properties that these texts describe watched: those of its spec, in order, which also says
    where events are; `bounds` are the pending calls and heap blocks to watch, if not as many as a few runs show,
    and the instructions that may leave the object they access. Raises UsageError or InputFileError."""
    automata = [parse_typestate(source.text, source.path) for source in sources]
    items = [item for item in program.spec.properties if item.name == "typestate"]
    if len(items) != len(automata):
        raise UsageError(f"the spec has {len(items)} typestate properties, not {len(automata)}")
    require_known(events, automata, "--event")
    bindings = []
    for item, automaton in zip(items, automata, strict=True):
        require_known(item.events, [automaton], f"{program.spec.path or 'spec'}: events")
        own = bindings_of([parse_binding(event, where) for event, where in item.events], automaton)
        own.update(bindings_of(events, automaton))
        bindings.append(own)
    program = _with_undefined_functions(program, automata, bindings)
    attached = Attached(program)
    if automata:
        from mcveto.property.ghost import watch
    for number, (automaton, own) in enumerate(zip(automata, bindings, strict=True)):
        watched = watch(attached.program, automaton, own, number)
        attached = Attached(
            watched.program,
            (*attached.names, automaton.name),
            {**attached.errors, **watched.errors},
            attached.watched | watched.events.keys(),
            places=_merged(attached.places, watched.events),
            cells={**attached.cells, watched.state_cell: (automaton.name, automaton.states)},
            automata=(*attached.automata, automaton),
        )
    attached = replace(attached, sources=tuple(sources), events=tuple(events))
    if not any(item.name in SAFETY for item in program.spec.properties):
        return attached
    from mcveto.property.safety.guard_program import Bounds, Watching, asked_properties, guard

    if bounds is None:
        guarded = guard(attached.program)
    else:
        if len(bounds) < 2:
            raise UsageError("how many calls and heap blocks are watched is not said")
        excused = frozenset(bounds[2:])
        watching = Watching(program.spec.objects != "together", excused)
        guarded = guard(attached.program, Bounds(*bounds[:2]), watching)
    if guarded is None:
        return attached
    names = (*attached.names, *asked_properties(program))
    return replace(attached, program=guarded.program, names=names, unguarded=attached.program, guarded=guarded)


def _with_undefined_functions(
    program: Program, automata: Sequence[Typestate], bindings: Sequence[Mapping[str, Sequence[Point]]]
) -> Program:
    """The program with functions of an object file that are watched, that the file does not define and that the spec
    says nothing about as functions which return anything; that is listed as an assumption."""
    image = program.image
    if image.import_area is None:
        return program
    from mcveto.property.points import that_count

    points = [
        point
        for automaton, own in zip(automata, bindings, strict=True)
        for name, event in automaton.events.items()
        for point in that_count(image, own.get(name, event.points))
        if point.kind in (PointKind.CALL, PointKind.RETURN)
    ]
    names = sorted({str(point.where) for point in points if point.where in image.imports} - image.symbols.keys())
    row = program.decoder.row
    undefined = [name for name in names if _is_open(program, name)]
    if not undefined:
        return program
    spec = replace(
        program.spec,
        input_calls=(
            *(call for call in program.spec.input_calls if call.at != MODEL_INPUT),
            *(InputCall(name, row.address_bits) for name in undefined),
        ),
    )
    return make_program(program.loaded or image, spec)


def _is_open(program: Program, name: str) -> bool:
    address = program.undetermined.import_address(name)
    return address not in program.hooks and address not in program.halts | program.targets


def _merged(one: dict[int, tuple[str, ...]], other: dict[int, tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    return {pc: (*one.get(pc, ()), *other.get(pc, ())) for pc in sorted(one.keys() | other.keys())}


def require_known(events: Sequence[tuple[str, object]], automata: Sequence[Typestate], where: str) -> None:
    """Raises UsageError for events that no automaton has."""
    known = {event for automaton in automata for event in automaton.events}
    for event, _ in events:
        if event not in known:
            there = f"events are {', '.join(sorted(known))}" if known else "no typestate property is asked for"
            raise UsageError(f"{where}: no property has an event '{event[:60]}'", there)


def bindings_of(events: Sequence[EventPoint], automaton: Typestate) -> dict[str, list[Point]]:
    """The points of each event of the automaton that was given some."""
    bindings: dict[str, list[Point]] = {}
    for event, point in events:
        if event in automaton.events:
            points = bindings.setdefault(event, [])
            if isinstance(point, (int, str)):
                points.append(Point(_kind_of(automaton, event), point))
            elif point is not None:
                points.append(point)
    return bindings


def _kind_of(automaton: Typestate, event: str) -> PointKind:
    """What kind of event it is by the automaton's file; a call unless that says otherwise."""
    kinds = {point.kind for point in automaton.events[event].points} - {PointKind.SYSTEM_CALL}
    if len(kinds) > 1:
        names = " or ".join(sorted(kind.value for kind in kinds))
        raise UsageError(f"event {event} can be a {names}", f"say which: {event}=call:ADDRESS")
    return kinds.pop() if kinds else PointKind.CALL


def with_typestates(spec: Spec, names: Sequence[str]) -> Spec:
    """The spec with more properties, by file or by name; refuses at once what cannot be found."""
    for name in names:
        find_typestate(name)
    return replace(spec, properties=(*spec.properties, *(PropertySpec("typestate", name) for name in names)))


def parse_event(text: str) -> EventPoint:
    """NAME=KIND:WHERE, NAME=WHERE, or NAME=none."""
    name, equals, point = text.partition("=")
    if not name.strip() or not equals or not point.strip():
        raise UsageError(f"--event: '{text[:60]}' is not NAME=KIND:ADDRESS", _HINT)
    return parse_binding(name.strip(), point)


def parse_binding(event: str, where: Address) -> EventPoint:
    """A place as a user wrote it: KIND:WHERE, an address or symbol alone, or none."""
    if isinstance(where, int):
        return event, where
    text = where.strip()
    if text == "none":
        return event, None
    kind, colon, rest = text.partition(":")
    if not colon:
        return event, _address(text)
    kinds = {item.value: item for item in PointKind}
    if kind.strip() not in kinds or not rest.strip():
        raise UsageError(f"event {event[:60]}: '{text[:60]}' is not KIND:ADDRESS", _HINT)
    return event, Point(kinds[kind.strip()], _address(rest.strip()))


def _address(text: str) -> Address:
    number = re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", text, re.ASCII)
    return int(text, 0 if "x" in text.lower() else 10) if number else text


def event_text(event: EventPoint) -> str:
    """As `parse_event` reads it."""
    name, point = event
    if point is None:
        return f"{name}=none"
    where, kind = (point.where, f"{point.kind.value}:") if isinstance(point, Point) else (point, "")
    return f"{name}={kind}{where if isinstance(where, str) else hex(where)}"


def find_for(spec: Spec, name: str) -> Typestate:
    """The automaton that a spec means by this name; raises UsageError or InputFileError."""
    source = _find(spec, name)
    return parse_typestate(source.text, source.path)


def _find(spec: Spec, name: str) -> TypestateSource:
    """Relative to the spec file if it is there, else as on the command line."""
    if spec.path is not None:
        beside = Path(spec.path).parent / name
        if beside.is_file():
            return find_typestate_source(str(beside))
    return find_typestate_source(name)
