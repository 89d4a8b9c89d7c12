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
from functools import partial
from typing import Any

import z3

from mcveto.check import certificate as file
from mcveto.check.certificate import ANY, HALT, Certificate
from mcveto.check.steps import Outcome, Place, Rejected, Stated, Steps
from mcveto.check.values import CheckerDomain, Formula, Later, Value, Vocabulary
from mcveto.check.values import all_of, allows, any_of, equal, no, reads, vector, within
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
# Conditions that say what a register or some bytes are.
_STATED = re.compile(r"\(= (\w+|(?:\(concat )*\(select mem #x\w+\)(?: \(select mem #x\w+\)\))*) #(x\w+|b[01]+)\)")
_BYTE = re.compile(r"\(select mem #x([0-9a-f]+)\)")


@dataclass(frozen=True, eq=False, slots=True)
class Condition:
    """A condition of an invariant: its formula, the names in it, the addresses of the bytes of `mem` that it reads (None
    if they are not certain), and what it says that registers and bytes are, if that is all it says."""

    formula: Formula
    names: frozenset[str]
    places: frozenset[int] | None
    stated: Stated


Ways = list[list[Condition]]


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
        self._cells = {cell.name: cell for cell in program.decoder.layout.cells}
        self._variables = {name: self._vocabulary.variable(cell) for name, cell in self._cells.items()}
        self._variables["mem"] = self._vocabulary.memory
        self._begins: dict[str, Any] = {}
        self._history: Any = self._read_history(certificate)
        # What begins as the memory and never changes is the memory at entry.
        changed = {note.name for location in certificate.locations for note in location.notes}
        constant = [item for item in certificate.history if item.name not in changed]
        entry = [(self._history[x.name], self._space.initial_byte) for x in constant if x.begins == "mem"]
        self._names = self._variables | self._history
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

    def _parse(self, certificate: Certificate) -> tuple[dict[str, Ways], dict[str, dict[str, Any]]]:
        """The alternatives of each invariant, and what steps make of the history's variables, by location."""
        names, locations = dict(self._names), certificate.locations
        texts = list(dict.fromkeys(text for location in locations for way in location.invariant for text in way))
        found = dict(zip(texts, map(self._condition, texts, parse(texts, names)), strict=True))
        ways = {item.id: [[found[text] for text in way] for way in item.invariant] for item in locations}
        # Only notes may speak of what a step leaves open: an invariant that did would say something about it.
        notes = [(location.id, note) for location in locations for note in location.notes]
        texts = list(dict.fromkeys(f"(= {note.name} {note.value})" for _, note in notes))
        for name, bits in dict(match for text in texts for match in _FRESH.findall(text)).items():
            names[name] = self._vocabulary.named(name, int(bits))
        equations = dict(zip(texts, parse(texts, names), strict=True))
        noted: dict[str, dict[str, Any]] = {location.id: {} for location in locations}
        for name, note in notes:
            variable, equation = self._history.get(note.name), equations[f"(= {note.name} {note.value})"]
            if variable is None or not z3.is_eq(equation) or not z3.eq(equation.arg(0), variable):
                raise Rejected(f"{name}: '{note.name[:40]}' cannot become '{note.value[:40]}'")
            noted[name].setdefault(note.to, {})[note.name] = equation.arg(1)
        return ways, noted

    def _condition(self, text: str, formula: Formula) -> Condition:
        names = [name.strip("|") for name in _CONDITION.findall(text)]
        places = [int(place, 16) for place in _BYTE.findall(text)]
        stated, match = Stated(), _STATED.fullmatch(text)
        if match is not None and match[1] in self._cells:
            stated.registers[self._cells[match[1]].number] = int(f"0{match[2]}", 0)
        elif match is not None and places:
            content = int(f"0{match[2]}", 0).to_bytes(len(places), "big")
            stated.bytes.update(zip(places, content, strict=True))
        reads_certain = len(places) == names.count("mem")
        return Condition(formula, frozenset(names), frozenset(places) if reads_certain else None, stated)

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
            self._begins |= {name: self._variables[begins]} if begins else {}
        return history

    def initiation(self) -> Obligation:
        """Obligation 4: the entry state is like the end of a step that nothing precedes."""
        entry, sentinel = self._program.entry, self._program.return_sentinel
        state = CheckerDomain(self._vocabulary, self._space, ())
        state.registers.update(self._program.registers)
        outcome = Outcome([], state, Transfer.JUMP, entry, entry, history=dict.fromkeys(self._start, self._begins))
        names = [name for name in self._start if self._places[name].frames in (None, (sentinel,))]
        known = [(self._vocabulary.memory, self._space.initial_byte)]
        return Obligation("initiation", (no(self._safe(outcome, names)),), known)

    def consecution(self, location: file.Location) -> Iterator[Obligation]:
        """Obligations 3 and 5 to 7 of one location: one per way through its code and return address expected."""
        place, ways = self._places[location.id], self._invariants[location.id]
        held, stated = set(ways[0]).intersection(*ways[1:]) if ways else set(), Stated()
        for condition in held:
            stated.registers.update(condition.stated.registers)
            stated.bytes.update(condition.stated.bytes)
        before = [_formula(ways)]
        before += [self._vocabulary.variable(cell) == value for cell, value in self._steps.pointers(place)]
        for number, outcome in enumerate(self._steps.outcomes(place, stated)):
            outcome.history, outcome.held = self._notes[location.id], held
            what = f"step {number} of {location.id} at {location.pc}"
            if outcome.unsupported:
                what, ends = f"{what} ({outcome.unsupported})", iter([False])
            elif outcome.system_call:
                what, ends = f"{what} (system call)", iter([self.exits(outcome)])
            else:
                ends = self._ends(location, outcome)
            for safe in ends:
                step = [*outcome.guard, no(safe)]
                if self._anything and safe is not True:
                    # What holds for anything, in whichever location it puts the run, holds for addresses that are read.
                    known = vector(self._here(location), 0)
                    read = [at for _, at in reads([part for part in step if not isinstance(part, bool)])]
                    step += [z3.substitute(known, (x, at)) for x in self._anything for at in read]
                yield Obligation(what, (*before, *step), self._known)

    def _here(self, location: file.Location) -> Formula:
        """What some location with the same code and calls says: which of them a run is in may depend on anything."""
        where = location.pc, location.frames
        return any_of([_formula(self._invariants[x.id]) for x in self.locations if (x.pc, x.frames) == where])

    def _ends(self, location: file.Location, outcome: Outcome) -> Iterator[Formula]:
        """Where an outcome may end, by the listed steps that fit the calls pending after it.

        Obligation 6: a return goes to the address that is pending, or to each one that can be.
        """
        frames, back = self._places[location.id].frames, outcome.following
        if outcome.transfer is Transfer.RETURN:
            for back in sorted(self._pending.get(location.id, ())) if frames is None else frames[-1:]:
                names = self._listed(location, location.returns, back, frames and frames[:-1])
                matches = equal(outcome.target, back, self._row.address_bits)
                yield all_of([matches, self._safe(replace(outcome, target=back), names)])
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
        target, bits, mode = outcome.target, self._row.address_bits, self._row.mode_mask
        address = target & ~mode if isinstance(target, int) else z3.simplify(target & z3.BitVecVal(~mode, bits))
        targets = any_of([equal(address, at, bits) for at in sorted(self._program.targets)])
        replaced = any_of([equal(target, pc, bits) for pc in sorted(self._program.hooks)])
        halted = any_of([equal(address, at, bits) for at in self._halts])
        outside = within(address, self._steps.foreign)
        ends = [no(any_of([allows(self._space, address, EXECUTE), replaced, halted, outside]))]
        for place in (None if name == HALT else self._places[name] for name in names):
            there = halted if place is None else equal(target, place.pc, bits)
            if there is not False:
                ends.append(there if place is None else all_of([there, self._arrives(outcome, place)]))
        return all_of([no(targets), any_of(ends)])

    def _arrives(self, outcome: Outcome, place: Place) -> Formula:
        """That the state after an outcome is one of the location: its pointers, its code, its invariant."""
        parts: list[Formula] = []
        state, cells = outcome.state, self._program.decoder.layout.cells
        for number, value in state.registers.items():
            parts += self._vocabulary.insignificant(cells[number], value)
        parts += [equal(state.read_register(cell), value, cell.bits) for cell, value in self._steps.pointers(place)]
        for at, byte in enumerate(b"".join(place.code), self._row.code_address(place.pc)):
            parts.append(equal(state.byte(at), byte, 8))
        changed = {
            cells[n].name: Later(partial(self._vocabulary.after, cells[n], v)) for n, v in state.registers.items()
        }
        changed |= {"mem": Later(lambda: state.memory)} if state.written != set() else {}
        changed |= outcome.history.get(place.name, {})
        ways = self._invariants[place.name]
        after = {item: self._holds(item, outcome, changed) for way in ways for item in way}
        return all_of([*parts, any_of([all_of([after[item] for item in way]) for way in ways])])

    def _holds(self, item: Condition, outcome: Outcome, changed: dict[str, Value]) -> Formula:
        """A condition after an outcome: certain if it held before and nothing that it reads is changed."""
        state, cells, names = outcome.state, self._program.decoder.layout.cells, item.names & changed.keys()
        if item in outcome.held and (
            not names
            or (
                names == {"mem"}
                and state.written is not None
                and state.written.isdisjoint(item.places or state.written)
            )
        ):
            return True
        if item.stated.bytes:
            return all_of([equal(state.byte(at), byte, 8) for at, byte in item.stated.bytes.items()])
        for number, value in item.stated.registers.items():
            now = state.read_register(cells[number])
            if isinstance(now, int):
                return now & (1 << self._vocabulary.layout.significant_bits(cells[number])) - 1 == value
        return z3.substitute(item.formula, *((self._names[name], vector(changed[name], 0)) for name in names))

    def exits(self, outcome: Outcome) -> Formula:
        """That a system call ends the process."""
        convention = exit_convention(self._program)
        if convention is None:
            return False
        pieces = self._program.decoder.layout.named(convention.number_register)
        number, width = 0, 0
        for cell, low, bits in pieces:
            part = outcome.state.extract(outcome.state.read_register(cell), low, bits, cell.bits)
            number, width = outcome.state.concatenate(number, part, width, bits) if width else part, width + bits
        return any_of([equal(number, end, width) for end in sorted(convention.numbers)])

    def _fixed_byte(self, address: int) -> int | None:
        fixed = self._space.fixed_bytes(address, 1)
        return None if fixed is None else fixed[0]


def _formula(ways: Ways) -> Formula:
    return any_of([all_of([item.formula for item in way]) for way in ways])


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
