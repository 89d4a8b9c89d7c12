"""The obligations of a certificate, each re-derived from the binary. Together they imply the certificate's claim.

1. identity      the file is whole, and speaks of this binary, this spec, these assumptions (`read_claim`)
2. code          the code of each location is what the image holds, or one instruction that memory is proved to hold
3. safety        no location is a target; no step ends at one
4. initiation    every entry state is in the invariant of a start location
5. consecution   from every state in a location's invariant, every way through its code that does not fault ends at a
                 halt, where nothing can be executed (a fault), or in the invariant of a location listed as a step,
                 with the stack pointer, frame pointer and code bytes that location promises: this holds for jumps
                 through registers and memory and for code that was overwritten as for any other step
6. returns       a return goes where the innermost call expects it
7. completeness  nothing unsupported can happen: no unmodelled system call, no instruction without a meaning

2 and the first half of 3 are compared, the rest are formulas: an obligation is a formula that must be unsatisfiable. By
induction over the steps of a run, no run reaches a target or returns elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

from mcveto.check import certificate as file
from mcveto.check.certificate import ANY, HALT, Certificate
from mcveto.check.steps import Outcome, Place, Rejected, Steps
from mcveto.check.values import Formula, Vocabulary, vector
from mcveto.errors import McvetoError
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import Transfer
from mcveto.program.exits import exit_convention
from mcveto.program.image import Image
from mcveto.program.program import Program, make_program
from mcveto.program.spec import Spec, parse_spec

PROPERTIES = ("reach", "return-address")
_NUMBER = re.compile(r"0x(0|[1-9a-f][0-9a-f]*)")
_CONDITION = re.compile(r"""\|[^|\\]*\||[()]|[^\s()|;"\\]+""")


@dataclass(frozen=True, slots=True)
class Obligation:
    """A formula that must be unsatisfiable; `known` gives bytes of memory that are certain before the step."""

    what: str
    formulas: tuple[Formula, ...]
    known: Callable[[int], int | None]


def read_program(certificate: Certificate, image: Image) -> Program:
    """Obligation 1: the program that the certificate speaks of, and the same question."""
    if file.sealed(certificate).seal != certificate.seal:
        raise Rejected("the seal does not fit: the file was changed or damaged")
    if image.sha256 != certificate.binary.sha256 or image.isa != certificate.binary.isa:
        raise Rejected("it is about another binary")
    if image.import_area is not None or image.unspecified:
        raise Rejected("the file depends on code or data that is not in it")
    try:
        spec = parse_spec(certificate.spec, "the certificate's spec")
        program = make_program(image, spec)
    except McvetoError as error:
        raise Rejected(str(error)) from None
    _require_same_question(certificate, program, spec)
    return program


def _require_same_question(certificate: Certificate, program: Program, spec: Spec) -> None:
    for item in spec.properties:
        if item.name not in PROPERTIES:
            raise Rejected(f"property {item.name} cannot be checked")
    asked = certificate.question
    for what, found, claimed in (
        ("entry", [program.entry], [asked.entry]),
        ("targets", program.targets, asked.targets),
        ("halts", program.halts, asked.halts),
        ("replaced functions", program.hooks, asked.replaced),
    ):
        if sorted(found) != list(map(_number, claimed)):
            raise Rejected(f"its {what} are not those of its spec")
    if asked.properties != (PROPERTIES if program.targets else PROPERTIES[1:]):
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
        self._sentinel = self._row.code_address(program.return_sentinel)
        self._ends = frozenset(program.halts | {self._sentinel})
        self.locations = certificate.locations
        self._places: dict[str, Place] = {}
        for location in certificate.locations:
            if location.id in self._places or location.id == HALT:
                raise Rejected(f"{location.id} is listed twice")
            self._places[location.id] = self._place(location)
        self._invariants = self._parse(certificate)
        self._start = certificate.start
        for names in (certificate.start, *(location.steps for location in certificate.locations)):
            unknown = [name for name in names if name != HALT and name not in self._places]
            if unknown or len(set(names)) != len(names):
                raise Rejected(f"a step leads to {unknown[0] if unknown else names}, which is not listed once")

    def _place(self, location: file.Location) -> Place:
        """Obligation 2, and that the location is no target."""
        try:
            code = tuple(bytes.fromhex(line.split(" ")[0]) for line in location.code)
        except ValueError:
            raise Rejected(f"{location.id}: code that is not hexadecimal") from None
        pointers = [None if text == ANY else _number(text) for text in (location.stack_pointer, location.frame_pointer)]
        frames = tuple(map(_number, location.frames))
        place = Place(location.id, _number(location.pc), code, pointers[0], pointers[1], frames)
        numbers = (place.pc, place.stack_pointer or 0, place.frame_pointer or 0, *frames)
        if max(numbers) > self._row.address_mask:
            raise Rejected(f"{location.id}: a number that is no address")
        instructions = self._steps.instructions(place)
        if location.code != tuple(f"{item.bytes.hex()} {item.text}" for item in instructions if item.bytes):
            raise Rejected(f"{location.id}: the text of an instruction is wrong")
        if self._row.code_address(place.pc) in self._program.targets:
            raise Rejected(f"{location.id} is a target")
        return place

    def _parse(self, certificate: Certificate) -> dict[str, Formula]:
        """The invariants as formulas over the state's variables."""
        texts = [c for location in certificate.locations for way in location.invariant for c in way]
        used = {symbol.strip("|") for text in texts for symbol in _symbols(text)}
        cells = self._program.decoder.layout.cells
        names = {cell.name: self._vocabulary.variable(cell) for cell in cells if cell.name in used}
        names["mem"] = self._vocabulary.memory
        try:
            parsed = iter(z3.parse_smt2_string("\n".join(f"(assert {text})" for text in texts), decls=names))
            invariants = {
                location.id: z3.Or([z3.And([next(parsed) for _ in way]) for way in location.invariant])
                for location in certificate.locations
            }
        except (z3.Z3Exception, StopIteration) as error:
            raise Rejected(f"an invariant is not a condition on the state: {error}") from None
        if next(parsed, None) is not None:
            raise Rejected("an invariant holds more than one condition")
        return invariants

    def initiation(self) -> Obligation:
        """Obligation 4: the entry state is like the end of a step that nothing precedes."""
        entry = self._program.entry
        outcome = Outcome([], dict(self._program.registers), self._vocabulary.memory, Transfer.JUMP, entry, entry)
        safe = self._safe(outcome, (self._program.return_sentinel,), self._start)
        return Obligation("initiation", (z3.Not(safe),), self._space.initial_byte)

    def consecution(self, location: file.Location) -> Iterator[Obligation]:
        """Obligations 3 and 5 to 7 of one location: one per way through its code."""
        place = self._places[location.id]
        before = [self._invariants[location.id]]
        for cell, value in (
            (self._steps.stack_pointer, place.stack_pointer),
            (self._steps.frame_pointer, place.frame_pointer),
        ):
            if value is not None:
                before.append(self._vocabulary.variable(cell) == value)
        for number, outcome in enumerate(self._steps.outcomes(place)):
            what = f"step {number} of {location.id} at {location.pc}"
            if outcome.unsupported:
                what, safe = f"{what} ({outcome.unsupported})", z3.BoolVal(False)
            elif outcome.system_call:
                what, safe = f"{what} (system call)", self._exits(outcome)
            else:
                safe = self._safe_step(outcome, place, location.steps)
            yield Obligation(what, (*before, *outcome.guard, z3.Not(safe)), self._fixed_byte)

    def _safe_step(self, outcome: Outcome, place: Place, steps: tuple[str, ...]) -> Formula:
        if outcome.transfer is Transfer.CALL:
            return self._safe(outcome, (*place.frames, outcome.following), steps)
        if outcome.transfer is not Transfer.RETURN:
            return self._safe(outcome, place.frames, steps)
        if not place.frames:
            return z3.BoolVal(False)
        expected = place.frames[-1]
        matches = vector(outcome.target, self._row.address_bits) == expected
        outcome.target = expected
        return z3.And(matches, self._safe(outcome, place.frames[:-1], steps))

    def _safe(self, outcome: Outcome, frames: tuple[int, ...], steps: tuple[str, ...]) -> Formula:
        """Where control may be after an outcome: not at a target, and at a halt, at a fault or in an invariant."""
        target, bits = vector(outcome.target, self._row.address_bits), self._row.address_bits
        address = z3.simplify(target & z3.BitVecVal(~self._row.mode_mask, bits))
        targets = z3.Or([address == at for at in sorted(self._program.targets)])
        replaced = z3.Or([target == pc for pc in sorted(self._program.hooks)])
        ends = [z3.Not(z3.Or(self._steps.permissions.allows(address, EXECUTE), replaced))]
        for name in steps:
            if name == HALT:
                ends += [address == at for at in sorted(self._ends)]
            elif self._places[name].frames == frames:
                there = z3.simplify(target == self._places[name].pc)
                if not z3.is_false(there):
                    ends.append(z3.And(there, self._arrives(outcome, self._places[name])))
        return z3.And(z3.Not(targets), z3.Or(ends))

    def _arrives(self, outcome: Outcome, place: Place) -> Formula:
        """That the state after an outcome is one of the location: its pointers, its code, its invariant."""
        parts: list[Formula] = []
        new: list[tuple[Any, Any]] = [(self._vocabulary.memory, outcome.memory)]
        for number, value in outcome.registers.items():
            cell = self._program.decoder.layout.cells[number]
            new.append((self._vocabulary.variable(cell), self._vocabulary.after(cell, value)))
            parts.append(self._vocabulary.insignificant(cell, value))
        for cell, expected in (
            (self._steps.stack_pointer, place.stack_pointer),
            (self._steps.frame_pointer, place.frame_pointer),
        ):
            if expected is not None:
                value = outcome.registers.get(cell.number, self._vocabulary.variable(cell))
                parts.append(vector(value, cell.bits) == expected)
        address = self._row.code_address(place.pc)
        for offset, byte in enumerate(b"".join(place.code)):
            if self._fixed_byte(address + offset) is None:
                parts.append(outcome.memory[z3.BitVecVal(address + offset, self._row.address_bits)] == byte)
        return z3.And(*parts, z3.substitute(self._invariants[place.name], *new))

    def _exits(self, outcome: Outcome) -> Formula:
        """That a system call ends the process."""
        convention = exit_convention(self._program)
        if convention is None:
            return z3.BoolVal(False)
        values = []
        for cell, low, bits in self._program.decoder.layout.named(convention.number_register):
            whole = vector(outcome.registers.get(cell.number, self._vocabulary.before(cell)), cell.bits)
            values.append(z3.Extract(low + bits - 1, low, whole))
        number = z3.Concat(*values) if len(values) > 1 else values[0]
        return z3.Or([number == end for end in sorted(convention.numbers)])

    def _fixed_byte(self, address: int) -> int | None:
        fixed = self._space.fixed_bytes(address, 1)
        return None if fixed is None else fixed[0]


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise Rejected(f"'{text}' is not a number")
    return int(text, 16)


def _symbols(text: str) -> set[str]:
    """What a condition mentions, if it is one balanced expression; so it cannot smuggle in commands."""
    found: set[str] = set()
    depth, end = 0, 0
    for match in _CONDITION.finditer(text):
        if text[end : match.start()].strip() or (end and depth == 0):
            raise Rejected(f"'{text[:60]}' is not one expression")
        depth += (match[0] == "(") - (match[0] == ")")
        end = match.end()
        found.add(match[0])
    if text[end:].strip() or depth or not end:
        raise Rejected(f"'{text[:60]}' is not one expression")
    return found
