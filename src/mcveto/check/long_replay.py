"""Long counterexamples: from one stop to the next instead of step by step.

The compiled machine, which agrees with the reference emulator bit for bit, makes the run, and takes the turns of loops
that only count all at once (`machine.acceleration`); Unicorn repeats it, if it can in a few seconds. Both run freely up
to the next function that the spec replaces (its effect is handed over) and to the target. There the program counters
and registers are compared, and at the target all memory that can be written. What happened in between is not compared,
but had to lead to the same.

The auxiliary stack is checked along the trace, as for short counterexamples. Undefined values are the usual ones: where
the machines differ because of them, only a comparison step by step can tell.
"""

from __future__ import annotations

from mcveto.check.counterexample import Counterexample
from mcveto.check.lockstep import CannotFollow, Comparison, Difference, Stopped
from mcveto.check.reference_run import Violation, Watch, enter
from mcveto.check.unicorn_follower import UnicornFollower
from mcveto.machine.acceleration import Accelerator
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.memory import WRITE
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program

MAX_STOPS = 100_000
FOLLOWER_SECONDS = 5.0
# Instructions until the first look at whether the run is in a loop that can be skipped, and between two later ones.
FIRST_SLICE = 20_000
LONGEST_SLICE = 1_000_000


class StoppingMachine(CompiledMachine):
    """Stops before functions that the spec replaces, too, and passes over them when told."""

    def pass_over(self) -> str:
        """Executes one instruction; what is wrong if it cannot."""
        outcome = self._step()
        return "" if outcome is None else outcome.detail or outcome.kind


class LongRun:
    """The run of a counterexample, stretch by stretch."""

    def __init__(self, program: Program, example: Counterexample) -> None:
        self.program = program
        self._source = InputSource(example.values)
        self._given = len(example.inputs)
        machine = program.machine(self._source, make=StoppingMachine)
        assert isinstance(machine, StoppingMachine)
        self.machine = machine
        self._accelerator = Accelerator(machine)
        self._slice = FIRST_SLICE
        self._row = program.decoder.row
        self.stops = frozenset(self._row.code_address(pc) for pc in program.hooks)
        self._ends = machine.halts
        machine.halts = machine.halts | self.stops
        enter(machine, program, example)
        self.steps = 0

    @property
    def is_at_stop(self) -> bool:
        return self.machine.pc in self.program.hooks

    def stretch(self, max_steps: int) -> str:
        """Runs to the next stop or to a target; why it does not come to one."""
        end = self.steps + max_steps
        while True:
            outcome = self.machine.run(min(self._slice, end - self.steps))
            self.steps += outcome.steps
            if outcome.kind != "limit" or self.steps >= end:
                break
            self.steps += self._accelerator.skip(end - self.steps)
            self._slice = min(2 * self._slice, LONGEST_SLICE)
        if outcome.kind == "target" or (outcome.kind == "halted" and self.is_at_stop):
            return ""
        if outcome.kind == "limit":
            return f"no violation in {self.steps} steps"
        return f"the run ends at {outcome.pc:#x}: {outcome.detail or outcome.kind}"

    def pass_over(self) -> str:
        """Carries out the replaced function that the run stopped at."""
        wrong = self.machine.pass_over()
        self.steps += 1
        if not wrong and len(self._source.consumed) > self._given:
            return f"the run asks for more than the {self._given} inputs given"
        return wrong

    @property
    def is_at_target(self) -> bool:
        return self._row.code_address(self.machine.pc) in self.program.targets

    def judged(self) -> Violation:
        """At a target: the first violation on the way, which may be a return that went astray."""
        watch = Watch(self.program)
        for number, step in self.machine.trace.calls_and_returns():
            found = watch.after(step, number + 1)
            if found is not None:
                return found
        reached = watch.at(self.machine.pc, self.steps)
        assert reached is not None
        return reached


def replay_in_stretches(
    program: Program, example: Counterexample, max_steps: int, follower: UnicornFollower
) -> tuple[Violation | str, Comparison]:
    """What the run violates, or why it violates nothing; and whether Unicorn agrees."""
    run = LongRun(program, example)
    difference: Difference | None = None
    skipped = ""
    try:
        follower.take_over(run.machine)
        follower.stop_at(sorted({*run.stops, *program.targets}))
    except CannotFollow as reason:
        skipped = str(reason)
    found: Violation | str = f"more than {MAX_STOPS} calls of replaced functions"
    for _ in range(MAX_STOPS):
        if run.is_at_target:
            found = run.judged()
            break
        start = None if run.is_at_stop else run.machine.pc
        wrong = run.pass_over() if start is None else run.stretch(max_steps - run.steps)
        if wrong:
            found = wrong
            break
        if difference is None and not skipped:
            try:
                if start is None:
                    follower.set_registers(_shared(run, follower), run.machine.pc)
                else:
                    difference = _difference(run, follower, start)
            except CannotFollow as reason:
                skipped = str(reason)
    if difference is None and not skipped and run.is_at_target:
        difference = _memory_difference(run, follower)
    follower.close()
    if not skipped and not follower.knows(run.machine.trace.instructions()):
        skipped = "instructions about which Unicorn is known to be wrong"
    return found, Comparison(follower.name, run.steps, None if skipped else difference, skipped)


def _shared(run: LongRun, follower: UnicornFollower) -> dict[str, int]:
    return {name: run.machine.read(name) for name in follower.registers()}


def _difference(run: LongRun, follower: UnicornFollower, start: int) -> Difference | None:
    """Runs the follower from `start` to where the run is, and compares."""
    machine, row = run.machine, run.program.decoder.row

    def differs(what: str, ours: str, theirs: str) -> Difference:
        return Difference(run.steps - 1, machine.pc, "the end of a stretch", what, ours, theirs)

    try:
        pc = follower.stretch(start, FOLLOWER_SECONDS)
    except Stopped as refusal:
        return differs("the outcome", f"a stretch to {machine.pc:#x}", str(refusal))
    if row.code_address(pc) not in {*run.stops, *run.program.targets}:
        raise CannotFollow("it takes too long")
    if row.code_address(pc) != row.code_address(machine.pc):
        return differs("the program counter", f"{machine.pc:#x}", f"{pc:#x}")
    for name, value in follower.registers().items():
        if name not in row.flags and machine.read(name) != value:
            return differs(name, f"{machine.read(name):#x}", f"{value:#x}")
    return None


def _memory_difference(run: LongRun, follower: UnicornFollower) -> Difference | None:
    for region in run.machine.memory.regions:
        if region.permissions & WRITE and follower.read(region.start, len(region.data)) != bytes(region.data):
            where = f"memory from {region.start:#x}"
            return Difference(run.steps - 1, run.machine.pc, "the target", where, "what it wrote", "something else")
    return None
