"""Locations of the abstract graph, and the blocks of code that run from them.

A location is an equivalence class of machine states (TR1669 §3.1 folds by PC; the self-modifying variant by PC and
instruction). The `frame` policy adds the stack and frame pointers and the call string (the auxiliary stack of §3.5),
all concrete: within a location every stack access then has a constant address, and almost no aliasing condition is
left.

A step is a block, not one instruction: from a location, the same instructions run until a branch, a call, a return, a
possible trap or an address somebody asked about. Where code is writable a block is one instruction, so that no block
can overwrite itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from mcveto.machine.address_space import AddressSpace
from mcveto.machine.memory import EXECUTE, WRITE
from mcveto.machine.pcode import BRANCHES, Instruction
from mcveto.program.program import Program

MAX_BLOCK_INSTRUCTIONS = 64
ANY = -1


class Fold(Enum):
    """Which states are folded into one location."""

    FRAME = "frame"
    """The same code, stack pointer, frame pointer (if it points to the stack) and call string."""
    PC = "pc"
    """The same code; calls and returns are matched by the graph's nested structure."""
    UNMATCHED = "unmatched"
    """The same code, stack pointer and frame pointer; calls and returns are jumps like any other."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """`code` are the bytes of the block at `pc` (empty for a hook); `frames` the return addresses expected, innermost
    last, or None where the location says nothing about them. A stack or frame pointer of -1 is any value (because the
    fold does not look at it, or in a run in which it depends on the inputs): such a location may overlap others, which
    costs precision but loses no state."""

    pc: int
    code: bytes
    stack_pointer: int
    frame_pointer: int
    frames: tuple[int, ...] | None

    def __str__(self) -> str:
        return f"{self.pc:#x}"


def frame_pointer_of(space: AddressSpace, stack_pointer: int, value: int) -> int:
    """What a location keeps of the register that is the frame pointer by convention: what is no address on the stack is
    something else that compilers keep there, a counter for instance, and is not told apart, as no other register is."""
    if stack_pointer == ANY or value == ANY:
        return value
    stack = space.region_at(stack_pointer) or space.region_at((stack_pointer - 1) & space.mask)
    return value if stack is not None and stack.start <= value <= stack.end else ANY


class Blocks:
    """Decodes the block at a program counter from given bytes."""

    def __init__(self, program: Program, single_steps: bool = False) -> None:
        self._program = program
        self._decoder = program.decoder
        self._limit = 1 if single_steps else MAX_BLOCK_INSTRUCTIONS
        self._known: dict[tuple[int, bytes], tuple[Instruction, ...]] = {}
        self._fixed: dict[int, tuple[Instruction, ...]] = {}
        self._through: dict[int, set[int]] = {}
        """The blocks that go on through an address, by the program counters at which they begin."""
        row = program.decoder.row
        stops = {row.code_address(pc) for pc in program.hooks} | program.halts | program.targets
        self._stops = stops | {program.return_sentinel}

    def fixed_block(self, pc: int) -> tuple[Instruction, ...] | None:
        """The block at `pc` if no run can change its bytes; None if it must be read from memory."""
        found = self._fixed.get(pc)
        if found is not None:
            return found
        hook = self._program.hooks.get(pc)
        if hook is not None:
            block: tuple[Instruction, ...] = (hook,)
        else:
            space, row = self._program.space, self._decoder.row
            region = space.region_at(row.code_address(pc))
            if region is None or region.permissions & WRITE or not region.permissions & EXECUTE:
                return None
            instructions: list[Instruction] = []
            at = pc
            while len(instructions) < self._limit:
                address = row.code_address(at)
                if instructions and address in self._stops:
                    break
                code = space.fixed_bytes(address, row.longest_unit(at)) or _rest(self._program, address)
                instruction = self._decoder.decode(at, code) if not instructions else self._try(at, code)
                if instruction is None:
                    break
                instructions.append(instruction)
                if ends_block(instruction):
                    break
                at = (at + instruction.size) & row.address_mask
            block = tuple(instructions)
        self._fixed[pc] = block
        for item in block[1:]:
            self._through.setdefault(self._decoder.row.code_address(item.pc), set()).add(pc)
        return block

    def end_before(self, pcs: Iterable[int]) -> list[int]:
        """From now on blocks end before these program counters; where the blocks begin that went on through them."""
        address = self._decoder.row.code_address
        stops = {address(pc) for pc in pcs} - self._stops
        self._stops |= stops
        shorter = {pc for stop in stops for pc in self._through.pop(stop, ())}
        for pc in shorter:
            self._fixed.pop(pc, None)
        return sorted(shorter)

    def single(self, pc: int, code: bytes) -> tuple[Instruction, ...]:
        """The one-instruction block at `pc` where memory holds `code`; raises Unsupported."""
        return (self._decoder.decode(pc, code),)

    def of(self, location: Location) -> tuple[Instruction, ...]:
        fixed = self.fixed_block(location.pc)
        return fixed if fixed is not None else self.single(location.pc, location.code)

    def _try(self, pc: int, code: bytes) -> Instruction | None:
        from mcveto.machine.faults import Unsupported

        try:
            return self._decoder.decode(pc, code)
        except Unsupported:
            return None


def _rest(program: Program, address: int) -> bytes:
    """What is known of the code at the end of a region."""
    for size in range(program.decoder.row.longest_unit(1), 0, -1):
        code = program.space.fixed_bytes(address, size)
        if code is not None:
            return code
    return b""


def ends_block(instruction: Instruction) -> bool:
    """Whether control may leave, or the run may end, within the instruction."""
    return any(
        op.opcode in BRANCHES or op.opcode == "TRAP" or op.opcode.startswith("CALLOTHER") for op in instruction.ops
    )
