"""Concrete runs that are far longer than anybody follows symbolically, on the compiled machine.

A violation behind a million turns of a loop, or after a recursion without inputs, is found by running the program: some
ten million instructions a second, against some ten thousand for paths; loops that only count are skipped
(`machine.acceleration`). A few runs are made side by side, with constant inputs (also all but the first) and with
random ones, small and large, and given more and more steps; one that ends makes room for another with new inputs. A
violation that only skipping gets to is looked for again with smaller inputs (`shorter_run`).

A run proves nothing. What reaches a target is reported with the inputs it consumed, and replayed by others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from mcveto.engines.reached import violation
from mcveto.engines.shorter_run import shorter
from mcveto.machine.acceleration import Accelerator
from mcveto.machine.compiled import CompiledMachine
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.verdict import Verdict

# Instructions that count like one state of an exploration.
STEPS_PER_STATE = 200
# A run goes on for so many instructions at once, then for twice as many, …: where it is interrupted it warms up again.
FIRST_SLICE = 5_000
LONGEST_SLICE = 1_000_000
# Where inputs come often, a run is a thousand times slower: no slice takes much longer than this, or than there is.
SLICE_SECONDS = 0.3
FIRST_STEPS = 20_000
FARTHEST = 1 << 40
GROWTH = 8
CONSTANTS_GROW = 1.4
MAX_RUNS = 40
# Runs (by number) whose first input is another than all others.
FIRST_DIFFERS = {4: (1, 0), 8: (0, 1)}
SIDE_BY_SIDE = 8
# A replay takes as long again, and somewhat more.
LONGEST_SHARE = 0.4


class _Constant(InputSource):
    """Every input has the same value, but maybe the first: what the others are compared with is often read first."""

    def __init__(self, value: int, first: int | None = None) -> None:
        super().__init__()
        self._value = value
        self._first = first

    def _draw(self, bits: int) -> int:
        value, self._first = self._value if self._first is None else self._first, None
        return value & ((1 << bits) - 1)


class _OfAnySize(InputSource):
    """Numbers of all lengths: one that a loop counts to should be large sometimes, and not always too large."""

    def _draw(self, bits: int) -> int:
        return self._random.getrandbits(self._random.randrange(bits + 1) or 1)


class _Given(InputSource):
    """What is given, then zeros."""

    def _draw(self, bits: int) -> int:
        return 0


class _LongRun:
    def __init__(self, program: Program, source: InputSource) -> None:
        self.source = source
        machine = program.machine(source, make=CompiledMachine)
        self.machine = machine
        self.accelerator = Accelerator(machine)
        self.slice = FIRST_SLICE
        self.steps = 0
        self.skipped = 0
        self.seconds = 0.0
        self.speed = math.inf
        """Instructions a second, in the last slice."""

    @property
    def length(self) -> int:
        return self.steps + self.skipped

    def fit(self, seconds: float) -> None:
        """Makes the next slice one that takes about so long at most, as fast as the last one was."""
        self.slice = int(max(FIRST_SLICE // 5, min(self.slice, self.speed * seconds)))


class LongRuns:
    def __init__(self, program: Program, seconds: float, seed: int = 0) -> None:
        self._program = program
        self._deadline = time.monotonic() + seconds
        self._seed = seed
        self._made = 0
        self._constant = 1
        self._limit = FIRST_STEPS
        self._credit = 0.0
        self._started: list[_LongRun] | None = None
        self.instructions = 0
        self.got_stuck = False

    @staticmethod
    def apply_to(program: Program) -> bool:
        """Whether a run can tell a violation: of reachability, in a program that is all there."""
        if program.image.format == "while" or program.spec.models or program.image.import_area is not None:
            return False
        names = {item.name for item in program.spec.properties}
        return names <= {"reach", "return-address"} and bool(program.targets) and not program.image.unspecified

    @property
    def is_the_only_run(self) -> bool:
        """Whether the first run is still going on and has asked for no input: so far there is no other."""
        return self._made == 1 and any(not run.source.consumed for run in self._started or ())

    @property
    def was_the_only_run(self) -> bool:
        """Whether the first run has ended and asked for no input: then there is no other."""
        return self._made == 1 and self._started == []

    def advance(self, states: float = math.inf, until: float = math.inf) -> Verdict | None:
        """Runs for so long; None if there is more to run."""
        if self._started is None:
            self._started = [self._new()]
        self._credit = min(self._credit, 0) + states * STEPS_PER_STATE
        while self._credit > 0 and time.monotonic() < until:
            # The newest first: it may end soon, and make room.
            run = next((run for run in reversed(self._started) if run.steps < self._limit), None)
            if run is None:
                self._more()
                continue
            if self._is_too_long(run):
                self._started.remove(run)
            else:
                run.fit(min(SLICE_SECONDS, until - time.monotonic()))
                found = self._go_on(run, min(run.slice, self._limit - run.steps))
                if found is not None:
                    return found
            if not self._started:
                return Verdict("unknown", reason="no run reaches a target")
        return None

    def _go_on(self, run: _LongRun, steps: int) -> Verdict | None:
        assert self._started is not None
        before = time.monotonic()
        outcome = run.machine.run(steps)
        self._credit -= outcome.steps
        run.slice = min(2 * run.slice, LONGEST_SLICE)
        run.steps += outcome.steps
        if outcome.kind == "limit":
            run.skipped += run.accelerator.skip(FARTHEST)
        spent = time.monotonic() - before
        run.seconds += spent
        run.speed = outcome.steps / max(spent, 1e-6)
        self.instructions += outcome.steps
        if outcome.kind == "limit":
            return None
        if outcome.kind == "target":
            counts: dict[str, float | int] = {
                "instructions_executed": self.instructions,
                "concrete_runs": self._made,
            }
            shortest = shorter(run, [item.value for item in run.source.consumed], self._within)
            found = violation(self._program, shortest.machine, shortest.source, counts)
            if found is not None:
                return found
        self._started.remove(run)
        if run.source.consumed and self._made < MAX_RUNS:
            self._started.append(self._new())
        return None

    def _within(self, inputs: Sequence[int], most: int) -> _LongRun | None:
        """A run with these inputs (and zeros) that reaches a target within so many instructions."""
        run = _LongRun(self._program, _Given(inputs))
        while run.length < most:
            outcome = run.machine.run(run.slice)
            run.steps += outcome.steps
            if outcome.kind != "limit":
                return run if outcome.kind == "target" and run.length <= most else None
            run.slice *= 2
            run.skipped += run.accelerator.skip(most - run.length)
        return None

    def _new(self) -> _LongRun:
        number = self._made
        self._made += 1
        # Random inputs, the two constants that loops wait for, and growing ones: of what takes exponential time in its
        # argument only small ones are run to the end.
        if number in (1, 2):
            return _LongRun(self._program, _Constant(number - 1))
        if number in FIRST_DIFFERS:
            first, value = FIRST_DIFFERS[number]
            return _LongRun(self._program, _Constant(value, first))
        if number > 2 and number % 4 > 1:
            self._constant = math.ceil(CONSTANTS_GROW * self._constant)
            return _LongRun(self._program, _Constant(self._constant))
        make = _OfAnySize if number % 2 else InputSource
        return _LongRun(self._program, make((), self._seed + number))

    def _more(self) -> None:
        """All have had as many steps as they may: another one if inputs matter, and more for all."""
        assert self._started is not None
        self._limit *= GROWTH
        if len(self._started) < SIDE_BY_SIDE and self._made < MAX_RUNS and self._started[0].source.consumed:
            self._started.append(self._new())

    def _is_too_long(self, run: _LongRun) -> bool:
        return run.seconds > LONGEST_SHARE * (self._deadline - time.monotonic())
