"""Constants that instructions put together: `lis`/`addi`, `lui`/`addiu`, `adrp`/`add`, `movw`/`movt`.

A heuristic of discovery, nothing depends on it being complete: registers known along straight code, and what the next
instruction makes of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcveto.machine.compiled.nodes import Node
from mcveto.machine.operators import FUNCTIONS
from mcveto.machine.pcode import Transfer

from .ways import Leave, Way

_MAX_DEPTH = 6


def evaluate(node: Node, known: Mapping[int, int]) -> int | None:
    """The value of a node where the registers in `known` determine it."""
    if node.op == "CONST":
        return node.value
    if node.op == "CELL":
        return known.get(node.value)
    if node.depth > _MAX_DEPTH or node.op == "LOAD":
        return None
    values: list[int] = []
    for argument in node.args:
        value = evaluate(argument, known)
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
