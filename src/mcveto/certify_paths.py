"""Writes the certificate of an exhausted exploration: each state that was explored is a location of its own.

The invariant of a location says what the live registers and bytes are, in terms of values drawn earlier, and the
condition of the path. The values drawn earlier are the history: a step notes those that its block draws, the registers
and the memory at entry are there from the beginning. Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcveto.certify import Context, assembled, hexes, pointer_text
from mcveto.check.certificate import HALT, Certificate, History, Location, Note
from mcveto.dpg.location import ANY, Blocks, Fold
from mcveto.dpg.location import Location as GraphLocation
from mcveto.dpg.outcomes import OutcomeTable
from mcveto.dpg.steps import Steps
from mcveto.engines.memory import Cell
from mcveto.engines.record import EVERYWHERE, Node, PathProof
from mcveto.logic import terms as t
from mcveto.logic.smtlib import expression
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.symbolic import initial_register
from mcveto.program.program import Program

# Characters in all invariants together; more is of no use to anybody.
MAX_TEXT = 1 << 25
# As many are written in a fraction of a second, also if nobody asked for them.
SHORT_TEXT = 1 << 18


def certificate_of_paths(
    program: Program, proof: PathProof, version: str, context: Context, longest: int = MAX_TEXT
) -> Certificate | None:
    """The certificate, or None if it would be too long."""
    return _Writer(program, proof).certificate(version, context, longest)


class _Writer:
    def __init__(self, program: Program, proof: PathProof) -> None:
        self._program = program
        self._proof = proof
        self._row, self._layout, self._space = program.decoder.row, program.decoder.layout, program.space
        self._steps = Steps(program, Blocks(program), OutcomeTable(program), Fold.FRAME)
        self._memory = t.memory("mem", self._row.address_bits)
        self._begins: dict[Term, str] = {}
        names: dict[Term, Term] = {self._memory: t.memory("mem!entry", self._row.address_bits)}
        for cell in self._layout.cells:
            bits = self._layout.significant_bits(cell)
            names[t.var(cell.name, bits)] = t.var(f"{cell.name}!entry", bits)
        self._begins = {new: _name(old) for old, new in names.items()}
        self._at_entry = Substitution(names)
        self._pointers = [
            piece.cell.number
            for name in (self._row.stack_pointer, self._row.frame_pointer)
            for piece in self._layout.named(name)
        ]

    def certificate(self, version: str, context: Context, longest: int) -> Certificate | None:
        nodes = self._proof.nodes
        conditions: list[tuple[str, ...]] = []
        used: dict[Term, None] = {}
        length = 0
        for number in range(len(nodes)):
            terms = list(self._conditions(number))
            memory = [self._at_entry.apply(self._whole_memory(number))] if self._is_whole(number) else []
            for variable in t.free_variables([*memory, *terms]):
                if variable in self._begins or "!" in _name(variable):
                    used[variable] = None
            same = (f"(= mem {expression(term)})" for term in memory)
            conditions.append((*same, *(expression(term) for term in terms)))
            length += sum(map(len, conditions[-1]))
            if length > longest:
                return None
        history = {_name(variable): variable for variable in used}
        pairs = [pair for node in nodes for renaming in node.renamings.values() for pair in renaming]
        while True:
            # What a value is renamed from must be remembered as well.
            renamed = [self._at_entry.apply(new) for old, new in pairs if _name(old) in history]
            more = {_name(variable): variable for variable in t.free_variables(renamed)}
            if more.keys() <= history.keys():
                break
            history |= more
        locations = tuple(self._location(number, conditions[number], history) for number in range(len(nodes)))
        declared = tuple(
            History(
                name=name, bits=variable.width if variable.op == "var" else 0, begins=self._begins.get(variable, "")
            )
            for name, variable in history.items()
        )
        return assembled(self._program, version, context, ("E0",), locations, declared)

    def _location(self, number: int, conditions: tuple[str, ...], history: dict[str, Term]) -> Location:
        node = self._proof.nodes[number]
        pointers = [node.registers.get(cell, ANY) for cell in self._pointers]
        stack_pointer, frame_pointer = (value if isinstance(value, int) else ANY for value in pointers)
        code = b"".join(item.bytes for item in node.block)
        location = GraphLocation(node.pc, code, stack_pointer, frame_pointer, node.frames)
        return Location(
            id=f"E{number}",
            pc=hex(node.pc),
            code=tuple(f"{item.bytes.hex()} {item.text}" for item in node.block if item.bytes),
            stack_pointer=pointer_text(stack_pointer),
            frame_pointer=pointer_text(frame_pointer),
            frames=tuple(map(hex, node.frames)),
            invariant=(conditions,),
            steps=(*([HALT] if node.halts else []), *(f"E{step}" for step in node.steps)),
            refuted=hexes(self._refuted(location, node)),
            notes=tuple(self._notes(node, history)),
        )

    def _notes(self, node: Node, history: dict[str, Term]) -> Iterator[Note]:
        drawn = {v: t.var(f"fresh!{at}.{v.width}", v.width) for at, v in enumerate(node.drawn, 1)}
        now = Substitution(drawn).apply
        for step in node.steps:
            changes = {_name(variable): value for variable, value in drawn.items() if _name(variable) in history}
            for old, new in node.renamings.get(step, ()):
                name = f"{_name(old)}!entry" if f"{_name(old)}!entry" in history else _name(old)
                if name in history:
                    changes[name] = now(self._at_entry.apply(new))
            for name, value in changes.items():
                # A value that no location speaks of need not be remembered.
                if all(_name(v) in history or _name(v).startswith("fresh!") for v in t.free_variables([value])):
                    yield Note(to=f"E{step}", name=name, value=expression(value))

    def _refuted(self, location: GraphLocation, node: Node) -> set[int]:
        """Where the code alone could lead, and this state does not."""
        reached = {self._proof.nodes[step].pc for step in node.steps} | self._program.halts
        targets = (outcome.target for outcome in self._steps.outcomes(location) if not outcome.unsupported)
        return {int(target.data) for target in targets if target.op == "const"} - reached

    def _is_whole(self, number: int) -> bool:
        return EVERYWHERE in self._proof.live_bytes[number]

    def _whole_memory(self, number: int) -> Term:
        return self._proof.nodes[number].memory.copy().array()

    def _conditions(self, number: int) -> Iterator[Term]:
        node = self._proof.nodes[number]
        for register in sorted(self._proof.live_registers[number]):
            cell = self._layout.cells[register]
            value = node.registers.get(register)
            if register in self._pointers and isinstance(value, int):
                continue
            bits = self._layout.significant_bits(cell)
            now = t.var(cell.name, bits)
            if value is None:
                value = initial_register(self._layout, cell)
            whole = t.const(value, cell.bits) if isinstance(value, int) else value
            yield t.eq(now, self._at_entry.apply(t.extract(whole, bits - 1, 0)))
        if not self._is_whole(number):
            yield from self._bytes(node, self._proof.live_bytes[number])
        yield from (self._at_entry.apply(term) for term in node.path)

    def _bytes(self, node: Node, live: frozenset[int]) -> Iterator[Term]:
        """What the live bytes are, several at once where they are a word."""
        waiting = {at for at in live if self._space.fixed_bytes(at, 1) is None}
        for at in sorted(waiting):
            if at not in waiting:
                continue
            cells = [self._cell(node, at)]
            for size in (8, 4, 2):
                group = range(at, at + size)
                if at % size == 0 and waiting.issuperset(group):
                    cells = [self._cell(node, where) for where in group]
                    break
            waiting -= set(range(at, at + len(cells)))
            value: Term | None = None
            for cell in cells if self._row.big_endian else reversed(cells):
                byte = t.const(cell, 8) if isinstance(cell, int) else t.extract(cell[0], 8 * cell[1] + 7, 8 * cell[1])
                value = byte if value is None else t.concat(value, byte)
            assert value is not None
            now = t.load(self._memory, t.const(at, self._row.address_bits), len(cells), self._row.big_endian)
            yield t.eq(now, self._at_entry.apply(value))

    def _cell(self, node: Node, address: int) -> Cell:
        return node.memory.byte(address)


def _name(variable: Term) -> str:
    """Of a variable or a memory; of a constant, its value."""
    return str(variable.data if variable.op in ("var", "const") else variable.data[0])
