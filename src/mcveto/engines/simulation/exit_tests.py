"""The numbers that a loop compares something with before it ends or begins again: where what it counts may rest.

A loop that begins with certain values tells nothing by the conditions of its first turns: they are computed, not kept.
The text of its exits tells what they will be (thresholds of a widening: Blanchet, Cousot et al., "A static analyzer for
large safety-critical software", PLDI 2003, section 7.1.2, where they are a fixed ladder). What is compared with another
register, or with a word of memory, is seen when the first turn is executed: both sides are noted, since the comparison
had one outcome then and left no condition.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcveto.engines.order import Function
from mcveto.engines.state import Place
from mcveto.machine.pcode import Instruction, Space, Varnode

MOST_NUMBERS = 4
# Bytes: what is compared with less counts nothing.
NARROWEST = 2
# What is compared with -1, -2 ... is the result of a call: such numbers say how it failed.
LAST_ERROR = 4095
COMPARES = frozenset(
    {"INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL", "INT_SBORROW"}
)


class ExitTests:
    """What is read from the code of a loop, once for as much as is known of its function."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}

    def numbers(self, function: Function, place: Place) -> tuple[int, ...]:
        """Of the loop that has its head at the place; other loops within it count as well where they end both."""
        key = place.function, place.pc
        found = self._known.get(key)
        if found is None or found[0] != function.edges:
            found = self._known[key] = function.edges, _read(function, place.pc)
        return found[1]


def exits(function: Function, pc: int, place: Place) -> list[int]:
    """The heads of the loops that a block can leave."""
    targets = function.successors(pc)
    if len(targets) < 2:
        return []
    within = [function.place(target)[1] for target in targets]
    return [head for head, _ in place.loops if any(head not in heads for heads in within)]


def _read(function: Function, head: int) -> tuple[int, ...]:
    inside = {pc for pc in function.blocks() if head in function.place(pc)[1]}
    numbers: dict[int, None] = {}
    for pc in sorted(inside):
        following = function.successors(pc)
        # Loops that share their head are one component: to begin again is to have ended the inner one or not.
        if len(following) < 2 or all(target in inside and target != head for target in following):
            continue
        for instruction in function.block(pc):
            numbers |= dict.fromkeys(_compared(instruction))
    return tuple(numbers)[:MOST_NUMBERS]


def _compared(instruction: Instruction) -> Iterator[int]:
    """The numbers that an instruction compares with; where it copies them first, the copies. Flags compare results
    with 0, and halves of bytes."""
    copies: dict[Varnode, int] = {}
    masked: set[Varnode] = set()
    for op in instruction.ops:
        if op.opcode == "COPY" and op.output is not None and op.inputs[0].space is Space.CONST:
            copies[op.output] = op.inputs[0].offset
        elif op.opcode == "INT_AND" and op.output is not None:
            masked.add(op.output)
        elif op.opcode in COMPARES and masked.isdisjoint(op.inputs):
            for item in op.inputs:
                number = item.offset if item.space is Space.CONST else copies.get(item)
                if number and item.size >= NARROWEST and number < (1 << 8 * item.size) - LAST_ERROR:
                    yield number
