"""The return of the function that a run begins in, as an event: a return to the address that ends the run.

Where the body of a function is not certain (a switch that compilers write in a new way, a last call that is a jump), no
list of its returns can be complete. The function that a run begins in is expected to return to an address that nothing
else has. So every return, wherever it is decoded, first compares where it goes with that address. The decoder puts this
before returns as it does for system calls (`system_calls`); functions that the spec replaces are no code that is
decoded, and get it by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.machine.isa.overlay import replaced
from mcveto.machine.pcode import Instruction, Op

Update = tuple[Op, ...]
"""The first operation copies something: where the return goes, once that is known."""


def before_returns(instruction: Instruction, updates: Sequence[Update]) -> Instruction:
    """The instruction with the updates before each of its returns."""
    ops = [*instruction.ops]
    indices = [index for index, op in enumerate(ops) if op.opcode == "RETURN"]
    if not updates or not indices:
        return instruction
    for index in reversed(indices):
        where = ops[index].inputs[0]
        added = [op for copy, *others in updates for op in (Op(copy.opcode, copy.output, (where,)), *others)]
        ops = replaced(ops, index, index, added)
    return Instruction(instruction.pc, instruction.bytes, tuple(ops), instruction.mnemonic, instruction.operands)
