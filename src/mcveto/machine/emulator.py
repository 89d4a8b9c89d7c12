"""The reference emulator: one instruction at a time through the interpreter and the concrete domain.

Slow and simple; `compiled/` must agree with it bit for bit. Every step reads the current memory at the program
counter and decodes it; decoded instructions are remembered by (pc, bytes), so instruction aliasing and self-modifying
code need no special mode.

Faults are precise: when an instruction faults or is not supported, registers and memory are as before it, it is not
counted as a step and does not appear in the trace.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from mcveto.late_methods import dataclass

from .concrete import ConcreteDomain, FreshSource, usual_value
from .faults import Fault, FaultKind, Unsupported
from .interpreter import Interpreter
from .isa import Decoder
from .memory import Memory
from .pcode import Instruction, Transfer
from .registers import Cell
from .trace import Access, Trace

OutcomeKind = Literal["halted", "target", "fault", "unsupported", "limit", "exited"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why a run stopped and where.

    `pc` is the address that stopped it: the halt or target, the instruction that faulted, or the next one to run.
    `steps` counts the instructions executed by the call that returned this. The machine itself never produces
    `exited`; it is for callers that model the end of a process.
    """

    kind: OutcomeKind
    pc: int
    fault: FaultKind | None = None
    address: int | None = None
    detail: str = ""
    steps: int = 0


class JournalDomain(ConcreteDomain):
    """The concrete domain with what is needed to take a half-executed instruction back."""

    def __init__(self, memory: Memory, fresh: FreshSource, log_accesses: bool) -> None:
        super().__init__(memory, fresh)
        self.log_accesses = log_accesses
        self.accesses: list[Access] = []
        self._undo_registers: list[tuple[int, int | None]] = []
        self._undo_memory: list[tuple[int, bytes]] = []

    def begin(self) -> None:
        self._undo_registers.clear()
        self._undo_memory.clear()
        self.accesses.clear()

    def take_back(self) -> None:
        for number, old in reversed(self._undo_registers):
            if old is None:
                del self.registers[number]
            else:
                self.registers[number] = old
        for address, content in reversed(self._undo_memory):
            self.memory.poke(address, content)

    def write_register(self, cell: Cell, value: int) -> None:
        number = cell.number
        self._undo_registers.append((number, self.registers.get(number)))
        self.registers[number] = value

    def load(self, address: int, size: int) -> int:
        value = self.memory.load(address, size)
        if self.log_accesses:
            self.accesses.append(Access(address, size, value, False))
        return value

    def store(self, address: int, value: int, size: int) -> None:
        old = self.memory.peek(address, size)
        self.memory.store(address, value, size)
        assert old is not None
        self._undo_memory.append((address, old))
        if self.log_accesses:
            self.accesses.append(Access(address, size, value, True))


class Machine:
    """Registers (by cell number), memory, a program counter and the trace so far.

    `hooks` maps a program counter (with its mode bit) to an instruction that replaces whatever is in memory there.
    `halts` and `targets` are code addresses, compared without the mode bit before the instruction there runs.
    `fresh` supplies the value of every FRESH operation, in execution order. `exact_undefined` matters to the compiled
    machine only: without it, undefined values (FRESH of origin UNDEFINED) may take their usual value unasked.
    """

    def __init__(
        self,
        decoder: Decoder,
        memory: Memory,
        registers: Mapping[int, int],
        pc: int,
        *,
        hooks: Mapping[int, Instruction] | None = None,
        halts: Collection[int] = (),
        targets: Collection[int] = (),
        fresh: FreshSource = usual_value,
        exact_undefined: bool = False,
        log_accesses: bool = False,
    ) -> None:
        self.decoder = decoder
        self.memory = memory
        self.pc = pc
        self.hooks = dict(hooks or {})
        self.halts = frozenset(decoder.row.code_address(address) for address in halts)
        self.targets = frozenset(decoder.row.code_address(address) for address in targets)
        self.trace = Trace(pc)
        self.exact_undefined = exact_undefined
        self.log_accesses = log_accesses
        self._row = decoder.row
        self._window = self._row.longest_unit(self._row.mode_mask)
        self._interpreter: Interpreter[int] = Interpreter(decoder)
        self._domain = JournalDomain(memory, fresh, log_accesses)
        self._domain.registers.update(registers)
        self._decoded: dict[int, list[Instruction]] = {}
        self._last_instruction: Instruction
        self._last_transfer: Transfer
        self._single_paths: dict[tuple[Instruction, Transfer], int] = {}

    @property
    def registers(self) -> dict[int, int]:
        """The value of every register cell that has one (0 where absent)."""
        return self._domain.registers

    def read(self, name: str) -> int:
        """The value of a register by its name."""
        value = 0
        for cell, low, bits in self.decoder.layout.named(name):
            value = value << bits | self.registers.get(cell.number, 0) >> low & ((1 << bits) - 1)
        return value

    def fetch(self, pc: int) -> Instruction:
        """The instruction at `pc` in the current memory; raises Fault or Unsupported."""
        hook = self.hooks.get(pc)
        if hook is not None:
            return hook
        address = self._row.code_address(pc)
        known = self._decoded.get(pc)
        if known is None:
            known = self._decoded[pc] = []
        for instruction in known:
            if self.memory.fetch(address, instruction.size) == instruction.bytes:
                return instruction
        code = self.memory.fetch(address, self._window)
        try:
            instruction = self.decoder.decode(pc, code)
        except Unsupported:
            if len(code) < self._window:
                self._check_straddling(pc, code)
            raise
        known.append(instruction)
        return instruction

    def _check_straddling(self, pc: int, code: bytes) -> None:
        """Raises the fetch fault if the instruction needs bytes beyond the ones that are there."""
        try:
            longer = self.decoder.decode(pc, code.ljust(self._window, b"\0"))
        except Unsupported:
            return
        if longer.size > len(code):
            self.memory.fetch((self._row.code_address(pc) + len(code)) & self._row.address_mask, 1)

    def stopped(self) -> Outcome | None:
        """The outcome if the program counter is at a halt or target."""
        address = self._row.code_address(self.pc)
        if address in self.targets:
            return Outcome("target", self.pc)
        if address in self.halts:
            return Outcome("halted", self.pc)
        return None

    def step(self) -> Outcome | None:
        """Executes one instruction; an outcome if there is a reason not to."""
        return self.stopped() or self._step()

    def _step(self) -> Outcome | None:
        domain = self._domain
        domain.begin()
        try:
            instruction = self.fetch(self.pc)
            transfer, target = self._interpreter.execute(instruction, domain)
        except Fault as fault:
            domain.take_back()
            return Outcome("fault", self.pc, fault.kind, fault.address, str(fault))
        except Unsupported as error:
            domain.take_back()
            return Outcome("unsupported", self.pc, None, None, str(error))
        assert isinstance(target, int)
        self.pc = target
        self._last_instruction, self._last_transfer = instruction, transfer
        key = (instruction, transfer)
        number = self._single_paths.get(key)
        if number is None:
            number = self._single_paths[key] = self.trace.number_of((key,))
        self.trace.record(number, target, tuple(domain.accesses) if domain.log_accesses else ())
        return None

    def run(self, max_steps: int) -> Outcome:
        """Executes until something stops it, at most `max_steps` instructions."""
        steps = 0
        while True:
            outcome = self.stopped()
            if outcome is None:
                if steps >= max_steps:
                    return Outcome("limit", self.pc, steps=steps)
                outcome = self._step()
            if outcome is not None:
                return Outcome(outcome.kind, outcome.pc, outcome.fault, outcome.address, outcome.detail, steps)
            steps += 1
