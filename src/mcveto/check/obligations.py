"""The obligations of a certificate, each re-derived from the binary. Together they imply the certificate's claim.

1. identity      the file is whole, and speaks of this binary, this spec, these assumptions (`read_program`)
2. code          the code of each location is what the image holds, or one instruction that memory is proved to hold
3. safety        no location is a target; no step ends at one
4. initiation    every entry state is in the invariant of a start location
5. consecution   from every state in a location's invariant, every way through its code that does not fault ends at a
                 listed halt, where nothing can be executed (a fault), or in the invariant of a listed location, with
                 the stack pointer, frame pointer and code bytes that location promises: this holds for jumps
                 through registers and memory and for code that was overwritten as for any other step
6. returns       a return goes where the innermost call expects it
7. completeness  nothing unsupported can happen: no unmodelled system call, no instruction without a meaning

2 and the first half of 3 are compared, the rest are formulas: an obligation is a formula that must be unsatisfiable. By
induction over the steps of a run, no run reaches a target or returns elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from mcveto.check import certificate as file
from mcveto.check.certificate import ANY, HALT, Certificate
from mcveto.check.steps import Outcome, Place, Rejected, Steps
from mcveto.check.values import Formula, Vocabulary, all_of, allows, any_of, reads, vector, within
from mcveto.errors import McvetoError
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import Transfer
from mcveto.machine.registers import Cell
from mcveto.program.exits import exit_convention
from mcveto.program.image import Image
from mcveto.program.program import Program, make_program
from mcveto.program.spec import parse_spec
from mcveto.property.attach import attach_sources, parse_event
from mcveto.property.library import TypestateSource
from mcveto.whilelang.models import catalogue

PROPERTIES = ("reach", "return-address")
KNOWN = (*PROPERTIES, "typestate", "memory-safety", "no-fault")
Known = Sequence[tuple[Formula, Callable[[int], int | None]]]
_NUMBER = re.compile(r"0x(0|[1-9a-f][0-9a-f]*)")
# No register has a name with "!", and no value that a step leaves open is part of the history.
_HISTORY = re.compile(r"(?!fresh!)[A-Za-z_/][A-Za-z0-9_./]*![A-Za-z0-9_.]+")
_FRESH = re.compile(r"(fresh![1-9][0-9]{0,5}\.([1-9][0-9]{0,3}))")
_CONDITION = re.compile(r"""\|[^|\\]*\||[()]|[^\s()|;"\\]+""")


@dataclass(frozen=True, slots=True)
class Obligation:
    """A formula that must be unsatisfiable; `known` gives bytes that are certain before the step, by memory."""

    what: str
    formulas: tuple[Formula, ...]
    known: Known


def read_program(certificate: Certificate, image: Image) -> Program:
    """Obligation 1: the program that the certificate speaks of, and the same question."""
    if certificate.format != file.FORMAT or file.sealed(certificate).seal != certificate.seal:
        raise Rejected("the seal does not fit: the file was changed or damaged")
    if image.sha256 != certificate.binary.sha256 or image.isa != certificate.binary.isa:
        raise Rejected("it is about another binary")
    try:
        program, typestates = _derived_program(certificate, image)
    except McvetoError as error:
        raise Rejected(str(error)) from None
    if program.image.unspecified:
        raise Rejected("the file depends on code or data that is not in it")
    _require_same_question(certificate, program, typestates)
    return program


def _derived_program(certificate: Certificate, image: Image) -> tuple[Program, tuple[str, ...]]:
    """The program as the binary, the spec and the texts describe it, and the names of its typestate properties."""
    given = [item.text for item in certificate.sources if item.kind in ("typestate", "while")]
    if image.format == "while":
        from mcveto.program.while_program import while_program
        from mcveto.whilelang.parser import parse

        program = while_program(parse("".join(given), certificate.binary.name), certificate.binary.name)
        expected = [file.source("while", certificate.binary.name, program.image.text)]
        if program.image.sha256 != image.sha256 or certificate.spec or certificate.events:
            raise Rejected("it is about another While program")
        typestates: tuple[str, ...] = ()
    else:
        spec = parse_spec(certificate.spec, "the certificate's spec")
        named = [str(item.argument) for item in spec.properties if item.name == "typestate"]
        if len(named) != len(given) or any(item.name not in KNOWN for item in spec.properties):
            raise Rejected("its property files are not those of its spec")
        files = [TypestateSource(*item) for item in zip(named, given, strict=True)]
        expected = [file.source("typestate", *item) for item in files]
        expected += [file.source("model", item, catalogue.source(item)) for item in catalogue.FILES if spec.models]
        events = tuple(map(parse_event, certificate.events))
        attached = attach_sources(make_program(image, spec), files, events, certificate.watched)
        program, typestates = attached.program, attached.names
    if certificate.sources != tuple(expected):
        raise Rejected("its texts are not those that the question rests on")
    return program, typestates


def _require_same_question(certificate: Certificate, program: Program, typestates: tuple[str, ...]) -> None:
    asked = certificate.question
    for what, found, claimed in (
        ("entry", [program.entry], [asked.entry]),
        ("targets", program.targets, asked.targets),
        ("halts", program.halts, asked.halts),
        ("replaced functions", program.hooks, asked.replaced),
    ):
        if sorted(found) != list(map(number, claimed)):
            raise Rejected(f"its {what} are not those of its spec")
    named = any(item.name == "reach" for item in program.spec.properties)
    if asked.properties != (*(PROPERTIES if named else PROPERTIES[1:]), *typestates):
        raise Rejected("its properties are not those of its spec")
    if certificate.assumptions != program.assumptions:
        raise Rejected("its assumptions are not those of the program")


class Checker:
    """All obligations of a certificate about a program; raises Rejected where a comparison fails."""

    def __init__(self, certificate: Certificate, program: Program) -> None:
        self._program = program
        self._row = program.decoder.row
        self._space = program.space
        self._vocabulary = Vocabulary(program.decoder.layout, self._row.address_bits)
        self._steps = Steps(program, self._vocabulary)
        self._halts = sorted(program.halts | {self._row.code_address(program.return_sentinel)})
        self.locations: Sequence[Any] = certificate.locations
        self._places: dict[str, Place] = {}
        for location in certificate.locations:
            if location.id in self._places or location.id == HALT:
                raise Rejected(f"{location.id} is listed twice")
            self._places[location.id] = self._place(location)
        self._variables = {cell.name: self._vocabulary.variable(cell) for cell in program.decoder.layout.cells}
        self._variables["mem"] = self._vocabulary.memory
        self._begins: list[tuple[Any, Any]] = []
        self._history: Any = self._read_history(certificate)
        # What begins as the memory and never changes is the memory at entry.
        changed = {note.name for location in certificate.locations for note in location.notes}
        constant = [item for item in certificate.history if item.name not in changed]
        entry = [(self._history[x.name], self._space.initial_byte) for x in constant if x.begins == "mem"]
        self._known: Known = [(self._vocabulary.memory, self._fixed_byte), *entry]
        # And what begins as anything is anything, if nothing that steps remember can depend on it.
        free = [] if changed else [x.name for x in constant if not x.begins and x.bits == self._row.address_bits]
        self._anything = [self._history[name] for name in free]
        self._invariants, self._notes = self._parse(certificate)
        self._start = certificate.start
        nested = any(location.frames is None for location in self.locations)
        for location in self.locations:
            edges = (*location.calls, *location.returns)
            if (location.frames is None) != nested or (edges and not nested):
                raise Rejected(f"{location.id}: call strings are kept everywhere or nowhere")
            names = [name for name in location.steps if name != HALT] + [edge.to for edge in edges]
            for name in sorted(set(names) - self._places.keys()):
                raise Rejected(f"a step leads to {name}, which is not listed")
            if set(map(number, location.refuted)) & {self._places[name].pc for name in names}:
                raise Rejected(f"{location.id} refutes what it lists as a step")
        if not set(self._start) <= self._places.keys():
            raise Rejected("it starts at a location that is not listed")
        self._pending: dict[str, set[int]] = {}
        if nested:
            from mcveto.check.procedures import pending_addresses

            self._pending = pending_addresses(self.locations, self._start, self._program.return_sentinel)

    def _place(self, location: file.Location) -> Place:
        """Obligation 2, and that the location is no target."""
        try:
            code = tuple(bytes.fromhex(line.split(" ")[0]) for line in location.code)
        except ValueError:
            raise Rejected(f"{location.id}: code that is not hexadecimal") from None
        pointers = [None if text == ANY else number(text) for text in (location.stack_pointer, location.frame_pointer)]
        frames = None if location.frames is None else tuple(map(number, location.frames))
        place = Place(location.id, number(location.pc), code, pointers[0], pointers[1], frames)
        if frames == ():
            raise Rejected(f"{location.id}: a location outside of every call")
        if max(place.pc, place.stack_pointer or 0, place.frame_pointer or 0, *(frames or ())) > self._row.address_mask:
            raise Rejected(f"{location.id}: a number that is no address")
        instructions = self._steps.instructions(place)
        if location.code != tuple(f"{item.bytes.hex()} {item.text}" for item in instructions if item.bytes):
            raise Rejected(f"{location.id}: the text of an instruction is wrong")
        if self._row.code_address(place.pc) in self._program.targets:
            raise Rejected(f"{location.id} is a target")
        return place

    def _parse(self, certificate: Certificate) -> tuple[dict[str, Formula], dict[str, dict[str, Any]]]:
        """The invariants as formulas over the state's variables, and what steps make of the history's, by location."""
        names, locations = {**self._variables, **self._history}, certificate.locations
        parsed = iter(parse([text for location in locations for way in location.invariant for text in way], names))
        ways = {item.id: [all_of([next(parsed) for _ in way]) for way in item.invariant] for item in locations}
        # Only notes may speak of what a step leaves open: an invariant that did would say something about it.
        notes = [(location.id, note) for location in locations for note in location.notes]
        texts = [f"(= {note.name} {note.value})" for _, note in notes]
        for name, bits in dict(match for text in texts for match in _FRESH.findall(text)).items():
            names[name] = self._vocabulary.named(name, int(bits))
        noted: dict[str, dict[str, Any]] = {location.id: {} for location in locations}
        for (name, note), equation in zip(notes, parse(texts, names), strict=True):
            variable = self._history.get(note.name)
            if variable is None or not z3.is_eq(equation) or not z3.eq(equation.arg(0), variable):
                raise Rejected(f"{name}: '{note.name[:40]}' cannot become '{note.value[:40]}'")
            noted[name].setdefault(note.to, []).append((variable, equation.arg(1)))
        return {name: any_of(alternatives) for name, alternatives in ways.items()}, noted

    def _read_history(self, certificate: Certificate) -> dict[str, Any]:
        """The variables of the history by name, and as what they begin; none of them is part of the state."""
        history: dict[str, Any] = {}
        for item in certificate.history:
            name, begins = item.name, item.begins
            if name in self._variables or name in history or not _HISTORY.fullmatch(name) or not 0 <= item.bits <= 1024:
                raise Rejected(f"'{name[:40]}' cannot be a variable of the history")
            history[name] = variable = self._vocabulary.named(name, item.bits)
            if begins and (begins not in self._variables or self._variables[begins].sort() != variable.sort()):
                raise Rejected(f"{name} cannot begin as '{begins[:40]}'")
            self._begins += [(variable, self._variables[begins])] if begins else []
        return history

    def initiation(self) -> Obligation:
        """Obligation 4: the entry state is like the end of a step that nothing precedes."""
        entry, sentinel = self._program.entry, self._program.return_sentinel
        outcome = Outcome([], dict(self._program.registers), self._vocabulary.memory, Transfer.JUMP, entry, entry)
        outcome.history = dict.fromkeys(self._start, self._begins)
        names = [name for name in self._start if self._places[name].frames in (None, (sentinel,))]
        return Obligation(
            "initiation", (z3.Not(self._safe(outcome, names)),), [(self._vocabulary.memory, self._space.initial_byte)]
        )

    def consecution(self, location: file.Location) -> Iterator[Obligation]:
        """Obligations 3 and 5 to 7 of one location: one per way through its code and return address expected."""
        place = self._places[location.id]
        before = [self._invariants[location.id]]
        before += [self._vocabulary.variable(cell) == value for cell, value in self._steps.pointers(place)]
        for number, outcome in enumerate(self._steps.outcomes(place)):
            outcome.history = self._notes[location.id]
            what = f"step {number} of {location.id} at {location.pc}"
            if outcome.unsupported:
                what, ends = f"{what} ({outcome.unsupported})", iter([z3.BoolVal(False)])
            elif outcome.system_call:
                what, ends = f"{what} (system call)", iter([self.exits(outcome)])
            else:
                ends = self._ends(location, outcome)
            for safe in ends:
                step = [*outcome.guard, z3.Not(safe)]
                # What holds for anything, in whichever location it puts the run, holds for addresses that are read.
                known = self._here(location) if self._anything else None
                step += [z3.substitute(known, (x, at)) for x in self._anything for _, at in reads([*step])]
                yield Obligation(what, (*before, *step), self._known)

    def _here(self, location: file.Location) -> Formula:
        """What some location with the same code and calls says: which of them a run is in may depend on anything."""
        where = location.pc, location.frames
        return any_of([self._invariants[x.id] for x in self.locations if (x.pc, x.frames) == where])

    def _ends(self, location: file.Location, outcome: Outcome) -> Iterator[Formula]:
        """Where an outcome may end, by the listed steps that fit the calls pending after it.

        Obligation 6: a return goes to the address that is pending, or to each one that can be.
        """
        frames, back = self._places[location.id].frames, outcome.following
        if outcome.transfer is Transfer.RETURN:
            for back in sorted(self._pending.get(location.id, ())) if frames is None else frames[-1:]:
                names = self._listed(location, location.returns, back, frames and frames[:-1])
                matches = vector(outcome.target, self._row.address_bits) == back
                yield z3.And(matches, self._safe(replace(outcome, target=back), names))
        elif outcome.transfer is Transfer.CALL:
            yield self._safe(outcome, self._listed(location, location.calls, back, frames and (*frames, back)))
        else:
            yield self._safe(outcome, self._listed(location, None, back, frames))

    def _listed(self, location: file.Location, edges: Any, back: int, frames: tuple[int, ...] | None) -> list[str]:
        """The listed steps along `edges` that expect `back`, or with the call string `frames`; and halts."""
        if frames is None and edges is not None:
            halts = [name for name in location.steps if name == HALT]
            return halts + [edge.to for edge in edges if number(edge.expecting) == back]
        return [name for name in location.steps if name == HALT or self._places[name].frames == frames]

    def _safe(self, outcome: Outcome, names: Iterable[str]) -> Formula:
        """Where control may be after an outcome: not at a target, and at a halt, at a fault or in an invariant."""
        target, bits = vector(outcome.target, self._row.address_bits), self._row.address_bits
        address = z3.simplify(target & z3.BitVecVal(~self._row.mode_mask, bits))
        targets = any_of([address == at for at in sorted(self._program.targets)])
        replaced = any_of([target == pc for pc in sorted(self._program.hooks)])
        halted = any_of([address == at for at in self._halts])
        outside = within(address, self._steps.foreign)
        ends = [z3.Not(z3.Or(allows(self._space, address, EXECUTE), replaced, halted, outside))]
        for place in (None if name == HALT else self._places[name] for name in names):
            there = z3.simplify(halted if place is None else target == place.pc)
            if not z3.is_false(there):
                ends.append(there if place is None else z3.And(there, self._arrives(outcome, place)))
        return z3.And(z3.Not(targets), any_of(ends))

    def _arrives(self, outcome: Outcome, place: Place) -> Formula:
        """That the state after an outcome is one of the location: its pointers, its code, its invariant."""
        parts: list[Formula] = []
        new = [(self._vocabulary.memory, outcome.memory), *outcome.history.get(place.name, ())]
        for number, value in outcome.registers.items():
            cell = self._program.decoder.layout.cells[number]
            new.append((self._vocabulary.variable(cell), self._vocabulary.after(cell, value)))
            parts += self._vocabulary.insignificant(cell, value)
        parts += [self._value(outcome, cell) == expected for cell, expected in self._steps.pointers(place)]
        for at, byte in enumerate(b"".join(place.code), self._row.code_address(place.pc)):
            if self._fixed_byte(at) is None:
                parts.append(outcome.memory[z3.BitVecVal(at, self._row.address_bits)] == byte)
        return all_of([*parts, z3.substitute(self._invariants[place.name], *new)])

    def exits(self, outcome: Outcome) -> Formula:
        """That a system call ends the process."""
        convention = exit_convention(self._program)
        if convention is None:
            return z3.BoolVal(False)
        pieces = self._program.decoder.layout.named(convention.number_register)
        parts = [z3.Extract(low + bits - 1, low, self._value(outcome, cell)) for cell, low, bits in pieces]
        return any_of([(z3.Concat(parts) if parts[1:] else parts[0]) == end for end in sorted(convention.numbers)])

    def _value(self, outcome: Outcome, cell: Cell) -> Any:
        return vector(outcome.registers.get(cell.number, self._vocabulary.before(cell)), cell.bits)

    def _fixed_byte(self, address: int) -> int | None:
        fixed = self._space.fixed_bytes(address, 1)
        return None if fixed is None else fixed[0]


def number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise Rejected(f"'{text}' is not a number")
    return int(text, 16)


def parse(texts: Sequence[str], names: dict[str, Any]) -> list[Formula]:
    """Conditions as formulas over the names."""
    for text in texts:
        _require_expression(text)
    try:
        parsed = list(z3.parse_smt2_string("\n".join(f"(assert {text})" for text in texts), decls=names))
    except z3.Z3Exception as error:
        raise Rejected(f"a claim is not a condition on the state: {error}") from None
    if len(parsed) != len(texts):
        raise Rejected("a claim is not one condition")
    return parsed


def _require_expression(text: str) -> None:
    """A condition is one balanced expression; so it cannot smuggle in commands."""
    depth, end = 0, 0
    for match in _CONDITION.finditer(text):
        if text[end : match.start()].strip() or (end and depth == 0):
            raise Rejected(f"'{text[:60]}' is not one expression")
        depth += (match[0] == "(") - (match[0] == ")")
        end = match.end()
    if text[end:].strip() or depth or not end:
        raise Rejected(f"'{text[:60]}' is not one expression")
