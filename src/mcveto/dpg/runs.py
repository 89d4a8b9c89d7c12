"""Runs of the program: concrete and symbolic at once, cut into visits of locations.

A run follows one assignment of the inputs (`ConcolicExecution`), watches the auxiliary stack (TR1669 §3.5), and ends
at a halt, at a target, at a return that does not match its call, at a fault, at something unsupported, or at the step
limit. Visits that keep their symbolic state can serve as witnesses of graph nodes: the first few of each location,
then fewer and fewer, and the last.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from mcveto.dpg import executed
from mcveto.dpg.location import ANY, Blocks, Fold, Location, frame_pointer_of
from mcveto.dpg.state import SymbolicState
from mcveto.dpg.surroundings import Surroundings
from mcveto.dpg.ways import INTERNAL, Kind, Way
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine.concolic import Assignment, ConcolicExecution
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.pcode import FreshOrigin, Instruction, Transfer
from mcveto.program.inputs import ConsumedInput, InputSource
from mcveto.program.program import Program
from mcveto.program.spec import InputCall

FIRST_VISITS = 4
CALLS = ("CALL", "CALLIND")


class Ending(Enum):
    HALTED = "halted"
    TARGET = "target"
    VIOLATION = "return-address"
    FAULT = "fault"
    UNSUPPORTED = "unsupported"
    LIMIT = "limit"


@dataclass
class Choices:
    """What a run is told: values by position of the fresh value, register name and address; the rest is the seed's."""

    fresh: dict[int, int] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)
    memory: dict[int, int] = field(default_factory=dict)
    seed: int = 0
    keep: frozenset[int] = frozenset()
    """Numbers of visits whose state must be kept: the ones the run is made for."""


@dataclass(frozen=True, slots=True)
class Visit:
    """The `number`-th visit of a run: at `location` before `step`, by `path_length` conjuncts of its path."""

    location: Location
    number: int
    step: int
    path_length: int
    fresh_count: int
    state: SymbolicState | None
    way: Way = INTERNAL
    """How the run came here from the visit before."""
    caller: int | None = None
    """The number of the visit that made the innermost pending call; None if the run itself is that call."""


@dataclass
class Run:
    number: int
    choices: Choices
    visits: list[Visit]
    ending: Ending
    detail: str
    pc: int
    steps: int
    path: list[Term]
    execution: ConcolicExecution
    consumed: list[ConsumedInput]
    undefined: list[ConsumedInput]
    """Values the manual leaves undefined, where they are not the usual ones."""
    came_from: int | None = None
    """The address of the last instruction that ran."""
    expected_return: int | None = None
    actual_return: int | None = None


_ENDINGS = {"fault": Ending.FAULT, "exited": Ending.HALTED, "unsupported": Ending.UNSUPPORTED}


class CallStringTooLong(Exception):
    """A run has recursed too deep for locations that keep call strings."""


class Runner:
    """Makes runs; `max_steps` bounds each of them. Raises CallStringTooLong where one return address is pending more
    often than `deepest_recursion` says."""

    def __init__(
        self,
        program: Program,
        blocks: Blocks,
        max_steps: int,
        seed: int,
        fold: Fold = Fold.FRAME,
        deepest_recursion: int | None = None,
    ) -> None:
        self._program = program
        self._deepest = deepest_recursion
        self._fold = fold
        self._blocks = blocks
        self._max_steps = max_steps
        self._seed = seed
        self._mem = t.memory("mem", program.space.address_bits)
        layout, row = program.decoder.layout, program.decoder.row
        (self._stack_pointer,) = layout.named(row.stack_pointer)
        (self._frame_pointer,) = layout.named(row.frame_pointer)
        self._surroundings = Surroundings(program)
        self.count = 0

    def run(self, choices: Choices) -> Run:
        program, row = self._program, self._program.decoder.row
        consumed: list[ConsumedInput] = []
        undefined: list[ConsumedInput] = []
        execution = self._execution(choices, consumed, undefined)
        stack: list[tuple[int, int | None]] = [(program.return_sentinel, None)]
        frames: tuple[int, ...] = (program.return_sentinel,)
        way = INTERNAL
        visits: list[Visit] = []
        seen: dict[Location, int] = {}
        ending, detail = Ending.LIMIT, ""
        expected: int | None = None
        actual: int | None = None
        came_from: int | None = None
        while execution.steps < self._max_steps:
            address = row.code_address(execution.pc)
            if address in program.targets:
                ending = Ending.TARGET
                break
            if address in program.halts or address == row.code_address(program.return_sentinel):
                ending = Ending.HALTED
                break
            try:
                block = self._blocks.fixed_block(execution.pc)
                if block is None:
                    block = self._blocks.single(execution.pc, execution.code_bytes())
                caller = stack[-1][1] if stack else None
                visits.append(self._visit(execution, block, frames, seen, len(visits), choices.keep, way, caller))
                transfer = Transfer.FALL
                before, size, done = execution.pc, 0, 0
                for instruction in block:
                    before, size = execution.pc, instruction.size
                    stepped = execution.step()
                    assert stepped is not None
                    transfer = stepped
                    done += size
                executed.note(address, done)
            except Fault as fault:
                ended = self._surroundings.explain(fault, execution, came_from)
                ending, detail = _ENDINGS[ended.kind], ended.detail
                break
            except Unsupported as error:
                ending, detail = Ending.UNSUPPORTED, str(error)
                break
            came_from = before
            way = INTERNAL
            if self._fold is Fold.UNMATCHED:
                continue
            if transfer is Transfer.CALL:
                following = (before + size) & row.address_mask
                stack.append((following, len(visits) - 1))
                if self._is_too_deep(following, stack):
                    raise CallStringTooLong
                frames = (*frames, following) if self._fold is Fold.FRAME else frames
                way = Way(Kind.CALL, following)
            elif transfer is Transfer.RETURN:
                expected, actual = (stack[-1][0] if stack else None), execution.pc
                if expected != actual:
                    ending = Ending.VIOLATION
                    detail = f"return at {before:#x} goes to {actual:#x} instead of {expected or 0:#x}"
                    break
                assert expected is not None
                stack.pop()
                frames = frames[:-1] if self._fold is Fold.FRAME else frames
                way = Way(Kind.RETURN, expected)
        self.count += 1
        return Run(
            self.count,
            choices,
            visits,
            ending,
            detail,
            execution.pc,
            execution.steps,
            [item.term for item in execution.path],
            execution,
            consumed,
            undefined,
            came_from,
            expected,
            actual,
        )

    def _is_too_deep(self, address: int, stack: list[tuple[int, int | None]]) -> bool:
        if self._deepest is None or len(stack) <= self._deepest:
            return False
        return sum(other == address for other, _ in stack) > self._deepest

    def _visit(
        self,
        execution: ConcolicExecution,
        block: tuple[Instruction, ...],
        frames: tuple[int, ...],
        seen: dict[Location, int],
        number: int,
        keep: frozenset[int],
        way: Way,
        caller: int | None,
    ) -> Visit:
        domain = execution.domain
        code = b"".join(instruction.bytes for instruction in block)
        if self._fold is Fold.PC:
            location = Location(execution.pc, code, ANY, ANY, None)
        else:
            pointers = [domain.read_register(piece.cell) for piece in (self._stack_pointer, self._frame_pointer)]
            values = [term.data if term.op == "const" else ANY for term in pointers]
            kept = frames if self._fold is Fold.FRAME else None
            frame = frame_pointer_of(self._program.space, values[0], values[1])
            location = Location(execution.pc, code, values[0], frame, kept)
        times = seen[location] = seen.get(location, 0) + 1
        state = None
        # With nested words, a witness also needs the states in which its pending calls were made.
        is_call = self._fold is Fold.PC and any(op.opcode in CALLS for op in block[-1].ops)
        if times <= FIRST_VISITS or times & (times - 1) == 0 or number in keep or is_call:
            state = SymbolicState(self._program.decoder.layout, dict(domain.registers), domain.memory.copy(), self._mem)
        return Visit(
            location, number, execution.steps, len(execution.path), len(execution.fresh_values), state, way, caller
        )

    def _execution(
        self, choices: Choices, consumed: list[ConsumedInput], undefined: list[ConsumedInput]
    ) -> ConcolicExecution:
        program = self._program
        base = program.choices(InputSource((), choices.seed), choices.seed)
        generator = random.Random(choices.seed)
        counter = [0]

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            number = counter[0]
            counter[0] += 1
            value = choices.fresh.get(number)
            if value is None:
                value = _draw(generator, bits) if origin is FreshOrigin.INPUT else usual
            if origin is FreshOrigin.INPUT:
                consumed.append(_consumed(program.spec.input_calls[usual], value))
            elif value != usual:
                undefined.append(ConsumedInput(value, bits, f"undefined value at {execution.pc:#x}"))
            return value

        def byte(address: int) -> int:
            value = choices.memory.get(address)
            return base.byte(address) if value is None else value

        registers: Mapping[str, int] = {**base.registers, **choices.registers}
        execution = program.concolic_with(Assignment(registers, byte, fresh))
        return execution


def _consumed(call: InputCall, value: int) -> ConsumedInput:
    """What `mcveto run` would list, and takes: the value of the bits the function returns."""
    value &= (1 << call.bits) - 1
    if call.signed and value >> (call.bits - 1):
        value -= 1 << call.bits
    where = call.at if isinstance(call.at, str) else f"{call.at:#x}"
    return ConsumedInput(value, call.bits, f"call of {where}")


def _draw(generator: random.Random, bits: int) -> int:
    top = (1 << bits) - 1
    choice = generator.randrange(4)
    if choice == 0:
        return generator.choice((0, 1, top, top >> 1))
    if choice == 1:
        return generator.randrange(256) & top
    return generator.getrandbits(bits)
