"""How new a state at the head of a loop is: protocol engines are explored by their configurations, not by their paths.

A loop that serves requests has few configurations (a state, a flag, a saved state) and very many paths between them.
What is certain at its head, byte by byte, is compared with all that was certain there before, as in planning
(Lipovetzky and Geffner, "Width and serialization of classical planning problems", ECAI 2012): best is a state in which
some byte has a value it never had, then one with a new combination of values, then one whose combination came up least
often. Bytes that have had many values are counters or copies of inputs and say nothing.

This only decides about the order of exploration.
"""

from __future__ import annotations

from mcveto.engines.state import PathState
from mcveto.program.program import Program

# A byte with more values than this is not looked at.
MOST_VALUES = 40
NEW_VALUE = 0
NEW_COMBINATION = 1


class Novelty:
    def __init__(self, program: Program) -> None:
        row, layout = program.decoder.row, program.decoder.layout
        (pointer,) = layout.named(row.stack_pointer)
        self._pointer = pointer.cell.number
        self._space = program.space
        ignored = {*row.return_registers, *row.arguments, row.stack_pointer, row.frame_pointer}
        self._registers = [
            piece.cell.number for name in row.general if name not in ignored for piece in layout.named(name)
        ]
        self._values: dict[tuple[int, object], dict[int, set[int]]] = {}
        self._combinations: dict[tuple[object, ...], int] = {}

    def rank(self, state: PathState) -> int:
        """Of a state at the head of a loop; small is new. Asking makes it known."""
        values = self._values.setdefault((state.pc, state.calls), {})
        is_new = False
        certain: list[tuple[int, int]] = []
        for place, value in self._certain(state):
            seen = values.get(place)
            if seen is None:
                seen = values[place] = set()
            if value not in seen:
                if len(seen) >= MOST_VALUES:
                    continue
                seen.add(value)
                is_new = True
            elif len(seen) >= MOST_VALUES:
                continue
            certain.append((place, value))
        key = (state.pc, state.calls, frozenset(certain))
        count = self._combinations[key] = self._combinations.get(key, 0) + 1
        return NEW_VALUE if is_new else NEW_COMBINATION + count - 1

    def _certain(self, state: PathState) -> list[tuple[int, int]]:
        """(place, value) of bytes and registers; what is below the stack pointer is left over from calls."""
        pointer = state.registers.get(self._pointer)
        low = high = 0
        if type(pointer) is int:
            region = self._space.region_at(pointer)
            if region is not None:
                low, high = region.start, pointer
        found = [
            (address, cell)
            for address, cell in state.memory.cells.items()
            if type(cell) is int and not low <= address < high
        ]
        for number in self._registers:
            value = state.registers.get(number)
            if type(value) is int:
                found.append((-1 - number, value))
        return found
