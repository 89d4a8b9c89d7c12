"""A run's full trace, stored compactly.

A trace is a sequence of *paths*: short instruction sequences that ran from their first to their last instruction (a
single instruction in the reference emulator, a path through a compiled block otherwise). Each path is stored once;
the trace itself is the list of path numbers, packed and compressed in chunks, so a loop costs almost nothing per
iteration. Where a step went is the address of the step after it, so nothing else needs to be stored: iteration expands
to (pc, bytes, transfer, next pc) lazily.

Memory accesses are kept only where the machine was asked to log them.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, overload

from .pcode import Instruction, Transfer

# Path numbers waiting to be packed; also bounds how long compiled code runs before it comes back.
CHUNK_PATHS = 1 << 15


class TraceStep(NamedTuple):
    """One executed instruction: where it was, its bytes, how it left and where to."""

    pc: int
    bytes: bytes
    transfer: Transfer
    next_pc: int


class Position(NamedTuple):
    """A step as a position of a nested word: calls open, returns close, the rest is internal."""

    step: int
    kind: str
    pc: int


class Access(NamedTuple):
    """One memory access of a step, in execution order."""

    address: int
    size: int
    value: int
    is_write: bool


Path = tuple[tuple[Instruction, Transfer], ...]


class _Chunk(NamedTuple):
    first_step: int
    steps: int
    packed: bytes


_NESTING = (Transfer.CALL, Transfer.RETURN)
_KINDS = {
    Transfer.FALL: "internal",
    Transfer.JUMP: "internal",
    Transfer.CALL: "call",
    Transfer.RETURN: "return",
}


class Trace:
    """The steps of one machine since it was made.

    `pending` is the list compiled code appends path numbers to; whoever appends calls `settle` afterwards.
    """

    def __init__(self, pc: int) -> None:
        self.pending: list[int] = []
        self.lengths: list[int] = []
        self.end = pc
        self._paths: list[Path] = []
        self._numbers: dict[Path, int] = {}
        self._chunks: list[_Chunk] = []
        self._packed_steps = 0
        self._pending_steps = 0
        self._settled = 0
        self._accesses: dict[int, tuple[Access, ...]] = {}

    def number_of(self, path: Path) -> int:
        """The number of a path, the same for equal paths."""
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = self.new_number(path)
        return number

    def new_number(self, path: Path) -> int:
        """A number that no other path has, not even an equal one."""
        self._paths.append(path)
        self.lengths.append(len(path))
        return len(self._paths) - 1

    def settle(self, pc: int) -> int:
        """Takes note of the paths appended to `pending`, after which control is at `pc`; how many steps they are."""
        pending = self.pending
        new = pending[self._settled :] if self._settled else pending
        steps = sum(map(self.lengths.__getitem__, new))
        self._pending_steps += steps
        self.end = pc
        if len(pending) >= CHUNK_PATHS:
            self._pack()
        else:
            self._settled = len(pending)
        return steps

    def record(self, path_number: int, next_pc: int, accesses: tuple[Access, ...] = ()) -> None:
        """Adds a single-step path."""
        if accesses:
            self._accesses[len(self)] = accesses
        self.pending.append(path_number)
        self._settled += 1
        self._pending_steps += 1
        self.end = next_pc
        if self._settled >= CHUNK_PATHS:
            self._pack()

    def _pack(self) -> None:
        packed = zlib.compress(array("I", self.pending).tobytes(), 1)
        self._chunks.append(_Chunk(self._packed_steps, self._pending_steps, packed))
        self._packed_steps += self._pending_steps
        self._pending_steps = self._settled = 0
        self.pending.clear()

    def __len__(self) -> int:
        return self._packed_steps + self._pending_steps

    def __iter__(self) -> Iterator[TraceStep]:
        return self._steps(0, len(self))

    @overload
    def __getitem__(self, at: int) -> TraceStep: ...

    @overload
    def __getitem__(self, at: slice) -> list[TraceStep]: ...

    def __getitem__(self, at: int | slice) -> TraceStep | list[TraceStep]:
        if isinstance(at, slice):
            first, last, stride = at.indices(len(self))
            if stride < 0:
                return [self[index] for index in range(first, last, stride)]
            return list(self._steps(first, last))[::stride]
        index = at + len(self) if at < 0 else at
        if not 0 <= index < len(self):
            raise IndexError("step outside the trace")
        return next(self._steps(index, index + 1))

    def positions(self) -> Iterator[Position]:
        """Every step with its kind in the nested word of the run."""
        for index, step in enumerate(self):
            yield Position(index, _KINDS[step.transfer], step.pc)

    def instructions(self) -> set[Instruction]:
        """All that occur."""
        return {instruction for path in self._paths for instruction, _ in path}

    def calls_and_returns(self) -> Iterator[tuple[int, TraceStep]]:
        """The steps that call or return, with their numbers; paths without any are passed over as a whole."""
        events: dict[int, list[int]] = {}
        held: tuple[int, Instruction, Transfer] | None = None
        for start, number in self._walk(0):
            path = self._paths[number]
            if held is not None:
                yield held[0], TraceStep(held[1].pc, held[1].bytes, held[2], path[0][0].pc)
                held = None
            places = events.get(number)
            if places is None:
                places = events[number] = [i for i, (_, how) in enumerate(path) if how in _NESTING]
            for i in places:
                instruction, how = path[i]
                if i + 1 < len(path):
                    yield start + i, TraceStep(instruction.pc, instruction.bytes, how, path[i + 1][0].pc)
                else:
                    held = start + i, instruction, how
        if held is not None:
            yield held[0], TraceStep(held[1].pc, held[1].bytes, held[2], self.end)

    def pcs(self) -> Iterator[int]:
        """The program counters alone, in order."""
        for _, number in self._walk(0):
            for instruction, _ in self._paths[number]:
                yield instruction.pc

    def accesses(self, index: int) -> tuple[Access, ...]:
        """The memory accesses of a step; empty unless the machine was told to log them."""
        return self._accesses.get(index, ())

    def _walk(self, step: int) -> Iterator[tuple[int, int]]:
        """(first step, path number) of every path from the chunk that holds `step` on."""
        chunk = bisect_right([chunk.first_step for chunk in self._chunks], step) - 1
        if self._chunks and step < self._packed_steps:
            at = self._chunks[chunk].first_step
            for later in self._chunks[chunk:]:
                numbers = array("I")
                numbers.frombytes(zlib.decompress(later.packed))
                for number in numbers:
                    yield at, number
                    at += self.lengths[number]
        at = self._packed_steps
        for number in self.pending[: self._settled]:
            yield at, number
            at += self.lengths[number]

    def _steps(self, first: int, last: int) -> Iterator[TraceStep]:
        if first >= last:
            return
        held: tuple[Instruction, Transfer] | None = None
        produced = first
        for start, number in self._walk(first):
            if start + self.lengths[number] <= first:
                continue
            path = self._paths[number]
            for item in path[first - start :] if start < first else path:
                if held is not None:
                    yield TraceStep(held[0].pc, held[0].bytes, held[1], item[0].pc)
                    produced += 1
                    if produced == last:
                        return
                held = item
        if held is not None:
            yield TraceStep(held[0].pc, held[0].bytes, held[1], self.end)
