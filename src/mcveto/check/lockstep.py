"""Two machines side by side: another one follows the reference emulator through a counterexample, step by step.

After every instruction the program counter, the registers and flags that both have, and the bytes the instruction
wrote are compared; the first difference is the result. An instruction that repeats itself (x86's string instructions)
is compared when it is done: processors leave it with its last turn, we with one more that finds nothing to do. What is
not the other machine's own doing is handed to it: the entry state, the effect of functions that the spec replaces
(inputs, `assume`, library models), and flags that the manual leaves undefined, which are part of the counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from mcveto.check.counterexample import Counterexample
from mcveto.check.reference_run import ReferenceRun, Turns, Violation
from mcveto.late_methods import dataclass
from mcveto.machine.emulator import Machine
from mcveto.machine.trace import Access, TraceStep
from mcveto.program.program import Program


class CannotFollow(Exception):
    """Why another machine cannot take part, or cannot go on."""


class Stopped(Exception):
    """The other machine refuses to execute an instruction that the reference emulator executes."""


class Follower(Protocol):
    """Another machine. Everything but `close` may raise CannotFollow."""

    name: str

    def begin(self, machine: Machine) -> None:
        """Takes over the entry state. Raises Stopped if it finds another program there."""

    def step(self, step: TraceStep) -> int:
        """Executes the instruction at the program counter; the next program counter. Raises Stopped."""

    def registers(self) -> Mapping[str, int]:
        """Every register and flag it can show, by our names."""

    def set_registers(self, values: Mapping[str, int], pc: int) -> None:
        """Changes registers that `registers` shows, and the program counter."""

    def read(self, address: int, size: int) -> bytes:
        """Bytes of its memory."""

    def write(self, address: int, content: bytes) -> None:
        """Changes its memory."""

    def close(self) -> None:
        """Ends whatever it started."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs first: after step number `step` (the first is 0, as in traces), which executed `text` at `pc`."""

    step: int
    pc: int
    text: str
    what: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        where = f"in step {self.step} ({self.text} at {self.pc:#x})"
        return f"{where}: {self.what} is {self.theirs} instead of {self.ours}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far another machine went along: it agrees, it differs, or it cannot tell."""

    name: str
    steps: int
    difference: Difference | None = None
    skipped: str = ""

    @property
    def agrees(self) -> bool:
        return self.difference is None and not self.skipped

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.name}: not asked ({self.skipped})"
        return f"{self.name}: differs {self.difference}" if self.difference else f"{self.name}: agrees"


def follow(
    program: Program, example: Counterexample, turns: Turns, violation: Violation, follower: Follower
) -> Comparison:
    """Lets `follower` repeat the run up to the violation that the reference emulator found."""
    run = ReferenceRun(program, example, turns, log_accesses=True)
    try:
        try:
            follower.begin(run.machine)
        except Stopped as refusal:
            pc = run.machine.pc
            other = Difference(0, pc, "entry", "the entry state", "that of the counterexample", str(refusal))
            return Comparison(follower.name, 0, other)
        hidden = [name for name, value in example.registers if value and name not in follower.registers()]
        if hidden:
            raise CannotFollow(f"{', '.join(hidden)} cannot be set there")
        while run.steps < violation.steps:
            difference = _one_step(run, follower, violation.steps)
            if difference is not None:
                return Comparison(follower.name, run.steps, difference)
    except CannotFollow as reason:
        return Comparison(follower.name, run.steps, skipped=str(reason))
    finally:
        follower.close()
    return Comparison(follower.name, run.steps)


def _one_step(run: ReferenceRun, follower: Follower, most: int) -> Difference | None:
    """One instruction with its repetitions, as far as a run of `most` steps goes."""
    machine, program = run.machine, run.program
    first = run.steps
    step = run.step()
    assert not isinstance(step, str), step
    chose_undefined = run.chose_undefined
    at = program.decoder.row.code_address(step.pc)
    while step.next_pc == step.pc and run.steps < most and machine.memory.peek(at, len(step.bytes)) == step.bytes:
        following = run.step()
        assert not isinstance(following, str), following
        step, chose_undefined = following, chose_undefined or run.chose_undefined
    done = range(first, run.steps)
    hook = program.hooks.get(step.pc)
    if hook is not None:
        for access in _writes(machine, done):
            follower.write(access.address, machine.memory.peek(access.address, access.size) or b"")
        follower.set_registers(_ours(machine, follower.registers()), step.next_pc)
        return None

    def difference(what: str, ours: str, theirs: str) -> Difference:
        return Difference(run.steps - 1, step.pc, program.decoder.decode(step.pc, step.bytes).text, what, ours, theirs)

    try:
        for _ in done:
            pc = follower.step(step)
            if pc != step.pc:
                break
    except Stopped as refusal:
        return difference("the outcome", f"a step to {step.next_pc:#x}", str(refusal))
    if pc != step.next_pc:
        return difference("the program counter", f"{step.next_pc:#x}", f"{pc:#x}")
    theirs = follower.registers()
    ours = _ours(machine, theirs)
    if chose_undefined:
        flags = {name: ours[name] for name in program.decoder.row.flags if name in ours}
        if any(theirs[name] != value for name, value in flags.items()):
            follower.set_registers(flags, pc)
            theirs = {**theirs, **flags}
    for name, value in ours.items():
        if theirs[name] != value:
            if chose_undefined:
                raise CannotFollow(f"the instruction at {step.pc:#x} leaves {name} undefined")
            return difference(name, f"{value:#x}", f"{theirs[name]:#x}")
    for access in _writes(machine, done):
        content = machine.memory.peek(access.address, access.size)
        assert content is not None
        found = follower.read(access.address, access.size)
        if found != content:
            return difference(f"memory {access.address:#x}", content.hex(), found.hex())
    return None


def _writes(machine: Machine, steps: range) -> Iterator[Access]:
    return (access for number in steps for access in machine.trace.accesses(number) if access.is_write)


def _ours(machine: Machine, theirs: Mapping[str, int]) -> dict[str, int]:
    return {name: machine.read(name) for name in theirs}
