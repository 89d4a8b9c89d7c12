"""A library model as hooks: P-code in the calling convention of any instruction set.

A model runs like a compiled function: it makes a frame below the stack pointer, keeps its variables there, and returns
by the convention. Memory accesses are the machine's own, so they fault where the machine's would. Straight-line code,
with its branches out, is one hook; where paths meet (loop heads, ends of ifs) another begins; an `if` that only
assigns variables is a selection of values, no branch. `assert` ends the run by a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mcveto.machine.faults import FaultKind
from mcveto.machine.isa import Decoder, IsaRow
from mcveto.machine.pcode import FreshOrigin, Instruction, Op, Space, Varnode
from mcveto.whilelang.inlining import Inliner
from mcveto.whilelang.models.catalogue import library, models
from mcveto.whilelang.pcode_builder import PcodeBuilder, patched
from mcveto.whilelang.rewriting import command_names, term_names
from mcveto.whilelang.syntax import (
    Assert,
    Assign,
    Assume,
    Binary,
    Call,
    Command,
    Formula,
    If,
    Input,
    Num,
    Seq,
    Skip,
    Store,
    Term,
    Unary,
    Var,
    While,
    sequence,
)

INPUT_BYTES = 2
HOOK_STRIDE = 16
REMAINS_BYTES = 4096
_INTRINSICS = ("load_word", "store_word")


class _Frame:
    """Variables in the frame, constants by name, memory as the machine's bytes."""

    signed = False
    cells = 0

    def __init__(self, decoder: Decoder, slots: Mapping[str, int], constants: Mapping[str, int]) -> None:
        self.size = decoder.row.address_bytes
        self._pointer = decoder.registers[decoder.row.stack_pointer]
        self._slots = slots
        self._constants = constants

    def _slot(self, name: str, code: PcodeBuilder) -> Varnode:
        return code.emit("INT_ADD", self.size, self._pointer, code.constant(self._slots[name] * self.size))

    def read(self, name: str, code: PcodeBuilder) -> Varnode:
        if name in self._constants:
            return code.constant(self._constants[name])
        return code.emit("LOAD", self.size, self._slot(name, code))

    def write(self, name: str, value: Varnode, code: PcodeBuilder) -> None:
        code.ops.append(Op("STORE", None, (self._slot(name, code), value)))

    def load(self, index: Varnode, code: PcodeBuilder) -> Varnode:
        return code.emit("INT_ZEXT", self.size, code.emit("LOAD", 1, index))

    def store(self, index: Varnode, value: Varnode, code: PcodeBuilder) -> None:
        code.ops.append(Op("STORE", None, (index, code.extended(value, 1))))


class ModelLowering:
    """`constants` are the names a model may use without assigning them; `input_number` tells its inputs apart; at
    `remains` there is memory with unknown contents, as much as the largest frame has (`REMAINS_BYTES`)."""

    def __init__(
        self,
        decoder: Decoder,
        name: str,
        constants: Mapping[str, int],
        input_number: int,
        return_ops: Callable[[], list[Op]],
        remains: int,
    ) -> None:
        self._decoder = decoder
        self._remains = remains
        self._name = name
        self._input_number = input_number
        self._return_ops = return_ops
        module = library(decoder.row.address_bits)
        self._inliner = Inliner(module, constants.keys())
        self._procedure = module.procedure(name)
        body = self._expanded(self._procedure.body)
        result = {self._procedure.result} if self._procedure.result is not None else set()
        parameters = self._procedure.parameters
        self._locals = sorted(({*command_names(body)} | result) - set(parameters) - set(constants))
        self._body = body
        names = (*parameters, *self._locals)
        self._storage = _Frame(decoder, {item: number for number, item in enumerate(names)}, constants)
        words = -(-len(names) * decoder.row.address_bytes // 16) * 16
        assert words <= REMAINS_BYTES
        self._frame_bytes = words
        self._blocks: list[list[Op]] = []
        self._labels: dict[int, int] = {}
        self._next_label = 0
        self._code = self._begin()
        self._bad = self._label()

    def _expanded(self, command: Command) -> Command:
        """The command with calls of other models unfolded (none is recursive), except those of intrinsics."""
        match command:
            case Seq(commands):
                return sequence([self._expanded(item) for item in commands])
            case If(_, then, otherwise):
                other = None if otherwise is None else self._expanded(otherwise)
                return replace(command, then=self._expanded(then), otherwise=other)
            case While(_, body, _):
                return replace(command, body=self._expanded(body))
            case Call(_, name, _) if name not in _INTRINSICS:
                return self._expanded(self._inliner.inlined(command))
        return command

    def hooks(self, entry: int, area: int) -> dict[int, Instruction]:
        """The hooks of the model bound to the code address `entry`; all but the first stand in `area`."""
        self._enter()
        self._command(self._body)
        self._leave()
        self._place(self._bad)
        self._code.trap_if(FaultKind.UNSUPPORTED, self._code.constant(1, 1))
        self._code.jump(self._bad)
        places = [entry, *(area + HOOK_STRIDE * number for number in range(1, len(self._blocks)))]
        addresses = {label: places[number] for label, number in self._labels.items()}
        result: dict[int, Instruction] = {}
        for place, ops in zip(places, self._blocks, strict=True):
            for pc in (place, place | 1) if self._decoder.row.mode_mask else (place,):
                result[pc] = Instruction(pc, b"", patched(ops, addresses), "model", self._name)
        return result

    @property
    def area_bytes(self) -> int:
        """An upper bound of what `hooks` needs, known before."""
        return HOOK_STRIDE * (4 * _size(self._body) + 4)

    # Blocks

    def _begin(self) -> PcodeBuilder:
        code = PcodeBuilder(self._storage, lambda kind: self._bad)
        self._blocks.append(code.ops)
        return code

    def _label(self) -> int:
        self._next_label += 1
        return self._next_label

    def _place(self, label: int) -> None:
        """A new block that starts at the label; the one before goes there unless it has left for good."""
        if not self._code.ops or self._code.ops[-1].opcode not in ("BRANCH", "RETURN"):
            self._code.jump(label)
        self._code = self._begin()
        self._labels[label] = len(self._blocks) - 1

    def _enter(self) -> None:
        row, code = self._decoder.row, self._code
        word = row.address_bytes
        pointer = self._decoder.registers[row.stack_pointer]
        values: list[Varnode] = []
        for number in range(len(self._procedure.parameters)):
            distance = argument_distance(row, number)
            if distance is not None:
                slot = code.emit("INT_ADD", word, pointer, code.constant(distance))
                values.append(code.emit("LOAD", word, slot))
            else:
                values.append(self._decoder.registers[row.arguments[number]])
        code.ops.append(Op("INT_SUB", pointer, (pointer, code.constant(self._frame_bytes))))
        for name, value in zip(self._procedure.parameters, values, strict=True):
            self._storage.write(name, value, code)
        for name in self._locals:
            self._storage.write(name, code.constant(0), code)

    def _leave(self) -> None:
        row, code = self._decoder.row, self._code
        if self._procedure.result is not None:
            result = self._storage.read(self._procedure.result, code)
            named = self._decoder.registers
            if models()[self._name].wide and row.address_bits == 32:
                low, high = row.return_registers[:2] if not row.big_endian else reversed(row.return_registers[:2])
                code.copy(named[low], result)
                code.copy(named[high], code.constant(0))
            else:
                code.copy(named[row.return_registers[0]], result)
        pointer = self._decoder.registers[row.stack_pointer]
        self._forget(pointer)
        code.ops.append(Op("INT_ADD", pointer, (pointer, code.constant(self._frame_bytes))))
        code.ops.extend(self._return_ops())

    def _forget(self, pointer: Varnode) -> None:
        """Leaves anything in the frame: what the real function leaves below the stack pointer is not known."""
        code, word = self._code, self._storage.size
        for distance in range(0, self._frame_bytes, word):
            left = code.emit("LOAD", word, code.constant(self._remains + distance))
            slot = code.emit("INT_ADD", word, pointer, code.constant(distance))
            code.ops.append(Op("STORE", None, (slot, left)))

    # Commands

    def _command(self, command: Command) -> None:
        code = self._code
        match command:
            case Seq(commands):
                for item in commands:
                    self._command(item)
            case Skip():
                pass
            case Assign(target, value):
                self._storage.write(target, code.term(value), code)
            case Input(target):
                origin = Varnode(Space.CONST, FreshOrigin.INPUT, 1)
                fresh = code.emit("FRESH", INPUT_BYTES, code.constant(self._input_number, INPUT_BYTES), origin)
                self._storage.write(target, code.extended(fresh, self._storage.size), code)
            case Store(index, value):
                at = code.term(index)
                self._storage.store(at, code.term(value), code)
            case Assert(condition):
                code.trap_if(FaultKind.GENERAL_PROTECTION, code.negated(code.formula(condition)))
            case Assume(condition):
                code.trap_if(FaultKind.ASSUMPTION_FAILED, code.negated(code.formula(condition)))
            case If(condition, then, otherwise):
                self._if(condition, then, otherwise)
            case While(condition, body):
                head, end = self._label(), self._label()
                self._place(head)
                self._code.jump_if(end, self._code.negated(self._code.formula(condition)))
                self._command(body)
                self._code.jump(head)
                self._place(end)
            case Call(target, name, arguments):
                values = [code.term(item) for item in arguments]
                if name == "store_word":
                    code.ops.append(Op("STORE", None, (values[0], values[1])))
                elif target is not None:
                    self._storage.write(target, code.emit("LOAD", self._storage.size, values[0]), code)

    def _if(self, condition: Formula, then: Command, otherwise: Command | None) -> None:
        first, second = _assignments(then), _assignments(otherwise)
        if first is not None and second is not None:
            self._choose(condition, first, second)
            return
        other, end = self._label(), self._label()
        self._code.jump_if(other, self._code.negated(self._code.formula(condition)))
        self._command(then)
        if otherwise is not None:
            self._code.jump(end)
        self._place(other)
        if otherwise is not None:
            self._command(otherwise)
            self._place(end)

    def _choose(self, condition: Formula, first: Mapping[str, Term], second: Mapping[str, Term]) -> None:
        """Assigns by the condition, without a branch: one path instead of two for whoever follows paths."""
        code = self._code
        holds = code.formula(condition)
        values = {
            name: code.emit(
                "SELECT",
                self._storage.size,
                holds,
                code.term(first.get(name, Var(name))),
                code.term(second.get(name, Var(name))),
            )
            for name in sorted(first.keys() | second.keys())
        }
        for name, value in values.items():
            self._storage.write(name, value, code)


def _assignments(command: Command | None) -> dict[str, Term] | None:
    """What a command assigns, if it does nothing else, cannot abort, and no assignment depends on another of them."""
    match command:
        case None | Skip():
            return {}
        case Seq(commands):
            found: dict[str, Term] = {}
            for item in commands:
                if (
                    not isinstance(item, Assign)
                    or not _is_plain(item.value)
                    or found.keys() & set(term_names(item.value))
                ):
                    return None
                found[item.target] = item.value
            return found
        case Assign(target, value) if _is_plain(value):
            return {target: value}
    return None


def _is_plain(term: Term) -> bool:
    """Whether a term reads no memory and always has a value."""
    match term:
        case Unary(_, operand):
            return _is_plain(operand)
        case Binary(op, left, right):
            return op not in ("/", "%") and _is_plain(left) and _is_plain(right)
    return isinstance(term, Num | Var)


def argument_distance(row: IsaRow, number: int) -> int | None:
    """How far above the stack pointer a word argument is when a function is entered; None if it is in a register."""
    word = row.address_bytes
    if row.arguments[0].startswith("stack+"):
        return int(row.arguments[0].removeprefix("stack+")) + word * number
    beyond = number - len(row.arguments)
    if beyond < 0:
        return None
    if row.overlay == "mips":
        # The caller leaves room for the arguments in registers, too.
        return word * number
    first = {"x86": word, "powerpc": 2 * word}.get(row.overlay, 0)
    return first + word * beyond


def _size(command: Command) -> int:
    match command:
        case Seq(commands):
            return sum(map(_size, commands))
        case If(_, then, otherwise):
            return 1 + _size(then) + (_size(otherwise) if otherwise is not None else 0)
        case While(_, body, _):
            return 1 + _size(body)
    return 1
