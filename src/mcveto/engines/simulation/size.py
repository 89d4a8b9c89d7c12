"""Whether a program is one for the simulation: asked of every program, without loading the engine.

Of a file that is large, the code that direct jumps and calls lead to from the entry is counted: most of a library that
was linked in may never run. Where a jump is computed, the size of the file is all that is known, without the zeros that
fill the last page.
"""

from __future__ import annotations

from mcveto.dpg.location import Blocks
from mcveto.machine.faults import MachineError
from mcveto.machine.memory import EXECUTE, WRITE
from mcveto.machine.pcode import Space
from mcveto.program.program import Program

# Bytes of code that is simulated for a moment at the beginning; for a while when nothing else has decided it soon; that
# predicates look at first; that is simulated once more, when there is not much time left; before anything else; without
# a certificate.
ROUTINE = 400
SMALL = 500
MEDIUM = 2_000
CONSIDERABLE = 5_000
LARGE = 12_000
VERY_LARGE = 60_000


def is_large(program: Program, size: int = LARGE) -> bool:
    """Whether the code that no run can change is too large for engines that look at it path by path, or as a whole."""
    regions = program.space.regions
    fixed = [region for region in regions if region.permissions & EXECUTE and not region.permissions & WRITE]
    if sum(len(bytes(region.content).rstrip(b"\0")) for region in fixed) < size:
        return False
    reached = reached_bytes(program, size)
    return reached is None or reached >= size


def reached_bytes(program: Program, most: int) -> int | None:
    """How many bytes of code direct jumps and calls lead to, counted up to `most`; None if some jump is computed."""
    row, block_at = program.decoder.row, Blocks(program).fixed_block
    ends = program.halts | program.targets | {row.code_address(program.return_sentinel)}
    pending, seen, total = [program.entry], set[int](), 0
    while pending and total < most:
        pc = pending.pop()
        if pc in seen or pc in program.hooks or row.code_address(pc) in ends:
            continue
        seen.add(pc)
        try:
            block = block_at(pc)
        except MachineError:
            continue
        if not block:
            return None
        total += sum(instruction.size for instruction in block)
        last = block[-1]
        falls = True
        for op in last.ops:
            if op.opcode in ("BRANCHIND", "CALLIND"):
                return None
            if op.opcode == "RETURN":
                falls = False
            elif op.opcode in ("BRANCH", "CBRANCH", "CALL") and op.inputs[0].space is not Space.CONST:
                pending.append(op.inputs[0].offset | (last.pc & row.mode_mask))
                falls = op.opcode != "BRANCH"
        if falls:
            pending.append(last.pc + last.size)
    return total
