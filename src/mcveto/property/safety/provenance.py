"""Which object a pointer was made from: bounds that values carry, as ghost state beside registers and memory.

A value that is formed as the address of an object of a frame (`program.frame_layout` says which object that is) gets a
tag: the lowest address of the object and how many bytes it has at most. Copies and sums with other numbers keep the
tag, loads and stores of words take it along, everything else drops it. An access through a pointer with a tag has to
stay inside; one without may go anywhere that the other rules allow. So nothing is ever forbidden for want of knowledge.

A tag is eight bytes: the object's extent, then the low half of its address (differences are what counts, and
no object is larger than 4 GiB). Zero is no tag. Tags of registers are ghost registers. Tags in memory are in a table
of our own, found by the low bits of the address, each with the low half of the word that it belongs to: if the word
there is another one by now, the tag is not taken. Only words at fixed places of frames and of the image are looked up,
and those that a pointer to a single word leads to: pointers that are kept in arrays or on the heap lose their tags.
(SoftBound, Nagarakatte et al., PLDI 2009, keeps the same facts for source programs.)
"""

from __future__ import annotations

from dataclasses import dataclass

from mcveto.machine.isa import Decoder
from mcveto.machine.pcode import Instruction, Op, Space, Varnode
from mcveto.program.frame_layout import FrameLayout
from mcveto.program.frame_values import Evaluation, Place, Value
from mcveto.property.safety.guarded_ops import GuardedOps

TAG = 8
_HALF = 4
_RECORD = 16
_TABLE_BITS = 16
_NOWHERE = 64
# The stack pointer of a library model: places of its own frame, none of which is an object.
_MODEL = -1


def table_bytes(word: int) -> int:
    return (_RECORD // word << _TABLE_BITS) + 4096


def tag_name(register: str) -> str:
    return f"safety_tag_{register}"


@dataclass(frozen=True)
class Objects:
    """What the guards of objects need to know."""

    layout: FrameLayout
    table: int
    """Where the table of tags is."""
    crossed: int
    """Where control goes instead of an access that leaves its object."""
    excused: frozenset[int] = frozenset()
    """Instructions that may."""
    is_recorded: bool = False
    """Whether an access that leaves its object is only written down."""
    named: tuple[tuple[int, int], ...] = ()
    """Objects of the image whose sizes a symbol table gives: start and end, in order, none within another."""


def tag_cells(decoder: Decoder) -> list[tuple[str, int]]:
    row = decoder.row
    names = [name for name in row.general if name != row.stack_pointer]
    cells = [(tag_name(name), TAG) for name in names if decoder.registers[name].size == row.address_bytes]
    return [*cells, ("safety_crossed_tag", TAG), ("safety_crossed_at", row.address_bytes), ("safety_crossed_size", 1)]


class Provenance:
    """Adds to the operations of one instruction what happens to tags."""

    def __init__(self, objects: Objects, decoder: Decoder, instruction: Instruction, code: GuardedOps) -> None:
        self._objects = objects
        self._source = instruction
        self._code = code
        self._word = decoder.row.address_bytes
        layout = objects.layout
        self._pointer = layout.pointer
        named = decoder.registers
        self._ghosts = {
            register: named[tag_name(name)]
            for name in decoder.row.general
            if (register := named[name]) != self._pointer and tag_name(name) in named
        }
        self._crossed = [named[f"safety_crossed_{what}"] for what in ("tag", "at", "size")]
        is_model = instruction.mnemonic == "model"
        state = {self._pointer: Value((_MODEL, 0))} if is_model else dict(layout.states.get(instruction.pc, {}))
        self._before = dict(state)
        self._evaluation = layout.evaluate(instruction, state)
        self._function = layout.function_at(instruction.pc)
        self._temporaries: dict[Varnode, Varnode | None] = {}
        self._formed: dict[Place, Varnode | None] = {}

    @property
    def evaluation(self) -> Evaluation:
        return self._evaluation

    # Checks.

    def check(self, index: int, pointer: Varnode, at: Varnode, size: int) -> None:
        """Before an access: `pointer` is the operation's, `at` its value then."""
        if self._source.pc in self._objects.excused:
            return
        tag = self._address_tag(index, pointer)
        if tag is None:
            return
        code = self._code
        code.before(index)
        extent = code.emit("SUBPIECE", _HALF, tag, code.constant(_HALF, 4))
        low = code.emit("SUBPIECE", _HALF, tag, code.constant(0, 4))
        distance = code.emit("INT_SUB", _HALF, self._low_half(at), low)
        outside = code.test("INT_LESS", code.emit("INT_SUB", _HALF, extent, code.constant(size, _HALF)), distance)
        if size > 1:
            outside = code.either([outside, code.test("INT_LESS", extent, code.constant(size, _HALF))])
        else:
            outside = code.test("INT_LESSEQUAL", extent, distance)
        crosses = code.both(code.test("INT_NOTEQUAL", tag, code.constant(0, TAG)), outside)
        tag_cell, at_cell, size_cell = self._crossed
        if self._objects.is_recorded:
            code.set(tag_cell, code.select(crosses, tag, tag_cell))
            code.set(at_cell, code.select(crosses, at, at_cell))
            code.set(size_cell, code.select(crosses, code.constant(size, 1), size_cell))
        else:
            code.leave_if(crosses, self._objects.crossed)

    def _address_tag(self, index: int, pointer: Varnode) -> Varnode | None:
        value = self._evaluation.inputs[index][0] if self._source.ops[index].opcode in ("LOAD", "STORE") else None
        if value is not None and (value.number is not None or value.is_direct):
            return None
        return self._tag(pointer, value)

    # What an operation does with tags.

    def follow(self, index: int, op: Op) -> None:
        if op.opcode == "STORE":
            self._store(index, op)
            return
        output = op.output
        if output is None:
            return
        if output.space is Space.UNIQUE:
            self._temporaries[output] = self._result(index, op) if output.size == self._word else None
            return
        if output.space is Space.RAM:
            tag = self._result(index, op) if output.size == self._word else None
            if tag is not None:
                self._write(index, self._entry(self._code.constant(output.offset)), tag, output)
            return
        ghost = self._ghosts.get(output)
        if ghost is not None:
            tag = self._result(index, op)
            if tag != ghost:
                self._code.after(index)
                self._code.set(ghost, self._code.constant(0, TAG) if tag is None else tag)
            return
        for register, cell in self._ghosts.items():
            if _overlap(register, output):
                self._code.after(index)
                self._code.set(cell, self._code.constant(0, TAG))

    def _result(self, index: int, op: Op) -> Varnode | None:
        """The tag of what the operation computes, as it is before the operation."""
        code = self._code
        code.before(index)
        value = self._evaluation.outputs[index]
        if value is not None and value.object is not None:
            return self._of_place(value.object)
        if value is not None and value.number is not None:
            return self._of_number(value.number)
        if op.opcode == "LOAD":
            return self._load(index, op)
        inputs = op.inputs
        if op.opcode == "COPY" or (op.opcode in ("INT_OR", "INT_AND") and inputs[0] == inputs[1]):
            return self._of_input(index, 0)
        if op.opcode == "INT_AND":
            return self._of_input(index, 0) if inputs[1].space is Space.CONST else None
        if op.opcode == "INT_ADD":
            one, other = self._of_input(index, 0), self._of_input(index, 1)
            if one is None or other is None:
                return other if one is None else one
            return code.select(code.test("INT_NOTEQUAL", one, code.constant(0, TAG)), one, other)
        if op.opcode == "INT_SUB":
            one, other = self._of_input(index, 0), self._of_input(index, 1)
            if one is None or other is None:
                return one
            return code.select(code.test("INT_EQUAL", other, code.constant(0, TAG)), one, code.constant(0, TAG))
        if op.opcode == "SELECT" and inputs[1].size == self._word:
            one, other = (self._of_input(index, n) or code.constant(0, TAG) for n in (1, 2))
            return code.select(inputs[0], one, other)
        return None

    def _of_input(self, index: int, number: int) -> Varnode | None:
        return self._tag(self._source.ops[index].inputs[number], self._evaluation.inputs[index][number])

    def _tag(self, varnode: Varnode, value: Value | None) -> Varnode | None:
        if value is not None and value.object is not None:
            return self._of_place(value.object)
        if value is not None and value.number is not None:
            return self._of_number(value.number)
        if varnode.space is Space.REGISTER:
            return self._ghosts.get(varnode)
        if varnode.space is Space.RAM and varnode.size == self._word:
            return self._recorded(self._entry(self._code.constant(varnode.offset)), varnode)
        return self._temporaries.get(varnode)

    def _of_number(self, number: int) -> Varnode | None:
        """The tag of a number that is an address of an object of the image.

        Optimised code computes with addresses of other objects than it means (that of an element before the first,
        say), and halves of addresses are numbers, too: neither has a tag."""
        if self._function is None or not self._function.is_unoptimised or number & 0xFFFF == 0:
            return None
        number &= (1 << 8 * self._word) - 1
        for start, end in self._objects.named:
            if start <= number < end:
                return self._code.constant(end - start << 32 | start & 0xFFFFFFFF, TAG)
        return None

    def _of_place(self, place: Place) -> Varnode | None:
        """The tag of the object that begins at a place of the frame."""
        if place not in self._formed:
            self._formed[place] = self._form(place)
        return self._formed[place]

    def _form(self, place: Place) -> Varnode | None:
        if self._function is None or place[0] == _MODEL:
            return None
        place = self._function.base(place)
        extent = self._function.extent(place)
        if extent is None:
            return None
        code = self._code
        for register, value in sorted(self._before.items()):
            if value.place is not None and value.is_exact and value.place[0] == place[0]:
                here, code.here = code.here, code.at_start
                low = self._low_half(code.add(register, place[1] - value.place[1]))
                tag = code.emit("PIECE", TAG, code.constant(extent, _HALF), low)
                code.here = here
                return tag
        return None

    # Memory.

    def _load(self, index: int, op: Op) -> Varnode | None:
        """The tag of a word in memory: what the table has for it, if that belongs to this word."""
        if op.output is None or op.output.size != self._word:
            return None
        record = self._record(index, op.inputs[0])
        if record is None:
            return None
        self._code.after(index)
        return self._recorded(record, op.output)

    def _recorded(self, record: Varnode, word: Varnode) -> Varnode:
        code = self._code
        tag = code.emit("LOAD", TAG, record)
        owner = code.emit("LOAD", _HALF, code.add(record, TAG))
        return code.select(code.test("INT_EQUAL", owner, self._low_half(word)), tag, code.constant(0, TAG))

    def _store(self, index: int, op: Op) -> None:
        if op.inputs[1].size != self._word:
            return
        code = self._code
        code.before(index)
        tag = self._of_input(index, 1)
        record = None if tag is None else self._record(index, op.inputs[0])
        if record is None or tag is None:
            return
        self._write(index, record, tag, op.inputs[1])

    def _write(self, index: int, record: Varnode, tag: Varnode, word: Varnode) -> None:
        code = self._code
        owner = self._low_half(word)
        code.after(index)
        code.here.append(Op("STORE", None, (record, tag)))
        code.here.append(Op("STORE", None, (code.add(record, TAG), owner)))

    def _record(self, index: int, pointer: Varnode) -> Varnode | None:
        """Where the table has the tag of the word at an address; None where tags are not kept."""
        code = self._code
        value = self._evaluation.inputs[index][0]
        if value is not None and (value.number is not None or value.is_direct):
            return self._entry(pointer)
        tag = self._tag(pointer, value)
        if tag is None:
            return None
        extent = code.emit("SUBPIECE", _HALF, tag, code.constant(_HALF, 4))
        is_word = code.test("INT_EQUAL", extent, code.constant(self._word, _HALF))
        nowhere = code.constant(self._objects.table + table_bytes(self._word) - _NOWHERE)
        return code.select(is_word, self._entry(pointer), nowhere)

    def _entry(self, pointer: Varnode) -> Varnode:
        code, word = self._code, self._word
        number = code.emit("INT_AND", word, pointer, code.constant((1 << _TABLE_BITS) - 1))
        distance = code.emit("INT_MULT", word, number, code.constant(_RECORD // word))
        return code.add(distance, self._objects.table)

    def _low_half(self, value: Varnode) -> Varnode:
        if value.size == _HALF:
            return value
        return self._code.emit("SUBPIECE", _HALF, value, self._code.constant(0, 4))


def _overlap(one: Varnode, other: Varnode) -> bool:
    return one.space is other.space and one.offset < other.offset + other.size and other.offset < one.offset + one.size
