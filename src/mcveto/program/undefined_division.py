"""Divisions whose result the architecture leaves undefined: by zero, and quotients that do not fit.

x86 faults there. PowerPC and MIPS go on with any number in the register, so that nothing but this tells a program that
divides by zero from one that does not; for `no-fault` it counts as a fault. ARM and RISC-V say what the quotient is:
there it is a result like any other.

The semantics of such an instruction divides by `SELECT(is_undefined, 1, divisor)`: that is what is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcveto.machine.pcode import Instruction, Space, Varnode

_UNDEFINED_IN = frozenset({"powerpc", "mips"})
_DIVISIONS = ("INT_DIV", "INT_SDIV")


@dataclass(frozen=True, slots=True)
class UndefinedDivision:
    index: int
    """Which operation of the instruction divides."""
    flag: Varnode
    """What holds, just before, if its result is undefined."""
    dividend: Varnode
    divisor: Varnode
    is_signed: bool


def undefined_division(overlay: str, instruction: Instruction) -> UndefinedDivision | None:
    """The division of an instruction that may be undefined; None if it has none."""
    if overlay not in _UNDEFINED_IN:
        return None
    for index, op in enumerate(instruction.ops):
        if op.opcode not in _DIVISIONS or op.inputs[1].space is not Space.UNIQUE:
            continue
        for earlier in reversed(instruction.ops[:index]):
            if earlier.output == op.inputs[1]:
                if earlier.opcode == "SELECT":
                    flag, _, divisor = earlier.inputs
                    return UndefinedDivision(index, flag, op.inputs[0], divisor, op.opcode == "INT_SDIV")
                break
    return None
