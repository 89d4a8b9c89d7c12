"""Does a trace of the model run on the program, and with which input?

The program is executed symbolically along the run that given values take. Where it leaves the trace, or decides
something within a node (a conditional move, a repeated instruction), the solver is asked for values that take the same
path up to there and then decide otherwise; all these are tried, the last ones first, until a run follows the trace to
its error. If none does, the trace is infeasible, and dies where the run that came farthest left it. Not asked about are
decisions that led along the trace (the other way leads away from it) and accesses that were allowed (the other way is a
fault, which ends the run). What is not supported or exceeds the limits leaves the trace undecided, never infeasible.

A trace that is followed to the end is run again on the reference emulator with the values found.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mcveto.logic import terms as t
from mcveto.logic.evaluate import Evaluator
from mcveto.logic.solver import MemoryModel, make_solver
from mcveto.logic.terms import Term, free_variables
from mcveto.machine.concolic import Assignment, ConcolicExecution
from mcveto.machine.emulator import Machine
from mcveto.machine.faults import Fault, FaultKind, Unsupported
from mcveto.machine.memory import WRITE
from mcveto.machine.pcode import FreshOrigin, Space
from mcveto.machine.symbolic import ConstraintKind
from mcveto.program.inputs import ConsumedInput, InputSource
from mcveto.program.program import Program
from mcveto.property.points import instruction_at

MAX_STEPS = 100_000
MAX_ATTEMPTS = 2_000
MAX_FACT_ROUNDS = 100
FACT_WINDOW = 64
SOLVER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The trace runs with these inputs, and ends at an error also in the emulator."""

    inputs: tuple[ConsumedInput, ...]
    error: int
    """The target address that stands for the error reached."""


@dataclass(frozen=True, slots=True)
class Dies:
    """No input takes the trace beyond node `position`, whose instructions end at `pc`."""

    position: int
    pc: int


@dataclass(frozen=True, slots=True)
class Open:
    why: str


Outcome = Confirmed | Dies | Open


@dataclass(slots=True)
class _Values:
    fresh: dict[int, int]
    registers: dict[str, int]
    memory: dict[int, int]


@dataclass(slots=True)
class _Attempt:
    execution: ConcolicExecution
    position: int
    """How far along the trace the run went."""
    pc: int
    """The instruction that left it."""
    along: set[int]
    """The steps that led from node to node of the trace where they could have gone elsewhere."""
    reached: int | None
    trouble: str
    consumed: list[ConsumedInput]

    def questions(self, first: int) -> list[int]:
        """The places in the path, from `first` on, where another decision may still lead along the trace."""
        path = self.execution.path
        count: dict[int, int] = {}
        for item in path:
            count[item.step] = count.get(item.step, 0) + 1
        last = path[-1].step if path else 0
        found = []
        for number in range(first, len(path)):
            item = path[number]
            is_last = item.step == last and item.step not in self.along
            led_along = item.step in self.along and count[item.step] == 1
            if is_last or not (led_along or item.kind is ConstraintKind.ACCESS):
                found.append(number)
        return found


class Follower:
    """`program` carries the property (its ghost state and targets); `nodes` are the program counters of the model."""

    def __init__(self, program: Program, nodes: Sequence[int], deadline: float) -> None:
        self._program = program
        self._nodes = frozenset(nodes)
        self._deadline = deadline
        self._solver = make_solver("auto")
        self._memory = t.memory("mem", program.space.address_bits)
        self._facts: dict[int, Term] = {}
        self._ways: dict[int, bool] = {}
        self._base = program.choices(InputSource((), 0), 0)

    def follow(self, trace: Sequence[int]) -> Outcome:
        """`trace` are the program counters of the nodes, the last one that of the event that is the error."""
        worklist = [(_Values({}, {}, {}), 0)]
        farthest, pc, undecided = 0, trace[0], ""
        for _ in range(MAX_ATTEMPTS):
            if not worklist:
                return Open(undecided) if undecided else Dies(farthest, pc)
            if time.monotonic() > self._deadline:
                return Open("out of time")
            values, first = worklist.pop()
            attempt = self._run(values, trace)
            if attempt.reached is not None and attempt.position == len(trace) - 1:
                return self._confirm(attempt, values)
            undecided = undecided or attempt.trouble
            if attempt.position >= farthest:
                farthest, pc = attempt.position, attempt.pc
            path = [item.term for item in attempt.execution.path]
            for number in attempt.questions(first):
                answer = self._solve([*path[:number], t.bnot(path[number])], attempt)
                if isinstance(answer, str):
                    undecided = undecided or answer
                elif answer is not None:
                    worklist.append((answer, number + 1))
        return Open("too many attempts")

    def _run(self, values: _Values, trace: Sequence[int]) -> _Attempt:
        program = self._program
        consumed: list[ConsumedInput] = []
        count = [0]

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            number = count[0]
            count[0] += 1
            if origin is FreshOrigin.INPUT:
                call = program.spec.input_calls[usual]
                value = values.fresh.get(number, 0)
                where = call.at if isinstance(call.at, str) else f"{call.at:#x}"
                shown = value & ((1 << call.bits) - 1)
                if call.signed and shown >> (call.bits - 1):
                    shown -= 1 << call.bits
                consumed.append(ConsumedInput(shown, call.bits, f"call of {where}"))
                return value
            return values.fresh.get(number, usual)

        def byte(address: int) -> int:
            found = values.memory.get(address)
            return self._base.byte(address) if found is None else found

        registers = {**self._base.registers, **values.registers}
        execution = program.concolic_with(Assignment(registers, byte, fresh))
        position, reached, trouble, pc = 0, None, "", execution.pc
        along: set[int] = set()
        code_address = program.decoder.row.code_address
        while True:
            pc = execution.pc
            if execution.steps >= MAX_STEPS:
                trouble = f"the run is longer than {MAX_STEPS} instructions"
                break
            try:
                if execution.step() is None:
                    break
            except Fault as fault:
                # A fault is a decision like any other, unless it stands for something that is not modelled.
                foreign = fault.address is not None and program.undetermined.is_foreign(fault.address)
                if fault.kind is FaultKind.SYSTEM_CALL or foreign:
                    trouble = f"what happens at {pc:#x} is not modelled: {fault}"
                break
            except Unsupported as error:
                trouble = str(error)
                break
            if code_address(execution.pc) in program.targets:
                reached = code_address(execution.pc)
                break
            if execution.pc in self._nodes:
                if position + 1 < len(trace) and execution.pc == trace[position + 1]:
                    position += 1
                    if self._parts_ways(pc):
                        along.add(execution.steps - 1)
                else:
                    break
        return _Attempt(execution, position, pc, along, reached, trouble, consumed)

    def _parts_ways(self, pc: int) -> bool:
        """Whether the instruction goes to different places depending on what it decides; a jump to the next one does
        not, and then either decision leads along the trace."""
        found = self._ways.get(pc)
        if found is None:
            instruction = instruction_at(self._program, pc, f"{pc:#x}") if self._is_fixed(pc) else None
            targets = {
                op.inputs[0].offset
                for op in (instruction.ops if instruction is not None else ())
                if op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space is Space.RAM
            }
            following = self._program.decoder.row.code_address(pc) + (
                instruction.size if instruction is not None else 0
            )
            found = self._ways[pc] = len(targets - {following}) >= 1
        return found

    def _is_fixed(self, pc: int) -> bool:
        row, space = self._program.decoder.row, self._program.space
        region = space.region_at(row.code_address(pc))
        return pc in self._program.hooks or (region is not None and not region.permissions & WRITE)

    def _solve(self, formula: list[Term], attempt: _Attempt) -> _Values | str | None:
        """Values that satisfy the formula; None if there are none; why it is not known."""
        for _ in range(MAX_FACT_ROUNDS):
            solver = self._solver
            solver.push()
            try:
                for term in (*formula, *self._facts.values()):
                    solver.add(term)
                answer = solver.check((), SOLVER_SECONDS)
                if answer == "unsat":
                    return None
                if answer == "unknown":
                    return "the solver ran out of time"
                variables = free_variables(formula)
                found = {variable: solver.value(variable) for variable in variables if variable.width}
                guessed = solver.model_memory(self._memory) if self._memory in variables else MemoryModel(0)
            finally:
                solver.pop()
            wrong, used = self._compare(formula, found, guessed)
            if not wrong:
                if any(self._program.undetermined.byte(at) not in (None, byte) for at, byte in used.items()):
                    return "it depends on bytes that the file does not determine"
                return self._values(attempt, found, used)
            for address in wrong:
                self._learn(address)
        return "too many bytes of the image had to be looked up"

    def _compare(
        self, formula: Sequence[Term], values: dict[Term, int], model: MemoryModel
    ) -> tuple[list[int], dict[int, int]]:
        """Bytes of the image that the model got wrong, if that matters, and bytes that are the model's alone."""
        wrong: list[int] = []
        used: dict[int, int] = {}

        def byte(_: Term, address: int) -> int:
            known = self._program.space.initial_byte(address)
            guessed = model.byte(address)
            if known is None:
                used[address] = guessed
                return guessed
            if known != guessed and address not in self._facts:
                wrong.append(address)
            return known

        evaluator = Evaluator(lambda variable: values.get(variable, 0), byte)
        holds = [evaluator.value(term) for term in formula]
        return ([] if all(holds) else wrong), used

    def _learn(self, address: int) -> None:
        start = address & ~(FACT_WINDOW - 1)
        for where in range(start, start + FACT_WINDOW):
            known = self._program.space.initial_byte(where)
            if known is not None and where not in self._facts:
                cell = t.load(self._memory, t.const(where, self._program.space.address_bits), 1, False)
                self._facts[where] = t.eq(cell, t.const(known, 8))

    def _values(self, attempt: _Attempt, found: dict[Term, int], used: dict[int, int]) -> _Values:
        layout = self._program.decoder.layout
        # Values that the formula does not mention stay what they were: it holds for them, too.
        values = _Values({n: v for n, (_, _, v) in enumerate(attempt.execution.fresh_values)}, {}, {})
        for variable, value in found.items():
            name = str(variable.data)
            if name in layout.by_name:
                values.registers[name] = value
            else:
                values.fresh[attempt.execution.fresh_positions[variable]] = value
        for address, byte in sorted(used.items()):
            if self._program.space.region_at(address):
                values.memory[address] = byte
        return values

    def _confirm(self, attempt: _Attempt, values: _Values) -> Outcome:
        """Runs the emulator with the values of the run."""
        program = self._program
        given = [value for _, _, value in attempt.execution.fresh_values]
        position = [0]

        def fresh(bits: int, origin: FreshOrigin, usual: int) -> int:
            number = position[0]
            position[0] += 1
            return given[number] if number < len(given) else usual

        base = program.machine(InputSource((), 0), 0)
        registers = dict(base.registers)
        for name, value in values.registers.items():
            registers[program.decoder.layout.by_name[name].number] = value
        for address, byte in values.memory.items():
            base.memory.poke(address, bytes([byte]))
        machine = Machine(
            program.decoder,
            base.memory,
            registers,
            program.entry,
            hooks=program.hooks,
            halts=base.halts,
            targets=program.targets,
            fresh=fresh,
        )
        outcome = machine.run(attempt.execution.steps + 1)
        if outcome.kind != "target" or program.decoder.row.code_address(outcome.pc) != attempt.reached:
            return Open("the emulator does not confirm it")
        return Confirmed((*self._entry_inputs(values), *attempt.consumed), attempt.reached)

    def _entry_inputs(self, values: _Values) -> list[ConsumedInput]:
        """Registers and bytes at entry that the trace needs."""
        layout = self._program.decoder.layout
        found = []
        for name, value in sorted(values.registers.items()):
            bits = layout.significant_bits(layout.by_name[name])
            found.append(ConsumedInput(value & ((1 << bits) - 1), bits, f"register {name} at entry"))
        for address, byte in sorted(values.memory.items()):
            found.append(ConsumedInput(byte, 8, f"memory {address:#x} at entry"))
        return found
