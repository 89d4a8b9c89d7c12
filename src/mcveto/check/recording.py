"""A counterexample's run written down: its entry state, every step with what it changed, every replaced function.

This is what the files of a counterexample folder are made from; they must make sense without mcveto.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcveto.check.counterexample import SAFETY, Counterexample
from mcveto.check.judgement import judgement
from mcveto.check.reference_run import ReferenceRun, Turns, Violation
from mcveto.errors import UsageError
from mcveto.machine.memory import Memory
from mcveto.machine.pcode import Transfer
from mcveto.machine.trace import Access
from mcveto.program.program import Program

# More than a library model's frame and its return address have.
_FRAME = 1024
Changes = tuple[tuple[str, int], ...]
Writes = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class InitialState:
    registers: dict[str, int]
    memory: Memory
    bytes: tuple[tuple[int, int], ...]
    """Bytes that the counterexample chose: input memory, and unspecified bytes that matter."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    pc: int
    code: bytes
    text: str
    depth: int
    """Calls that are open."""
    changes: Changes
    accesses: tuple[Access, ...]
    next_pc: int


@dataclass(frozen=True, slots=True)
class HookVisit:
    """A step of a function that the spec replaces: which registers and bytes it changed, and where it went."""

    pc: int
    changes: Changes
    next_pc: int
    writes: Writes = ()


@dataclass(frozen=True, slots=True)
class Recording:
    program: Program
    example: Counterexample
    violation: Violation
    initial: InitialState
    steps: tuple[RecordedStep, ...]
    hooks: tuple[HookVisit, ...]
    calls: tuple[HookVisit, ...]
    """The same, with all steps from a call of a replaced function to its return as one."""
    unfinished: int | None
    """Where the replaced function was entered that the violation happens in."""

    @property
    def last_pc(self) -> int:
        """The last instruction executed."""
        return self.steps[-1].pc if self.steps else self.program.entry

    @property
    def visits_of_last(self) -> int:
        """How often that instruction was executed."""
        return sum(step.pc == self.last_pc for step in self.steps)

    @property
    def stop(self) -> tuple[int, int]:
        """The instruction, or replaced function, at which to stop, and how often it was come to before."""
        if self.violation.about == "return-address":
            return self.last_pc, self.visits_of_last - 1
        if self.unfinished is not None:
            return self.unfinished, sum(call.pc == self.unfinished for call in self.calls)
        return self.violation.pc, sum(step.pc == self.violation.pc for step in self.steps)


def record(program: Program, example: Counterexample, turns: Turns, violation: Violation) -> Recording:
    """Repeats a run that is known to end with the violation."""
    run = ReferenceRun(program, example, turns, log_accesses=True)
    row, machine = program.decoder.row, run.machine
    names = (*row.general, *row.flags)
    before = {name: machine.read(name) for name in names}
    chosen = [address for start, end in program.input_memory for address in range(start, end)]
    chosen += [address for address, _ in example.memory]
    content = {address: machine.memory.peek(address, 1) or b"\0" for address in chosen}
    initial = InitialState(dict(before), _copy(program, machine.memory), tuple((a, b[0]) for a, b in content.items()))
    steps: list[RecordedStep] = []
    hooks: list[HookVisit] = []
    calls: list[HookVisit] = []
    started: int | None = None
    depth = 0
    while run.steps < violation.steps:
        step = run.step()
        assert not isinstance(step, str), step
        after = {name: machine.read(name) for name in names}
        changes = tuple((name, value) for name, value in after.items() if before[name] != value)
        before = after
        hook = program.hooks.get(step.pc)
        text = hook.text if hook is not None else program.decoder.decode(step.pc, step.bytes).text
        accesses = machine.trace.accesses(run.steps - 1)
        steps.append(RecordedStep(step.pc, step.bytes, text, depth, changes, accesses, step.next_pc))
        if hook is not None:
            written = {a.address: machine.memory.peek(a.address, a.size) or b"" for a in accesses if a.is_write}
            hooks.append(HookVisit(step.pc, changes, step.next_pc, tuple(written.items())))
            started = len(hooks) - 1 if started is None else started
            if step.transfer is Transfer.RETURN:
                calls.append(_whole(hooks[started:], after[row.stack_pointer]))
                started = None
        if step.transfer is Transfer.CALL:
            depth += 1
        elif step.transfer is Transfer.RETURN:
            depth = max(0, depth - 1)
    unfinished = hooks[started].pc if started is not None else None
    if unfinished is None and violation.pc in program.hooks:
        unfinished = violation.pc
    return Recording(program, example, violation, initial, tuple(steps), tuple(hooks), tuple(calls), unfinished)


def _whole(visits: list[HookVisit], stack_pointer: int) -> HookVisit:
    """One call from its entry to its return; what it left below the stack pointer is nobody's."""
    changes: dict[str, int] = {}
    content: dict[int, int] = {}
    for visit in visits:
        changes.update(visit.changes)
        for address, written in visit.writes:
            content.update({address + at: byte for at, byte in enumerate(written)})
    kept = {a: b for a, b in content.items() if not stack_pointer - _FRAME <= a < stack_pointer}
    writes: list[tuple[int, bytes]] = []
    for address, byte in sorted(kept.items()):
        if writes and writes[-1][0] + len(writes[-1][1]) == address:
            writes[-1] = (writes[-1][0], writes[-1][1] + bytes([byte]))
        else:
            writes.append((address, bytes([byte])))
    return HookVisit(visits[0].pc, tuple(changes.items()), visits[-1].next_pc, tuple(writes))


def recorded(program: Program, example: Counterexample) -> Recording:
    """The run of a counterexample that was confirmed."""
    turns, violation = judgement(program, example)
    if isinstance(violation, str):
        raise UsageError(f"the counterexample cannot be repeated: {violation}")
    return record(program, example, turns, violation)


def _copy(program: Program, memory: Memory) -> Memory:
    copy = program.space.memory()
    for ours, theirs in zip(copy.regions, memory.regions, strict=True):
        ours.data[:] = theirs.data
    return copy


def trace_text(recording: Recording) -> str:
    """The run for a person to read: calls indented, below each instruction what it changed."""
    program, violation = recording.program, recording.violation
    code_address = program.decoder.row.code_address
    names = {address: name for name, address in sorted(program.image.symbols.items(), reverse=True)}
    lines = [f"violation of {violation.about}: {violation.detail}", ""]
    inputs = iter([item for item in recording.example.inputs if item.where.startswith("call of")])
    for number, step in enumerate(recording.steps):
        address = code_address(step.pc)
        if address in names:
            lines.append(f"{names[address]}:")
        indentation = "  " * min(step.depth, 16)
        lines.append(f"{number:>7}  {address:#010x}  {step.code.hex():<20} {indentation}{step.text}")
        notes = [f"{name} = {value:#x}" for name, value in step.changes]
        notes += [
            f"{'write' if access.is_write else 'read'} {access.size} at {access.address:#x}: {access.value:#x}"
            for access in step.accesses
        ]
        if step.pc in program.hooks and _asks(program, step.pc):
            item = next(inputs, None)
            notes.insert(0, f"input {item.value} ({item.where})" if item is not None else "input")
        if notes:
            lines.append(f"{'':>43}{indentation}; {'; '.join(notes)}")
    end = "here the target is reached" if violation.about == "reach" else f"{violation.detail}"
    if violation.about in SAFETY:
        instruction = recording.program.hooks.get(violation.pc)
        end = f"{instruction.text if instruction is not None else 'this instruction'}: {violation.detail}"
    lines.append(f"{len(recording.steps):>7}  {code_address(violation.pc):#010x}  <- {end}")
    return "\n".join(lines) + "\n"


def _asks(program: Program, pc: int) -> bool:
    """Whether a replaced function makes an input there."""
    return any(op.opcode == "FRESH" for op in program.hooks[pc].ops)
