"""Constants that instructions put together (`lis`/`addi`, `lui`/`addiu`, `adrp`/`add`, `movw`/`movt`); targets in a
table behind the jump that reads it (Thumb's `tbb` and `tbh`).

Heuristics of discovery, nothing depends on them being complete: registers known along straight code, and what the next
instruction makes of them; entries of a table up to where the first target lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mcveto.machine.compiled.nodes import Node
from mcveto.machine.operators import FUNCTIONS
from mcveto.machine.pcode import Transfer

from .ways import Leave, Load, Way

_MAX_DEPTH = 6
_MAX_ENTRIES = 1 << 12


def evaluate(node: Node, known: Mapping[int, int], loaded: tuple[Node, int] | None = None) -> int | None:
    """The value of a node where the registers in `known`, and the value that was loaded, determine it."""
    if node.op == "CONST":
        return node.value
    if node.op == "CELL":
        return known.get(node.value)
    if loaded is not None and node is loaded[0]:
        return loaded[1]
    if node.depth > _MAX_DEPTH or node.op == "LOAD":
        return None
    values: list[int] = []
    for argument in node.args:
        value = evaluate(argument, known, loaded)
        if value is None:
            return None
        values.append(value)
    if node.op == "PIECE":
        return values[0] << node.value | values[1]
    if node.op == "INSERT":
        low, size = node.value >> 16, node.value & 0xFFFF
        return values[0] & ~(((1 << size) - 1) << low) | values[1] << low
    bits, out = max(node.in_bits, 1), max(node.out_bits, 1)
    return FUNCTIONS[node.op](tuple(values), (1 << out) - 1, (1 << bits) - 1, 1 << (bits - 1), bits)


def after(way: Way, known: Mapping[int, int]) -> tuple[dict[int, int], set[int]]:
    """What is known after an instruction, and the constants it computed."""
    if not isinstance(way, Leave):
        return {}, set()
    result = dict(known)
    made: set[int] = set()
    for number, node in way.writes.items():
        value = evaluate(node, known)
        if value is None:
            result.pop(number, None)
        else:
            result[number] = value
            if node.op != "CELL":
                made.add(value)
    target = evaluate(way.target, known) if way.transfer is not Transfer.FALL else None
    if target is not None:
        made.add(target)
    return result, made


def table_behind(way: Way | None, following: int, read: Callable[[int, int], int | None]) -> Iterator[int]:
    """The targets of a jump by a table that begins at `following`; `read` gives the number at an address, of a size.

    The table ends at the latest where the first of its targets begins.
    """
    if not isinstance(way, Leave) or way.transfer is not Transfer.JUMP or len(way.events) != 1:
        return
    (event,) = way.events
    index = _only_cell(event.address) if isinstance(event, Load) else None
    if not isinstance(event, Load) or index is None:
        return
    lowest: int | None = None
    for number in range(_MAX_ENTRIES):
        place = evaluate(event.address, {index: number})
        if place is None or place != following + number * event.size or (lowest is not None and place >= lowest):
            return
        entry = read(place, event.size)
        target = None if entry is None else evaluate(way.target, {}, (event.value, entry))
        if target is None or target <= place:
            return
        lowest = target if lowest is None else min(lowest, target)
        yield target


def _only_cell(node: Node) -> int | None:
    """The one register that a value depends on."""
    cells: set[int] = set()
    pending = [node]
    while pending:
        part = pending.pop()
        if part.op == "LOAD" or part.depth > _MAX_DEPTH:
            return None
        if part.op == "CELL":
            cells.add(part.value)
        pending.extend(part.args)
    return cells.pop() if len(cells) == 1 else None
