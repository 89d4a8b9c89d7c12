"""P-code, the only intermediate representation: varnodes, operations and decoded instructions.

A varnode names a piece of storage; an operation reads varnodes and writes at most one. The opcodes are SLEIGH's
(Ghidra's P-code reference), plus three of ours that only the semantics overlay and library models emit:

    SELECT out = c, a, b      out becomes a if c is non-zero, else b
    FRESH  out = usual        out becomes any value; a concrete run takes `usual` unless told otherwise
    TRAP   kind, c            the run ends with fault number `kind` if c is non-zero
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Space(IntEnum):
    CONST = 0
    UNIQUE = 1
    REGISTER = 2
    RAM = 3


class Varnode(NamedTuple):
    space: Space
    offset: int
    size: int

    def __str__(self) -> str:
        return f"{self.space.name.lower()}[{self.offset:#x}:{self.size}]"


class Op(NamedTuple):
    opcode: str
    output: Varnode | None
    inputs: tuple[Varnode, ...]

    def __str__(self) -> str:
        operands = ", ".join(map(str, self.inputs))
        return f"{self.output} = {self.opcode} {operands}" if self.output else f"{self.opcode} {operands}"


class FreshOrigin(IntEnum):
    """Why a FRESH operation makes up a value; carried as the operation's second input."""

    UNDEFINED = 0
    INPUT = 1


class Instruction:
    """One decoded instruction (or hook): its address with the mode bit, its bytes and its P-code.

    `pc` is what a jump to it would have to put into the program counter: the address, plus the decoding mode in
    bit 0 on machines that have one (Thumb).
    """

    __slots__ = ("bytes", "mnemonic", "operands", "ops", "pc", "prepared", "size")

    def __init__(self, pc: int, code: bytes, ops: tuple[Op, ...], mnemonic: str, operands: str) -> None:
        self.pc = pc
        self.bytes = code
        self.size = len(code)
        self.ops = ops
        self.mnemonic = mnemonic
        self.operands = operands
        # The interpreter's form of `ops`, made on first use.
        self.prepared: object = None

    @property
    def text(self) -> str:
        return f"{self.mnemonic} {self.operands}".strip()

    def __repr__(self) -> str:
        return f"<{self.pc:#x}: {self.bytes.hex()} {self.text}>"


# Opcodes after which control leaves the instruction.
BRANCHES = frozenset({"BRANCH", "CBRANCH", "BRANCHIND", "CALL", "CALLIND", "RETURN"})
DIVISIONS = frozenset({"INT_DIV", "INT_SDIV", "INT_REM", "INT_SREM"})


class Transfer(IntEnum):
    """How control leaves an instruction; decides the position's kind in a nested word."""

    FALL = 0
    JUMP = 1
    CALL = 2
    RETURN = 3
