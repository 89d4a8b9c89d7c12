"""P-code for terms and formulas: a list of operations with temporaries, and branches out where a value is undefined.

Used for While programs and for library models alike; what a variable, a constant and a memory cell are is supplied by
`Storage`. Branch targets are labels, numbers above any address that `patched` replaces once addresses are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from mcveto.machine.faults import FaultKind
from mcveto.machine.pcode import Op, Space, Varnode
from mcveto.whilelang.syntax import (
    Binary,
    Box,
    Compare,
    Connective,
    Formula,
    Limit,
    Not,
    Num,
    Read,
    Term,
    Truth,
    Unary,
    Var,
)

LABEL = 1 << 80
_TEMPORARIES = 1 << 42
_STRIDE = 16
_UNSIGNED = {
    "+": "INT_ADD",
    "-": "INT_SUB",
    "*": "INT_MULT",
    "/": "INT_DIV",
    "%": "INT_REM",
    "&": "INT_AND",
    "|": "INT_OR",
    "^": "INT_XOR",
    "<<": "INT_LEFT",
    ">>": "INT_RIGHT",
}
_SIGNED = _UNSIGNED | {"/": "INT_SDIV", "%": "INT_SREM", ">>": "INT_SRIGHT"}
# Opcode and whether the operands change places.
_COMPARE = {"=": ("EQUAL", False), "≠": ("NOTEQUAL", False), "<": ("LESS", False), "≤": ("LESSEQUAL", False)} | {
    ">": ("LESS", True),
    "≥": ("LESSEQUAL", True),
}


class Storage(Protocol):
    """Where the values of a program live."""

    size: int
    """Bytes of a value."""
    signed: bool
    cells: int

    def read(self, name: str, code: PcodeBuilder) -> Varnode:
        """The value of a variable."""

    def write(self, name: str, value: Varnode, code: PcodeBuilder) -> None:
        """Assigns a variable."""

    def load(self, index: Varnode, code: PcodeBuilder) -> Varnode:
        """The cell at an index, with whatever check the memory needs."""

    def store(self, index: Varnode, value: Varnode, code: PcodeBuilder) -> None:
        """Writes a cell."""


class PcodeBuilder:
    """The operations of one instruction."""

    def __init__(self, storage: Storage, on_undefined: Callable[[str], int]) -> None:
        self.storage = storage
        self.ops: list[Op] = []
        self.on_undefined = on_undefined
        """The label to leave to where a value is undefined, by kind (memory, division)."""
        self._temporaries = 0

    def temporary(self, size: int) -> Varnode:
        self._temporaries += 1
        return Varnode(Space.UNIQUE, _TEMPORARIES + _STRIDE * self._temporaries, size)

    def constant(self, value: int, size: int | None = None) -> Varnode:
        width = self.storage.size if size is None else size
        return Varnode(Space.CONST, value & ((1 << 8 * width) - 1), width)

    def emit(self, opcode: str, size: int, *inputs: Varnode) -> Varnode:
        output = self.temporary(size)
        self.ops.append(Op(opcode, output, inputs))
        return output

    def copy(self, output: Varnode, value: Varnode) -> None:
        self.ops.append(Op("COPY", output, (value,)))

    def extended(self, value: Varnode, size: int) -> Varnode:
        """The value as an unsigned number of another size."""
        if value.size == size:
            return value
        if value.size > size:
            return self.emit("SUBPIECE", size, value, self.constant(0, 4))
        return self.emit("INT_ZEXT", size, value)

    def jump(self, label: int) -> None:
        self.ops.append(Op("BRANCH", None, (label_node(label),)))

    def jump_if(self, label: int, condition: Varnode) -> None:
        self.ops.append(Op("CBRANCH", None, (label_node(label), condition)))

    def trap_if(self, kind: FaultKind, condition: Varnode) -> None:
        self.ops.append(Op("TRAP", None, (Varnode(Space.CONST, kind, 1), condition)))

    def negated(self, condition: Varnode) -> Varnode:
        return self.emit("BOOL_NEGATE", 1, condition)

    def term(self, term: Term) -> Varnode:
        """A varnode with the term's value; leaves the instruction where there is none."""
        storage = self.storage
        match term:
            case Num(value):
                return self.constant(value)
            case Var(name):
                return storage.read(name, self)
            case Limit():
                return self.constant(storage.cells)
            case Unary(op, operand):
                return self.emit("INT_2COMP" if op == "-" else "INT_NEGATE", storage.size, self.term(operand))
            case Binary(op, left, right):
                a, b = self.term(left), self.term(right)
                if op in ("/", "%") and not (isinstance(right, Num) and b.offset):
                    self.jump_if(self.on_undefined("division"), self.emit("INT_EQUAL", 1, b, self.constant(0)))
                return self.emit((_SIGNED if storage.signed else _UNSIGNED)[op], storage.size, a, b)
            case Read(_, index):
                return storage.load(self.term(index), self)
        raise TypeError(type(term).__name__)

    def formula(self, formula: Formula) -> Varnode:
        """A byte that is 1 where the formula is true, 0 where it is false; leaves where it is undefined."""
        match formula:
            case Truth(value):
                return self.constant(int(value), 1)
            case Compare(op, left, right):
                a, b = self.term(left), self.term(right)
                name, swapped = _COMPARE[op]
                if swapped:
                    a, b = b, a
                letter = "S" if self.storage.signed and name.startswith("LESS") else ""
                return self.emit(f"INT_{letter}{name}", 1, a, b)
            case Not(body):
                return self.negated(self.formula(body))
            case Connective(op, left, right):
                p, q = self.formula(left), self.formula(right)
                if op == "→":
                    return self.emit("BOOL_OR", 1, self.negated(p), q)
                if op == "↔":
                    return self.negated(self.emit("BOOL_XOR", 1, p, q))
                return self.emit("BOOL_AND" if op == "∧" else "BOOL_OR", 1, p, q)
            case Box():
                raise TypeError("a program's formulas have no modality")


def label_node(label: int) -> Varnode:
    return Varnode(Space.RAM, LABEL + label, 4)


def patched(ops: list[Op], addresses: Mapping[int, int]) -> tuple[Op, ...]:
    """The operations with every label replaced by its address."""

    def node(varnode: Varnode) -> Varnode:
        if varnode.offset < LABEL:
            return varnode
        address = addresses[varnode.offset - LABEL]
        space = Space.CONST if varnode.space is Space.CONST else Space.RAM
        return Varnode(space, address, varnode.size)

    return tuple(Op(op.opcode, op.output, tuple(map(node, op.inputs))) for op in ops)
