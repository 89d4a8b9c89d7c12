"""Where in a program an event happens: addresses, and what is executed there.

A call of a function is its entry instruction; a return from it is every instruction of its body that returns. The body
is found by following direct jumps from the entry, never past calls. What would make this guess wrong is refused: code
that the program can overwrite, a body with computed jumps whose targets are not certain (see `jump_targets`), a jump to
the beginning of another function (a tail call, whose return is the other one's; what is called anywhere is a function,
whether the file says so or not), and a jump back to the function's own entry (which is no call). Where the body cannot
be told, a return is known by where it goes: behind the calls of the function. If it is not certain that these are all,
runs that enter the function in another way, or come behind a call without having entered it, end as not supported. The
function that runs begin in, if nothing is seen to call it, returns where the run ends (`entry_return`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from mcveto.errors import UsageError
from mcveto.machine.faults import Unsupported
from mcveto.machine.memory import EXECUTE, WRITE
from mcveto.machine.pcode import Instruction, Space
from mcveto.program.image import Image
from mcveto.program.program import Program, code_pointer
from mcveto.property.typestate import Point, PointKind

MAX_BODY = 20_000
_HINT = "watch addresses instead: reach"


class Place(NamedTuple):
    """Before the instruction at `pc`, or, if `at_return`, before its operations that return. If `pc` is where runs end:
    before whatever return leads there."""

    pc: int
    at_return: bool
    behind: Calls | None = None
    """The place is where these calls return to; it is not certain that there are no others."""


class Calls(NamedTuple):
    """Instructions that call a function."""

    entry: int
    pcs: tuple[int, ...]


def that_count(image: Image, points: Sequence[Point]) -> list[Point]:
    """The points of an event that count in a file. A function that is in the file may do its work by one that is not:
    what both do must not count twice."""
    is_defined = any(point.where in image.symbols and point.where not in image.imports for point in points)
    return [
        point for point in points if not (point.only_undefined and (is_defined or point.where not in image.imports))
    ]


def places(program: Program, point: Point) -> list[Place] | None:
    """Where the event happens, nowhere if it is the return of a function that never returns; None if the program has no
    such symbol. Raises UsageError."""
    assert point.kind is not PointKind.SYSTEM_CALL, "system calls are watched where they are decoded"
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
        # An address does not say the decoding mode: whichever decodes. The function that runs begin in has one.
        is_entry = point.kind is PointKind.RETURN and program.entry & ~1 == pc & ~1
        entries = [program.entry] if is_entry else [pc & ~1, pc | 1]
    found: list[Place] = []
    decoded = False
    for entry in entries:
        try:
            first = instruction_at(program, entry, str(point))
        except Unsupported as error:
            if len(entries) == 1:
                raise UsageError(f"'{point}': {error}") from None
            continue
        decoded = True
        if point.kind is PointKind.REACH:
            found.append(Place(entry, False))
        elif program.hooks.get(entry) is first:
            found.append(Place(entry, point.kind is PointKind.RETURN))
        else:
            found += _of_function(program, entry, point)
    if not decoded:
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
    if point.kind is not PointKind.RETURN:
        return _Body(program, entry, point).places()
    followed = _Followed(program)
    try:
        return _Body(program, entry, point, followed.called).places()
    except UsageError:
        if entry == program.entry and not followed.callers(entry):
            return [Place(program.return_sentinel, False)]
        sites = followed.returned_to(entry)
        if sites is None:
            raise
        behind = None if followed.is_all else Calls(entry, followed.callers(entry))
        return [Place(site, False, behind) for site in sites]


class _Followed:
    """The code that is reached from the program's entry by direct jumps and calls, as far as it goes."""

    def __init__(self, program: Program) -> None:
        self._calls: dict[int, set[int]] = {}
        """Where calls of a function return to."""
        self._callers: dict[int, set[int]] = {}
        self._conditional: set[int] = set()
        self._jumped_to: set[int] = set()
        self.is_all = True
        """Whether there is no code other than what was followed."""
        row = program.decoder.row
        seen: set[int] = set()
        worklist = [program.entry]
        while worklist:
            pc = worklist.pop()
            if pc in seen or row.code_address(pc) in program.halts:
                continue
            seen.add(pc)
            if len(seen) > MAX_BODY:
                self.is_all = False
                return
            try:
                instruction = instruction_at(program, pc, "code")
            except Unsupported:
                continue
            except UsageError:
                self.is_all = False
                continue
            called = [op.inputs[0].offset | (pc & row.mode_mask) for op in instruction.ops if op.opcode == "CALL"]
            self.is_all = self.is_all and all(op.opcode != "CALLIND" for op in instruction.ops)
            for target, way in _jumps(program, instruction):
                if way == "computed":
                    self.is_all = False
                    continue
                if way == "after call":
                    for entry in called:
                        self._calls.setdefault(entry, set()).add(target)
                        self._callers.setdefault(entry, set()).add(pc)
                        if any(op.opcode == "CBRANCH" for op in instruction.ops):
                            self._conditional.add(entry)
                elif way == "jump":
                    self._jumped_to.add(target)
                worklist.append(target)
            worklist += called

    @property
    def called(self) -> set[int]:
        """Functions, by being called."""
        return set(self._calls)

    def callers(self, entry: int) -> tuple[int, ...]:
        return tuple(sorted(self._callers.get(entry, ())))

    def returned_to(self, entry: int) -> list[int] | None:
        """Where the function returns to, if control comes there in no other way as far as the code was followed."""
        sites = self._calls.get(entry, set())
        if not sites or entry in self._jumped_to or sites & self._jumped_to:
            return None
        if not self.is_all and entry in self._conditional:
            return None
        return sorted(sites)


class _Body:
    """The instructions of a function, followed from its entry; raises UsageError for what would be a guess."""

    def __init__(self, program: Program, entry: int, point: Point, called: Collection[int] = ()) -> None:
        self._program = program
        self._entry = entry
        self._point = point
        self._wants_returns = point.kind is PointKind.RETURN
        self._starts = _function_starts(program) | {program.decoder.row.code_address(pc) for pc in called}
        self._instructions: dict[int, Instruction | None] = {}
        self._before: dict[int, list[int]] = {}
        # Where control also comes from elsewhere.
        self._entered = {entry}
        self._computed: dict[int, set[int]] = {}
        self._worklist = [entry]

    def places(self) -> list[Place]:
        self._follow()
        if not self._wants_returns:
            return [Place(self._entry, False)]
        if self._computed:
            self._follow_computed()
        return sorted(
            Place(pc, True)
            for pc, instruction in self._instructions.items()
            if instruction is not None and any(op.opcode == "RETURN" for op in instruction.ops)
        )

    def _follow_computed(self) -> None:
        """Follows computed jumps to all targets they may have, until there are no more."""
        from mcveto.program.jump_targets import JumpTargets

        jumps = JumpTargets(self._program)
        while True:
            is_new = False
            for pc, known in sorted(self._computed.items()):
                jump = self._instructions[pc]
                assert jump is not None
                found = jumps.of(jump, self._ways_to, self._instructions.get)
                if found is None:
                    raise UsageError(f"'{self._point}': the function has a computed jump at {pc:#x}", _HINT)
                for target in sorted(found - known):
                    is_new = True
                    known.add(target)
                    self._go(pc, target, "jump")
            if not is_new:
                return
            self._follow()

    def _ways_to(self, pc: int) -> list[int] | None:
        return None if pc in self._entered else self._before.get(pc, [])

    def _follow(self) -> None:
        while self._worklist:
            pc = self._worklist.pop()
            if pc in self._instructions:
                continue
            if len(self._instructions) > MAX_BODY:
                raise UsageError(f"'{self._point}': the function is larger than {MAX_BODY} instructions")
            instruction = self._instructions[pc] = self._instruction(pc)
            if instruction is not None:
                for target, way in _jumps(self._program, instruction):
                    self._go(pc, target, way)

    def _instruction(self, pc: int) -> Instruction | None:
        """None if a run that gets there ends there."""
        try:
            return instruction_at(self._program, pc, str(self._point))
        except Unsupported:
            return None
        except UsageError:
            if self._wants_returns:
                raise
            return None

    def _go(self, pc: int, target: int, way: str) -> None:
        is_other = target != self._entry and self._program.decoder.row.code_address(target) in self._starts
        if way == "computed":
            self._computed.setdefault(pc, set())
        elif target == self._entry:
            raise UsageError(f"'{self._point}': {pc:#x} jumps back to the entry, which is no call", _HINT)
        elif is_other and way == "after call":
            return  # the call before it does not return
        elif is_other:
            if self._wants_returns:
                raise UsageError(f"'{self._point}': the function goes on in another one at {pc:#x}", _HINT)
        else:
            self._before.setdefault(target, []).append(pc)
            if way == "after call":
                self._entered.add(target)
            self._worklist.append(target)


def _function_starts(program: Program) -> set[int]:
    """Where functions begin: by the unwind tables if there are any, else all symbols (labels may be among them)."""
    row = program.decoder.row
    known = program.image.function_starts or program.image.symbols.values()
    return {row.code_address(address) for address in (*known, *program.hooks)}


def _jumps(program: Program, instruction: Instruction) -> Iterator[tuple[int, str]]:
    """Where control may go within the function after an instruction, and how: by a jump, by falling through, behind a
    call, or somewhere that depends on data ("computed", with no address)."""
    row = program.decoder.row
    ways = [op.opcode for op in instruction.ops]
    for op in instruction.ops:
        target = op.inputs[0] if op.inputs else None
        if op.opcode in ("BRANCH", "CBRANCH") and target is not None and target.space is Space.RAM:
            yield target.offset | (instruction.pc & row.mode_mask), "jump"
        elif op.opcode == "BRANCHIND":
            yield -1, "computed"
    # An instruction that does nothing has no operations; control goes on behind it.
    if instruction.size and (not ways or ways[-1] not in ("BRANCH", "BRANCHIND", "RETURN")):
        following = (instruction.pc + instruction.size) & row.address_mask
        yield following, "after call" if {"CALL", "CALLIND"} & set(ways) else "fall"
