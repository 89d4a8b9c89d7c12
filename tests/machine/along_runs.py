"""Concrete runs of bundled programs, one instruction at a time, for abstract domains to follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mcveto.machine.concrete import ConcreteDomain
from mcveto.machine.faults import Fault
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.pcode import Instruction
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec

FIG10 = Path(__file__).parents[2] / "examples" / "fig10"


class RecordingDomain(ConcreteDomain):
    """The concrete domain; remembers which way each decision of the instruction went, and the addresses accessed."""

    decisions: list[bool]
    accesses: list[tuple[int, int]]

    def decide(self, condition: int) -> bool:
        self.decisions.append(condition != 0)
        return condition != 0

    def load(self, address: int, size: int) -> int:
        self.accesses.append((address, size))
        return super().load(address, size)

    def store(self, address: int, value: int, size: int) -> None:
        self.accesses.append((address, size))
        super().store(address, value, size)


class Moment(NamedTuple):
    """An instruction about to run; `next` runs it and gives the decisions it took."""

    instruction: Instruction
    state: RecordingDomain


def example(name: str) -> Program:
    return load_program(None, load_spec(str(FIG10 / f"{name}.yaml")))


def run(program: Program, seed: int, steps: int) -> Iterator[Moment]:
    """Each instruction of a run before it is executed; the state holds its decisions once the next is asked for."""
    machine = program.machine(InputSource((), seed), seed)
    interpreter: Interpreter[int] = Interpreter(program.decoder)
    generator = InputSource((), seed)
    state = RecordingDomain(machine.memory, lambda bits, origin, usual: generator.next(bits, "input call"))
    state.registers = dict(machine.registers)
    state.decisions, state.accesses = [], []
    pc = program.entry
    for _ in range(steps):
        if program.decoder.row.code_address(pc) in machine.halts | machine.targets:
            return
        instruction = machine.fetch(pc)
        yield Moment(instruction, state)
        state.decisions, state.accesses = [], []
        try:
            step = interpreter.execute(instruction, state)
        except Fault:
            return
        assert isinstance(step.target, int)
        pc = step.target
