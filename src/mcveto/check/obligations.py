"""The obligations of a certificate, each re-derived from the binary. Together they imply the certificate's claim.

1. identity      the file is whole, and speaks of this binary, this spec, these assumptions (`check.question`)
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import z3

from mcveto.check import certificate as file
from mcveto.check.certificate import ANY, HALT, Certificate
from mcveto.check.formulas import Formula, Later, Value, all_of, any_of, equal, no, reads, vector, within
from mcveto.check.question import Rejected, number
from mcveto.check.steps import Outcome, Place, Steps
from mcveto.check.values import CheckerDomain, Vocabulary, allows
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import Transfer
from mcveto.program.exits import exit_convention
from mcveto.program.program import Program

Known = Sequence[tuple[Formula, Callable[[int], int | None]]]
# No register has a name with "!", and no value that a step leaves open is part of the history.
_HISTORY = re.compile(r"(?!fresh!)[A-Za-z_/][A-Za-z0-9_./]*![A-Za-z0-9_.]+")
_FRESH = re.compile(r"(fresh![1-9][0-9]{0,5}\.([1-9][0-9]{0,3}))")
_TOKEN = re.compile(r"""\|[^|\\]*\||[()]|[^\s()|;"\\]+""")
# Conditions that say what a register or some bytes are.
_BYTE = re.compile(r"\(select mem #x([0-9a-f]+)\)")
_BYTES = r"(?:\(concat )*{0}(?: {0}\))*".format(r"\(select mem #x[0-9a-f]+\)")
_STATED = re.compile(rf"\(= (\w+|{_BYTES}) #(x[0-9a-f]+|b[01]+)\)")


@dataclass(frozen=True, eq=False, slots=True)
class Condition:
    """A condition of an invariant: its formula, the names in it, the addresses of bytes of `mem` that it reads (None if
    they are not certain); and the registers and bytes whose values it states, if that is all it says."""

    formula: Formula
    names: frozenset[str]
    places: frozenset[int] | None
    registers: dict[int, int]
    bytes: tuple[tuple[int, int], ...]


Ways = list[list[Condition]]


@dataclass(frozen=True, slots=True)
class Obligation:
    """A formula that must be unsatisfiable; `known` gives bytes that are certain before the step, by memory."""

    what: str
    formulas: tuple[Formula, ...]
    known: Known


class Checker:
    """All obligations of a certificate about a program; raises Rejected where a comparison fails."""

    few = 64
    """Locations that are not work enough for a process of their own."""

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
        frames = None if location.frames is None else tuple(map(number, location.frames))
        place = Place(location.id, number(location.pc), code, frames)
        if frames == ():
            raise Rejected(f"{location.id}: a location outside of every call")
        if max((place.pc, *(frames or ()))) > self._row.address_mask:
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
        written = {item.id: [(*way, *self._promised(item)) for way in item.invariant] for item in locations}
        texts = list(dict.fromkeys(text for ways in written.values() for way in ways for text in way))
        found = dict(zip(texts, map(self._condition, texts, parse(texts, names)), strict=True))
        invariants = {name: [[found[text] for text in way] for way in ways] for name, ways in written.items()}
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
        return invariants, noted

    def _promised(self, location: file.Location) -> Iterator[str]:
        """As conditions: its stack and frame pointer, and its code where that could be overwritten."""
        layout, place, width = self._program.decoder.layout, self._places[location.id], self._row.address_bits // 4
        pointers = (self._row.stack_pointer, location.stack_pointer), (self._row.frame_pointer, location.frame_pointer)
        for (piece,), value in ((layout.named(name), text) for name, text in pointers if text != ANY):
            yield f"(= {piece.cell.name} #x{number(value):0{width}x})"
        for at, byte in enumerate(b"".join(place.code), self._row.code_address(place.pc)):
            if self._fixed_byte(at) is None:
                yield f"(= (select mem #x{at:0{width}x}) #x{byte:02x})"

    def _condition(self, text: str, formula: Formula) -> Condition:
        names = [name.strip("|") for name in _TOKEN.findall(text)]
        places = [int(place, 16) for place in _BYTE.findall(text)]
        registers, content = dict[int, int](), b""
        if (match := _STATED.fullmatch(text)) is not None and match[1] in self._cells:
            registers[self._cells[match[1]].number] = int(f"0{match[2]}", 0)
        elif match is not None and places:
            content = int(f"0{match[2]}", 0).to_bytes(len(places), "big")
        certain = frozenset(places) if len(places) == names.count("mem") else None
        return Condition(formula, frozenset(names), certain, registers, tuple(zip(places, content, strict=False)))

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
        held = set(ways[0]).intersection(*ways[1:]) if ways else set()
        registers = dict(pair for condition in held for pair in condition.registers.items())
        known = dict(pair for condition in held for pair in condition.bytes)
        for count, outcome in enumerate(self._steps.outcomes(place, registers, known)):
            outcome.history, outcome.held = self._notes[location.id], held
            what = f"step {count} of {location.id} at {location.pc}"
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
                    said = vector(self._here(location), 0)
                    step += [z3.substitute(said, (x, at)) for x in self._anything for _, at in reads([*step])]
                yield Obligation(what, (_formula(ways), *step), self._known)

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
                yield all_of([equal(outcome.target, back), self._safe(replace(outcome, target=back), names)])
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
        targets = any_of([equal(address, at) for at in sorted(self._program.targets)])
        replaced = any_of([equal(target, pc) for pc in sorted(self._program.hooks)])
        halted = any_of([equal(address, at) for at in self._halts])
        outside = within(address, self._steps.foreign)
        ends = [no(any_of([allows(self._space, address, EXECUTE), replaced, halted, outside]))]
        for place in (None if name == HALT else self._places[name] for name in names):
            there = halted if place is None else equal(target, place.pc)
            if there is not False:
                ends.append(there if place is None else all_of([there, self._arrives(outcome, place)]))
        return all_of([no(targets), any_of(ends)])

    def _arrives(self, outcome: Outcome, place: Place) -> Formula:
        """That the state after an outcome is one of the location."""
        state, cells = outcome.state, self._program.decoder.layout.cells
        written = [(cells[number], value) for number, value in state.registers.items()]
        parts = [self._vocabulary.is_whole(*item) for item in written]
        changed = {item[0].name: Later(partial(self._vocabulary.after, *item), (0, 0)) for item in written}
        changed |= {"mem": Later(lambda: state.memory, (0, 0))} if state.written != set() else {}
        changed |= outcome.history.get(place.name, {})
        ways = self._invariants[place.name]
        after = {item: self._holds(item, outcome, changed) for way in ways for item in way}
        return all_of([*parts, any_of([all_of([after[item] for item in way]) for way in ways])])

    def _holds(self, item: Condition, outcome: Outcome, changed: dict[str, Value]) -> Formula:
        """A condition after an outcome: certain if it held before and nothing that it reads is changed."""
        state, names, written = outcome.state, item.names & changed.keys(), outcome.state.written
        if names == {"mem"} and written is not None and item.places is not None and written.isdisjoint(item.places):
            names = frozenset()
        if not names and item in outcome.held:
            return True
        if item.bytes:
            return all_of([equal(state.byte(at), byte) for at, byte in item.bytes])
        for cell in (self._program.decoder.layout.cells[at] for at in item.registers):
            if isinstance(now := state.read_register(cell), int):
                return now % (1 << self._vocabulary.layout.significant_bits(cell)) == item.registers[cell.number]
        return z3.substitute(item.formula, *((self._names[name], vector(changed[name], 0)) for name in names))

    def exits(self, outcome: Outcome) -> Formula:
        """That a system call ends the process."""
        convention = exit_convention(self._program)
        if convention is None:
            return False
        ((cell, low, bits),) = self._program.decoder.layout.named(convention.number_register)
        called = outcome.state.extract(outcome.state.read_register(cell), low, bits, cell.bits)
        return any_of([equal(called, end) for end in sorted(convention.numbers)])

    def _fixed_byte(self, address: int) -> int | None:
        fixed = self._space.fixed_bytes(address, 1)
        return None if fixed is None else fixed[0]


def _formula(ways: Ways) -> Formula:
    return any_of([all_of([item.formula for item in way]) for way in ways])


def parse(texts: Sequence[str], names: Mapping[str, Any]) -> list[Formula]:
    """Conditions as formulas over variables with these names."""
    used: set[str] = set()
    for text in texts:
        # One balanced expression: it cannot smuggle in commands.
        tokens = _TOKEN.findall(text)
        *inner, outer = accumulate(((token == "(") - (token == ")") for token in tokens), initial=0)
        if not tokens or outer or min(inner[1:], default=1) < 1 or _TOKEN.sub("", text).strip():
            raise Rejected(f"'{text[:60]}' is not one expression")
        used.update(tokens)
    declared = {name: names[name] for name in sorted(token.strip("|") for token in used) if name in names}
    try:
        parsed = list(z3.parse_smt2_string("\n".join(f"(assert {text})" for text in texts), decls=declared))
    except z3.Z3Exception as error:
        raise Rejected(f"a claim is not a condition on the state: {error}") from None
    if len(parsed) != len(texts):
        raise Rejected("a claim is not one condition")
    return parsed
