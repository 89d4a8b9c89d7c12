"""Which registers and memory variables still matter at a location of the folded trace.

The usual backward analysis over the observed steps: a place is live if some path from here reads it before it is
overwritten. Registers follow from the operations of the blocks, memory from what the visits were seen reading and
writing. It only decides which candidates are worth proposing; nothing depends on its being right.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcveto.dpg.location import Location
from mcveto.dpg.trace_analysis import FoldedTrace, Places
from mcveto.machine.pcode import Instruction, Space
from mcveto.machine.registers import Cell, RegisterLayout
from mcveto.machine.tracked_cells import MemoryCell

Place = Cell | MemoryCell


def live_places(trace: FoldedTrace, places: Places) -> dict[Location, set[Place]]:
    """The places of `places` that are live on arrival at each location."""
    layout = trace.program.decoder.layout
    needed: dict[Location, set[Place]] = {}
    overwritten: dict[Location, set[Place]] = {}
    for location in trace.order:
        read, written = registers_of(trace.blocks.of(location), layout)
        accesses = trace.accesses
        needed[location] = {
            *(cell for cell in places.registers if cell in read),
            *_covered(places.cells, accesses.needed.get(location, ()), wholly=False),
        }
        overwritten[location] = {
            *(cell for cell in places.registers if cell in written),
            *_covered(places.cells, accesses.overwritten.get(location, ()), wholly=True),
        }
    live = {location: set(found) for location, found in needed.items()}
    changed = True
    while changed:
        changed = False
        for location in reversed(trace.order):
            after: set[Place] = set().union(*(live[following] for following in trace.successors[location]))
            arriving = needed[location] | (after - overwritten[location])
            if arriving != live[location]:
                live[location] = arriving
                changed = True
    return live


def registers_of(block: Iterable[Instruction], layout: RegisterLayout) -> tuple[set[Cell], set[Cell]]:
    """The registers a block reads before it writes them, and those it writes as a whole without having read them."""
    read: set[Cell] = set()
    written: set[Cell] = set()
    for instruction in block:
        branches = False
        for op in instruction.ops:
            for varnode in op.inputs:
                if varnode.space is Space.REGISTER:
                    read.update(piece.cell for piece in layout.pieces(varnode.offset, varnode.size))
            read -= written
            branches = branches or op.opcode == "CBRANCH"
            if op.output is not None and op.output.space is Space.REGISTER and not branches:
                pieces = layout.pieces(op.output.offset, op.output.size)
                written.update(p.cell for p in pieces if p.bits == p.cell.bits and p.cell not in read)
    return read, written


def _covered(cells: Iterable[MemoryCell], ranges: Iterable[MemoryCell], wholly: bool) -> list[MemoryCell]:
    """The cells that lie within one of the ranges, or else that share a byte with one."""
    found = []
    for cell in cells:
        for other in ranges:
            start, end = other.address, other.address + other.size
            if wholly:
                hit = start <= cell.address and cell.address + cell.size <= end
            else:
                hit = start < cell.address + cell.size and cell.address < end
            if hit:
                found.append(cell)
                break
    return found
