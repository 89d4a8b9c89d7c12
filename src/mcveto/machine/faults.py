"""How a run can end other than by reaching a halt: a fault of the machine, or something we do not understand.

A `Fault` is what the hardware does (the run ends there; a violation only of `no-fault` / `memory-safety`).
`Unsupported` is a limit of ours: the path is cut and no verdict but UNKNOWN (or a confirmed VIOLATED elsewhere) may
follow. The two are never mixed up.
"""

from __future__ import annotations

from enum import IntEnum


class FaultKind(IntEnum):
    DIVIDE_ERROR = 0
    UNDEFINED_INSTRUCTION = 1
    BREAKPOINT = 2
    UNMAPPED_READ = 3
    UNMAPPED_WRITE = 4
    UNMAPPED_EXECUTE = 5
    READ_PERMISSION = 6
    WRITE_PERMISSION = 7
    EXECUTE_PERMISSION = 8
    MISALIGNED = 9
    OVERFLOW_TRAP = 10
    GENERAL_PROTECTION = 11
    SYSTEM_CALL = 12
    ASSUMPTION_FAILED = 13
    HALT_INSTRUCTION = 14
    UNSUPPORTED = 15

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")

    @classmethod
    def of_label(cls, label: str) -> FaultKind:
        return cls[label.upper().replace("-", "_")]


class MachineError(Exception):
    """Base of everything that ends a step without a successor."""


class Fault(MachineError):
    """The hardware's own refusal to go on: which kind, and for memory faults the data address."""

    def __init__(self, kind: FaultKind, address: int | None = None, size: int = 0) -> None:
        self.kind = kind
        self.address = address
        self.size = size
        where = "" if address is None else f" at {address:#x}"
        super().__init__(f"{kind.label}{where}")


class Unsupported(MachineError):
    """An instruction or operation outside what we model; names it and its address."""

    def __init__(self, what: str, pc: int | None = None, text: str = "") -> None:
        self.what = what
        self.pc = pc
        self.text = text
        where = "" if pc is None else f" at {pc:#x}"
        instruction = f" ({text})" if text else ""
        super().__init__(f"unsupported: {what}{where}{instruction}")

    def located(self, pc: int, text: str) -> Unsupported:
        """The same complaint with the instruction it happened in."""
        return self if self.pc is not None else Unsupported(self.what, pc, text)
