"""Machines for tests of replay: one that always agrees, and ones that go wrong in a chosen way at a chosen step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcveto.check.lockstep import CannotFollow, Follower, Stopped
from mcveto.machine.emulator import Machine
from mcveto.machine.trace import TraceStep
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program


class Copy:
    """The reference emulator itself in the follower's role."""

    name = "copy"

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = 0

    def begin(self, machine: Machine) -> None:
        self.machine = self.program.machine(InputSource([0] * 100), stop_at_targets=False)
        self.machine.registers.update(machine.registers)
        for ours, theirs in zip(self.machine.memory.regions, machine.memory.regions, strict=True):
            ours.data[:] = theirs.data

    def step(self, step: TraceStep) -> int:
        self.steps += 1
        outcome = self.machine.step()
        if outcome is not None:
            raise Stopped(str(outcome))
        return self.machine.pc

    def registers(self) -> Mapping[str, int]:
        row = self.program.decoder.row
        return {name: self.machine.read(name) for name in (*row.general, *row.flags)}

    def set_registers(self, values: Mapping[str, int], pc: int) -> None:
        for name, value in values.items():
            (piece,) = self.program.decoder.layout.named(name)
            self.machine.registers[piece.cell.number] = value
        self.machine.pc = pc

    def read(self, address: int, size: int) -> bytes:
        return self.machine.memory.peek(address, size) or b""

    def write(self, address: int, content: bytes) -> None:
        self.machine.memory.poke(address, content)

    def close(self) -> None:
        pass


def named(name: str) -> Callable[[Program], Follower]:
    """A machine that agrees, under another name."""

    def make(program: Program) -> Follower:
        follower = Copy(program)
        follower.name = name
        return follower

    return make


def broken(fault: str, at: int, name: str = "copy") -> Callable[[Program], Follower]:
    """A machine that at step `at` has a wrong register, program counter or byte, stops, or cannot go on."""

    class Broken(Copy):
        def step(self, step: TraceStep) -> int:
            pc = super().step(step)
            if self.steps != at:
                return pc
            match fault:
                case "register":
                    self.set_registers({"EDI": self.machine.read("EDI") ^ 1}, pc)
                case "pc":
                    return pc + 2
                case "stop":
                    raise Stopped("the signal SIGSEGV")
                case "cannot":
                    raise CannotFollow("out of breath")
            return pc

        def read(self, address: int, size: int) -> bytes:
            content = super().read(address, size)
            return bytes(size) if fault == "memory" and self.steps == at else content

    Broken.name = name
    return Broken
