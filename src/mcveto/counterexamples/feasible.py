"""Does a trace of the model run on the program, and with which input?

The program is executed symbolically along the run that given values take, which may go round loops that the trace
leaves out (`along_trace`). Then, for every decision of the run, the solver is asked for values that take the same path
up to there and decide otherwise; all these are tried, those whose runs came farthest first, until a run follows the
trace to its error. If none is left, the trace is infeasible, and dies where the run that came farthest left it. Not
asked about are decisions whose other way leads off the trace for good, and accesses that were allowed (the other way is
a fault, which ends the run). What is not supported or exceeds the limits, loops that go on and on among them, leaves
the trace undecided, never infeasible.

A trace that is followed to the end is run again on the reference emulator with the values found.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass

from mcveto.counterexamples.along_trace import Configuration, Progress, Surroundings
from mcveto.counterexamples.entry_values import Confirmed, EntryValues, consumed_input, machine_with
from mcveto.counterexamples.seen_runs import SeenRuns
from mcveto.logic import terms as t
from mcveto.logic.solver import MemoryModel, make_solver
from mcveto.logic.terms import Term, free_variables
from mcveto.machine.concolic import Assignment, ConcolicExecution
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.machine.memory import WRITE
from mcveto.machine.pcode import FreshOrigin, Instruction, Space, Transfer
from mcveto.machine.symbolic import ConstraintKind
from mcveto.program.image_facts import ImageFacts
from mcveto.program.inputs import ConsumedInput, InputSource
from mcveto.program.program import Program
from mcveto.property.points import instruction_at

MAX_STEPS = 100_000
# Steps between two looks at the clock.
BETWEEN_LOOKS = 256
MAX_ATTEMPTS = 60
TRACE_SECONDS = 10.0
MAX_FACT_ROUNDS = 100
SOLVER_SECONDS = 10.0
_MANY_WAYS = (ConstraintKind.TARGET, ConstraintKind.CODE)


@dataclass(frozen=True, slots=True)
class Dies:
    """No input takes the trace beyond node `position`, whose instructions end at `pc`."""

    position: int
    pc: int


@dataclass(frozen=True, slots=True)
class NeverReached:
    """A proof says that no run at all reaches the error of the trace, however often it goes round loops."""


@dataclass(frozen=True, slots=True)
class Open:
    why: str


Outcome = Confirmed | Dies | NeverReached | Open


@dataclass(slots=True)
class _Values:
    fresh: dict[int, int]
    registers: dict[str, int]
    memory: dict[int, int]


@dataclass(slots=True)
class _Attempt:
    execution: ConcolicExecution
    farthest: int
    """How far along the trace the run went."""
    pc: int
    """The instruction that left it."""
    settled: set[int]
    """Steps whose other ways lead off the trace."""
    reached: int | None
    trouble: str
    consumed: list[ConsumedInput]

    def questions(self, first: int) -> list[int]:
        """The places in the path, from `first` on, where another decision may still lead along the trace."""
        path = self.execution.path
        count: dict[int, int] = {}
        for item in path:
            count[item.step] = count.get(item.step, 0) + 1
        last = self.execution.steps - 1
        found = []
        for number in range(first, len(path)):
            item = path[number]
            is_settled = item.step in self.settled and count[item.step] == 1
            was_allowed = item.kind is ConstraintKind.ACCESS and item.step <= last
            if not is_settled and not was_allowed:
                found.append(number)
        return found


class Follower:
    """`program` carries the property: its ghost state and targets."""

    def __init__(self, program: Program, surroundings: Surroundings, deadline: float) -> None:
        self._program = program
        self._surroundings = surroundings
        self._nodes = surroundings.nodes
        self._deadline = deadline
        self._solver = make_solver("auto")
        self._image = ImageFacts(program)
        self._ways: dict[int, list[int]] = {}
        self._instructions: dict[int, Instruction] = {}
        self._base = program.choices(InputSource((), 0), 0)
        self.seen = SeenRuns(program, surroundings, lambda pc: self._instruction(pc).size)

    def follow(self, trace: Sequence[Configuration], seconds: float = TRACE_SECONDS) -> Outcome:
        """`trace` ends with the configuration in which the event happens that is the error."""
        seen = self.seen.find(trace)
        if seen is not None:
            return seen
        deadline = min(self._deadline, time.monotonic() + seconds)
        nothing: tuple[Term, ...] = ()
        queue = [(0, 0, 0, _Values({}, {}, {}), 0, nothing)]
        farthest, pc, undecided = 0, trace[0][0], ""
        pushed = 0
        for _ in range(MAX_ATTEMPTS):
            if not queue:
                return Open(undecided) if undecided else Dies(farthest, pc)
            _, generation, _, values, first, excluded = heapq.heappop(queue)
            attempt = self._run(values, trace, deadline)
            if attempt.reached is not None:
                return self._confirm(attempt, values)
            self._run_freely(values)
            seen = self.seen.find(trace)
            if seen is not None:
                return seen
            undecided = undecided or attempt.trouble
            if attempt.farthest >= farthest:
                farthest, pc = attempt.farthest, attempt.pc
            path = [item.term for item in attempt.execution.path]
            for number in attempt.questions(first):
                if time.monotonic() > deadline:
                    return Open("out of time")
                others = (*(excluded if number == first else ()), t.bnot(path[number]))
                answer = self._solve([*path[:number], *others], attempt)
                if isinstance(answer, str):
                    undecided = undecided or answer
                elif answer is not None:
                    pushed += 1
                    # A branch has one other way; a computed jump may have more, and is asked about again.
                    is_branch = attempt.execution.path[number].kind not in _MANY_WAYS
                    again = (number + 1, nothing) if is_branch else (number, others)
                    heapq.heappush(queue, (-attempt.farthest, generation + 1, pushed, answer, *again))
        return Open("too many attempts; it may need more rounds of a loop")

    def _run(self, values: _Values, trace: Sequence[Configuration], deadline: float) -> _Attempt:
        program = self._program
        consumed: list[ConsumedInput] = []
        count = [0]

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            number = count[0]
            count[0] += 1
            if origin is FreshOrigin.INPUT:
                value = values.fresh.get(number, 0)
                consumed.append(consumed_input(program, usual, value))
                return value
            return values.fresh.get(number, usual)

        def byte(address: int) -> int:
            found = values.memory.get(address)
            return self._base.byte(address) if found is None else found

        registers = {**self._base.registers, **values.registers}
        execution = program.concolic_with(Assignment(registers, byte, fresh))
        progress = Progress(trace, self._surroundings)
        frames: Configuration = trace[0][1:]
        reached, trouble, pc = None, "", execution.pc
        settled: set[int] = set()
        row = program.decoder.row
        while True:
            pc = execution.pc
            if execution.steps >= MAX_STEPS:
                trouble = f"a run along it is longer than {MAX_STEPS} instructions"
                break
            if execution.steps % BETWEEN_LOOKS == 0 and time.monotonic() > deadline:
                trouble = "out of time"
                break
            try:
                transfer = execution.step()
            except Fault as fault:
                # A fault is a decision like any other, unless it stands for something that is not modelled.
                foreign = fault.address is not None and program.undetermined.is_foreign(fault.address)
                if fault.kind is FaultKind.SYSTEM_CALL or foreign:
                    trouble = f"what happens at {pc:#x} is not modelled: {fault}"
                break
            except Unsupported as error:
                trouble = str(error)
                break
            if transfer is None:
                break
            if row.code_address(execution.pc) in program.targets:
                reached = row.code_address(execution.pc) if progress.is_at_end else None
                break
            if transfer is Transfer.CALL:
                frames = ((pc + self._instruction(pc).size) & row.address_mask, *frames)
            elif transfer is Transfer.RETURN:
                frames = frames[1:]
            if execution.pc in self._nodes:
                elsewhere = [target for target in self._ways_of(pc) if target != execution.pc]
                if elsewhere and not any(self._leads_on(progress, target, frames) for target in elsewhere):
                    settled.add(execution.steps - 1)
                if not progress.arrive((execution.pc, *frames)):
                    settled.discard(execution.steps - 1)
                    break
        return _Attempt(execution, progress.farthest, pc, settled, reached, trouble, consumed)

    def _run_freely(self, values: _Values) -> None:
        """The run that these values take when nobody watches whether it leaves a trace."""

        def choose(number: int, origin: FreshOrigin, usual: int) -> int:
            return values.fresh.get(number, 0 if origin is FreshOrigin.INPUT else usual)

        self.seen.make(choose, values.registers, values.memory)

    def _instruction(self, pc: int) -> Instruction:
        """The instruction that was executed at `pc`, where no run can change it; else one without exits of its own."""
        found = self._instructions.get(pc)
        if found is None:
            row, space = self._program.decoder.row, self._program.space
            region = space.region_at(row.code_address(pc))
            if pc in self._program.hooks or (region is not None and not region.permissions & WRITE):
                found = instruction_at(self._program, pc, f"{pc:#x}")
            else:
                known = (space.initial_byte(row.code_address(pc) + offset) for offset in range(row.longest_unit(pc)))
                found = self._program.decoder.decode(pc, bytes(byte or 0 for byte in known))
            self._instructions[pc] = found
        return found

    def _leads_on(self, progress: Progress, target: int, frames: Configuration) -> bool:
        """Whether a run at the end of a node might as well have gone to `target`."""
        if target in self._program.targets:
            return progress.is_at_end
        return progress.may_go_on((target, *frames))

    def _ways_of(self, pc: int) -> list[int]:
        """The addresses that a branch may go to; none for instructions of which that is not all that matters."""
        found = self._ways.get(pc)
        if found is None:
            instruction = self._instruction(pc)
            row = self._program.decoder.row
            targets = {
                op.inputs[0].offset | (pc & row.mode_mask if op.inputs[0].offset not in self._program.targets else 0)
                for op in instruction.ops
                if op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space is Space.RAM
            }
            others = any(op.opcode in ("CALL", "CALLIND", "BRANCHIND", "RETURN") for op in instruction.ops)
            targets.add((pc + instruction.size) & row.address_mask)
            found = self._ways[pc] = [] if others or pc in targets else sorted(targets)
        return found

    def _solve(self, formula: list[Term], attempt: _Attempt) -> _Values | str | None:
        """Values that satisfy the formula; None if there are none; why it is not known."""
        for _ in range(MAX_FACT_ROUNDS):
            solver = self._solver
            solver.push()
            try:
                for term in (*formula, *self._image.terms):
                    solver.add(term)
                answer = solver.check((), SOLVER_SECONDS)
                if answer == "unsat":
                    return None
                if answer == "unknown":
                    return "the solver ran out of time"
                variables = free_variables(formula)
                found = {variable: solver.value(variable) for variable in variables if variable.width}
                guessed = solver.model_memory(self._image.memory) if self._image.memory in variables else MemoryModel(0)
            finally:
                solver.pop()
            wrong, used = self._image.compare(formula, found, guessed)
            if not wrong:
                # What lies in a register at entry is an input only where it matters.
                usual = {**found, **{item: self._usual(item) for item in found if self._is_register(item)}}
                _, used_then, holds = self._image.evaluate(formula, usual, guessed)
                if usual != found and all(holds):
                    found, used = usual, used_then
                if any(self._program.undetermined.byte(at) not in (None, byte) for at, byte in used.items()):
                    return "it depends on bytes that the file does not determine"
                return self._values(attempt, found, used)
            self._image.learn(wrong)
        return "too many bytes of the image had to be looked up"

    def _is_register(self, variable: Term) -> bool:
        return str(variable.data) in self._program.decoder.layout.by_name

    def _usual(self, variable: Term) -> int:
        return self._base.registers.get(str(variable.data), 0)

    def _values(self, attempt: _Attempt, found: dict[Term, int], used: dict[int, int]) -> _Values:
        layout = self._program.decoder.layout
        # Values that the formula does not mention stay what they were: it holds for them, too.
        values = _Values({n: v for n, (_, _, v) in enumerate(attempt.execution.fresh_values)}, {}, {})
        for variable, value in found.items():
            name = str(variable.data)
            if name in layout.by_name:
                if value != self._usual(variable):
                    values.registers[name] = value
            else:
                values.fresh[attempt.execution.fresh_positions[variable]] = value
        for address, byte in sorted(used.items()):
            if self._program.space.region_at(address) and byte != self._base.byte(address):
                values.memory[address] = byte
        return values

    def _confirm(self, attempt: _Attempt, values: _Values) -> Outcome:
        """Runs the emulator with the values of the run."""
        program = self._program
        given = tuple(value for _, _, value in attempt.execution.fresh_values)
        entry = EntryValues(given, values.registers, values.memory)
        outcome = machine_with(program, entry).run(attempt.execution.steps + 1)
        if outcome.kind != "target" or program.decoder.row.code_address(outcome.pc) != attempt.reached:
            return Open("the emulator does not confirm it")
        assert attempt.reached is not None
        return Confirmed((*entry.inputs(program), *attempt.consumed), attempt.reached, entry, outcome.steps)
