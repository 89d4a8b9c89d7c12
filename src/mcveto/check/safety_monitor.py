"""Memory safety and faults of one concrete run: a plain monitor beside the reference emulator.

This judges violations that the guards of `property.safety` led to, without them: the program as it is, the inputs that
were reported, lists of saved return addresses and heap blocks of its own. It also finds the words for what happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from mcveto.check.counterexample import Counterexample, sorted_inputs
from mcveto.check.reference_run import (
    MAX_STEPS,
    MAX_TURNS_TRIED,
    ReferenceRun,
    SteppedMachine,
    Turns,
    Violation,
    all_turns,
)
from mcveto.check.safety_words import Block, Frame, Surroundings, Words, crossing_words
from mcveto.machine.emulator import JournalDomain, Outcome
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.machine.memory import READ, WRITE
from mcveto.machine.pcode import Instruction, Space, Transfer, Varnode
from mcveto.machine.registers import Cell
from mcveto.program.exits import explained
from mcveto.program.frame_layout import FrameLayout
from mcveto.program.frames import carrier_register, link_register, link_use, red_zone
from mcveto.program.models import REMAINS
from mcveto.program.program import Program, code_pointer
from mcveto.program.undefined_division import undefined_division
from mcveto.verdict import Verdict

if TYPE_CHECKING:
    from mcveto.check.object_crossings import Crossing

MEMORY_SAFETY = "memory-safety"
NO_FAULT = "no-fault"
_ENDS = (FaultKind.SYSTEM_CALL, FaultKind.ASSUMPTION_FAILED, FaultKind.UNSUPPORTED, FaultKind.HALT_INSTRUCTION)
_COPYING = ("strdup", "strndup")
_HEAP = ("malloc", "calloc", "realloc", "free", *_COPYING)
_ACCESS_FAULTS = (
    FaultKind.UNMAPPED_READ,
    FaultKind.UNMAPPED_WRITE,
    FaultKind.READ_PERMISSION,
    FaultKind.WRITE_PERMISSION,
)


@dataclass(frozen=True, slots=True)
class SafetyViolation:
    about: str
    pc: int
    """The instruction; of a library model, the call of it."""
    reason: str
    facts: dict[str, object]
    steps: int = 0
    """Instructions executed before it."""
    stopped_at: int = 0
    """The program counter then; in a library model, a place of its own."""


class Forbidden(Exception):
    """Stops the run at what it must not do."""

    def __init__(self, words: Words) -> None:
        super().__init__(words.reason)
        self.words = words


@dataclass
class _Pending:
    """A call of an allocator that has not returned."""

    name: str
    arguments: list[int]


@dataclass
class _Now:
    """The instruction at hand."""

    instruction: Instruction
    pointer_before: int
    link_before: int
    carrier_before: int
    stack_accesses: list[tuple[int, int, bool, int]] = field(default_factory=list)
    """Address, size, whether it is a write, and the stack pointer then."""


class Observer(Protocol):
    """Who is told of accesses and of registers written."""

    def access(self, address: int, size: int, value: int | None) -> None: ...

    def written(self, cell: Cell) -> None: ...


class _Domain(JournalDomain):
    monitor: Observer | None = None

    def load(self, address: int, size: int) -> int:
        if self.monitor is not None:
            self.monitor.access(address, size, None)
        return super().load(address, size)

    def store(self, address: int, value: int, size: int) -> None:
        if self.monitor is not None:
            self.monitor.access(address, size, value)
        super().store(address, value, size)

    def write_register(self, cell: Cell, value: int) -> None:
        super().write_register(cell, value)
        if self.monitor is not None:
            self.monitor.written(cell)


class RecordingMachine(SteppedMachine):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        domain = _Domain(self.memory, options["fresh"], False)
        domain.registers.update(self._domain.registers)
        self._domain = domain

    def watched_by(self, monitor: Observer) -> None:
        assert isinstance(self._domain, _Domain)
        self._domain.monitor = monitor

    @property
    def last_transfer(self) -> Transfer:
        return self._last_transfer


class Monitor:
    """Frames, heap blocks and the rules, beside one run."""

    def __init__(self, program: Program, machine: RecordingMachine, asked: tuple[str, ...]) -> None:
        self._program = program
        self._machine = machine
        self._is_safety = MEMORY_SAFETY in asked
        self._row = row = program.decoder.row
        self._word = row.address_bytes
        self._zone = red_zone(program.image)
        link, carrier = link_register(program.decoder), carrier_register(program.decoder)
        self._link = None if link is None else row.return_address
        self._link_cell = self._cell(self._link)
        self._carrier = next((n for n, v in program.decoder.registers.items() if v == carrier), None)
        self._carrier_cell = self._cell(self._carrier)
        pointer = machine.read(row.stack_pointer)
        stack = program.space.region_at(pointer)
        assert stack is not None
        self._stack = (stack.start, stack.end)
        self._fresh, self._carried = True, False
        self._frames = [Frame(pointer if self._link is None else None, None, pointer, pointer)]
        self._layout = FrameLayout(program) if self._is_safety else None
        self._blocks: list[Block] = []
        self._pending: _Pending | None = None
        self._entries: dict[int, str] = {}
        for address, name in program.spec.models:
            pc = code_pointer(program.image, program.decoder, address, undetermined=program.undetermined)
            self._entries[row.code_address(pc)] = name
        self._has_heap = any(name in _HEAP for name in self._entries.values())
        names = ("heap", "heap table", REMAINS) if self._has_heap else (REMAINS,)
        own = {r.start for r in program.space.regions if r.name in names}
        self._heap = [(r.start, r.end) for r in program.space.regions if r.start in own and r.name == "heap"]
        self._table = [(r.start, r.end) for r in program.space.regions if r.start in own and r.name != "heap"]
        self._words = Surroundings(program, self._stack, self._heap, self._table, self._blocks)
        self._now: _Now | None = None

    def _cell(self, name: str | None) -> int | None:
        if name is None:
            return None
        (piece,) = self._program.decoder.layout.named(name)
        return piece.cell.number

    # Around a step.

    def begin(self, instruction: Instruction) -> None:
        read = self._machine.read
        self._now = _Now(
            instruction,
            read(self._row.stack_pointer),
            read(self._link) if self._link else 0,
            read(self._carrier) if self._carrier else 0,
        )
        name = self._entries.get(self._row.code_address(instruction.pc))
        if self._is_safety and name in _HEAP:
            assert name is not None
            self._enter_allocator(name)

    def end(self) -> None:
        """After the instruction; raises Forbidden."""
        now, machine = self._now, self._machine
        assert now is not None
        pointer = machine.read(self._row.stack_pointer)
        for address, size, is_write, then in now.stack_accesses:
            lowest = min(pointer, now.pointer_before, then)
            low, high = self._stack
            if low + self._zone <= lowest <= high and address < lowest - self._zone:
                raise Forbidden(self._words.below(address, size, is_write, lowest - self._zone))
        if machine.last_transfer is Transfer.CALL:
            slot = pointer if self._link is None else None
            self._frames.append(Frame(slot, now.instruction.pc, pointer, pointer, machine.pc))
            self._fresh, self._carried = True, False
        elif machine.last_transfer is Transfer.RETURN:
            self._fresh = self._carried = False
            if len(self._frames) > 1:
                self._frames.pop()
            if self._pending is not None and now.instruction.mnemonic == "model":
                self._leave_allocator(machine.read(self._row.return_registers[0]))

    def caller(self) -> int | None:
        """Where the innermost pending call was made."""
        return self._frames[-1].called_at

    def written(self, cell: Cell) -> None:
        """A register was written."""
        if cell.number == self._link_cell:
            self._fresh = False
        if cell.number == self._carrier_cell and self._now is not None:
            carries = link_use(self._program.decoder, self._now.instruction).carries
            self._carried = self._fresh if carries else False

    # Accesses.

    def access(self, address: int, size: int, value: int | None) -> None:
        """Before a load (no value) or store; raises Forbidden."""
        now, is_write = self._now, value is not None
        if now is None or not self._is_safety:
            return
        is_model = now.instruction.mnemonic == "model"
        model = now.instruction.operands if is_model else ""
        is_copied = model in _COPYING and not is_write
        if is_model and (size > 1 or (model in _HEAP and not is_copied)):
            return
        space, needed = self._program.space, WRITE if is_write else READ
        try:
            space.check(address, size, needed)
        except Fault as fault:
            assert fault.address is not None
            if not self._program.undetermined.is_foreign(fault.address):
                raise Forbidden(self._words.unmapped(address, size, is_write, fault)) from None
            return
        if _within(address, self._table):
            raise Forbidden(self._words.unmapped(address, size, is_write, None))
        if _within(address, self._heap):
            if not any(b.live and b.base <= address and address + size <= b.base + b.size for b in self._blocks):
                raise Forbidden(self._words.outside_blocks(address, size, is_write))
            return
        for frame in self._frames:
            if frame.slot is None or address + size <= frame.slot or frame.slot + self._word <= address:
                continue
            if frame is self._frames[-1] and size == self._word and self._is_its_own(frame, address, value):
                continue
            raise Forbidden(self._words.return_address(address, size, is_write, frame, self._word))
        self._check_saved(now.instruction, address, size, is_write)
        if self._stack[0] <= address < self._stack[1]:
            pointer = self._machine.read(self._row.stack_pointer)
            if is_model:
                lowest = pointer + self._model_frame(now.instruction.operands)
                if self._stack[0] <= lowest <= self._stack[1] and address < lowest:
                    raise Forbidden(self._words.below(address, size, is_write, lowest))
            else:
                now.stack_accesses.append((address, size, is_write, pointer))
        self._note_link(address, size, value)

    def _check_saved(self, instruction: Instruction, address: int, size: int, is_write: bool) -> None:
        """Registers of the caller, between the lowest that is saved and the top of the frame."""
        layout, own = self._layout, self._frames[-1]
        assert layout is not None
        function = layout.function_at(instruction.pc)
        places = {own.top + distance for _, distance in function.saved} if function is not None else set()
        is_direct = size == self._word and address in places and layout.is_direct(instruction, not is_write)
        if self._link is None and not is_write and size == self._word and function is not None:
            is_direct = is_direct or bool(link_use(self._program.decoder, instruction).restores)
        if is_direct and (not is_write or layout.saves(instruction.pc)):
            own.low = min(own.low, address) if is_write else max(own.low, address + size)
            return
        for frame in self._frames:
            if frame.low < address + size and address < frame.top and frame.low < frame.top:
                raise Forbidden(self._words.saved_register(address, size, is_write, frame, self._word))

    def _is_its_own(self, frame: Frame, address: int, value: int | None) -> bool:
        """Whether a function loads or saves its own return address."""
        assert self._now is not None
        if value is not None:
            return self._saves(value)
        use = link_use(self._program.decoder, self._now.instruction)
        return address == frame.slot and bool(use.restores or use.copies)

    def _saves(self, value: int) -> bool:
        assert self._now is not None
        use = link_use(self._program.decoder, self._now.instruction)
        if use.saves and self._fresh and value == self._now.link_before:
            return True
        return bool(use.carried_saves) and self._carried and value == self._now.carrier_before

    def _note_link(self, address: int, size: int, value: int | None) -> None:
        assert self._now is not None
        frame = self._frames[-1]
        if size != self._word:
            return
        if value is not None and self._saves(value):
            frame.slot = address
        elif (
            value is None and frame.slot == address and link_use(self._program.decoder, self._now.instruction).restores
        ):
            frame.slot = None

    def _model_frame(self, name: str) -> int:
        pointer = self._program.decoder.registers[self._row.stack_pointer]
        for address, known in self._entries.items():
            hook = self._program.hooks.get(address)
            if known == name and hook is not None:
                for op in hook.ops:
                    if op.opcode == "INT_SUB" and op.output == pointer:
                        return op.inputs[1].offset
        return 0

    # The heap.

    def _enter_allocator(self, name: str) -> None:
        arguments = [self._argument(number) for number in range(1 if name in ("malloc", "free", "strdup") else 2)]
        if name in _COPYING:
            arguments = [self._text_length(arguments[0], arguments[1] if name == "strndup" else None) + 1]
        self._pending = _Pending(name, arguments)
        is_live = any(block.live and block.base == arguments[0] for block in self._blocks)
        if name in ("free", "realloc") and arguments[0] and not is_live:
            raise Forbidden(self._words.bad_free(name, arguments[0]))
        if name == "free":
            self._kill(arguments[0])
            self._pending = None

    def _leave_allocator(self, result: int) -> None:
        assert self._pending is not None
        name, arguments = self._pending.name, self._pending.arguments
        self._pending = None
        mask = self._row.address_mask
        size = arguments[0] * arguments[-1] & mask if name == "calloc" else arguments[-1]
        if name == "realloc" and (result or not size):
            self._kill(arguments[0])
        if result:
            self._blocks.append(Block(result, size, True, self.caller_of_model()))

    def _text_length(self, at: int, most: int | None) -> int:
        """How long a text is; as far as it can be read, if that ends before it."""
        length = 0
        while length != most and self._machine.memory.peek(at + length & self._row.address_mask, 1) not in (
            None,
            b"\0",
        ):
            length += 1
        return length

    def caller_of_model(self) -> int | None:
        return self._now.instruction.pc if self._now is not None else None

    def _kill(self, base: int) -> None:
        for block in self._blocks:
            if block.base == base:
                block.live = False

    def _argument(self, number: int) -> int:
        where = self._row.arguments[0]
        if not where.startswith("stack+"):
            return self._machine.read(self._row.arguments[number])
        at = self._machine.read(self._row.stack_pointer) + int(where.removeprefix("stack+")) + self._word * number
        content = self._machine.memory.peek(at & self._row.address_mask, self._word)
        return 0 if content is None else int.from_bytes(content, "big" if self._row.big_endian else "little")

    def undefined_division(self, instruction: Instruction) -> Words | None:
        """What is wrong with the division that comes next, where the machine goes on with any result."""
        division = undefined_division(self._row.overlay, instruction)
        if division is None:
            return None
        dividend, divisor = (self._value(varnode) for varnode in (division.dividend, division.divisor))
        least = 1 << 8 * division.dividend.size - 1
        if divisor == 0:
            return Words("divides by zero: the result is undefined", {"fault": FaultKind.DIVIDE_ERROR.label})
        if division.is_signed and dividend == least and divisor == 2 * least - 1:
            return Words("divides with an undefined result: it does not fit", {"fault": FaultKind.DIVIDE_ERROR.label})
        return None

    def _value(self, varnode: Varnode) -> int | None:
        if varnode.space is Space.CONST:
            return varnode.offset
        named = self._program.decoder.registers
        return next((self._machine.read(name) for name, other in named.items() if other == varnode), None)

    def fault_words(self, outcome: Outcome, size: int) -> Words:
        return self._words.fault(outcome, size)


def _within(address: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= address < end for start, end in spans)


def judged(program: Program, verdict: Verdict) -> tuple[Verdict, tuple[Turns, Violation] | None]:
    """An engine's violation of memory safety or of `no-fault` as the monitor sees it; unknown if it sees none."""
    turns, found = safety_violation(program, sorted_inputs(verdict.about, verdict.inputs))
    if isinstance(found, SafetyViolation):
        seen = replace(
            verdict,
            about=found.about,
            reason=found.reason,
            at=found.pc,
            violation=found.facts,
            confirmed_by=("emulator", "monitor"),
        )
        return seen, (turns, Violation(found.about, found.steps, found.stopped_at, found.reason))
    reason = f"self-check failed: the counterexample is not confirmed: {found}"
    return replace(verdict, kind="unknown", about="", reason=reason, inputs=(), confirmed_by=(), at=None), None


def safety_violation(
    program: Program, example: Counterexample, max_steps: int = MAX_STEPS
) -> tuple[Turns, SafetyViolation | str]:
    """At which turn each undefined value is to be used so that something is violated, and what it is then."""
    names = {item.name for item in program.spec.properties} | {example.about}
    asked = tuple(name for name in (MEMORY_SAFETY, NO_FAULT) if name in names)
    first: str | None = None
    for turns in islice(all_turns(example.undefined), MAX_TURNS_TRIED):
        found = find_violation(program, example, asked, turns, max_steps)
        if isinstance(found, SafetyViolation):
            return turns, found
        first = first or found
    return (), first or "there is no run"


def find_violation(
    program: Program, example: Counterexample, asked: tuple[str, ...], turns: Turns = (), max_steps: int = MAX_STEPS
) -> SafetyViolation | str:
    """A violation of the properties in the run of a counterexample, or why there is none: the first that this run
    shows by itself; if there is none, the first access that leaves its object by what similar runs do."""
    found = _first_violation(program, example, asked, turns, max_steps, is_wide=False)
    if isinstance(found, str) and MEMORY_SAFETY in asked:
        wider = _first_violation(program, example, asked, turns, max_steps, is_wide=True)
        return wider if isinstance(wider, SafetyViolation) else found
    return found


def _first_violation(
    program: Program, example: Counterexample, asked: tuple[str, ...], turns: Turns, max_steps: int, *, is_wide: bool
) -> SafetyViolation | str:
    run = ReferenceRun(program, example, turns, machine_class=RecordingMachine)
    machine = run.machine
    assert isinstance(machine, RecordingMachine)
    monitor = Monitor(program, machine, asked)
    machine.watched_by(monitor)
    crossed: dict[int, Crossing] = {}
    if MEMORY_SAFETY in asked:
        crossed = _certain_crossings(program, example, turns, max_steps, is_wide)
        if is_wide and not crossed:
            return "the run violates nothing"
    came_from: int | None = None
    for steps in range(max_steps):
        pc = machine.pc
        try:
            if machine.stopped() is None:
                instruction = machine.fetch(pc)
                monitor.begin(instruction)
                undefined = monitor.undefined_division(instruction) if NO_FAULT in asked else None
                if undefined is not None:
                    found_here = _violation(program, NO_FAULT, pc, monitor, undefined)
                    return replace(found_here, steps=steps, stopped_at=pc)
            outcome = machine.step()
            if steps in crossed:
                raise Forbidden(crossing_words(crossed[steps]))
            if outcome is None:
                monitor.end()
        except Forbidden as found:
            return replace(_violation(program, MEMORY_SAFETY, pc, monitor, found.words), steps=steps, stopped_at=pc)
        except Unsupported as error:
            return str(error)
        except Fault as fault:
            outcome = Outcome("fault", pc, fault.kind, fault.address, str(fault))
        if outcome is not None:
            outcome = explained(program, outcome, machine.read, came_from)
            if outcome.kind != "fault" or outcome.fault is None or outcome.fault in _ENDS:
                return f"the run ends at {outcome.pc:#x}: {outcome.detail or outcome.kind}"
            about = MEMORY_SAFETY if outcome.fault in _ACCESS_FAULTS and MEMORY_SAFETY in asked else NO_FAULT
            if about not in asked:
                return f"the run ends at {outcome.pc:#x}: {outcome.detail or outcome.kind}"
            at = came_from if outcome.address == program.decoder.row.code_address(pc) and came_from else pc
            found_here = _violation(program, about, at, monitor, monitor.fault_words(outcome, 0))
            return replace(found_here, steps=steps, stopped_at=pc)
        came_from = pc
        if run.is_out_of_inputs:
            return "the run asks for more inputs than are given"
    return f"no violation in {max_steps} steps"


def _certain_crossings(
    program: Program, example: Counterexample, turns: Turns, max_steps: int, is_wide: bool
) -> dict[int, Crossing]:
    """Accesses that leave their object and violate memory safety by that, by the number of steps before them."""
    from mcveto.check.object_crossings import CERTAIN, Crossings

    all_of_them = Crossings(program).of(example, turns, max_steps, is_wide=is_wide)
    found = [item for item in all_of_them if item.meaning == CERTAIN]
    return {item.steps: item for item in reversed(found)}


def _violation(program: Program, about: str, pc: int, monitor: Monitor, words: Words) -> SafetyViolation:
    hook = program.hooks.get(pc)
    model = hook.operands if hook is not None and hook.mnemonic == "model" else ""
    called_at = monitor.caller() if hook is not None else None
    at = called_at if called_at is not None else pc
    text = _text(program, at)
    who = _subject(program, at, model)
    facts: dict[str, object] = {"instruction": {"address": at, "text": text}, **words.facts}
    if model:
        facts["library_model"] = model
    return SafetyViolation(about, at, f"{who} {words.reason}", facts)


def _subject(program: Program, at: int, model: str) -> str:
    text = _text(program, at)
    return f"{text} at {at:#x}" if not model else f"{model}, called at {at:#x} ({text}),"


def crossing_reason(program: Program, crossing: Crossing) -> str:
    """A sentence about an access that leaves its object."""
    hook = program.hooks.get(crossing.pc)
    model = hook.operands if hook is not None and hook.mnemonic == "model" else ""
    return f"{_subject(program, crossing.site, model)} {crossing_words(crossing).reason}"


def _text(program: Program, pc: int) -> str:
    """The instruction at an address as it is in the image."""
    hook = program.hooks.get(pc)
    if hook is not None:
        return hook.text
    address = program.decoder.row.code_address(pc)
    for size in range(program.decoder.row.longest_unit(pc), 0, -1):
        code = program.image.read(address, size)
        if code is not None:
            try:
                return program.decoder.decode(pc, code).text
            except Unsupported:
                return "an instruction"
    return "an instruction"
