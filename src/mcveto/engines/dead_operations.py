"""Operations of a block whose results are overwritten before anybody reads them.

Most instructions set half a dozen flags, and most flags are set again before they are read. Within a block, which runs
from its start to its end or not at all (a fault ends the run), such operations are left out. Loads and stores stay,
because they may fault, and so do fresh values, because they are counted; everything is live at the end of the block.
"""

from __future__ import annotations

from mcveto.machine.operators import TEMPLATES
from mcveto.machine.pcode import Instruction, Op, Space
from mcveto.machine.registers import RegisterLayout

_PURE = frozenset(TEMPLATES) | {"COPY", "SUBPIECE", "PIECE"}
_LEAVES = frozenset({"BRANCH", "CBRANCH", "BRANCHIND", "CALL", "CALLIND", "RETURN", "TRAP"})


def pruned(block: tuple[Instruction, ...], layout: RegisterLayout) -> tuple[Instruction, ...]:
    """The block without the operations that nobody needs."""
    dead: set[int] = set()
    """Cells that are overwritten as a whole before they are read."""
    result: list[Instruction] = []
    for instruction in reversed(block):
        if any(op.opcode in _LEAVES for op in instruction.ops):
            # It may be left in its middle: nothing that it writes can be relied upon.
            dead -= _read(instruction.ops, layout)
            result.append(instruction)
            continue
        kept: list[Op] = []
        needed: set[int] = set()
        """Bytes of temporaries that are read by what is kept."""
        for op in reversed(instruction.ops):
            if op.opcode in _PURE and op.output is not None and _useless(op, layout, dead, needed):
                continue
            kept.append(op)
            if op.output is not None and op.output.space is Space.REGISTER:
                for cell, _, bits in layout.pieces(op.output.offset, op.output.size):
                    if bits == cell.bits:
                        dead.add(cell.number)
            for varnode in op.inputs:
                if varnode.space is Space.REGISTER:
                    dead -= {piece.cell.number for piece in layout.pieces(varnode.offset, varnode.size)}
                elif varnode.space is Space.UNIQUE:
                    needed.update(range(varnode.offset, varnode.offset + varnode.size))
            if op.output is not None and op.output.space is Space.REGISTER:
                # A partial write reads the rest of its cell.
                dead -= {
                    piece.cell.number
                    for piece in layout.pieces(op.output.offset, op.output.size)
                    if piece.bits != piece.cell.bits
                }
        if len(kept) == len(instruction.ops):
            result.append(instruction)
        else:
            ops = tuple(reversed(kept))
            result.append(
                Instruction(instruction.pc, instruction.bytes, ops, instruction.mnemonic, instruction.operands)
            )
    return tuple(reversed(result))


def _useless(op: Op, layout: RegisterLayout, dead: set[int], needed: set[int]) -> bool:
    assert op.output is not None
    if any(varnode.space is Space.RAM for varnode in op.inputs):
        return False  # reading memory may fault
    if op.output.space is Space.REGISTER:
        return all(piece.cell.number in dead for piece in layout.pieces(op.output.offset, op.output.size))
    if op.output.space is Space.UNIQUE:
        return needed.isdisjoint(range(op.output.offset, op.output.offset + op.output.size))
    return False


def _read(ops: tuple[Op, ...], layout: RegisterLayout) -> set[int]:
    """Every cell that an operation reads, or writes in part."""
    found: set[int] = set()
    for op in ops:
        for varnode in op.inputs:
            if varnode.space is Space.REGISTER:
                found.update(piece.cell.number for piece in layout.pieces(varnode.offset, varnode.size))
        if op.output is not None and op.output.space is Space.REGISTER:
            pieces = layout.pieces(op.output.offset, op.output.size)
            found.update(piece.cell.number for piece in pieces if piece.bits != piece.cell.bits)
    return found
