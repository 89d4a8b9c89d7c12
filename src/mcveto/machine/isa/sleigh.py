"""Decoding one instruction at a time with SLEIGH (through pypcode).

`Decoder.decode(pc, code)` is a function of its arguments alone. SLEIGH is not: instructions such as Thumb's IT or
ARM's BLX commit context for other addresses inside the translator. We therefore decode an IT block as one unit in a
translator of its own, remember which addresses a translator may have been told something about, and give such an
address a new translator. Nothing is cached by address alone.

A branch and the instruction in its delay slot are one unit. SLEIGH would paste the second into the first; we translate
the branch with a marker in its slot, the slot's instruction by itself, correct each, and put the second where the
marker is, with temporaries of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from ..faults import FaultKind, Unsupported
from ..pcode import BRANCHES, Instruction, Op, Space, Varnode
from ..registers import RegisterLayout
from .overlay import Overlay, replaced
from .snippet import SnippetAssembler
from .table import IsaRow, isa_rows

_SPACES = {
    "const": Space.CONST,
    "unique": Space.UNIQUE,
    "register": Space.REGISTER,
    "ram": Space.RAM,
}
_WORD = 4
_DELAY_SLOT = "DELAY_SLOT"
_SLOT_TEMPORARIES = 1 << 39
# ARM: reading pc into lr tells SLEIGH that the next `bx` is a call.
_COMMITS_NEXT = re.compile(r"lr,\s*pc\b.*")


class _Translator:
    """A pypcode context in one decoding mode, and the addresses it may hold committed context for."""

    def __init__(self, sleigh_id: str, mode: tuple[tuple[str, int], ...]) -> None:
        import pypcode

        self._make: Callable[[], Any] = lambda: pypcode.Context(sleigh_id)
        self._mode = mode
        self._errors = (
            pypcode.BadDataError,
            pypcode.DecoderError,
            pypcode.LowlevelError,
            pypcode.UnimplError,
            IndexError,
        )
        self.tainted: set[int] = set()
        self.context = self._fresh()

    def _fresh(self) -> Any:
        context = self._make()
        for name, value in self._mode:
            context.setVariableDefault(name, value)
        return context

    def translate(self, code: bytes, address: int, count: int) -> tuple[list[Any], list[Any]]:
        """(P-code operations, disassembled instructions) of `count` instructions at `address`."""
        if address in self.tainted:
            self.context = self._fresh()
            self.tainted.clear()
        try:
            ops = self.context.translate(code, address, max_instructions=count).ops
            texts = self.context.disassemble(code, address, max_instructions=count).instructions
        except self._errors as error:
            raise Unsupported(f"cannot decode {code[:16].hex()}: {error}") from None
        if not ops or len(texts) < count:
            raise Unsupported(f"cannot decode {code[:16].hex()}")
        return ops, texts


class Decoder:
    """Decodes for one instruction set; knows its register layout."""

    def __init__(self, row: IsaRow) -> None:
        self.row = row
        self._translators: dict[tuple[int, bool], _Translator] = {}
        registers = self._translator(0, False).context.registers
        layout = [(name, v.offset, v.size) for name, v in registers.items() if v.space.name == "register"]
        significant = {**dict.fromkeys(row.one_bit, 1), **dict(row.significant_bits)}
        self.layout = RegisterLayout(layout, row.big_endian, frozenset(row.split), significant)
        self.registers = {name: Varnode(Space.REGISTER, offset, size) for name, offset, size in layout}
        self.assembler = SnippetAssembler(self.registers.get)
        self.overlay = Overlay(row, self.assembler, self.registers)
        self._zero = self.registers[row.zero_register] if row.zero_register else None

    def decode(self, pc: int, code: bytes) -> Instruction:
        """The instruction `code` starts with, as it would run at `pc`; raises Unsupported."""
        address = self.row.code_address(pc)
        mode = pc & self.row.mode_mask
        try:
            if mode >= len(self.row.modes):
                raise Unsupported("decoding mode (compressed instruction set of another kind)")
            if address % self.row.alignment or (self.row.mode_mask and not mode and address % 4):
                raise Unsupported("misaligned instruction address")
            return self._decode(pc, address, mode, code)
        except Unsupported as error:
            raise error.located(pc, "") from None

    def _decode(self, pc: int, address: int, mode: int, code: bytes) -> Instruction:
        if mode == 1 and _it_block_length(code, self.row.big_endian):
            return self._decode_it_block(pc, address, code)
        self.overlay.checked_encoding(code)
        translator = self._translator(mode, False)
        raw, texts = translator.translate(self._with_delay_marker(code), address, 1)
        if _lost_its_branch(raw):
            raw, texts = translator.translate(self._with_delay_marker(code), address, 1)
            if _lost_its_branch(raw):
                raise Unsupported("delay slot that the translator confuses with its branch")
        text = texts[0]
        marks = raw[0].inputs
        length = sum(mark.size for mark in marks)
        used = bytes(code[:length])
        if len(used) < length:
            raise Unsupported(f"cannot decode {code[:16].hex()}: truncated")
        if self.row.mode_mask:
            self._remember_commits(mode, raw, text, address + length)
        ops = self._corrected(raw[1:], text, used)
        if self.row.delay_marker is None or length == _WORD:
            ops = [Op("NOP", None, ()) if op.opcode == _DELAY_SLOT else op for op in ops]
            return Instruction(pc, used, tuple(ops), text.mnem, text.body)
        slot = self._decode(pc + _WORD, address + _WORD, mode, code[_WORD:length])
        operands = f"{text.body}; {slot.text}"
        return Instruction(pc, used, _with_delay_slot(ops, slot, address + length), text.mnem, operands)

    def _with_delay_marker(self, code: bytes) -> bytes:
        if self.row.delay_marker is None or len(code) < 2 * _WORD:
            return code
        return code[:_WORD] + self.row.delay_marker[1].to_bytes(_WORD, "big" if self.row.big_endian else "little")

    def _remember_commits(self, mode: int, raw: list[Any], text: Any, following: int) -> None:
        if text.mnem.lower().startswith("blx"):
            targets = [op.inputs[0].offset for op in raw if op.opcode.name == "CALL"]
            self._translator(mode, False).tainted.update(targets)
        if _COMMITS_NEXT.fullmatch(text.body):
            self._translator(mode, False).tainted.add(following)

    def _decode_it_block(self, pc: int, address: int, code: bytes) -> Instruction:
        """An IT instruction with the (up to four) instructions it governs, as one unit.

        Jumping into the middle of the block runs the rest unconditionally (ITSTATE is zero after any branch), which is
        what decoding at that address by itself gives.
        """
        count = 1 + _it_block_length(code, self.row.big_endian)
        translator = self._translator(1, True)
        raw, texts = translator.translate(code, address, count)
        starts: dict[int, int] = {}
        parts: list[tuple[int, list[Any]]] = []
        for op in raw:
            if op.opcode.name == "IMARK":
                parts.append((op.inputs[0].offset, []))
            else:
                parts[-1][1].append(op)
        if len(parts) != count:
            raise Unsupported("IT block that runs past the readable bytes")
        translator.tainted.update(start for start, _ in parts[1:])
        end = parts[-1][0] + texts[-1].length
        translator.tainted.add(end)
        ops: list[Op] = []
        for (start, part), text in zip(parts, texts, strict=True):
            starts[start] = len(ops)
            offset = start - address
            ops.extend(self._corrected(part, text, bytes(code[offset : offset + text.length])))
        starts[end] = len(ops)
        for index, op in enumerate(ops):
            if op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space is Space.RAM and op.inputs[0].offset in starts:
                distance = (starts[op.inputs[0].offset] - index) & 0xFFFFFFFF
                ops[index] = Op(op.opcode, None, (Varnode(Space.CONST, distance, 4), *op.inputs[1:]))
        text = "; ".join(f"{t.mnem} {t.body}".strip() for t in texts)
        mnemonic, _, operands = text.partition(" ")
        return Instruction(pc, bytes(code[: end - address]), tuple(ops), mnemonic, operands)

    def _corrected(self, raw: list[Any], text: Any, used: bytes) -> list[Op]:
        ops = [self._convert(op) for op in raw]
        return self.overlay.apply(ops, text.mnem, text.body, used)

    def _convert(self, raw: Any) -> Op:
        opcode: str = raw.opcode.name
        if opcode == "CALLOTHER":
            name = raw.inputs[0].getUserDefinedOpName()
            if self.row.delay_marker is not None and name == self.row.delay_marker[0]:
                return Op(_DELAY_SLOT, None, ())
            treatment = self.overlay.callother.get(name, "")
            output = self._varnode(raw.output, True) if raw.output is not None else None
            if treatment == "nop" and output is None:
                return Op("NOP", None, ())
            if treatment.startswith("trap "):
                kind = FaultKind.of_label(treatment.removeprefix("trap "))
                return Op("TRAP", None, (Varnode(Space.CONST, kind, 1), Varnode(Space.CONST, 1, 1)))
            return Op(f"CALLOTHER({name})", output, tuple(self._varnode(v, False) for v in raw.inputs[1:]))
        inputs = raw.inputs
        if opcode in ("LOAD", "STORE"):
            space = inputs[0].getSpaceFromConst().name
            inputs = inputs[1:]
            if space != "ram":
                opcode = f"{opcode}({space})"
        output = self._varnode(raw.output, True) if raw.output is not None else None
        return Op(opcode, output, tuple(self._varnode(varnode, False) for varnode in inputs))

    def _varnode(self, raw: Any, written: bool) -> Varnode:
        space = _SPACES.get(raw.space.name)
        if space is None:
            raise Unsupported(f"storage in {raw.space.name} space")
        varnode = Varnode(space, raw.offset, raw.size)
        zero = self._zero
        if zero is not None and space is Space.REGISTER and zero.offset <= varnode.offset < zero.offset + zero.size:
            # Reads give 0; a write goes to a temporary nobody reads.
            return Varnode(Space.UNIQUE, (1 << 41), raw.size) if written else Varnode(Space.CONST, 0, raw.size)
        return varnode

    def _translator(self, mode: int, block: bool) -> _Translator:
        key = (mode, block)
        if key not in self._translators:
            self._translators[key] = _Translator(self.row.sleigh, self.row.modes[mode])
        return self._translators[key]


def _with_delay_slot(ops: list[Op], slot: Instruction, following: int) -> tuple[Op, ...]:
    """The operations of a branch with those of the instruction in its delay slot in place of the marker."""
    inner: list[Op] = []
    for index, op in enumerate(slot.ops):
        if op.opcode in BRANCHES and op.inputs[0].space is not Space.CONST:
            if op.opcode not in ("BRANCH", "CBRANCH") or op.inputs[0].offset != following:
                raise Unsupported("branch in a delay slot")
            end = Varnode(Space.CONST, len(slot.ops) - index, 4)
            op = Op(op.opcode, None, (end, *op.inputs[1:]))
        output = None if op.output is None else _moved(op.output)
        inner.append(Op(op.opcode, output, tuple(map(_moved, op.inputs))))
    marks = [index for index, op in enumerate(ops) if op.opcode == _DELAY_SLOT]
    if len(marks) != 1 or slot.size != _WORD:
        raise Unsupported("branch in a delay slot")
    return tuple(replaced(ops, marks[0], marks[0] + 1, inner))


def _lost_its_branch(raw: list[Any]) -> bool:
    """Whether this is the translation of a delay slot alone instead of a branch with its slot.

    SLEIGH recycles eight parser states in turn, without regard for the one the branch at hand already has if its
    address was decoded shortly before: the slot may then overwrite it. The attempt itself takes the states further, so
    that the next one succeeds.
    """
    return len(raw[0].inputs) > 1 and not any(op.opcode.name in BRANCHES for op in raw)


def _moved(varnode: Varnode) -> Varnode:
    if varnode.space is not Space.UNIQUE:
        return varnode
    return varnode._replace(offset=varnode.offset + _SLOT_TEMPORARIES)


def _it_block_length(code: bytes, big_endian: bool) -> int:
    """How many instructions a Thumb IT instruction governs; 0 if `code` does not start with one."""
    if len(code) < 2:
        return 0
    high, low = (code[0], code[1]) if big_endian else (code[1], code[0])
    mask = low & 0xF
    if high != 0xBF or mask == 0:
        return 0
    return 4 - ((mask & -mask).bit_length() - 1)


@cache
def decoder_for(isa: str) -> Decoder:
    """The process-wide decoder of an instruction set (a SLEIGH context is costly and not thread-safe)."""
    return Decoder(isa_rows()[isa])
