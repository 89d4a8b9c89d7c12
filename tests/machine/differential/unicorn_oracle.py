"""Unicorn as an oracle: one instruction from a given state, for any instruction set it has.

A family supplies a `UnicornTarget`: how our register names map to bits of Unicorn's registers, and what its interrupt
numbers mean. Unicorn is not ground truth; where it contradicts the manual the family's tests say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import unicorn
from unicorn import Uc, UcError

from mcveto.machine.faults import FaultKind

from .harness import (
    CODE,
    CODE_SIZE,
    DATA,
    DATA_SIZE,
    MAX_REPEATS,
    MEMORY_FAULT,
    READ_ONLY,
    READ_ONLY_SIZE,
    Case,
    OracleCannotTell,
    Outcome,
)

_FETCH_ERRORS = (unicorn.UC_ERR_FETCH_UNMAPPED, unicorn.UC_ERR_FETCH_PROT)
_ERRORS = {
    unicorn.UC_ERR_READ_UNMAPPED: MEMORY_FAULT,
    unicorn.UC_ERR_WRITE_UNMAPPED: MEMORY_FAULT,
    unicorn.UC_ERR_READ_PROT: MEMORY_FAULT,
    unicorn.UC_ERR_WRITE_PROT: MEMORY_FAULT,
    unicorn.UC_ERR_READ_UNALIGNED: FaultKind.MISALIGNED.label,
    unicorn.UC_ERR_WRITE_UNALIGNED: FaultKind.MISALIGNED.label,
    unicorn.UC_ERR_INSN_INVALID: FaultKind.UNDEFINED_INSTRUCTION.label,
}


@dataclass(frozen=True)
class Bits:
    """Bits [low, low+bits) of one of Unicorn's registers; `fixed` are bits of it that must be set."""

    register: int
    low: int = 0
    bits: int = 64
    fixed: int = 0


@dataclass(frozen=True)
class UnicornTarget:
    architecture: int
    mode: int
    registers: Mapping[str, Bits]
    program_counter: int
    # interrupt number -> fault label; an interrupt that is not listed makes the oracle refuse to judge
    interrupts: Mapping[int, str] = field(default_factory=dict)
    # called once on a new engine (cpu model, floating point enable bits, ...)
    prepare: Callable[[Any], None] | None = None


class UnicornOracle:
    def __init__(self, target: UnicornTarget) -> None:
        self._target = target
        self._ids = sorted({bits.register for bits in target.registers.values()})
        self._fixed = {bits.register: bits.fixed for bits in target.registers.values()}
        self._engine: Any = None
        self._code = b""
        self._interrupt: int | None = None

    def _start(self) -> Any:
        engine = Uc(self._target.architecture, self._target.mode)
        if self._target.prepare is not None:
            self._target.prepare(engine)
        engine.mem_map(CODE, CODE_SIZE, unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        engine.mem_map(DATA, DATA_SIZE, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        engine.mem_map(READ_ONLY, READ_ONLY_SIZE, unicorn.UC_PROT_READ)
        engine.mem_write(READ_ONLY, bytes(range(256)) * (READ_ONLY_SIZE // 256))
        engine.hook_add(unicorn.UC_HOOK_INTR, self._on_interrupt)
        self._code = b""
        return engine

    def _on_interrupt(self, engine: Any, number: int, _: object) -> None:
        self._interrupt = number
        engine.emu_stop()

    def run(self, case: Case) -> Outcome:
        if self._engine is None:
            self._engine = self._start()
        engine = self._engine
        at = case.pc & ~1 if self._thumb(case) else case.pc
        if case.code != self._code:
            # The rest of the page keeps earlier bytes: what follows the instruction must not matter.
            engine.mem_write(at, case.code)
            engine.ctl_remove_cache(CODE, CODE + CODE_SIZE)
            self._code = case.code
        engine.mem_write(DATA, case.memory)
        values = dict(self._fixed)
        for name, bits in self._target.registers.items():
            values[bits.register] |= case.registers[name] << bits.low
        engine.reg_write_batch(list(values.items()))
        self._interrupt = None
        pc = case.pc
        for _ in range(MAX_REPEATS if case.repeats else 1):
            error = self._step(engine, pc)
            if self._interrupt is not None:
                label = self._target.interrupts.get(self._interrupt)
                self._engine = None  # an exception leaves state behind that later runs would see
                if label is None:
                    raise OracleCannotTell(f"interrupt {self._interrupt}")
                return Outcome({}, b"", case.pc, label)
            pc = engine.reg_read(self._target.program_counter)
            if self._thumb(case) and engine.query(unicorn.UC_QUERY_MODE) & unicorn.UC_MODE_THUMB:
                pc |= 1
            if error is not None and not (error in _FETCH_ERRORS and pc != case.pc):
                if error not in _ERRORS:
                    raise OracleCannotTell(f"Unicorn error {error}")
                return Outcome({}, b"", case.pc, _ERRORS[error])
            if pc != case.pc:
                break
        raw = dict(zip(self._ids, engine.reg_read_batch(self._ids), strict=True))
        registers = {
            name: raw[bits.register] >> bits.low & (1 << bits.bits) - 1 for name, bits in self._target.registers.items()
        }
        return Outcome(registers, bytes(engine.mem_read(DATA, DATA_SIZE)), pc)

    def _thumb(self, case: Case) -> bool:
        return bool(self._target.architecture == unicorn.UC_ARCH_ARM)

    @staticmethod
    def _step(engine: Any, pc: int) -> int | None:
        try:
            engine.emu_start(pc, 0xFFFFFFF0, count=1)
        except UcError as error:
            return int(error.errno)
        return None
