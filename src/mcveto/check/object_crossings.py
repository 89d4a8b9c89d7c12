"""Accesses that leave the object of the frame they were made for, in one concrete run, and what they mean.

The bounds of objects in a frame are read off the code (`program.frame_layout`), and code does not say everything: an
array beside a variable looks like a structure that holds both. So an access that leaves its object is a violation only

    if the spec says that objects are separate, or a symbol table has the object and its size, or
    if it touches a variable that its function reads and writes directly, but in another way (a byte of an
    integer, say), and either other inputs lead through the same code without leaving the object (whole structures are
    not copied to a length that depends on the input), or it overwrites what the variable was given before, and the
    variable is then read, or
    if, in code that forms addresses of whole objects only (that of x86 compilers without optimisation), what is
    accessed past its end ends within another object (a whole structure ends where objects end), or the access is
    before an object that is used as such, or
    if a library function has filled exactly the object before, as it does to initialise an array.

A field that is reached by a constant distance from the address of a structure is none (`field`). Everything else is
`unclear`, which excludes a proof and is no violation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from mcveto.check.counterexample import Counterexample
from mcveto.check.reference_run import ReferenceRun, Turns
from mcveto.check.safety_monitor import RecordingMachine
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.pcode import Instruction, Space, Transfer
from mcveto.machine.registers import Cell
from mcveto.program.frame_layout import FrameLayout, Function
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.property.safety.guard_program import Bounds, Watching, guard, named_objects

CERTAIN, FIELD, UNCLEAR = "certain", "field", "unclear"
_OTHER_RUNS = 12
_OTHER_STEPS = 4_000
# How far a run is followed beyond what it was given inputs for.
_FURTHER = 4_000
_MOST = 2_000
# Between two objects there may be so many bytes that belong to none.
_PADDING = 16


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


class Crossings:
    """The crossings of runs of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._recorded = guard(program, Bounds(0, 0), Watching(is_recorded=True))
        self._layout = FrameLayout(program)
        self._row = program.decoder.row
        self._named = named_objects(program.image)

    def of(self, example: Counterexample, turns: Turns, max_steps: int) -> list[Crossing]:
        """In the order in which they happen, with what they mean."""
        if self._recorded is None or self._recorded.crossed is None:
            return []
        run = ReferenceRun(self._recorded.program, example, turns, machine_class=RecordingMachine)
        log = _Log()
        found = self._follow(run, log, max_steps)
        return [self._judged(item, found, log.accesses) for item in found]

    def _follow(self, run: ReferenceRun, log: _Log, max_steps: int) -> list[Crossing]:
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
        return found

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

    def _judged(self, item: Crossing, others: list[Crossing], accesses: list[_Access]) -> Crossing:
        if self._program.spec.objects == "separate" or any(at == item.low for at, _ in self._named):
            return replace(item, meaning=CERTAIN)
        function = self._layout.functions.get(item.function) if item.function is not None else None
        if function is None:
            return item
        misfit, fits = self._touched(function, item)
        if self._is_at_constant_distance(item.pc):
            # Whole variables of the function are fields, if anything is; what is not one may be of a field.
            return replace(item, meaning=FIELD) if fits and not misfit else item
        if misfit and (self._depends_on_input(item) or (item.is_write and self._is_missed(function, item, accesses))):
            return replace(item, meaning=CERTAIN)
        if function.forms_whole_objects and self._ends_within(function, item, others, accesses):
            return replace(item, meaning=CERTAIN)
        if item.beyond > 0 and self._is_filled(item, accesses):
            return replace(item, meaning=CERTAIN)
        return item

    def _is_filled(self, item: Crossing, accesses: list[_Access]) -> bool:
        """Whether a library function has filled exactly the object before, as initialisations of arrays do."""
        written: set[int] = set()
        for access in accesses:
            is_model = access.pc in self._program.hooks and access.size == 1
            if is_model and access.is_write and access.steps < item.steps and access.call != item.called_at:
                if access.address == item.low and item.low in written:
                    written.clear()
                written.add(access.address)
        inside = range(item.low, item.low + item.extent)
        before, behind = item.low - 1, item.low + item.extent
        return all(at in written for at in inside) and before not in written and behind not in written

    def _ends_within(self, function: Function, item: Crossing, others: list[Crossing], accesses: list[_Access]) -> bool:
        """Whether all that is accessed past the end of the object ends within another object, or the access is before
        an object that something else is done with."""
        if item.beyond < 0:
            inside = (a for a in accesses if item.low <= a.address < item.low + item.extent and a.steps <= item.steps)
            return any(not self._is_direct(a) for a in inside)
        top = item.low - item.distance
        same = [o for o in others if (o.low, o.extent) == (item.low, item.extent) and o.beyond > 0]
        end = max(o.address + o.size for o in same) - top
        for place in function.formed:
            extent = function.extent(place)
            if place[0] or extent is None or place[1] <= item.distance:
                continue
            if place[1] < end <= place[1] + extent - _PADDING:
                return True
        for (root, start), touch in function.touched.items():
            sizes = touch.reads & touch.writes
            if root == 0 and sizes and start > item.distance and start < end < start + max(sizes):
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

    def _is_missed(self, function: Function, item: Crossing, accesses: list[_Access]) -> bool:
        """Whether a variable that the access overwrites had been written directly, and is read directly afterwards."""
        misfit, _ = self._touched(function, item)
        for start in misfit:
            direct = [a for a in accesses if a.address == start and self._is_direct(a, function)]
            before = [a for a in direct if a.steps < item.steps]
            after = [a for a in direct if a.steps > item.steps]
            if any(a.is_write for a in before) and after and not after[0].is_write:
                return True
        return False

    def _is_direct(self, access: _Access, function: Function | None = None) -> bool:
        """Whether an access is to a fixed place of the frame of its function, or of this one."""
        if function is not None and self._layout.function_at(access.pc) is not function:
            return False
        instruction = None if access.pc not in self._layout.states else self._fetched(access.pc)
        return instruction is not None and self._layout.is_direct(instruction, not access.is_write)

    def _depends_on_input(self, item: Crossing) -> bool:
        """Whether some other run passes the same place, to its end, and no object is left there."""
        return any(item.site in passed and item.site not in crossed for passed, crossed in self._other_runs())

    @lru_cache(maxsize=1)  # noqa: B019
    def _other_runs(self) -> list[tuple[set[int], set[int]]]:
        found: list[tuple[set[int], set[int]]] = []
        for seed in range(_OTHER_RUNS):
            values = _USUAL[seed] if seed < len(_USUAL) else None
            found.append(self._passed(seed, values))
        return found

    def _passed(self, seed: int, value: int | None) -> tuple[set[int], set[int]]:
        """The program counters that a run passes, and those where it leaves an object; a run with all inputs alike, or
        with any."""
        assert self._recorded is not None
        source = InputSource((), seed) if value is None else _Same(value)
        program = self._recorded.program
        machine = program.machine(source, seed)
        cell = self._recorded_cell("safety_crossed_tag")
        passed, crossed = set[int](), set[int]()
        calls: list[int] = []
        for _ in range(_OTHER_STEPS):
            pc = machine.pc
            try:
                outcome = machine.step()
            except (Fault, Unsupported):
                break
            site = calls[-1] if calls and pc in self._program.hooks else pc
            passed.add(site)
            if machine.registers[cell]:
                crossed.add(site)
                machine.registers[cell] = 0
            if outcome is not None:
                return passed, crossed
            if machine._last_transfer is Transfer.CALL:
                calls.append(pc)
            elif machine._last_transfer is Transfer.RETURN and calls:
                calls.pop()
        # Nobody knows how it would have gone on.
        return set(), crossed


# Inputs that mean little to most programs: zeros, ends of lines, letters, ends of files.
_USUAL = (0, 1, 2, 10, 97, 0xFFFFFFFF)


class _Same(InputSource):
    """The same value for every input."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self._value = value

    def _draw(self, bits: int) -> int:
        return self._value & ((1 << bits) - 1)
