"""An independent judge of certificates: concrete execution accompanied by the certificate's claim.

The emulator runs the program; the companion finds, at each step, a location whose program counter, call string,
pointers, code and invariant fit the machine's state, by evaluation alone. A certificate that cannot accompany a run, or
whose claim a step from a state it admits leaves, is wrong, whatever a solver says. It shares neither transfer functions
nor solver with the checker. Variables of the history are kept beside the machine, as the notes of each step say. That
two whole memories are equal is not compared.
"""

from __future__ import annotations

import re

from mcveto.check.certificate import ANY, HALT, Certificate, Location, Note
from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.smtlib import parse
from mcveto.logic.solver import make_solver
from mcveto.logic.terms import Term
from mcveto.machine.emulator import Machine
from mcveto.machine.memory import Memory
from mcveto.machine.pcode import FreshOrigin, Transfer
from mcveto.program.exits import explained
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program

END = "end"


class Companion:
    def __init__(self, program: Program, certificate: Certificate) -> None:
        self._program = program
        self._row = program.decoder.row
        self._layout = program.decoder.layout
        self._by_id = {location.id: location for location in certificate.locations}
        self._start = certificate.start
        self._mem = t.memory("mem", self._row.address_bits)
        self._names: dict[str, Term] = {
            cell.name: t.var(cell.name, self._layout.significant_bits(cell)) for cell in self._layout.cells
        }
        self._names["mem"] = self._mem
        self._history = certificate.history
        for item in certificate.history:
            bits = self._row.address_bits
            self._names[item.name] = t.var(item.name, item.bits) if item.bits else t.memory(item.name, bits)
        self._terms: dict[str, Term] = {}
        self._values: dict[str, int | Memory] = {}
        self._drawn: list[tuple[int, int]] = []

    def follow(self, seed: int, max_blocks: int = 300) -> str:
        """Accompanies the run of a seed; says where the claim fails, or ""."""
        machine = self._machine(seed)
        frames = [self._program.return_sentinel]
        found = self._find(machine, frames, dict.fromkeys(self._start, ()))
        for _ in range(max_blocks):
            if isinstance(found, str):
                return "" if found == END else found
            found = self._step(machine, frames, found)
        return ""

    def step_somewhere(self, name: str, seed: int) -> str:
        """One step from a state that the location admits; says how the claim fails, or ""."""
        location = self._by_id[name]
        machine = self._machine(seed)
        if not self._put(machine, location, seed):
            return ""
        frames = [int(frame, 16) for frame in location.frames or ()]
        if self._why_not(machine, frames, location):
            return ""
        found = self._step(machine, frames, location)
        return "" if found == END or isinstance(found, Location) else found

    def _machine(self, seed: int) -> Machine:
        """A machine at the entry, whose history begins; what it draws is written down."""
        machine = self._program.machine(InputSource((), seed), seed)
        supply = machine._domain._fresh

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            self._drawn.append((supply(bits, origin, usual) & ((1 << bits) - 1), bits))
            return self._drawn[-1][0]

        machine._domain._fresh = fresh
        self._values = {}
        for item in self._history:
            if not item.bits:
                self._values[item.name] = self._program.machine(InputSource((), seed), seed).memory
            elif item.begins:
                self._values[item.name] = self._register(machine, self._names[item.begins])
            else:
                self._values[item.name] = 0
        return machine

    def _step(self, machine: Machine, frames: list[int], location: Location) -> Location | str:
        """Runs the code of a location; where the machine then is, END, or how the claim fails."""
        self._drawn.clear()
        known = {note.value: self._evaluated(machine, note) for note in location.notes if "fresh!" not in note.value}
        edges: dict[str, tuple[Note, ...]] = dict.fromkeys(location.steps, ())
        for _ in location.code or ("hook",):
            before = machine.pc
            outcome = machine._step()
            if outcome is not None:
                ended = explained(self._program, outcome, machine.read, None)
                return END if ended.kind in ("fault", "exited") else f"{ended.detail} at {before:#x}"
            transfer, size = machine._last_transfer, machine._last_instruction.size
            following = (before + size) & self._row.address_mask
            if transfer is Transfer.CALL:
                frames.append(following)
                edges |= {edge.to: () for edge in location.calls if int(edge.expecting, 16) == following}
            elif transfer is Transfer.RETURN:
                if not frames:
                    return END  # nobody knows which call a state somewhere is in
                pending = frames.pop()
                if machine.pc != pending:
                    return f"a return at {before:#x} goes to {machine.pc:#x}"
                edges |= {edge.to: () for edge in location.returns if int(edge.expecting, 16) == pending}
            if machine.pc != following or machine.stopped() or machine.pc in machine.hooks:
                break
        if location.frames is None and transfer in (Transfer.CALL, Transfer.RETURN):
            edges = {name: notes for name, notes in edges.items() if name == HALT or name not in location.steps}
        for note in location.notes:
            if note.to in edges:
                edges[note.to] = (*edges[note.to], note)
        return self._find(machine, frames, edges, known)

    def _evaluated(self, machine: Machine, note: Note) -> int | Memory:
        """What a note writes down, if the machine is in the state before the step (or does not matter)."""
        if note.value in self._values:
            return self._values[note.value]
        values, names = self._values, self._names
        drawn = {f"fresh!{at}.{bits}": (value, bits) for at, (value, bits) in enumerate(self._drawn, 1)}
        self._values = {**values, **{name: value for name, (value, _) in drawn.items()}}
        open_values = [(name, bits) for name, bits in re.findall(r"(fresh!\d+\.(\d+))", note.value)]
        for name, _ in open_values:
            self._values.setdefault(name, 0)
        self._names = {**names, **{name: t.var(name, int(bits)) for name, bits in open_values}}
        evaluator = Evaluator(lambda v: self._register(machine, v), lambda m, at: self._byte(machine, m, at))
        try:
            return evaluator.value(parse(note.value, self._names))
        finally:
            self._values, self._names = values, names

    def _noted(
        self, machine: Machine, notes: tuple[Note, ...], known: dict[str, int | Memory]
    ) -> dict[str, int | Memory]:
        """The history after a step."""
        changes = {
            note.name: known[note.value] if note.value in known else self._evaluated(machine, note) for note in notes
        }
        return {**self._values, **changes}

    def _find(
        self,
        machine: Machine,
        frames: list[int],
        names: dict[str, tuple[Note, ...]],
        known: dict[str, int | Memory] | None = None,
    ) -> Location | str:
        stopped = machine.stopped()
        if stopped is not None:
            return END if stopped.kind == "halted" and HALT in names else f"{stopped.kind} at {machine.pc:#x}"
        region = self._program.space.region_at(self._row.code_address(machine.pc))
        if machine.pc not in machine.hooks and (region is None or not region.permissions & 1):
            return END
        reasons = []
        before = self._values
        for name, notes in names.items():
            if name != HALT:
                location = self._by_id[name]
                self._values = self._noted(machine, notes, known or {})
                why = self._why_not(machine, frames, location)
                if not why:
                    return location
                self._values = before
                reasons.append(f"{name}: {why}")
        return f"no location fits at {machine.pc:#x} ({'; '.join(reasons)})"

    def _why_not(self, machine: Machine, frames: list[int], location: Location) -> str:
        if int(location.pc, 16) != machine.pc:
            return "pc"
        if location.frames is not None and [int(frame, 16) for frame in location.frames] != frames:
            return "frames"
        for name, text in (
            (self._row.stack_pointer, location.stack_pointer),
            (self._row.frame_pointer, location.frame_pointer),
        ):
            if text != ANY and int(text, 16) != machine.read(name):
                return name
        code = bytes.fromhex("".join(line.split(" ")[0] for line in location.code))
        if machine.memory.peek(self._row.code_address(machine.pc), len(code)) != code:
            return "code"
        evaluator = Evaluator(lambda v: self._register(machine, v), lambda m, at: self._byte(machine, m, at))
        holds = any(
            all(evaluator.value(self._term(condition)) for condition in alternative)
            for alternative in location.invariant
        )
        return "" if holds else "invariant"

    def _term(self, text: str) -> Term:
        found = self._terms.get(text)
        if found is None:
            found = self._terms[text] = t.TRUE if text.startswith("(= mem ") else parse(text, self._names)
        return found

    def _register(self, machine: Machine, variable: Term) -> int:
        remembered = self._values.get(str(variable.data))
        if isinstance(remembered, int):
            return remembered & ((1 << variable.width) - 1)
        cell = self._layout.by_name[str(variable.data)]
        return machine.registers.get(cell.number, 0) & ((1 << variable.width) - 1)

    def _byte(self, machine: Machine, memory: Term, address: int) -> int:
        remembered = self._values.get(str(memory.data[0]))
        found = (machine.memory if not isinstance(remembered, Memory) else remembered).peek(address, 1)
        return found[0] if found is not None else 0

    def _put(self, machine: Machine, location: Location, seed: int) -> bool:
        """Brings a machine into a state that the location admits, as different as the seed makes it."""
        if not location.invariant:
            return False
        alternative = location.invariant[seed % len(location.invariant)]
        terms = [self._term(condition) for condition in alternative]
        solver = make_solver("bitwuzla")
        for term in terms:
            solver.add(term)
        for pointer, text in (
            (self._row.stack_pointer, location.stack_pointer),
            (self._row.frame_pointer, location.frame_pointer),
        ):
            (piece,) = self._layout.named(pointer)
            if text != ANY:
                machine.registers[piece.cell.number] = int(text, 16)
                solver.add(t.eq(self._names[piece.cell.name], t.const(int(text, 16), piece.cell.bits)))
        if solver.check((), 5.0) != "sat":
            return False
        for variable in t.free_variables(terms):
            if str(variable.data) in self._values and variable.op == "var":
                self._values[str(variable.data)] = solver.value(variable)
            elif variable.op == "var":
                machine.registers[self._layout.by_name[str(variable.data)].number] = solver.value(variable)
        for load in _loads(terms):
            address = solver.value(load.args[1])
            source = load.args[0]
            while source.op == "store":
                source = source.args[0]
            remembered = self._values.get(str(source.data[0]))
            for offset in range(load.data[0]):
                where = (address + offset) & self._row.address_mask
                byte = t.load(source, t.const(where, self._row.address_bits), 1, self._row.big_endian)
                if self._program.space.writable(where):
                    memory = remembered if isinstance(remembered, Memory) else machine.memory
                    memory.poke(where, bytes([solver.value(byte)]))
        machine.pc = int(location.pc, 16)
        return True


def _loads(terms: list[Term]) -> list[Term]:
    found: dict[Term, None] = {}
    stack, seen = list(terms), set(terms)
    while stack:
        term = stack.pop()
        if term.op == "load":
            found[term] = None
        for argument in term.args:
            if argument not in seen:
                seen.add(argument)
                stack.append(argument)
    return list(found)
