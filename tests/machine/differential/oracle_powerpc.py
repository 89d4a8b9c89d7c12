"""Unicorn as an oracle for 32-bit PowerPC.

Unicorn keeps SO, OV and CA outside the XER it lets us access, and the reservation nowhere we can see: both are set and
read by running small instruction sequences (`mtxer`, `mfxer`, `lwarx`, `stwcx.`) on a page of their own. It has only
big-endian 32-bit PowerPC; `LittleEndianOracle` makes one for little-endian from it (see there).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import unicorn
from unicorn import Uc, UcError
from unicorn import ppc_const as ppc

from .harness import (
    CODE,
    CODE_SIZE,
    DATA,
    DATA_SIZE,
    MEMORY_FAULT,
    READ_ONLY,
    READ_ONLY_SIZE,
    Case,
    OracleCannotTell,
    Outcome,
)

GENERAL = tuple(f"r{i}" for i in range(32))
FLOATS = tuple(f"f{i}" for i in range(32))
FIELDS = tuple(f"cr{i}" for i in range(8))
XER_BITS = {"xer_so": (31, 1), "xer_ov": (30, 1), "xer_ca": (29, 1), "xer_count": (0, 7)}
NAMES = (*GENERAL, *FLOATS, *FIELDS, *XER_BITS, "LR", "CTR", "RESERVE", "RESERVE_ADDRESS")
COMPARED = tuple(name for name in NAMES if not name.startswith("RESERVE"))

_STUB = 0x30000000
_MTXER, _MFXER, _STWCX, _LWARX = (_STUB + 4 * i for i in range(4))
_STUB_CODE = bytes.fromhex("7c0103a67c0102a67c00092d7c000828")
_LSWI = 597
_SCRATCH = _STUB + 0x800
_FLOATING_POINT_ENABLED = 0x2000
_IDS = [
    *(ppc.UC_PPC_REG_0 + i for i in range(32)),
    *(ppc.UC_PPC_REG_FPR0 + i for i in range(32)),
    ppc.UC_PPC_REG_LR,
    ppc.UC_PPC_REG_CTR,
    ppc.UC_PPC_REG_CR,
]
_MEMORY_ERRORS = frozenset(
    {
        unicorn.UC_ERR_READ_UNMAPPED,
        unicorn.UC_ERR_WRITE_UNMAPPED,
        unicorn.UC_ERR_READ_PROT,
        unicorn.UC_ERR_WRITE_PROT,
    }
)
_FETCH_ERRORS = frozenset({unicorn.UC_ERR_FETCH_UNMAPPED, unicorn.UC_ERR_FETCH_PROT})
# QEMU's POWERPC_EXCP_PROGRAM and POWERPC_EXCP_SYSCALL; a program interrupt of a checked instruction is a trap.
_INTERRUPTS = {6: "breakpoint", 8: "system-call"}


class PowerPcOracle:
    def __init__(self, model: int | None = None) -> None:
        self._model = model
        self._engine: Any = None
        self._interrupt: int | None = None
        self._read_code = False

    def _start(self) -> Any:
        engine = Uc(unicorn.UC_ARCH_PPC, unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN)
        if self._model is not None:
            engine.ctl_set_cpu_model(self._model)
        engine.mem_map(CODE, CODE_SIZE, unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        engine.mem_map(DATA, DATA_SIZE, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        engine.mem_map(READ_ONLY, READ_ONLY_SIZE, unicorn.UC_PROT_READ)
        engine.mem_write(READ_ONLY, bytes(range(256)) * (READ_ONLY_SIZE // 256))
        engine.mem_map(_STUB, 0x1000)
        engine.mem_write(_STUB, _STUB_CODE)
        machine_state = engine.reg_read(ppc.UC_PPC_REG_MSR)
        engine.reg_write(ppc.UC_PPC_REG_MSR, machine_state | _FLOATING_POINT_ENABLED)
        engine.hook_add(unicorn.UC_HOOK_INTR, self._on_interrupt)
        engine.hook_add(unicorn.UC_HOOK_MEM_READ, self._on_code_read, None, CODE, CODE + CODE_SIZE - 1)
        return engine

    def _on_code_read(self, engine: Any, *_: object) -> None:
        self._read_code = True

    def _on_interrupt(self, engine: Any, number: int, _: object) -> None:
        self._interrupt = number
        engine.emu_stop()

    def run(self, case: Case) -> Outcome:
        word = int.from_bytes(case.code, "big")
        if word >> 26 == 31 and word >> 1 & 0x3FF == _LSWI:
            # A load that the hook for reads of the code region does not see.
            base = case.registers[f"r{word >> 16 & 31}"] if word >> 16 & 31 else 0
            if CODE - 128 < base < CODE + CODE_SIZE:
                raise OracleCannotTell("the code region holds other bytes")
        if self._engine is None:
            self._engine = self._start()
        engine = self._engine
        engine.mem_write(DATA, case.memory)  # before a reservation is made: Unicorn remembers the value at its address
        self._set_hidden_state(engine, case)
        condition = sum(case.registers[name] << 28 - 4 * i for i, name in enumerate(FIELDS))
        values = [case.registers[name] for name in (*GENERAL, *FLOATS, "LR", "CTR")]
        engine.reg_write_batch(list(zip(_IDS, [*values, condition], strict=True)))
        engine.mem_write(case.pc, case.code)
        engine.ctl_remove_cache(case.pc, case.pc + 4)
        self._interrupt, self._read_code = None, False
        error = 0
        try:
            engine.emu_start(case.pc, 0xFFFFFFF0, count=1)
        except UcError as failure:
            error = int(failure.errno)
        pc = engine.reg_read(ppc.UC_PPC_REG_PC)
        if self._interrupt is not None or (error and not (error in _FETCH_ERRORS and pc != case.pc)):
            self._engine = None  # an exception leaves state behind that later runs would see
            if self._interrupt is None and error in _MEMORY_ERRORS:
                return Outcome({}, b"", case.pc, MEMORY_FAULT)
            if self._interrupt is not None and self._interrupt in _INTERRUPTS:
                return Outcome({}, b"", case.pc, _INTERRUPTS[self._interrupt])
            raise OracleCannotTell(f"interrupt {self._interrupt}, error {error}")
        if self._read_code:
            raise OracleCannotTell("the code region holds other bytes")
        raw = engine.reg_read_batch(_IDS)
        registers = dict(zip((*GENERAL, *FLOATS, "LR", "CTR"), raw, strict=False))
        registers |= {name: raw[-1] >> 28 - 4 * i & 15 for i, name in enumerate(FIELDS)}
        memory = bytes(engine.mem_read(DATA, DATA_SIZE))
        engine.emu_start(_MFXER, _MFXER + 4, count=1)
        exception = engine.reg_read(ppc.UC_PPC_REG_0)
        registers |= {name: exception >> low & (1 << bits) - 1 for name, (low, bits) in XER_BITS.items()}
        return Outcome(registers, memory, pc)

    def _set_hidden_state(self, engine: Any, case: Case) -> None:
        def run(stub: int, r0: int, r1: int) -> None:
            engine.reg_write(ppc.UC_PPC_REG_0, r0)
            engine.reg_write(ppc.UC_PPC_REG_1, r1)
            engine.emu_start(stub, stub + 4, count=1)

        exception = sum(case.registers[name] << low for name, (low, _) in XER_BITS.items())
        run(_MTXER, exception, 0)
        run(_STWCX, 0, _SCRATCH)
        if case.registers["RESERVE"]:
            run(_LWARX, 0, case.registers["RESERVE_ADDRESS"])


# Bytes accessed by primary opcode, and by extended opcode under primary opcode 31.
_ACCESS_BYTES = {
    **dict.fromkeys((32, 33, 36, 37), 4),
    **dict.fromkeys((34, 35, 38, 39), 1),
    **dict.fromkeys((40, 41, 42, 43, 44, 45), 2),
    **dict.fromkeys((50, 51, 54, 55), 8),
}
_INDEXED_ACCESS_BYTES = {
    **dict.fromkeys((20, 23, 55, 150, 151, 183, 534, 662, 983), 4),
    **dict.fromkeys((87, 119, 215, 247), 1),
    **dict.fromkeys((279, 311, 343, 375, 407, 439, 790, 918), 2),
    **dict.fromkeys((599, 631, 727, 759), 8),
}


def access_bytes(word: int) -> int:
    """How many bytes of memory the instruction word accesses; 0 if none."""
    primary = word >> 26
    return _INDEXED_ACCESS_BYTES.get(word >> 1 & 0x3FF, 0) if primary == 31 else _ACCESS_BYTES.get(primary, 0)


def access_address(word: int, registers: Mapping[str, int]) -> int:
    """The effective address of a load or store word."""
    base = registers[f"r{word >> 16 & 31}"] if word >> 16 & 31 else 0
    if word >> 26 == 31:
        return base + registers[f"r{word >> 11 & 31}"] & 0xFFFFFFFF
    return base + ((word & 0xFFFF ^ 0x8000) - 0x8000) & 0xFFFFFFFF


class LittleEndianOracle:
    """The little-endian machine in terms of the big-endian one: same word, the accessed bytes reversed.

    A load or store of n bytes does in little-endian mode what it does in big-endian mode when these n bytes of memory
    are reversed before and after (Power ISA Book I, 1.10).
    """

    def __init__(self, big: PowerPcOracle) -> None:
        self._big = big

    def run(self, case: Case) -> Outcome:
        word = int.from_bytes(case.code, "little")
        size = access_bytes(word)
        at = access_address(word, case.registers) - DATA if size else 0
        if size and READ_ONLY_SIZE + DATA_SIZE > at > DATA_SIZE - size:
            raise OracleCannotTell("access to bytes that cannot be reversed")

        def swapped(memory: bytes) -> bytes:
            return memory[:at] + memory[at : at + size][::-1] + memory[at + size :] if 0 <= at < len(memory) else memory

        outcome = self._big.run(replace(case, code=word.to_bytes(4, "big"), memory=swapped(case.memory)))
        return replace(outcome, memory=swapped(outcome.memory))
