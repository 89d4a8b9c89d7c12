"""P-code put around the operations of an instruction: before or after each of them, temporaries of its own.

Branches within the instruction keep their destinations: one to an operation lands on what was put before it, and what
was put after an operation runs only if the operation did.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.machine.isa.overlay import signed
from mcveto.machine.isa.snippet import TEMPORARY_BASE
from mcveto.machine.pcode import Op, Space, Varnode

# Apart from the temporaries of instructions, the overlay and typestate properties.
FIRST_TEMPORARY = TEMPORARY_BASE + (1 << 36)
_STRIDE = 64


class GuardedOps:
    """The operations of one instruction and what is added to them; `here` is where `emit` adds."""

    def __init__(self, ops: Sequence[Op], word: int) -> None:
        self.ops = tuple(ops)
        self.word = word
        self._before: list[list[Op]] = [[] for _ in range(len(ops) + 1)]
        self._after: list[list[Op]] = [[] for _ in range(len(ops) + 1)]
        self._instead: dict[int, list[Op]] = {}
        self._temporaries = 0
        self.here: list[Op] = self._before[0]

    def before(self, index: int) -> None:
        self.here = self._before[index]

    @property
    def at_start(self) -> list[Op]:
        """Where to add what is to be computed before all else."""
        return self._before[0]

    def after(self, index: int) -> None:
        self.here = self._after[index]

    def instead(self, index: int, ops: list[Op]) -> None:
        """Replaces an operation; no branch within the instruction may be among `ops`."""
        self._instead[index] = ops

    # Operations.

    def constant(self, value: int, size: int | None = None) -> Varnode:
        size = self.word if size is None else size
        return Varnode(Space.CONST, value & ((1 << 8 * size) - 1), size)

    def emit(self, opcode: str, size: int, *inputs: Varnode) -> Varnode:
        self._temporaries += 1
        output = Varnode(Space.UNIQUE, FIRST_TEMPORARY + _STRIDE * self._temporaries, size)
        self.here.append(Op(opcode, output, inputs))
        return output

    def set(self, register: Varnode, value: Varnode) -> None:
        self.here.append(Op("COPY", register, (value,)))

    def add(self, one: Varnode, other: int) -> Varnode:
        return one if other == 0 else self.emit("INT_ADD", self.word, one, self.constant(other))

    def subtract(self, one: Varnode, other: Varnode) -> Varnode:
        return self.emit("INT_SUB", self.word, one, other)

    def test(self, opcode: str, one: Varnode, other: Varnode) -> Varnode:
        return self.emit(opcode, 1, one, other)

    def either(self, conditions: Sequence[Varnode]) -> Varnode:
        result = conditions[0] if conditions else self.constant(0, 1)
        for condition in conditions[1:]:
            result = self.emit("BOOL_OR", 1, result, condition)
        return result

    def both(self, one: Varnode, other: Varnode) -> Varnode:
        return self.emit("BOOL_AND", 1, one, other)

    def negated(self, condition: Varnode) -> Varnode:
        return self.emit("BOOL_NEGATE", 1, condition)

    def select(self, condition: Varnode, one: Varnode, other: Varnode) -> Varnode:
        return self.emit("SELECT", one.size, condition, one, other)

    def least(self, one: Varnode, other: Varnode) -> Varnode:
        return self.select(self.test("INT_LESS", one, other), one, other)

    def leave_if(self, condition: Varnode, target: int) -> None:
        self.here.append(Op("CBRANCH", None, (Varnode(Space.RAM, target, self.word), condition)))

    def leave(self, target: int) -> None:
        self.here.append(Op("BRANCH", None, (Varnode(Space.RAM, target, self.word),)))

    def refuse_if(self, condition: Varnode, what: str) -> None:
        """Beyond this the run is unsupported; `what` completes the message `operation …`."""
        fine = self.negated(condition)
        self.here.append(Op("CBRANCH", None, (self.constant(2, 4), fine)))
        self.here.append(Op(what, None, ()))

    # The result.

    def result(self) -> tuple[Op, ...]:
        starts: list[int] = []
        length = 0
        for index in range(len(self.ops) + 1):
            starts.append(length)
            length += len(self._before[index]) + len(self._after[index])
            if index < len(self.ops):
                length += len(self._instead.get(index, (None,)))
        found: list[Op] = []
        for index, op in enumerate(self.ops):
            found += self._before[index]
            if op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space is Space.CONST:
                jump = op.inputs[0]
                distance = starts[index + signed(jump)] - len(found)
                op = Op(op.opcode, None, (self.constant(distance, jump.size), *op.inputs[1:]))
            found += self._instead.get(index, [op])
            found += self._after[index]
        found += self._before[len(self.ops)]
        return tuple(found)
