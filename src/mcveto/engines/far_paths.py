"""Paths that begin far inside a run: what no exploration from the entry ever comes to.

A question behind ten thousand turns of a loop costs an exploration ten thousand turns of every path. So the program is
run on the compiled machine, with inputs drawn at random, up to a call of an input function; what the run has made of
registers and memory is the first state of an exploration in which this input and all later ones are open. The inputs
before it stay as they were drawn (concolic execution with a concrete prefix; Majumdar and Sen, "Hybrid concolic
testing", ICSE 2007). The runs stop at their 1st, 2nd, 4th, 8th, … input, as far as they are far from the entry.

Nothing is proved by this. A violation has the inputs of the run and those of the path, and is replayed from the entry.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from mcveto.engines.exploration import Exploration, Policy
from mcveto.engines.memory import PathMemory
from mcveto.engines.state import Calls, Drawn, Log, PathState
from mcveto.logic import terms as t
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.emulator import Machine
from mcveto.machine.memory import WRITE
from mcveto.machine.pcode import FreshOrigin, Transfer
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.verdict import Verdict

# What is nearer than this is left to explorations from the entry.
NEAREST = 5_000
SLICE = 50_000
FARTHEST = 200_000_000
MAX_RUNS = 6
# Seconds of an exploration from one place, the first time.
PATH_SECONDS = 0.5
MAX_CELLS = 100_000
# Below the stack pointer: leaf functions use that, too.
RED_ZONE = 256
PAGE = 4096


class _Recorded:
    """Inputs of a run, as the machine asked for them."""

    def __init__(self, fresh: Callable[[int, FreshOrigin, int], int]) -> None:
        self._fresh = fresh
        self.inputs: list[tuple[int, int, int]] = []
        """(value, bits, which input function)."""

    def __call__(self, bits: int, origin: FreshOrigin, usual: int) -> int:
        value = self._fresh(bits, origin, usual)
        if origin is FreshOrigin.INPUT:
            self.inputs.append((value, bits, usual))
        return value


class FarPaths:
    def __init__(self, program: Program, seconds: float, policy: Policy) -> None:
        self._program = program
        self._policy = policy
        self._deadline = time.monotonic() + seconds
        self._runs = 0
        self._machine: Machine | None = None
        self._recorded: _Recorded | None = None
        self._steps = 0
        self._due = 1
        self._exploration: Exploration | None = None
        self._left = 0.0
        row = program.decoder.row
        self._asks = frozenset(row.code_address(program.address(call.at)) for call in program.spec.input_calls)
        self.got_stuck = False

    @staticmethod
    def apply_to(program: Program) -> bool:
        """Whether inputs are asked for one by one, and nothing else is open at the entry."""
        return bool(program.spec.input_calls) and not program.input_memory and not program.input_registers

    def advance(self, states: float = math.inf, until: float = math.inf) -> Verdict | None:
        """Runs and explores until a time on the monotonic clock; None if there is more to do."""
        del states
        until = min(until, self._deadline)
        while time.monotonic() < until:
            if self._exploration is not None:
                found = self._explore(until)
                if found is not None:
                    return found
            elif not self._run():
                return Verdict("unknown", reason="no path that begins in a run reaches a target")
        return None

    def _explore(self, until: float) -> Verdict | None:
        assert self._exploration is not None
        began = time.monotonic()
        found = self._exploration.advance(until=min(until, began + self._left))
        self._left -= time.monotonic() - began
        if found is not None or self._left <= 0:
            self._exploration = None
        # Whatever else it says is about the paths behind this place only.
        return found if found is not None and found.kind == "violated" else None

    def _run(self) -> bool:
        """Goes on with the run; says whether there was one to go on with."""
        machine = self._machine
        if machine is None:
            if self._runs >= MAX_RUNS:
                return False
            machine = self._started()
        assert self._recorded is not None
        outcome = machine.run(SLICE)
        self._steps += outcome.steps
        asks = outcome.kind == "target" and self._program.decoder.row.code_address(machine.pc) in self._asks
        if asks and len(self._recorded.inputs) + 1 >= self._due:
            self._due *= 2
            if self._steps >= NEAREST:
                self._branch(machine)
        if asks:
            stops, machine.targets = machine.targets, self._program.targets
            passed = machine.step()
            machine.targets = stops
            self._steps += 1
            if passed is None:
                return True
        elif outcome.kind == "limit" and self._steps < FARTHEST:
            return True
        self._machine = None
        if not self._recorded.inputs or self._steps < NEAREST:
            # Others are as short, or the same again.
            self._runs = MAX_RUNS
        return True

    def _started(self) -> Machine:
        made: list[_Recorded] = []

        def make(*arguments: object, fresh: Callable[[int, FreshOrigin, int], int], **options: object) -> Machine:
            made.append(_Recorded(fresh))
            return CompiledMachine(*arguments, fresh=made[0], **options)  # type: ignore[arg-type]

        machine = self._program.machine(InputSource((), self._runs), make=make)
        machine.targets = machine.targets | self._asks
        self._machine, self._recorded = machine, made[0]
        self._runs += 1
        self._steps, self._due = 0, 1
        return machine

    def _branch(self, machine: Machine) -> None:
        """An exploration from where the run is."""
        calls, cells = self._calls(machine), self._cells(machine)
        if calls is None or cells is None:
            return
        program = self._program
        memory = PathMemory(program.space)
        memory.cells.update(cells)
        memory.dirty.update(dict.fromkeys(cells))
        log: Log = None
        assert self._recorded is not None
        for value, bits, which in self._recorded.inputs:
            log = Drawn(log, t.const(value, bits), FreshOrigin.INPUT, which, machine.pc)

        def here(state: PathState) -> None:
            state.pc, state.steps = machine.pc, self._steps
            state.registers = {
                cell.number: machine.registers.get(cell.number, 0) for cell in program.decoder.layout.cells
            }
            state.memory, state.calls, state.log = memory, calls, log

        self._left = PATH_SECONDS * self._runs
        self._exploration = Exploration(program, self._policy, self._deadline - time.monotonic())
        self._exploration.begin_within(here)

    def _calls(self, machine: Machine) -> Calls | None:
        """The calls that are pending; None if a return went astray."""
        program = self._program
        calls: Calls | None = Calls(program.return_sentinel)
        for _, step in machine.trace.calls_and_returns():
            if step.transfer is Transfer.CALL:
                address = (step.pc + len(step.bytes)) & program.space.mask
                calls = Calls(address) if calls is None else calls.push(address)
            elif step.transfer is Transfer.RETURN:
                if calls is None or calls.address != step.next_pc:
                    return None
                calls = calls.parent
        return calls

    def _cells(self, machine: Machine) -> dict[int, int] | None:
        """Bytes that are not what they were at entry, and the live part of the stack, of which nothing is known."""
        (pointer,) = self._program.decoder.layout.named(self._program.decoder.row.stack_pointer)
        top = machine.registers.get(pointer.cell.number, 0)
        before = self._program.space.memory()
        found: dict[int, int] = {}
        for old, new in zip(before.regions, machine.memory.regions, strict=True):
            if not new.permissions & WRITE:
                continue
            live = max(new.start, top - RED_ZONE) if new.start <= top < new.end else new.end
            for start in range(0, new.end - new.start, PAGE):
                piece = new.data[start : start + PAGE]
                if piece == old.data[start : start + PAGE] and new.start + start + PAGE <= live:
                    continue
                for offset, byte in enumerate(piece, start):
                    if byte != old.data[offset] or new.start + offset >= live:
                        found[new.start + offset] = byte
                if len(found) > MAX_CELLS:
                    return None
        return found
