"""Where in a program an event happens: addresses, and what is executed there.

A call of a function is its entry instruction; a return from it is every instruction of its body that returns. The body
is found by following direct jumps from the entry, never past calls. What would make this guess wrong is refused: code
that the program can overwrite, a body with indirect jumps, a jump to the beginning of another function (a tail call,
whose return is the other one's), and a jump back to the function's own entry (which is no call).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mcveto.errors import UsageError
from mcveto.machine.faults import Unsupported
from mcveto.machine.memory import EXECUTE, WRITE
from mcveto.machine.pcode import Instruction, Space
from mcveto.program.program import Program, code_pointer
from mcveto.property.typestate import Point, PointKind

MAX_BODY = 20_000


class Place(NamedTuple):
    """Before the instruction at `pc`, or, if `at_return`, before its operations that return."""

    pc: int
    at_return: bool


def places(program: Program, point: Point) -> list[Place] | None:
    """Where the event happens; None if the program has no such symbol. Raises UsageError."""
    if point.kind is PointKind.SYSTEM_CALL:
        raise UsageError(f"'{point}' cannot be watched in machine code yet", "watch the function that makes the call")
    where = point.where
    if isinstance(where, str):
        try:
            pc = code_pointer(program.image, program.decoder, where, undetermined=program.undetermined)
        except UsageError:
            return None
    else:
        pc = code_pointer(program.image, program.decoder, where)
    entries = [pc]
    if program.decoder.row.mode_mask and isinstance(where, int):
        # An address does not say the decoding mode: whichever decodes.
        entries = [pc & ~1, pc | 1]
    found: list[Place] = []
    for entry in entries:
        try:
            first = instruction_at(program, entry, str(point))
        except Unsupported as error:
            if len(entries) == 1:
                raise UsageError(f"'{point}': {error}") from None
            continue
        if point.kind is PointKind.REACH:
            found.append(Place(entry, False))
        elif program.hooks.get(entry) is first:
            found.append(Place(entry, point.kind is PointKind.RETURN))
        else:
            found += _of_function(program, entry, point)
    if not found:
        raise UsageError(f"'{point}': no instruction can be decoded there")
    return found


def instruction_at(program: Program, pc: int, what: str) -> Instruction:
    """The hook or the instruction at `pc`, which no run can change; raises UsageError or Unsupported."""
    hook = program.hooks.get(pc)
    if hook is not None:
        return hook
    row, space = program.decoder.row, program.space
    address = row.code_address(pc)
    region = space.region_at(address)
    if region is None or not region.permissions & EXECUTE:
        raise UsageError(f"'{what}': {address:#x} is not code")
    if region.permissions & WRITE:
        raise UsageError(f"'{what}': the code at {address:#x} is writable and cannot be watched")
    for size in range(row.longest_unit(pc), 0, -1):
        code = space.fixed_bytes(address, size)
        if code is not None:
            return program.decoder.decode(pc, code)
    raise UsageError(f"'{what}': the code at {address:#x} is not determined by the file")


def _of_function(program: Program, entry: int, point: Point) -> list[Place]:
    row = program.decoder.row
    starts = {row.code_address(value) for value in program.image.symbols.values()} | set(program.hooks)
    returns: list[Place] = []
    seen: set[int] = set()
    worklist = [entry]
    wants_returns = point.kind is PointKind.RETURN
    while worklist:
        pc = worklist.pop()
        if pc in seen:
            continue
        seen.add(pc)
        if len(seen) > MAX_BODY:
            raise UsageError(f"'{point}': the function is larger than {MAX_BODY} instructions")
        try:
            instruction = instruction_at(program, pc, str(point))
        except Unsupported:
            continue  # a run that gets there ends there
        if any(op.opcode == "RETURN" for op in instruction.ops):
            returns.append(Place(pc, True))
        for target in _jumps(program, instruction):
            if target is None:
                if wants_returns:
                    raise UsageError(
                        f"'{point}': the function has an indirect jump at {pc:#x}", "watch addresses: reach"
                    )
            elif target == entry:
                raise UsageError(
                    f"'{point}': {pc:#x} jumps back to the entry, which is no call", "watch addresses: reach"
                )
            elif row.code_address(target) in starts and _is_function(program, row.code_address(target)):
                if wants_returns:
                    raise UsageError(
                        f"'{point}': the function goes on in another one at {pc:#x}", "watch addresses: reach"
                    )
            else:
                worklist.append(target)
    if not wants_returns:
        return [Place(entry, False)]
    if not returns:
        raise UsageError(f"'{point}': the function never returns")
    return sorted(returns)


def _is_function(program: Program, address: int) -> bool:
    """Whether a jump to a named address leaves the function: labels within functions are no functions."""
    starts = program.image.function_starts
    return address in program.hooks or not starts or address in starts


def _jumps(program: Program, instruction: Instruction) -> Iterator[int | None]:
    """Where control may go within the function after an instruction; None: somewhere that depends on data."""
    row = program.decoder.row
    following = (instruction.pc + instruction.size) & row.address_mask
    falls = True
    for number, op in enumerate(instruction.ops):
        target = op.inputs[0] if op.inputs else None
        if op.opcode in ("BRANCH", "CBRANCH") and target is not None and target.space is Space.RAM:
            yield target.offset | (instruction.pc & row.mode_mask)
        elif op.opcode == "BRANCHIND":
            yield None
        if number == len(instruction.ops) - 1 and op.opcode in ("BRANCH", "BRANCHIND", "RETURN"):
            falls = False
    if falls:
        yield following
