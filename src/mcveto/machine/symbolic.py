"""The symbolic domain: values are terms, and the state they live in.

A register never written is a variable of its name, an unspecified byte a cell of the memory variable; so running from
an empty state is running from the identity state, and `Pre(I, ψ)` is a substitution (TR1669 §3.4). Which way a branch
goes is the caller's decision (`choose`); the conditions decided upon, and those under which accesses through symbolic
addresses did not fault, are appended to `path`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from ..logic import terms as t
from ..logic.terms import Term
from .address_space import AddressSpace
from .faults import Fault
from .memory import READ, WRITE, missing
from .pcode import FreshOrigin
from .registers import Cell, RegisterLayout
from .symbolic_memory import SymbolicMemory


class ConstraintKind(Enum):
    BRANCH = "branch"
    TARGET = "target"
    ACCESS = "access"
    CODE = "code"


class Constraint(NamedTuple):
    kind: ConstraintKind
    term: Term


Choose = Callable[[Term], bool]
# Given (bits, origin, usual value): the fresh term.
Fresh = Callable[[int, FreshOrigin, Term], Term]

_BINARY: dict[str, Callable[[Term, Term], Term]] = {
    "INT_ADD": t.add,
    "INT_SUB": t.sub,
    "INT_MULT": t.mul,
    "INT_DIV": t.udiv,
    "INT_REM": t.urem,
    "INT_SDIV": t.sdiv,
    "INT_SREM": t.srem,
    "INT_AND": t.band,
    "INT_OR": t.bor,
    "INT_XOR": t.bxor,
}
_COMPARE: dict[str, Callable[[Term, Term], Term]] = {
    "INT_EQUAL": t.eq,
    "INT_NOTEQUAL": t.ne,
    "INT_LESS": t.ult,
    "INT_LESSEQUAL": t.ule,
    "INT_SLESS": t.slt,
    "INT_SLESSEQUAL": t.sle,
    "INT_CARRY": t.carry,
    "INT_SCARRY": t.scarry,
    "INT_SBORROW": t.sborrow,
}
_BOOLEAN: dict[str, Callable[[Term, Term], Term]] = {
    "BOOL_AND": t.band,
    "BOOL_OR": t.bor,
    "BOOL_XOR": t.bxor,
}
_SHIFT: dict[str, Callable[[Term, Term], Term]] = {"INT_LEFT": t.shl, "INT_RIGHT": t.lshr, "INT_SRIGHT": t.ashr}


def initial_register(layout: RegisterLayout, cell: Cell) -> Term:
    """The variable for a register's value at entry; flags are one bit wide inside their byte."""
    return t.zext(t.var(cell.name, layout.significant_bits(cell)), cell.bits)


class SymbolicDomain:
    def __init__(
        self,
        layout: RegisterLayout,
        space: AddressSpace,
        choose: Choose,
        fresh: Fresh,
        memory: SymbolicMemory | None = None,
    ) -> None:
        self.layout = layout
        self.space = space
        self.registers: dict[int, Term] = {}
        self.memory = memory or SymbolicMemory(space)
        self.path: list[Constraint] = []
        # Where an access whose address is symbolic goes in the execution followed, to name its fault.
        self.locate: Callable[[Term], int] | None = None
        self._choose = choose
        self._fresh = fresh

    def constant(self, value: int, bits: int) -> Term:
        return t.const(value, bits)

    def apply(self, opcode: str, arguments: tuple[Term, ...], input_bits: int, output_bits: int) -> Term:
        binary = _BINARY.get(opcode)
        if binary is not None:
            return binary(arguments[0], arguments[1])
        compare = _COMPARE.get(opcode)
        if compare is not None:
            return t.zext(compare(arguments[0], arguments[1]), output_bits)
        boolean = _BOOLEAN.get(opcode)
        if boolean is not None:
            return t.zext(boolean(truth(arguments[0]), truth(arguments[1])), output_bits)
        argument = arguments[0]
        match opcode:
            case "INT_ZEXT":
                return t.zext(argument, output_bits)
            case "INT_SEXT":
                return t.sext(argument, output_bits)
            case "INT_NEGATE":
                return t.bnot(argument)
            case "INT_2COMP":
                return t.neg(argument)
            case "BOOL_NEGATE":
                return t.zext(t.bnot(truth(argument)), output_bits)
            case "POPCOUNT":
                return t.popcount(argument, output_bits)
            case "LZCOUNT":
                return t.lzcount(argument, output_bits)
            case "SELECT":
                return t.ite(truth(argument), arguments[1], arguments[2])
        raise AssertionError(f"the interpreter passed an operator without a meaning: {opcode}")

    def shift(self, opcode: str, value: Term, amount: Term, bits: int, amount_bits: int) -> Term:
        if amount_bits <= bits:
            return _SHIFT[opcode](value, t.zext(amount, bits))
        limit = t.const(bits, amount_bits)
        everything = t.ule(limit, amount)
        within = _SHIFT[opcode](value, t.extract(amount, bits - 1, 0))
        beyond = _SHIFT[opcode](value, t.const(bits, bits))
        return t.ite(everything, beyond, within)

    def extract(self, value: Term, low: int, bits: int, total_bits: int) -> Term:
        return t.extract(value, low + bits - 1, low)

    def insert(self, old: Term, value: Term, low: int, bits: int, total_bits: int) -> Term:
        if low:
            value = t.concat(value, t.extract(old, low - 1, 0))
        if low + bits < total_bits:
            value = t.concat(t.extract(old, total_bits - 1, low + bits), value)
        return value

    def concatenate(self, high: Term, low: Term, high_bits: int, low_bits: int) -> Term:
        return t.concat(high, low)

    def read_register(self, cell: Cell) -> Term:
        value = self.registers.get(cell.number)
        if value is None:
            value = self.registers[cell.number] = initial_register(self.layout, cell)
        return value

    def write_register(self, cell: Cell, value: Term) -> None:
        self.registers[cell.number] = value

    def load(self, address: Term, size: int) -> Term:
        self._may_access(address, size, READ)
        return self.memory.load(address, size)

    def store(self, address: Term, value: Term, size: int) -> None:
        self._may_access(address, size, WRITE)
        self.memory.store(address, value)

    def decide(self, condition: Term) -> bool:
        holds = truth(condition)
        if holds is t.TRUE:
            return True
        if holds is t.FALSE:
            return False
        taken = self._choose(holds)
        self.path.append(Constraint(ConstraintKind.BRANCH, holds if taken else t.bnot(holds)))
        return taken

    def fresh(self, bits: int, origin: FreshOrigin, usual: Term) -> Term:
        return self._fresh(bits, origin, usual)

    def assume(self, kind: ConstraintKind, condition: Term) -> None:
        """Appends a condition of this path unless it holds anyway."""
        if condition is not t.TRUE:
            self.path.append(Constraint(kind, condition))

    def _may_access(self, address: Term, size: int, needed: int) -> None:
        if address.op == "const":
            self.space.check(address.data, size, needed)
            return
        allowed = self.space.allowed(address, size, needed)
        if allowed is t.TRUE or self._choose(allowed):
            self.assume(ConstraintKind.ACCESS, allowed)
            return
        self.assume(ConstraintKind.ACCESS, t.bnot(allowed))
        if self.locate is not None:
            self.space.check(self.locate(address), size, needed)
        raise Fault(missing(needed))


def truth(byte: Term) -> Term:
    """The Boolean a P-code truth value (a byte, non-zero for true) stands for."""
    return t.ne(byte, t.const(0, byte.width)) if byte.width > 1 else byte
