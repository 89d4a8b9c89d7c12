"""A counterexample on the reference emulator: does it violate what it says, and at which step?

Nothing symbolic takes part, and nothing of the engine that found it: the inputs that were reported are all there is.
The violation is judged here, by an auxiliary stack of our own: a run violates `return-address` with its first return
that goes elsewhere than its call expects, and `reach` when it comes to a target before that.

Undefined values are reported with their place but not with their turn; where an instruction runs several times, the
turns are found by trying.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice, product
from typing import Any

from mcveto.check.counterexample import Counterexample, UndefinedValue
from mcveto.errors import UsageError
from mcveto.late_methods import dataclass
from mcveto.machine.concrete import FreshSource
from mcveto.machine.emulator import Machine
from mcveto.machine.pcode import FreshOrigin, Transfer
from mcveto.machine.trace import TraceStep
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program

MAX_STEPS = 1_000_000
MAX_TURNS_TRIED = 64
_MAX_TURN = 8
_MAX_VALUES_TURNED = 3

Turns = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """`steps` instructions ran; then a target was reached, or the last of them returned to the wrong place."""

    about: str
    steps: int
    pc: int
    detail: str


class Watch:
    """The auxiliary stack: says when a run violates one of the two properties."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._frames: list[int] = [program.return_sentinel]
        self._row = program.decoder.row

    def at(self, pc: int, steps: int) -> Violation | None:
        """Before the instruction at `pc`."""
        if self._row.code_address(pc) in self._program.targets:
            return Violation("reach", steps, pc, f"{pc:#x} is reached")
        return None

    def after(self, step: TraceStep, steps: int) -> Violation | None:
        """After an instruction, which was the `steps`-th."""
        if step.transfer is Transfer.CALL:
            self._frames.append((step.pc + len(step.bytes)) & self._program.space.mask)
        elif step.transfer is Transfer.RETURN:
            expected = self._frames.pop() if self._frames else None
            if step.next_pc != expected:
                instead = "nothing" if expected is None else f"{expected:#x}"
                detail = f"return at {step.pc:#x} goes to {step.next_pc:#x} instead of {instead}"
                return Violation("return-address", steps, step.next_pc, detail)
        return None


class SteppedMachine(Machine):
    """The reference emulator, which also tells what it did last."""

    def last_step(self) -> TraceStep:
        instruction = self._last_instruction
        return TraceStep(instruction.pc, instruction.bytes, self._last_transfer, self.pc)


class ReferenceRun:
    """The reference emulator in the entry state of a counterexample, one step at a time."""

    def __init__(
        self,
        program: Program,
        example: Counterexample,
        turns: Turns = (),
        log_accesses: bool = False,
        machine_class: type[SteppedMachine] = SteppedMachine,
    ) -> None:
        self.program = program
        self.chose_undefined = False
        """Whether the last step made up a value that the manual leaves undefined."""
        self._source = InputSource(example.values)
        self._given = len(example.inputs)
        self._pending = list(zip(example.undefined, turns or (0,) * len(example.undefined), strict=True))
        self._watch = Watch(program)
        self.steps = 0

        def make(*arguments: Any, fresh: FreshSource, **options: Any) -> Machine:
            return machine_class(*arguments, fresh=partial(self._fresh, fresh), **options)

        machine = program.machine(self._source, log_accesses=log_accesses, make=make)
        assert isinstance(machine, SteppedMachine)
        self.machine = machine
        enter(machine, program, example)

    def _fresh(self, source: FreshSource, bits: int, origin: FreshOrigin, usual: int) -> int:
        if origin is FreshOrigin.INPUT:
            return source(bits, origin, usual)
        self.chose_undefined = True
        value = source(bits, origin, usual)
        if self._pending:
            wanted, turn = self._pending[0]
            if wanted.pc == self.machine.pc and wanted.bits == bits and wanted.value != value:
                if turn == 0:
                    del self._pending[0]
                    return wanted.value
                self._pending[0] = (wanted, turn - 1)
        return value

    @property
    def is_out_of_inputs(self) -> bool:
        """Whether the run asked for more inputs than the counterexample has."""
        return len(self._source.consumed) > self._given

    def violation(self) -> Violation | None:
        """The violation the run has arrived at without executing anything more."""
        return self._watch.at(self.machine.pc, self.steps)

    def step(self) -> TraceStep | str:
        """Executes one instruction; the reason if there is none to execute."""
        self.chose_undefined = False
        outcome = self.machine.step()
        if outcome is not None:
            return f"the run ends at {outcome.pc:#x}: {outcome.detail or outcome.kind}"
        self.steps += 1
        if self.is_out_of_inputs:
            return f"the run asks for more than the {self._given} inputs given"
        return self.machine.last_step()

    def violated_by(self, step: TraceStep) -> Violation | None:
        """The violation that the step just made is. To be asked exactly once for every step."""
        return self._watch.after(step, self.steps)


def enter(machine: Machine, program: Program, example: Counterexample) -> None:
    """Gives a machine what a counterexample says about the entry state beyond the inputs."""
    layout = program.decoder.layout
    for name, value in example.registers:
        cell = layout.by_name.get(name)
        if cell is None:
            raise UsageError(f"the counterexample sets a register '{name}' that {program.image.isa} does not have")
        machine.registers[cell.number] = value & ((1 << layout.significant_bits(cell)) - 1)
    for address, value in example.memory:
        if machine.memory.region_of(address) is None:
            raise UsageError(f"the counterexample sets memory at {address:#x}, where nothing is mapped")
        machine.memory.poke(address, bytes([value]))


def first_violation(run: ReferenceRun, max_steps: int) -> Violation | str:
    """Runs to the first violation; without one, why the run has none."""
    while True:
        found = run.violation()
        if found is not None:
            return found
        if run.steps >= max_steps:
            return f"no violation in {max_steps} steps"
        step = run.step()
        if isinstance(step, str):
            return step
        found = run.violated_by(step)
        if found is not None:
            return found


def turns_of(program: Program, example: Counterexample, max_steps: int) -> tuple[Turns, Violation | str]:
    """At which turn each undefined value is to be used so that the counterexample is one, and what it then violates."""
    first: Violation | str | None = None
    for turns in islice(all_turns(example.undefined), MAX_TURNS_TRIED):
        found = first_violation(ReferenceRun(program, example, turns), max_steps)
        if isinstance(found, Violation) and found.about == example.about:
            return turns, found
        first = found if first is None else first
    assert first is not None
    if isinstance(first, Violation):
        first = f"the run violates {first.about}, not {example.about} ({first.detail})"
    return (), first


def all_turns(undefined: tuple[UndefinedValue, ...]) -> Iterator[Turns]:
    """Every value at its first turn, then (for a few values) at later ones."""
    if len(undefined) > _MAX_VALUES_TURNED:
        return iter([(0,) * len(undefined)])
    latest = MAX_TURNS_TRIED if len(undefined) == 1 else _MAX_TURN
    return iter(sorted(product(range(latest), repeat=len(undefined)), key=lambda turns: (sum(turns), turns)))
