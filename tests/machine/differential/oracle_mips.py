"""Unicorn as an oracle for MIPS32 (release 2), both byte orders.

A branch and its delay slot are one unit. A hook before every instruction lets the engine run the branch and the slot
and stops it at whatever comes next: that address is the next program counter.
"""

from __future__ import annotations

from typing import Any, Literal

import unicorn
from unicorn import Uc, UcError
from unicorn import mips_const as mips

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

GENERAL = (
    *("at", "v0", "v1", "a0", "a1", "a2", "a3", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"),
    *("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "t8", "t9", "k0", "k1", "gp", "sp", "s8", "ra"),
)
COMPARED = (*GENERAL, "hi", "lo")
NAMES = (*COMPARED, "LLAddr")

_IDS = [*(mips.UC_MIPS_REG_1 + i for i in range(31)), mips.UC_MIPS_REG_HI, mips.UC_MIPS_REG_LO]
_MEMORY_ERRORS = frozenset(
    {
        unicorn.UC_ERR_READ_UNMAPPED,
        unicorn.UC_ERR_WRITE_UNMAPPED,
        unicorn.UC_ERR_READ_PROT,
        unicorn.UC_ERR_WRITE_PROT,
    }
)
_STUB = 0x30000000
_NEVER = _STUB + 0x800  # must be mapped
_LOAD_LINKED = 0xC0220000  # ll v0, 0(at)
_SYSCALL = 0x0000000C  # fills the code page: Unicorn translates up to the next one, not to the end of the page
_FETCH_ERRORS = frozenset({unicorn.UC_ERR_FETCH_UNMAPPED, unicorn.UC_ERR_FETCH_PROT})
# QEMU's numbers for address errors, system call, breakpoint, reserved instruction, overflow and trap.
_INTERRUPTS = {
    12: "misaligned",
    13: "misaligned",
    17: "system-call",
    18: "breakpoint",
    20: "undefined-instruction",
    21: "overflow-trap",
    22: "breakpoint",
}


class MipsOracle:
    def __init__(self, big_endian: bool) -> None:
        self._byte_order: Literal["big", "little"] = "big" if big_endian else "little"
        self._order = unicorn.UC_MODE_BIG_ENDIAN if big_endian else unicorn.UC_MODE_LITTLE_ENDIAN
        self._engine: Any = None
        self._interrupt: int | None = None
        self._read_code = False
        self._visited: list[int] = []
        self._case: Case | None = None

    def _start(self) -> Any:
        engine = Uc(unicorn.UC_ARCH_MIPS, unicorn.UC_MODE_MIPS32 | self._order)
        engine.mem_map(CODE, CODE_SIZE, unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        engine.mem_map(DATA, DATA_SIZE, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        engine.mem_map(READ_ONLY, READ_ONLY_SIZE, unicorn.UC_PROT_READ)
        engine.mem_write(READ_ONLY, bytes(range(256)) * (READ_ONLY_SIZE // 256))
        self._filler = _SYSCALL.to_bytes(4, self._byte_order)
        engine.mem_write(CODE, self._filler * (CODE_SIZE // 4))
        engine.mem_map(_STUB, 0x1000)
        engine.mem_write(_STUB, _LOAD_LINKED.to_bytes(4, self._byte_order) + self._filler)
        engine.hook_add(unicorn.UC_HOOK_INTR, self._on_interrupt)
        engine.hook_add(unicorn.UC_HOOK_CODE, self._on_instruction)
        engine.hook_add(unicorn.UC_HOOK_MEM_FETCH_UNMAPPED | unicorn.UC_HOOK_MEM_FETCH_PROT, self._on_fetch)
        engine.hook_add(unicorn.UC_HOOK_MEM_READ, self._on_code_read, None, CODE, CODE + CODE_SIZE - 1)
        self._pristine = engine.context_save()
        return engine

    def _on_code_read(self, engine: Any, *_: object) -> None:
        self._read_code = True

    def _on_interrupt(self, engine: Any, number: int, _: object) -> None:
        self._interrupt = number
        engine.emu_stop()

    def _on_instruction(self, engine: Any, address: int, size: int, _: object) -> None:
        self._visited.append(address)
        if not self._goes_on():
            engine.emu_stop()

    def _on_fetch(self, engine: Any, access: int, address: int, *_: object) -> bool:
        self._visited.append(address)
        return False

    def _goes_on(self) -> bool:
        """Whether the instruction about to run still belongs to the case."""
        assert self._case is not None
        visited = self._visited
        in_slot = len(visited) == 2 and len(self._case.code) == 8 and visited[1] == self._case.pc + 4
        return len(visited) == 1 or in_slot

    def run(self, case: Case) -> Outcome:
        self._refuse(case)
        if self._engine is None:
            self._engine = self._start()
        engine = self._engine
        engine.mem_write(DATA, case.memory)
        engine.mem_write(case.pc, case.code)
        engine.ctl_remove_cache(case.pc, case.pc + 8)
        if case.registers["LLAddr"] & 1:
            engine.reg_write(mips.UC_MIPS_REG_1, case.registers["LLAddr"] & ~3)
            self._step(engine, Case(_STUB, _LOAD_LINKED.to_bytes(4, self._byte_order), {}, b""))
        engine.reg_write_batch(list(zip(_IDS, [case.registers[name] for name in COMPARED], strict=True)))
        error = self._step(engine, case)
        engine.mem_write(case.pc, self._filler * (len(case.code) // 4))
        engine.ctl_remove_cache(case.pc, case.pc + 8)
        left = len(self._visited) > 1 and not self._goes_on()
        registers = dict(zip(COMPARED, engine.reg_read_batch(_IDS), strict=True))
        # An exception leaves state behind that later runs would see; after a failed fetch even restoring it crashes.
        if error in _FETCH_ERRORS:
            self._engine = None
        elif error or self._interrupt is not None:
            engine.context_restore(self._pristine)
        if self._read_code:
            raise OracleCannotTell("the code region holds other bytes")
        if self._interrupt is not None or not left:
            return Outcome({}, b"", case.pc, self._fault(case, error))
        return Outcome(registers, bytes(engine.mem_read(DATA, DATA_SIZE)), self._visited[-1])

    def _step(self, engine: Any, case: Case) -> int:
        self._interrupt, self._visited, self._case, self._read_code = None, [], case, False
        try:
            engine.emu_start(case.pc, _NEVER)
        except UcError as failure:
            return int(failure.errno)
        return 0

    def _fault(self, case: Case, error: int) -> str:
        if self._interrupt is None and error in _MEMORY_ERRORS:
            return MEMORY_FAULT
        label = _INTERRUPTS.get(self._interrupt or 0)
        if label is None:
            raise OracleCannotTell(f"interrupt {self._interrupt}, error {error}")
        if label == "breakpoint":
            at = self._visited[-1] - case.pc
            word = int.from_bytes(case.code[at : at + 4], self._byte_order)
            # The code of a division check: in the low ten bits of TEQ, at either end of the field of BREAK.
            codes = {0x34: (7 << 6,), 0x0D: (7 << 6, 7 << 16)}.get(word & 0x3F, ())
            field = word & 0xFFC0 if word & 0x3F == 0x34 else word & 0x3FFFFC0
            return "divide-error" if word >> 26 == 0 and field in codes else label
        return label

    def _refuse(self, case: Case) -> None:
        """Raises OracleCannotTell for what Unicorn does otherwise than the manual says."""
        for at in range(0, len(case.code), 4):
            word = int.from_bytes(case.code[at : at + 4], self._byte_order)
            source = word >> 21 & 31
            base = case.registers[GENERAL[source - 1]] if source else 0
            address = base + ((word & 0xFFFF ^ 0x8000) - 0x8000) & 0xFFFFFFFF
            if word >> 26 == 0 and word & 0x3F in (8, 9) and (base & 3 or base >= 0x80000000):
                raise OracleCannotTell("jump to an odd address or to a segment with another mapping")
            if word >> 26 in (0x2A, 0x2E) and not DATA <= address & ~3 < DATA + DATA_SIZE:
                raise OracleCannotTell("SWL or SWR that must fault does nothing")
            if word >> 26 == 0x38 and address & 3:
                raise OracleCannotTell("misaligned SC without LL does not fault")
            if at and source == 31 and word >> 26 in (0x2A, 0x2E, 0x38):
                raise OracleCannotTell("address that may come from the branch itself")
