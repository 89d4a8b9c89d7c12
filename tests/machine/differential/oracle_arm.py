"""Unicorn's names for the registers and flags of ARM in its modes and byte orders, and what it does not judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import unicorn
from unicorn import UcError
from unicorn import arm_const as arm

from mcveto.machine.pcode import Instruction

from .harness import CODE, Case, Outcome
from .unicorn_oracle import Bits, UnicornOracle, UnicornTarget

FLAG_BITS = {"NG": 31, "ZR": 30, "CY": 29, "OV": 28, "Q": 27, "GE1": 16, "GE2": 17, "GE3": 18, "GE4": 19}
GENERAL = (*(f"r{i}" for i in range(13)), "sp", "lr")
INTERRUPTS = {2: "system-call", 7: "breakpoint", 4: "memory"}
USER_MODE, THUMB, BIG_ENDIAN_DATA = 0x10, 0x20, 0x200


def target(thumb: bool, big_endian: bool) -> UnicornTarget:
    """ARM or Thumb; `big_endian` is BE8: big-endian data, little-endian instructions."""
    status = USER_MODE | (THUMB if thumb else 0) | (BIG_ENDIAN_DATA if big_endian else 0)

    def prepare(engine: Any) -> None:
        engine.ctl_set_cpu_model(arm.UC_CPU_ARM_MAX)
        engine.reg_write(arm.UC_ARM_REG_CPSR, status)

    registers = {name: Bits(arm.UC_ARM_REG_CPSR, low, 1, status) for name, low in FLAG_BITS.items()}
    registers |= {name: Bits(getattr(arm, f"UC_ARM_REG_{name.upper()}"), 0, 32) for name in GENERAL}
    mode = unicorn.UC_MODE_THUMB if thumb else unicorn.UC_MODE_ARM
    return UnicornTarget(unicorn.UC_ARCH_ARM, mode, registers, arm.UC_ARM_REG_PC, INTERRUPTS, prepare)


class BlockOracle(UnicornOracle):
    """Runs an IT block: until control leaves its bytes or goes backwards."""

    def __init__(self, target: UnicornTarget, size_of: Callable[[Case], int]) -> None:
        super().__init__(target)
        self._size_of = size_of
        self._end = 0
        self._last = 0

    def _start(self) -> Any:
        engine = super()._start()
        engine.hook_add(unicorn.UC_HOOK_CODE, self._on_instruction)
        return engine

    def _on_instruction(self, engine: Any, address: int, size: int, _: object) -> None:
        if not CODE <= address < self._end or address <= self._last:
            engine.emu_stop()
        self._last = address

    def run(self, case: Case) -> Any:
        self._end, self._last = CODE + self._size_of(case), 0
        return super().run(case)

    @staticmethod
    def _step(engine: Any, pc: int) -> int | None:
        try:
            engine.emu_start(pc, 0xFFFFFFF0)
        except UcError as error:
            return int(error.errno)
        return None


def excuse(instruction: Instruction, case: Case, ours: Outcome) -> bool:
    """LDM, STM, LDRD, STRD and exclusives trap when misaligned; Unicorn performs them. The monitor of an
    earlier case is still set. A branch to an address that is 2 modulo 4 in ARM state is UNPREDICTABLE. YIELD is a hint
    that the processor Unicorn models does not know."""
    if instruction.mnemonic.startswith(("strex", "stlex")) or instruction.mnemonic == "yield":
        return True
    start = case.pc & ~1
    if instruction.mnemonic.startswith("it") and start <= (ours.pc & ~1) < start + instruction.size:
        return True  # the oracle steps through a block until it is left; it cannot tell a jump into it
    return ours.fault == "misaligned" or (not ours.fault and ours.pc & 3 == 2)
