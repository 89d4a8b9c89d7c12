"""While programs as P-code: one instruction per simple command, for a machine whose registers are the variables.

Machine integers of 8, 16, 32 or 64 bits only. Every command becomes an instruction of four bytes (its number), so the
program is ordinary read-only code to every engine; control leaves to an abort address of its own for a failed
assertion, an undefined memory access, a division by zero, and a false postcondition. The precondition and `assume`
are traps that end the run. A procedure saves its locals on the stack and restores them, so recursion works as on any
machine; a stack overflow is a fault, which ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcveto.errors import UsageError
from mcveto.machine.faults import FaultKind
from mcveto.machine.pcode import FreshOrigin, Instruction, Op, Space, Varnode
from mcveto.whilelang.formatter import command_text, formula_text
from mcveto.whilelang.pcode_builder import LABEL, PcodeBuilder, patched
from mcveto.whilelang.rewriting import command_names, module_variables
from mcveto.whilelang.syntax import (
    TRUE,
    Assert,
    Assign,
    Assume,
    Call,
    Command,
    Formula,
    If,
    Input,
    Module,
    Procedure,
    Seq,
    Skip,
    Store,
    While,
)
from mcveto.whilelang.theory import theory_named

CODE_BASE = 0x1000_0000
MEMORY_BASE = 0x2000_0000
INSTRUCTION_BYTES = 4
WORD = 4
STACK_POINTER = "%sp"
FRAME_POINTER = "%fp"
PROGRAM_COUNTER = "%pc"
RESULT = "%result"
ABORTS = ("assertion", "memory", "division", "postcondition")
_REGISTER_STRIDE = 8


@dataclass(slots=True)
class Lowered:
    """Code as instructions in order; where it starts; where it ends when it aborts, by reason."""

    module: Module
    instructions: list[Instruction]
    registers: list[tuple[str, int, int]]
    entry: int
    aborts: dict[str, int]
    variables: dict[str, str]
    """Register of each variable of the main program."""
    value_bytes: int = 4

    @property
    def memory_bytes(self) -> int:
        return self.module.cells * self.value_bytes


@dataclass(slots=True)
class _Pending:
    ops: list[Op]
    mnemonic: str
    text: str


class _Registers:
    """Storage of one procedure (or the main program): variables in registers, memory cells in one region."""

    def __init__(self, lowering: _Lowering, prefix: str) -> None:
        self.size = lowering.size
        self.signed = lowering.signed
        self.cells = lowering.module.cells
        self._lowering = lowering
        self._prefix = prefix

    def register(self, name: str) -> Varnode:
        return self._lowering.register(f"{self._prefix}/{name}", self.size)

    def read(self, name: str, code: PcodeBuilder) -> Varnode:
        return self.register(name)

    def write(self, name: str, value: Varnode, code: PcodeBuilder) -> None:
        code.copy(self.register(name), value)

    def load(self, index: Varnode, code: PcodeBuilder) -> Varnode:
        return code.emit("LOAD", self.size, self._address(index, code))

    def store(self, index: Varnode, value: Varnode, code: PcodeBuilder) -> None:
        code.ops.append(Op("STORE", None, (self._address(index, code), value)))

    def _address(self, index: Varnode, code: PcodeBuilder) -> Varnode:
        # U fits the theory, so a negative index is a large unsigned one.
        inside = code.emit("INT_LESS", 1, index, code.constant(self.cells))
        code.jump_if(code.on_undefined("memory"), code.negated(inside))
        offset = code.emit("INT_MULT", WORD, code.extended(index, WORD), code.constant(self.size, WORD))
        return code.emit("INT_ADD", WORD, offset, code.constant(MEMORY_BASE, WORD))


@dataclass(slots=True)
class _Lowering:
    module: Module
    size: int
    signed: bool
    pending: list[_Pending] = field(default_factory=list)
    labels: dict[int, int] = field(default_factory=dict)
    registers: dict[str, Varnode] = field(default_factory=dict)
    next_label: int = 0
    aborts: dict[str, int] = field(default_factory=dict)
    blocked: int = 0
    entries: dict[str, int] = field(default_factory=dict)
    storage: _Registers = field(init=False)

    def __post_init__(self) -> None:
        self.storage = _Registers(self, "")

    def register(self, name: str, size: int) -> Varnode:
        found = self.registers.get(name)
        if found is None:
            found = Varnode(Space.REGISTER, _REGISTER_STRIDE * len(self.registers), size)
            self.registers[name] = found
        return found

    def label(self) -> int:
        self.next_label += 1
        return self.next_label

    def place(self, label: int) -> None:
        self.labels[label] = len(self.pending)

    def builder(self) -> PcodeBuilder:
        return PcodeBuilder(self.storage, lambda kind: self.aborts[kind])

    def add(self, code: PcodeBuilder, mnemonic: str, text: str = "") -> None:
        self.pending.append(_Pending(code.ops, mnemonic, text))

    # The whole program

    def run(self) -> Lowered:
        module = self.module
        for name in (STACK_POINTER, FRAME_POINTER, PROGRAM_COUNTER):
            self.register(name, WORD)
        self.register(RESULT, self.size)
        variables = {name: f"/{name}" for name in module_variables(module)}
        for name in variables:
            self.storage.register(name)
        self.aborts = {kind: self.label() for kind in ABORTS}
        self.blocked = self.label()
        for procedure in module.procedures:
            self.entries[procedure.name] = self.label()
        if module.pre != TRUE:
            code = PcodeBuilder(self.storage, lambda kind: self.blocked)
            code.trap_if(FaultKind.ASSUMPTION_FAILED, code.negated(code.formula(module.pre)))
            self.add(code, "pre", formula_text(module.pre))
        self.command(module.program)
        if module.post != TRUE:
            code = PcodeBuilder(self.storage, lambda kind: self.aborts["postcondition"])
            code.jump_if(self.aborts["postcondition"], code.negated(code.formula(module.post)))
            self.add(code, "post", formula_text(module.post))
        self._return()
        for procedure in module.procedures:
            self._procedure(procedure)
        self.place(self.blocked)
        code = self.builder()
        code.trap_if(FaultKind.ASSUMPTION_FAILED, code.constant(1, 1))
        self.add(code, "blocked")
        for kind, label in self.aborts.items():
            self.place(label)
            code = self.builder()
            code.jump(label)
            self.add(code, "abort", kind)
        return self._finish(variables)

    def _finish(self, variables: dict[str, str]) -> Lowered:
        addresses = {label: CODE_BASE + INSTRUCTION_BYTES * at for label, at in self.labels.items()}
        instructions = [
            Instruction(
                CODE_BASE + INSTRUCTION_BYTES * number,
                number.to_bytes(INSTRUCTION_BYTES, "little"),
                patched(item.ops, addresses),
                item.mnemonic,
                item.text,
            )
            for number, item in enumerate(self.pending)
        ]
        registers = [(name, node.offset, node.size) for name, node in self.registers.items()]
        aborts = {kind: addresses[label] for kind, label in self.aborts.items()}
        return Lowered(self.module, instructions, registers, CODE_BASE, aborts, variables, self.size)

    def _return(self) -> None:
        code = self.builder()
        self._pop_return(code)
        self.add(code, "return")

    def _pop_return(self, code: PcodeBuilder) -> None:
        pointer = self.registers[STACK_POINTER]
        back = code.emit("LOAD", WORD, pointer)
        code.ops.append(Op("INT_ADD", pointer, (pointer, code.constant(WORD, WORD))))
        code.ops.append(Op("RETURN", None, (back,)))

    def _procedure(self, procedure: Procedure) -> None:
        """Saves the locals, sets them to the arguments and 0, runs the body, leaves the result, restores, returns."""
        self.place(self.entries[procedure.name])
        self.storage = _Registers(self, procedure.name)
        result = {procedure.result} if procedure.result is not None else set()
        others = sorted(({*command_names(procedure.body)} | result) - set(procedure.parameters))
        locals_ = [self.storage.register(name) for name in (*procedure.parameters, *others)]
        pointer = self.registers[STACK_POINTER]
        frame = self.size * len(locals_)
        code = self.builder()
        code.ops.append(Op("INT_SUB", pointer, (pointer, code.constant(frame, WORD))))
        for number, register in enumerate(locals_):
            slot = code.emit("INT_ADD", WORD, pointer, code.constant(self.size * number, WORD))
            code.ops.append(Op("STORE", None, (slot, register)))
        for number, register in enumerate(locals_):
            argument = self.register(f"%arg{number}", self.size) if number < len(procedure.parameters) else None
            code.copy(register, argument if argument is not None else code.constant(0))
        self.add(code, "enter", procedure.name)
        self.command(procedure.body)
        code = self.builder()
        if procedure.result is not None:
            code.copy(self.registers[RESULT], self.storage.register(procedure.result))
        for number, register in enumerate(locals_):
            slot = code.emit("INT_ADD", WORD, pointer, code.constant(self.size * number, WORD))
            code.ops.append(Op("LOAD", register, (slot,)))
        code.ops.append(Op("INT_ADD", pointer, (pointer, code.constant(frame, WORD))))
        self._pop_return(code)
        self.add(code, "leave", procedure.name)

    # Commands

    def command(self, command: Command) -> None:
        code = self.builder()
        match command:
            case Seq(commands):
                for item in commands:
                    self.command(item)
            case Skip():
                self.add(code, "skip")
            case Assign(target, value):
                self.storage.write(target, code.term(value), code)
                self.add(code, "assign", command_text(command))
            case Input(target):
                origin = Varnode(Space.CONST, FreshOrigin.INPUT, 1)
                fresh = code.emit("FRESH", self.size, code.constant(0), origin)
                self.storage.write(target, fresh, code)
                self.add(code, "input", command_text(command))
            case Store(index, value):
                # Both are evaluated before either is judged: an undefined value aborts as what it is.
                at = code.term(index)
                self.storage.store(at, code.term(value), code)
                self.add(code, "store", command_text(command))
            case Assert(condition):
                code.jump_if(self.aborts["assertion"], code.negated(code.formula(condition)))
                self.add(code, "assert", formula_text(condition))
            case Assume(condition):
                code.trap_if(FaultKind.ASSUMPTION_FAILED, code.negated(code.formula(condition)))
                self.add(code, "assume", formula_text(condition))
            case If(condition, then, otherwise):
                self._if(condition, then, otherwise)
            case While(condition, body):
                head, end = self.label(), self.label()
                self.place(head)
                self._leave_unless(condition, end, "while")
                self.command(body)
                self._jump(head)
                self.place(end)
            case Call():
                self._call(command)

    def _if(self, condition: Formula, then: Command, otherwise: Command | None) -> None:
        other, end = self.label(), self.label()
        self._leave_unless(condition, other, "if")
        self.command(then)
        if otherwise is not None:
            self._jump(end)
        self.place(other)
        if otherwise is not None:
            self.command(otherwise)
        self.place(end)

    def _leave_unless(self, condition: Formula, label: int, mnemonic: str) -> None:
        code = self.builder()
        code.jump_if(label, code.negated(code.formula(condition)))
        self.add(code, mnemonic, formula_text(condition))

    def _jump(self, label: int) -> None:
        code = self.builder()
        code.jump(label)
        self.add(code, "jump")

    def _call(self, call: Call) -> None:
        code = self.builder()
        values = [code.term(item) for item in call.arguments]
        pointer = self.registers[STACK_POINTER]
        for number, value in enumerate(values):
            code.copy(self.register(f"%arg{number}", self.size), value)
        code.ops.append(Op("INT_SUB", pointer, (pointer, code.constant(WORD, WORD))))
        following = CODE_BASE + INSTRUCTION_BYTES * (len(self.pending) + 1)
        code.ops.append(Op("STORE", None, (pointer, code.constant(following, WORD))))
        code.ops.append(Op("CALL", None, (Varnode(Space.RAM, LABEL + self.entries[call.procedure], WORD),)))
        self.add(code, "call", command_text(call))
        if call.target is not None:
            code = self.builder()
            self.storage.write(call.target, self.registers[RESULT], code)
            self.add(code, "assign", f"{call.target} := result of {call.procedure}")


def lower(module: Module) -> Lowered:
    """The program's code; raises UsageError for theories no machine has."""
    theory = theory_named(module.theory)
    if theory.bits not in (8, 16, 32, 64):
        raise UsageError(f"theory {theory.name} has no machine code", "lower with --theory u8, s32, … (8, 16, 32, 64)")
    return _Lowering(module, theory.bits // 8, theory.signed).run()
