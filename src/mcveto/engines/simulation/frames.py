"""Where the frame of a call lies, when nobody says where the stack is.

A function is the same at every depth of the stack. Its summary is found with a stack pointer that is a variable,
`FRAME`; what is stored at `FRAME` + n is kept at addresses around `base`, where nothing is mapped, so that no other
address can mean it. Everything else that may touch the stack makes a summary impossible (`Unfit`).
"""

from __future__ import annotations

from mcveto.engines.memory import Value
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.memory import RegionSpec
from mcveto.program.program import Program

REACH = 1 << 16
"""How far from the stack pointer a frame may be used, in bytes, either way."""

OUTSIDE = -1
"""The program counter of states that have returned."""


class Unfit(Exception):
    """What happens in a call cannot be said once for all; it must be followed each time."""


class Frames:
    def __init__(self, program: Program, pointer: int, stack: RegionSpec | None) -> None:
        bits = program.space.address_bits
        self.pointer = pointer
        """The number of the stack pointer's register."""
        self.stack = stack
        self.bits = bits
        self.frame = t.var("frame!", bits)
        self.back = t.var("return!", bits)
        """Where the call returns to."""
        self.base = _free(program) if stack is not None else None
        self._mask = program.space.mask

    def forbids(self, address: int, size: int) -> bool:
        """Whether an access by a number may be to a frame."""
        return self.stack is not None and address < self.stack.end and self.stack.start < address + size

    def offset(self, value: Value, pointer: Value) -> int | None:
        """How far above the stack pointer an address is, if it is one of the stack."""
        if isinstance(pointer, int):
            if isinstance(value, int) and self.stack is not None and self.stack.start <= value <= self.stack.end:
                return value - pointer
            return None
        of_value, of_pointer = self._from_frame(value), self._from_frame(pointer)
        return of_value - of_pointer if of_value is not None and of_pointer is not None else None

    def is_placed(self, pointer: Value) -> bool:
        """Whether it is known where the cells above a stack pointer are."""
        if isinstance(pointer, int):
            return self.stack is not None and self.stack.start <= pointer <= self.stack.end
        return self._from_frame(pointer) is not None

    def has_room(self, pointer: Value, low: int, high: int) -> bool:
        """Whether cells from `low` to below `high` above a stack pointer are in the stack: what lies around it may be
        something else. Where the stack pointer is a variable, that is asked where it gets a value."""
        if not isinstance(pointer, int):
            return True
        return self.stack is not None and self.stack.start <= pointer + low and pointer + high <= self.stack.end

    def at(self, pointer: Value, offset: int) -> int:
        """Where the cell is that is so far above a stack pointer."""
        if isinstance(pointer, int):
            return (pointer + offset) & self._mask
        above = self._from_frame(pointer)
        assert above is not None
        return self.virtual(above + offset)

    def virtual(self, offset: int) -> int:
        assert self.base is not None
        if not -REACH <= offset < REACH:
            raise Unfit
        return self.base + offset

    def above(self, address: int) -> int | None:
        """How far above `FRAME` a cell is, if it is one of a frame."""
        if self.base is None or not self.base - REACH <= address < self.base + REACH:
            return None
        return address - self.base

    def cell(self, address: Term) -> int | None:
        """The cell that an address of the form `FRAME` + n means."""
        offset = self._from_frame(address)
        return None if offset is None else self.virtual(offset)

    def place(self, offset: int) -> Term:
        return t.add(self.frame, t.const(offset, self.bits))

    def _from_frame(self, value: Value) -> int | None:
        if value is self.frame:
            return 0
        if isinstance(value, int) or value.op != "lin" or value.args != (self.frame,) or value.data[0] != (1,):
            return None
        return t.signed(value.data[1], self.bits)


def _free(program: Program) -> int | None:
    """The middle of addresses where nothing is mapped."""
    need = 4 * REACH
    ends = [0, *(region.end for region in program.space.regions)]
    starts = [*(region.start for region in program.space.regions), program.space.mask]
    for end, start in sorted(zip(ends, starts, strict=True), key=lambda gap: gap[0] - gap[1]):
        if start - end > need:
            middle = (start + end) // 2 & ~0xFFF
            spans = program.undetermined.foreign_ranges()
            if not any(low < middle + need and middle - need < high for low, high in spans):
                return middle
    return None
