"""What the values of an instruction are in terms of its frame: the domain of `frame_layout`.

A register is a known distance from the stack pointer at the function's entry (or from an aligned copy of it), or still
holds what the caller had in it, or is a number, or is anything. An address that is formed in a register is one of the
object that begins there, whatever is added to it later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from mcveto.machine.isa.overlay import signed
from mcveto.machine.pcode import Instruction, Op, Space, Varnode

Place = tuple[int, int]
"""A root (0: the stack pointer at the function's entry; else where the stack pointer was aligned) and a distance."""
NOTHING_SAVED: Mapping[Place, Varnode] = MappingProxyType({})
ENTRY = 0
TOP = (ENTRY, 0)


@dataclass(frozen=True, slots=True)
class Value:
    """An address of the frame (`place`; plus something unknown if not `is_exact`), what a register held at the entry
    (`saved`), or a number. An address that was put into a register to be worked with is one of the object that begins
    there, whatever is added to it later (`formed`)."""

    place: Place | None = None
    is_exact: bool = True
    formed: Place | None = None
    saved: Varnode | None = None
    number: int | None = None
    stride: int = 0
    """What something unknown is multiplied by, if that is known."""

    @property
    def is_direct(self) -> bool:
        """Whether it is a fixed place of the frame, named as such."""
        return self.place is not None and self.is_exact and self.formed is None

    @property
    def object(self) -> Place | None:
        """Where the object begins that it is an address of."""
        return self.place if self.formed is None else self.formed


State = dict[Varnode, Value]


@dataclass(frozen=True, slots=True)
class FrameRegisters:
    """Which registers a frame is reached by."""

    pointer: Varnode
    frame_pointer: Varnode
    tracked: tuple[Varnode, ...]
    has_back_chain: bool
    """On PowerPC the word at the stack pointer is the stack pointer of the caller."""


class Evaluation:
    """The values that the operations of an instruction read and write."""

    def __init__(
        self, registers: FrameRegisters, instruction: Instruction, state: State, saved_at: Mapping[Place, Varnode]
    ) -> None:
        self.inputs: list[tuple[Value | None, ...]] = []
        self.outputs: list[Value | None] = []
        self.state = state
        temporaries: State = {}
        word = registers.pointer.size
        mask = (1 << 8 * word) - 1

        def read(varnode: Varnode) -> Value | None:
            if varnode.space is Space.CONST:
                return Value(number=signed(varnode))
            return (state if varnode.space is Space.REGISTER else temporaries).get(varnode)

        has_chain = registers.has_back_chain and state.get(registers.pointer) != Value(TOP)
        chain = {registers.pointer} if has_chain else set()
        for op in instruction.ops:
            read_now = tuple(read(varnode) for varnode in op.inputs)
            result = _apply(op, read_now, instruction.pc) if op.output is not None and op.output.size == word else None
            if op.opcode == "LOAD" and read_now[0] is not None and read_now[0].is_direct:
                back = saved_at.get(read_now[0].place) if read_now[0].place is not None else None
                is_whole = op.output is not None and op.output.size == word
                result = Value(saved=back) if back is not None and is_whole else None
            if op.opcode == "LOAD" and op.inputs[0] in chain and result is None:
                result = Value(TOP)
            if op.output is not None:
                is_same = op.inputs[0] in chain and (
                    _is_copy(op) or (op.opcode == "INT_ADD" and _is_zero(op.inputs[1]))
                )
                chain = chain | {op.output} if is_same else chain - {op.output}
            if result is not None and result.number is not None:
                result = Value(number=(result.number + (mask // 2 + 1) & mask) - (mask // 2 + 1))
            if op.output == registers.pointer and result is not None:
                # Whatever the stack pointer was computed from, it is no pointer into an object.
                result = Value(result.place) if result.place is not None and result.is_exact else None
            if result is not None and result.place is not None and result.formed is None:
                is_frame = op.output == registers.pointer or (
                    op.output == registers.frame_pointer and (_is_copy(op) or op.opcode == "LOAD") and result.is_exact
                )
                # The top of the frame is no object: from there compilers load what they have saved.
                if op.output in registers.tracked and not is_frame and result != Value(TOP):
                    result = replace(result, formed=result.place)
            self.inputs.append(read_now)
            self.outputs.append(result)
            if op.output is None:
                continue
            target = state if op.output.space is Space.REGISTER else temporaries
            for other in [v for v in target if _overlap(v, op.output)]:
                del target[other]
            if result is not None:
                target[op.output] = result


def saving(values: Sequence[Value | None]) -> Place | None:
    """Where a store with that address and that value saves a register of the caller; None if it does not."""
    at, value = values[:2]
    if at is None or value is None or value.saved is None or not at.is_direct:
        return None
    return at.place


def _is_zero(varnode: Varnode) -> bool:
    return varnode.space is Space.CONST and varnode.offset == 0


def _is_copy(op: Op) -> bool:
    return op.opcode == "COPY" or (op.opcode == "INT_OR" and op.inputs[0] == op.inputs[1])


def _apply(op: Op, values: tuple[Value | None, ...], pc: int) -> Value | None:
    if _is_copy(op):
        return values[0]
    if op.opcode == "INT_ADD":
        return plus(values[0], values[1])
    if op.opcode == "INT_SUB" and values[1] is not None and values[1].number is not None:
        return plus(values[0], Value(number=-values[1].number))
    if op.opcode == "INT_SUB" and values[0] is not None and values[0].place is not None:
        return None if values[1] is not None and values[1].place is not None else replace(values[0], is_exact=False)
    if op.opcode in ("INT_MULT", "INT_LEFT") and values[1] is not None and values[1].number is not None:
        number = values[1].number
        return Value(stride=number if op.opcode == "INT_MULT" else 1 << number) if 0 < number < 256 else None
    if op.opcode == "INT_AND":
        one, other = values
        if one is not None and one.place is not None and other is not None and other.number is not None:
            return Value((pc, 0)) if one.is_direct else replace(one, is_exact=False)
    return None


def plus(one: Value | None, other: Value | None) -> Value | None:
    if one is not None and one.number is not None:
        one, other = other, one
    if other is not None and other.number is not None:
        if one is None:
            return None
        if one.number is not None:
            return Value(number=one.number + other.number)
        if one.place is not None:
            return replace(one, place=(one.place[0], one.place[1] + other.number))
        return one if one.stride or (one.saved is not None and other.number == 0) else None
    for value, unknown in ((one, other), (other, one)):
        if value is not None and value.place is not None:
            if unknown is not None and unknown.place is not None:
                return None
            stride = unknown.stride if unknown is not None and value.is_exact else 0
            return replace(value, is_exact=False, stride=stride)
    return None


def _overlap(one: Varnode, other: Varnode) -> bool:
    return one.offset < other.offset + other.size and other.offset < one.offset + one.size
