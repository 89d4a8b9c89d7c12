"""Writes the certificate of an exhausted exploration: states that were explored are its locations.

The invariant of a location says what the live registers and bytes are, in terms of values drawn earlier, and those
conditions of the path that something was left out for, there or behind. A value drawn earlier goes by the register or
word that holds it, if one does. The others are the history: each location has names of its own for them, and a step
notes what the names of the next one stand for. So states of which the same is said are one location, however many paths
lead there: the certificate is as long as the proof, not as the search. Nothing here is trusted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import field

from mcveto.certify import Context, assembled, hexes, pointer_text
from mcveto.check.certificate import HALT, Certificate, History, Location, Note
from mcveto.dpg.location import ANY, Blocks, Fold
from mcveto.dpg.location import Location as GraphLocation
from mcveto.dpg.outcomes import OutcomeTable
from mcveto.dpg.steps import Steps
from mcveto.engines.memory import ByteOf, Value
from mcveto.engines.record import EVERYWHERE, NOW, Node, PathProof
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.smtlib import expression
from mcveto.logic.substitute import Substitution
from mcveto.logic.terms import Term
from mcveto.machine.symbolic import initial_register
from mcveto.program.program import Program

# Characters in all invariants together; more is of no use to anybody.
MAX_TEXT = 1 << 27
# Registers and bytes that are spoken of: as many are written and checked in some seconds, also if nobody asked for it.
FEW_VALUES = 150_000

Claim = tuple[str, int, int, Value]
"""What is where: in a register ("register", its number, 0), in a word ("bytes", its address, its size), in all of
memory ("memory", 0, 0); or a condition ("path", 0, 0)."""


def certificate_of_paths(
    program: Program,
    proof: PathProof,
    version: str,
    context: Context,
    is_whole: bool = False,
    seconds: float = math.inf,
) -> Certificate | None:
    """The certificate, or None if it would be too long or takes longer to write; `is_whole` keeps all conditions and
    all states apart."""
    try:
        return _Writer(program, proof, is_whole, time.monotonic() + seconds).certificate(version, context)
    except _TooLong:
        return None


def is_long(proof: PathProof) -> bool:
    """Whether the certificate is written only for somebody who wants it."""
    live = zip(proof.live_registers, proof.live_bytes, strict=True)
    return sum(len(registers) + len(places) for registers, places in live) > FEW_VALUES


class _TooLong(Exception):
    """Nobody would wait for it, or read it."""


@dataclass(slots=True)
class _State:
    """What is said of a node, under the names of its location."""

    number: int
    claims: list[Claim]
    names: dict[Term, Term]
    """Values drawn earlier, and what they are called here: what holds them, or variables of the history."""
    history: dict[Term, Term]
    """Of these, those that nothing holds."""
    of_location: int = 0
    written: list[str] = field(default_factory=list)


class _Writer:
    def __init__(self, program: Program, proof: PathProof, is_whole: bool, deadline: float) -> None:
        self._program = program
        self._deadline = deadline
        self._renamed: _State | None = None
        self._renaming = Substitution({})
        self._proof = proof
        self._is_whole = is_whole
        self._row, self._layout, self._space = program.decoder.row, program.decoder.layout, program.space
        self._steps = Steps(program, Blocks(program), OutcomeTable(program), Fold.FRAME)
        self._memory = t.memory("mem", self._row.address_bits)
        self._now = t.memory(NOW, self._row.address_bits)
        self._entry: dict[Term, Term] = {self._memory: t.memory("mem!entry", self._row.address_bits)}
        for cell in self._layout.cells:
            bits = self._layout.significant_bits(cell)
            self._entry[t.var(cell.name, bits)] = t.var(f"{cell.name}!entry", bits)
        self._variables: dict[Term, tuple[Term, ...]] = {}
        self._pointers = [
            piece.cell.number
            for name in (self._row.stack_pointer, self._row.frame_pointer)
            for piece in self._layout.named(name)
        ]

    def certificate(self, version: str, context: Context) -> Certificate | None:
        states = [self._state(number) for number in range(len(self._proof.nodes))]
        seen: dict[object, int] = {}
        for state in states:
            state.of_location = seen.setdefault(self._key(state), state.number)
        used: dict[str, Term] = {}
        length = 0
        reached, pending = {0: None}, [0]
        while pending:
            state = states[pending.pop()]
            conditions = list(self._conditions(state, used))
            length += sum(map(len, conditions))
            if length > MAX_TEXT:
                raise _TooLong
            state.written = conditions
            for step in self._proof.nodes[state.number].steps:
                to = states[step].of_location
                if to not in reached:
                    reached[to] = None
                    pending.append(to)
        locations = tuple(self._location(states[number], states, used) for number in sorted(reached))
        begins = {new: _name(old) for old, new in self._entry.items()}
        history = tuple(
            History(name=name, bits=item.width if item.op == "var" else 0, begins=begins.get(item, ""))
            for name, item in used.items()
        )
        return assembled(self._program, version, context, ("E0",), locations, history)

    # What is said.

    def _state(self, number: int) -> _State:
        names: dict[Term, Term] = {}
        claims: list[Claim] = []
        for claim in self._claims(number):
            held = None if self._is_whole else self._held(claim)
            if held is not None and held[0] not in names:
                names[held[0]] = held[1]
            else:
                claims.append(claim)
        history: dict[Term, Term] = {}
        for _, _, _, value in claims:
            for variable in self._free(value):
                if variable not in names and not self._is_constant(variable):
                    name = _name(variable) if self._is_whole else f"value!{len(history)}.{variable.width}"
                    names[variable] = history[variable] = t.var(name, variable.width)
        return _State(number, claims, names, history)

    def _is_constant(self, variable: Term) -> bool:
        """Whether it goes by the same name everywhere: memory, and registers at entry if that is no matter."""
        return variable.op == "memory" or (self._is_whole and variable in self._entry)

    def _held(self, claim: Claim) -> tuple[Term, Term] | None:
        """The variable that a register or word holds as it is, and that register or word."""
        kind, at, size, value = claim
        if isinstance(value, int):
            return None
        if kind == "register":
            bits = self._layout.significant_bits(self._layout.cells[at])
            plain = value.args[0] if value.op == "zext" else value
            is_whole = plain.op == "var" and plain.width == bits
            return (plain, t.var(self._layout.cells[at].name, bits)) if is_whole else None
        if kind == "bytes" and value.op == "var":
            return value, self._word(at, size)
        return None

    def _word(self, at: int, size: int) -> Term:
        return t.load(self._memory, t.const(at, self._row.address_bits), size, self._row.big_endian)

    def _free(self, value: Value) -> tuple[Term, ...]:
        if isinstance(value, int):
            return ()
        found = self._variables.get(value)
        if found is None:
            found = self._variables[value] = tuple(t.free_variables([value]))
        return found

    def _here(self, state: _State, value: Value) -> Value:
        """A value under the names of a location."""
        if isinstance(value, int) or not self._free(value):
            return value
        if time.monotonic() > self._deadline:
            raise _TooLong
        if self._renamed is not state:
            # Terms of one state share most of their parts, which are rebuilt once; those of all would fill the memory.
            self._renamed = state
            self._renaming = Substitution({**self._entry, **state.names, self._now: self._memory})
        return self._renaming.apply(value)

    def _key(self, state: _State) -> object:
        node = self._proof.nodes[state.number]
        if self._is_whole:
            return state.number
        claims = tuple((kind, at, size, self._here(state, value)) for kind, at, size, value in state.claims)
        return node.pc, node.frames, tuple(item.bytes for item in node.block), self._pointed(node), claims

    def _pointed(self, node: Node) -> tuple[int, int]:
        values = [node.registers.get(cell, ANY) for cell in self._pointers]
        stack_pointer, frame_pointer = (value if isinstance(value, int) else ANY for value in values)
        return stack_pointer, frame_pointer

    def _claims(self, number: int) -> Iterator[Claim]:
        node = self._proof.nodes[number]
        for register in sorted(self._proof.live_registers[number]):
            value = node.registers.get(register)
            if register in self._pointers and isinstance(value, int):
                continue
            if value is None:
                value = initial_register(self._layout, self._layout.cells[register])
            yield "register", register, 0, value
        live = self._proof.live_bytes[number]
        if EVERYWHERE in live:
            yield "memory", 0, 0, node.memory.whole()
        else:
            yield from self._bytes(node, live)
        needed = self._proof.needed[number]
        path = [term for term in node.path if self._is_whole or term in needed]
        yield from (("path", 0, 0, term) for term in path)

    def _bytes(self, node: Node, live: frozenset[int]) -> Iterator[Claim]:
        """What the live bytes are, several at once where they are a word."""
        waiting = {at for at in live if self._space.fixed_bytes(at, 1) is None and not node.memory.is_open(at)}
        for at in sorted(waiting):
            if at not in waiting:
                continue
            size = 1
            cell = node.memory.cells.get(at)
            stored = cell.word if isinstance(cell, ByteOf) else None
            for wide in (8, 4, 2):
                if waiting.issuperset(range(at, at + wide)):
                    value = node.memory.load(at, wide)
                    if value is stored or (at % wide == 0 and (isinstance(value, int) or value.op == "load")):
                        size = wide
                        break
            waiting -= set(range(at, at + size))
            yield "bytes", at, size, node.memory.load(at, size)

    def _conditions(self, state: _State, used: dict[str, Term]) -> Iterator[str]:
        for kind, at, size, value in state.claims:
            here = self._here(state, value)
            if isinstance(here, Term):
                for variable in t.free_variables([here]):
                    if "!" in _name(variable):
                        used.setdefault(_name(variable), variable)
            if kind == "memory":
                assert isinstance(here, Term)
                yield f"(= mem {expression(here)})"
            elif kind == "register":
                cell = self._layout.cells[at]
                bits = self._layout.significant_bits(cell)
                whole = t.const(here, cell.bits) if isinstance(here, int) else here
                yield expression(t.eq(t.var(cell.name, bits), t.extract(whole, bits - 1, 0)))
            elif kind == "bytes":
                whole = t.const(here, 8 * size) if isinstance(here, int) else here
                yield expression(t.eq(self._word(at, size), whole))
            else:
                assert isinstance(here, Term)
                yield expression(here)

    # Steps.

    def _location(self, state: _State, states: list[_State], used: dict[str, Term]) -> Location:
        node = self._proof.nodes[state.number]
        stack_pointer, frame_pointer = self._pointed(node)
        code = b"".join(item.bytes for item in node.block)
        location = GraphLocation(node.pc, code, stack_pointer, frame_pointer, node.frames)
        notes: dict[tuple[str, str], str] = {}
        for step in node.steps:
            for name, value in self._notes(state, states[step], used):
                notes.setdefault((f"E{states[step].of_location}", name), value)
        steps = dict.fromkeys(f"E{states[step].of_location}" for step in node.steps)
        return Location(
            id=f"E{state.number}",
            pc=hex(node.pc),
            code=tuple(f"{item.bytes.hex()} {item.text}" for item in node.block if item.bytes),
            stack_pointer=pointer_text(stack_pointer),
            frame_pointer=pointer_text(frame_pointer),
            frames=tuple(map(hex, node.frames)),
            invariant=(tuple(state.written),),
            steps=(*([HALT] if node.halts else []), *steps),
            refuted=hexes(self._refuted(location, node)),
            notes=tuple(Note(to=to, name=name, value=value) for (to, name), value in notes.items()),
        )

    def _notes(self, state: _State, to: _State, used: dict[str, Term]) -> Iterator[tuple[str, str]]:
        """What the names of the next location stand for, in those of this one."""
        node = self._proof.nodes[state.number]
        drawn = {v: t.var(f"fresh!{at}.{v.width}", v.width) for at, v in enumerate(node.drawn, 1)}
        given = dict(node.renamings.get(to.number, ()))
        for variable, name in to.history.items():
            value = given.get(variable, variable)
            named = {
                item: self._memory if item is self._now else self._named(state, drawn, item)
                for item in t.free_variables([value])
            }
            now = Substitution(named).apply(value)
            if now is not name and _name(name) in used:
                yield _name(name), expression(now)
            for item in t.free_variables([now]):
                if "!" in _name(item) and not _name(item).startswith("fresh!"):
                    used.setdefault(_name(item), item)

    def _named(self, state: _State, drawn: dict[Term, Term], item: Term) -> Term:
        """A value of this location, or one that the step leaves open; if nothing is said of it, it may be anything."""
        if _name(item).startswith("fresh!"):
            return item
        return drawn.get(item) or self._called(state, item) or t.const(0, item.width)

    def _called(self, state: _State, item: Term) -> Term | None:
        """What a variable is called at a location."""
        return state.names.get(item) or self._entry.get(item)

    def _refuted(self, location: GraphLocation, node: Node) -> set[int]:
        """Where the code alone could lead, and this state does not."""
        reached = {self._proof.nodes[step].pc for step in node.steps} | self._program.halts
        targets = (outcome.target for outcome in self._steps.outcomes(location) if not outcome.unsupported)
        return {int(target.data) for target in targets if target.op == "const"} - reached


def _name(variable: Term) -> str:
    """Of a variable or a memory."""
    return str(variable.data if variable.op == "var" else variable.data[0])
