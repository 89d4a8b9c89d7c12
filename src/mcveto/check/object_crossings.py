"""Accesses that leave the object of the frame they were made for, in one concrete run, and what they mean.

The bounds of objects in a frame are read off the code (`program.frame_layout`), and code does not say everything: an
array beside a variable looks like a structure that holds both. But a structure that is filled, copied or looked through
as a whole ends where one of its fields ends, and so does the longest part of it that any input leads to. So an access
that leaves its object is a violation only

    if the spec says that objects are separate, or a symbol table has the object and its size, or
    if the farthest that is accessed from the object by the same code, in this run and in runs with other inputs near
    to its own (`check.farther_runs`), is past all variables of the frame; or, in code without optimisation, ends or
    begins within a variable: a number that the function reads and writes directly, or an array that other code of the
    run goes through from its start to beyond that place, or
    if, in code that forms addresses of whole objects only (that of x86 compilers without optimisation), the access is
    before an object that is used as such, or a text is read that runs from one object into the next.

Where a compiler may name fields by places of their own, or give one place to several variables, one after the other,
arrays do not count, and the number has to be in use besides: written before, and read afterwards without having been
written again. Optimised code copies texts and structures as numbers: there numbers do not count either.

A field that is reached by a constant distance from the address of a structure is none (`field`). Everything else is
`unclear`, which excludes a proof and is no violation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcveto.check.counterexample import Counterexample
from mcveto.check.farther_runs import FartherRuns, Reach
from mcveto.check.reference_run import ReferenceRun, Turns
from mcveto.check.safety_monitor import RecordingMachine
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.pcode import Instruction, Space, Transfer
from mcveto.machine.registers import Cell
from mcveto.program.frame_layout import FrameLayout, Function
from mcveto.program.program import Program
from mcveto.property.safety.guard_program import Bounds, Watching, guard, named_objects

CERTAIN, FIELD, UNCLEAR = "certain", "field", "unclear"
# How far a run is followed beyond what it was given inputs for.
_FURTHER = 4_000
_MOST = 2_000
_TEXT_READERS = frozenset(
    {"strlen", "strcpy", "strcat", "strcmp", "strchr", "strrchr", "strstr", "puts", "fputs", "printf", "fprintf"}
    | {"sprintf", "snprintf", "atoi", "__printf_chk", "__fprintf_chk", "__strcpy_chk", "__strcat_chk"}
)


@dataclass(frozen=True, slots=True)
class Crossing:
    """One access that left its object."""

    steps: int
    """Instructions executed before it."""
    pc: int
    called_at: int | None
    """Of a library model: where it was called."""
    low: int
    extent: int
    """The object."""
    address: int
    size: int
    is_write: bool
    function: int | None
    """Whose frame the object is in, and where: the distance from the stack pointer at its entry."""
    distance: int
    meaning: str = UNCLEAR

    @property
    def beyond(self) -> int:
        """How many bytes past the end of the object the access ends, or (negative) before its start it begins."""
        if self.address < self.low:
            return self.address - self.low
        return self.address + self.size - (self.low + self.extent)

    @property
    def site(self) -> int:
        return self.called_at if self.called_at is not None else self.pc


@dataclass(frozen=True, slots=True)
class _Access:
    steps: int
    pc: int
    address: int
    size: int
    is_write: bool
    call: int | None
    """Where the function was called that it is made in."""


@dataclass(frozen=True, slots=True)
class _Frame:
    top: int
    entry: int
    called_at: int | None


class _Log:
    """What the recording machine tells."""

    def __init__(self) -> None:
        self.accesses: list[_Access] = []
        self.steps = self.pc = 0
        self.call: int | None = None

    def access(self, address: int, size: int, value: int | None) -> None:
        self.accesses.append(_Access(self.steps, self.pc, address, size, value is not None, self.call))

    def written(self, cell: Cell) -> None:
        """Registers do not matter here."""


@dataclass(frozen=True, slots=True)
class _Followed:
    crossings: list[Crossing]
    accesses: list[_Access]


class Crossings:
    """The crossings of runs of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._recorded = guard(program, Bounds(0, 0), Watching(is_recorded=True))
        self._layout = FrameLayout(program)
        self._row = program.decoder.row
        self._named = named_objects(program.image)

    def of(self, example: Counterexample, turns: Turns, max_steps: int, *, is_wide: bool = True) -> list[Crossing]:
        """In the order in which they happen, with what they mean; unless `is_wide`, as far as this run tells it."""
        if self._recorded is None or self._recorded.crossed is None:
            return []
        found = self._follow(example, turns, max_steps)

        def follow(other: Counterexample, steps: int) -> list[Crossing]:
            return self._follow(other, turns, min(steps, max_steps)).crossings

        farther = FartherRuns(example, found.crossings, follow)
        return [self._judged(item, found, farther if is_wide else None) for item in found.crossings]

    def _follow(self, example: Counterexample, turns: Turns, max_steps: int) -> _Followed:
        assert self._recorded is not None
        run = ReferenceRun(self._recorded.program, example, turns, machine_class=RecordingMachine)
        log = _Log()
        machine = run.machine
        assert isinstance(machine, RecordingMachine)
        machine.watched_by(log)
        cells = {what: self._recorded_cell(f"safety_crossed_{what}") for what in ("tag", "at", "size")}
        frames = [_Frame(machine.read(self._row.stack_pointer), machine.pc, None)]
        found: list[Crossing] = []
        further = 0
        for steps in range(max_steps):
            log.steps, log.pc, log.call = steps, machine.pc, frames[-1].called_at
            pc = machine.pc
            try:
                outcome = machine.step()
            except (Fault, Unsupported):
                break
            tag = machine.registers[cells["tag"]]
            if tag and len(found) < _MOST:
                address, size = machine.registers[cells["at"]], machine.registers[cells["size"]]
                found.append(self._crossing(steps, pc, tag, address, size, frames, log.accesses))
                machine.registers[cells["tag"]] = 0
            if outcome is not None:
                break
            if machine.last_transfer is Transfer.CALL:
                frames.append(_Frame(machine.read(self._row.stack_pointer), machine.pc, pc))
            elif machine.last_transfer is Transfer.RETURN and len(frames) > 1:
                frames.pop()
            further += run.is_out_of_inputs
            if further > _FURTHER:
                break
        return _Followed(found, log.accesses)

    def _recorded_cell(self, name: str) -> int:
        assert self._recorded is not None
        return self._recorded.program.decoder.layout.by_name[name].number

    def _crossing(
        self, steps: int, pc: int, tag: int, address: int, size: int, frames: list[_Frame], accesses: list[_Access]
    ) -> Crossing:
        extent, half = tag >> 32, tag & 0xFFFFFFFF
        # The object is near the stack pointer: its high half is that of the frames.
        low = frames[0].top & ~0xFFFFFFFF | half
        low = next((at for at, end in self._named if (end - at, at & 0xFFFFFFFF) == (extent, half)), low)
        hook = self._program.hooks.get(pc)
        called_at = frames[-1].called_at if hook is not None else None
        in_frame = not any(at == low for at, _ in self._named)
        owner = next((frame for frame in reversed(frames) if in_frame and low < frame.top), None)
        is_write = any(a.steps == steps and a.address == address and a.is_write for a in reversed(accesses[-8:]))
        entry = None if owner is None else owner.entry
        distance = 0 if owner is None else low - owner.top
        return Crossing(steps, pc, called_at, low, extent, address, size, is_write, entry, distance)

    # What a crossing means.

    def _judged(self, item: Crossing, found: _Followed, farther: FartherRuns | None) -> Crossing:
        if self._program.spec.objects == "separate" or any(at == item.low for at, _ in self._named):
            return replace(item, meaning=CERTAIN)
        function = self._layout.functions.get(item.function) if item.function is not None else None
        if function is None:
            return item
        misfit, fits = self._touched(function, item)
        if self._is_at_constant_distance(item.pc):
            # Whole variables of the function are fields, if anything is; what is not one may be of a field.
            return replace(item, meaning=FIELD) if fits and not misfit else item
        if self._is_aggregate(function, item):
            return item
        is_whole = function.forms_whole_objects and (0, item.distance) in function.addressed
        if is_whole and (self._is_before(item, found.accesses) or self._is_text(item)):
            return replace(item, meaning=CERTAIN)
        if farther is None or not self._ends_within(function, item, found, farther.here(item)):
            return item
        reach = farther.reach(item)
        if reach is None or not self._ends_within(function, item, found, reach):
            return item
        return replace(item, meaning=CERTAIN)

    def _is_aggregate(self, function: Function, item: Crossing) -> bool:
        """Whether what is taken for an object is used as a number at its start, or the code itself goes as far as the
        access does: then it has other fields."""
        touch = function.touched.get((0, item.distance))
        if touch is not None and any(size > item.size for size in touch.reads & touch.writes):
            return True
        return 0 < item.beyond <= function.parts.get((0, item.distance), 0) - item.extent

    def _is_before(self, item: Crossing, accesses: list[_Access]) -> bool:
        """Whether the access is before an object that something else is done with than direct accesses."""
        inside = (a for a in accesses if item.low <= a.address < item.low + item.extent and a.steps <= item.steps)
        return item.beyond < 0 and any(not self._is_direct(a) for a in inside)

    def _is_text(self, item: Crossing) -> bool:
        """Whether a library function reads a text past the end of the object."""
        hook = self._program.hooks.get(item.pc)
        return hook is not None and hook.operands in _TEXT_READERS and not item.is_write and item.beyond > 0

    def _ends_within(self, function: Function, item: Crossing, found: _Followed, reach: Reach) -> bool:
        """Whether what is accessed past the end of the object ends within another variable, or past all of them; and
        what is accessed before it begins within one."""
        frame_end = min((at for root, at in function.saved if root == 0), default=0) - item.distance
        if item.beyond > 0 and reach.end > frame_end:
            return True
        is_addressed = (0, item.distance) in function.addressed
        if not function.is_unoptimised or not (is_addressed or self._is_used(item, found.accesses)):
            return False
        place = reach.end if item.beyond > 0 else reach.start
        if place < 0 and not is_addressed:
            return False
        for start, end in self._variables(function, item, found.accesses):
            is_apart = start >= item.extent or end <= 0
            if start < place < end and is_apart:
                return function.forms_only_whole_objects or self._is_live(item, start, end, found.accesses)
        return False

    def _is_used(self, item: Crossing, accesses: list[_Access]) -> bool:
        """Whether the same code has accessed the object itself, too."""
        for access in accesses:
            site = access.call if access.pc in self._program.hooks else access.pc
            if site == item.site and item.low <= access.address < item.low + item.extent:
                return True
        return False

    def _variables(self, function: Function, item: Crossing, accesses: list[_Access]) -> list[tuple[int, int]]:
        """Start and end, from the start of the object, of numbers that the function reads and writes directly, and,
        where no field has an address of its own, of arrays, as far as some code goes through them without a gap."""
        found = [
            (place[1] - item.distance, place[1] - item.distance + touch.number_size)
            for place, touch in function.touched.items()
            if place[0] == 0
        ]
        if not function.forms_only_whole_objects:
            return found
        touched: dict[tuple[int | None, int, bool], set[int]] = {}
        for access in accesses:
            is_model = access.pc in self._program.hooks
            site = (access.call, -1 if is_model else access.pc, access.is_write)
            if (access.call if is_model else access.pc) != item.site:
                touched.setdefault(site, set()).update(range(access.address, access.address + access.size))
        for place in function.addressed:
            if place[0] or place[1] == item.distance:
                continue
            start = place[1] - item.distance + item.low
            end = start
            for bytes_ in touched.values():
                at = start
                while at in bytes_:
                    at += 1
                end = max(end, at)
            found.append((start - item.low, end - item.low))
        return found

    def _is_live(self, item: Crossing, start: int, end: int, accesses: list[_Access]) -> bool:
        """Whether some byte of a variable was written before the access by other code and is read afterwards, without
        being written in between but by the code that makes the access."""
        low, high = item.low + start, item.low + end
        written: set[int] = set()
        for access in accesses:
            site = access.call if access.pc in self._program.hooks else access.pc
            bytes_ = {at for at in range(access.address, access.address + access.size) if low <= at < high}
            if not bytes_ or (site == item.site and access.is_write):
                continue
            if access.is_write:
                written = written | bytes_ if access.steps < item.steps else written - bytes_
            elif access.steps >= item.steps and bytes_ & written:
                return True
        return False

    def _touched(self, function: Function, item: Crossing) -> tuple[list[int], list[int]]:
        """Variables of the function that are touched, by their addresses: in another way than directly, and alike."""
        top = item.low - item.distance
        misfit: list[int] = []
        fits: list[int] = []
        for (root, distance), touch in function.touched.items():
            sizes = touch.reads & touch.writes
            if root or not sizes:
                continue
            start, end = top + distance, top + distance + max(sizes)
            if (
                start < item.address + item.size
                and item.address < end
                and not item.low <= start < item.low + item.extent
            ):
                (fits if start == item.address and item.size in sizes else misfit).append(start)
        return misfit, fits

    def _is_at_constant_distance(self, pc: int) -> bool:
        """Whether the instruction adds a number, and nothing else, to a pointer it accesses memory through."""
        instruction = self._fetched(pc)
        if instruction is None:
            return False
        sums = {
            op.output
            for op in instruction.ops
            if op.opcode == "INT_ADD" and {item.space for item in op.inputs} == {Space.REGISTER, Space.CONST}
        }
        return any(op.opcode in ("LOAD", "STORE") and op.inputs[0] in sums for op in instruction.ops)

    def _fetched(self, pc: int) -> Instruction | None:
        if pc in self._program.hooks:
            return None
        address = self._row.code_address(pc)
        for size in range(self._row.longest_unit(pc), 0, -1):
            code = self._program.image.read(address, size)
            if code is not None:
                return self._program.decoder.decode(pc, code)
        return None

    def _is_direct(self, access: _Access, function: Function | None = None) -> bool:
        """Whether an access is to a fixed place of the frame of its function, or of this one."""
        if function is not None and self._layout.function_at(access.pc) is not function:
            return False
        instruction = None if access.pc not in self._layout.states else self._fetched(access.pc)
        return instruction is not None and self._layout.is_direct(instruction, not access.is_write)
