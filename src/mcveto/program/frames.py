"""Facts about frames that conventions fix: red zones, and which operations save and restore a return address.

A return address that a call pushes lies where the stack pointer points after the call. On machines with a link register
the callee saves it; that is seen where the link register is stored as a word, directly or (PowerPC) through r0.
"""

from __future__ import annotations

from typing import NamedTuple

from mcveto.machine.isa import Decoder
from mcveto.machine.pcode import Instruction, Op, Space, Varnode
from mcveto.program.image import Image

_RED_ZONES = {"x86-64": 128}
# Systems that have another one than the instruction set's usual convention.
_SYSTEMS = {("x86-64", "pe"): 0, ("aarch64", "macho"): 128, ("aarch64", "pe"): 16}
# Where the link register cannot be stored directly, it goes through this register by convention.
_CARRIERS = {"powerpc": "r0"}


def red_zone(image: Image) -> int:
    """How many bytes below the stack pointer a function may use: System V for x86-64 128, elsewhere mostly none."""
    return _SYSTEMS.get((image.isa, image.format), _RED_ZONES.get(image.isa, 0))


def carrier_register(decoder: Decoder) -> Varnode | None:
    """The register through which the link register is saved, if it is not stored itself."""
    name = _CARRIERS.get(decoder.row.overlay)
    return None if name is None else decoder.registers[name]


def link_register(decoder: Decoder) -> Varnode | None:
    """None where calls push the return address."""
    row = decoder.row
    return None if row.pushes_return_address else decoder.registers[row.return_address]


class LinkUse(NamedTuple):
    """What an instruction does with the return address: indices of its operations."""

    saves: frozenset[int]
    """Stores of the link register as a word."""
    carried_saves: frozenset[int]
    """Stores of the carrier as a word."""
    restores: frozenset[int]
    """Loads of a word that may be a saved return address being restored, or read by its own function."""
    carries: frozenset[int]
    """Copies of the link register to its carrier."""
    copies: frozenset[int] = frozenset()
    """Loads of a word that the instruction pushes: functions that align their frame push their return address again."""


def link_use(decoder: Decoder, instruction: Instruction) -> LinkUse:
    row = decoder.row
    word = row.address_bytes
    ops = instruction.ops
    if row.pushes_return_address:
        pointer = decoder.registers[row.stack_pointer]
        plain = {i for i, op in enumerate(ops) if op.opcode == "LOAD" and op.inputs[0] == pointer and _size(op) == word}
        pushed = {
            i
            for i, op in enumerate(ops)
            if op.opcode == "LOAD"
            and op.output is not None
            and _size(op) == word
            and _is_pushed(ops, op.output, pointer)
        }
        return LinkUse(frozenset(), frozenset(), frozenset(plain), frozenset(), frozenset(pushed - plain))
    link = decoder.registers[row.return_address]
    carrier = carrier_register(decoder)
    counter = decoder.registers[row.program_counter]
    saves, carried, restores, carries = set[int](), set[int](), set[int](), set[int]()
    origin: dict[Varnode, Varnode] = {}
    for index, op in enumerate(ops):
        if op.opcode == "STORE" and op.inputs[1].size == word:
            source = origin.get(op.inputs[1], op.inputs[1])
            if source == link:
                saves.add(index)
            elif carrier is not None and source == carrier:
                carried.add(index)
        elif op.opcode == "LOAD" and _size(op) == word:
            assert op.output is not None
            goes_to = {op.output, *_copies(ops[index + 1 :], op.output)}
            if link in goes_to or counter in goes_to or (carrier is not None and carrier in goes_to):
                restores.add(index)
        elif op.opcode == "COPY" and op.output is not None:
            if op.output == carrier and origin.get(op.inputs[0], op.inputs[0]) == link:
                carries.add(index)
            if op.output.space is Space.UNIQUE:
                origin[op.output] = origin.get(op.inputs[0], op.inputs[0])
    return LinkUse(frozenset(saves), frozenset(carried), frozenset(restores), frozenset(carries))


def _is_pushed(ops: tuple[Op, ...], value: Varnode, pointer: Varnode) -> bool:
    """Whether the instruction stores the value where the stack pointer then points."""
    same = {value, *_copies(ops, value)}
    return any(op.opcode == "STORE" and op.inputs[0] == pointer and op.inputs[1] in same for op in ops)


def _size(op: Op) -> int:
    return op.output.size if op.output is not None else op.inputs[1].size


def _copies(ops: tuple[Op, ...], source: Varnode) -> set[Varnode]:
    """Everything that the value of `source` is copied to."""
    same = {source}
    for op in ops:
        if op.opcode == "COPY" and op.output is not None and op.inputs[0] in same:
            same.add(op.output)
    return same


def overlap(one: Varnode, other: Varnode) -> bool:
    return one.space is other.space and one.offset < other.offset + other.size and other.offset < one.offset + one.size
