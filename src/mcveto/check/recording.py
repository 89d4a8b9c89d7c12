"""A counterexample's run written down: its entry state, every step with what it changed, every replaced function.

This is what the files of a counterexample folder are made from; they must make sense without mcveto.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcveto.check.counterexample import Counterexample
from mcveto.check.reference_run import MAX_STEPS, ReferenceRun, Turns, Violation, turns_of
from mcveto.errors import UsageError
from mcveto.machine.memory import Memory
from mcveto.machine.pcode import Transfer
from mcveto.machine.trace import Access
from mcveto.program.program import Program

Changes = tuple[tuple[str, int], ...]


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
    """A function that the spec replaces was called: where, which registers it changed, and where it returned to."""

    pc: int
    changes: Changes
    next_pc: int


@dataclass(frozen=True, slots=True)
class Recording:
    program: Program
    example: Counterexample
    violation: Violation
    initial: InitialState
    steps: tuple[RecordedStep, ...]
    hooks: tuple[HookVisit, ...]

    @property
    def last_pc(self) -> int:
        """The last instruction executed."""
        return self.steps[-1].pc if self.steps else self.program.entry

    @property
    def visits_of_last(self) -> int:
        """How often that instruction was executed."""
        return sum(step.pc == self.last_pc for step in self.steps)


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
            hooks.append(HookVisit(step.pc, changes, step.next_pc))
        if step.transfer is Transfer.CALL:
            depth += 1
        elif step.transfer is Transfer.RETURN:
            depth = max(0, depth - 1)
    return Recording(program, example, violation, initial, tuple(steps), tuple(hooks))


def recorded(program: Program, example: Counterexample) -> Recording:
    """The run of a counterexample that was confirmed."""
    turns, violation = turns_of(program, example, MAX_STEPS)
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
        if step.pc in program.hooks and step.text.startswith("input"):
            item = next(inputs, None)
            notes.insert(0, f"input {item.value} ({item.where})" if item is not None else "input")
        if notes:
            lines.append(f"{'':>43}{indentation}; {'; '.join(notes)}")
    end = "here the target is reached" if violation.about == "reach" else f"{violation.detail}"
    lines.append(f"{len(recording.steps):>7}  {code_address(violation.pc):#010x}  <- {end}")
    return "\n".join(lines) + "\n"
