"""P-code for people: registers by name, temporaries numbered, constants in hexadecimal."""

from __future__ import annotations

from .faults import FaultKind
from .pcode import Op, Space, Varnode
from .registers import RegisterLayout


def readable_op(layout: RegisterLayout, op: Op) -> str:
    """One operation as a line, e.g. `EAX = INT_ADD EAX, 0x4:4`."""
    if op.opcode == "TRAP":
        return f"TRAP {FaultKind(op.inputs[0].offset).label} if {_readable(layout, op.inputs[1])}"
    operands = ", ".join(_readable(layout, varnode) for varnode in op.inputs)
    line = f"{op.opcode} {operands}".rstrip()
    return line if op.output is None else f"{_readable(layout, op.output)} = {line}"


def _readable(layout: RegisterLayout, varnode: Varnode) -> str:
    match varnode.space:
        case Space.CONST:
            return f"{varnode.offset:#x}:{varnode.size}"
        case Space.REGISTER:
            return layout.display(varnode.offset, varnode.size)
        case Space.UNIQUE:
            return f"%{varnode.offset:x}:{varnode.size}"
        case Space.RAM:
            return f"[{varnode.offset:#x}]:{varnode.size}"
