"""Decoding one instruction at a time with SLEIGH (through pypcode).

`Decoder.decode(pc, code)` is a function of its arguments alone. SLEIGH is not: instructions such as Thumb's IT or
ARM's BLX commit context for other addresses inside the translator. We therefore decode an IT block as one unit in a
translator of its own, remember which addresses a translator may have been told something about, and give such an
address a new translator; instructions that commit something for all addresses are never shown to it (BLX, see
interworking.py) or refused. Nothing is cached by address alone.

A branch and the instruction in its delay slot are one unit. SLEIGH would paste the second into the first; we translate
the branch with a marker in its slot, the slot's instruction by itself, correct each, and put the second where the
marker is, with temporaries of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ..faults import FaultKind, Unsupported
from ..pcode import BRANCHES, Instruction, Op, Space, Varnode
from ..registers import RegisterLayout
from .interworking import call_instruction, interworking_call
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
# Offset of the temporary that takes writes to a register that always reads as 0.
_NOBODY_READS = 1 << 41
# Where registers that SLEIGH does not have are put, far above its own.
_EXTRA_REGISTERS = 1 << 32
_CONDITIONS = ("eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv")
# ARM: reading pc into lr tells SLEIGH that the next `bx` is a call.
_COMMITS_NEXT = re.compile(r"lr,\s*pc\b.*")


class _Translator:
    """A pypcode context in one decoding mode, and the addresses it may hold committed context for."""

    def __init__(self, sleigh_id: str, mode: tuple[tuple[str, int], ...]) -> None:
        import pypcode

        self._make: Callable[[], Any] = lambda: pypcode.Context(_language(sleigh_id))
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

    def renew_at(self, address: int) -> None:
        """Forgets everything if the translator may have been told something about `address`."""
        if address in self.tainted:
            self.renew()

    def renew(self) -> None:
        """A translator without a history."""
        self.context = self._fresh()
        self.tainted.clear()

    def translate(self, code: bytes, address: int, count: int) -> tuple[list[Any], list[Any]]:
        """(P-code operations, disassembled instructions) of `count` instructions at `address`."""
        try:
            ops = self.context.translate(code, address, max_instructions=count).ops
            texts = self.context.disassemble(code, address, max_instructions=count).instructions
        except self._errors as error:
            raise Unsupported(f"cannot decode {code[:16].hex()}: {error}") from None
        if not ops or len(texts) < count:
            raise Unsupported(f"cannot decode {code[:16].hex()}")
        return ops, texts

    def disassemble(self, code: bytes, address: int) -> Any | None:
        """The text of the first instruction, or None."""
        self.renew_at(address)
        try:
            found = self.context.disassemble(code, address, max_instructions=1).instructions
        except self._errors:
            return None
        return found[0] if found else None


class Decoder:
    """Decodes for one instruction set; knows its register layout."""

    def __init__(self, row: IsaRow) -> None:
        self.row = row
        self._translators: dict[tuple[int, bool], _Translator] = {}
        # By address, then by length: what the bytes there were decoded as.
        self._known: dict[int, dict[int, dict[bytes, Instruction]]] = {}
        registers = self._translator(0, False).context.registers
        layout = [(name, v.offset, v.size) for name, v in registers.items() if v.space.name == "register"]
        layout += [(name, _EXTRA_REGISTERS + 16 * at, size) for at, (name, size) in enumerate(row.extra)]
        significant = {**dict.fromkeys(row.one_bit, 1), **dict(row.significant_bits)}
        self.layout = RegisterLayout(layout, row.registers_big_endian, frozenset(row.split), significant)
        self.registers = {name: Varnode(Space.REGISTER, offset, size) for name, offset, size in layout}
        self.assembler = SnippetAssembler(self.registers.get)
        self.overlay = Overlay(row, self.assembler, self.registers)
        self._zero = self.registers[row.zero_register] if row.zero_register else None

    def decode(self, pc: int, code: bytes) -> Instruction:
        """The instruction `code` starts with, as it would run at `pc`; raises Unsupported.

        The same (pc, bytes) gives the same object: what a decoded instruction looks like never depends on when, or
        after what, it was decoded.
        """
        known = self._known.setdefault(pc, {})
        for length, found in known.items():
            instruction = found.get(code[:length])
            if instruction is not None:
                return instruction
        instruction = self._decode_new(pc, code)
        known.setdefault(instruction.size, {})[instruction.bytes] = instruction
        return instruction

    def outline(self, pc: int, code: bytes) -> Instruction | None:
        """Extent and text, without a meaning, of an instruction that `decode` refuses; None if it is not even that.

        Only where an instruction set has one decoding mode: elsewhere disassembling may commit context.
        """
        address = self.row.code_address(pc)
        if len(self.row.modes) > 1 or pc & self.row.mode_mask or address % self.row.alignment:
            return None
        text = self._translator(0, False).disassemble(code, address)
        if text is None or text.length > len(code):
            return None
        return Instruction(pc, bytes(code[: text.length]), (), text.mnem, text.body)

    def forget(self) -> None:
        """Drops every decoded instruction, for those who change the overlay (its tests)."""
        self._known.clear()
        self.overlay.forget()

    def _decode_new(self, pc: int, code: bytes) -> Instruction:
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
        if mode == 1 and _it_block_length(code, self.row.registers_big_endian):
            return self._decode_it_block(pc, address, code)
        self.overlay.checked_encoding(code)
        if len(self.row.modes) == 2:
            length, word = self._word(code, mode)
            target = interworking_call(pc, word)
            if target is not None and len(code) >= length:
                return call_instruction(pc, bytes(code[:length]), target, self.registers)
            self._refuse(word, mode)
        translator = self._translator(mode, False)
        translator.renew_at(address)
        raw, texts = translator.translate(self._with_delay_marker(code), address, 1)
        if _lost_its_branch(raw, texts[0].mnem):
            translator.renew()
            raw, texts = translator.translate(self._with_delay_marker(code), address, 1)
            if _lost_its_branch(raw, texts[0].mnem):
                raise Unsupported("delay slot that the translator confuses with its branch")
        text = texts[0]
        marks = raw[0].inputs
        length = sum(mark.size for mark in marks)
        used = bytes(code[:length])
        if len(used) < length:
            raise Unsupported(f"cannot decode {code[:16].hex()}: truncated")
        if self.row.mode_mask and _COMMITS_NEXT.fullmatch(text.body):
            translator.tainted.add(address + length)
        ops = self._corrected(raw[1:], text, used, mode)
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

    def _word(self, code: bytes, mode: int) -> tuple[int, int]:
        """ARM: (length, word) of the instruction; the first half-word of a Thumb instruction is the upper one."""
        order: Literal["big", "little"] = "big" if self.row.registers_big_endian else "little"
        if mode == 0:
            return 4, int.from_bytes(code[:4], order)
        first = int.from_bytes(code[:2], order)
        return (4, first << 16 | int.from_bytes(code[2:4], order)) if first >> 11 > 0x1C else (2, first << 16)

    def _refuse(self, word: int, mode: int) -> None:
        """Raises Unsupported for encodings that crash the translator or leave context in it."""
        for in_mode, mask, value in self.row.refused:
            if in_mode == mode and word & mask == value:
                raise Unsupported(f"cannot decode {word:08x}: refused encoding")

    def _decode_it_block(self, pc: int, address: int, code: bytes) -> Instruction:
        """An IT instruction with the (up to four) instructions it governs, as one unit.

        Jumping into the middle of the block runs the rest unconditionally (ITSTATE is zero after any branch), which is
        what decoding at that address by itself gives.
        """
        count = 1 + _it_block_length(code, self.row.registers_big_endian)
        translator = self._translator(1, True)
        at = 0
        for _ in range(count):
            length, word = self._word(code[at:], 1)
            self._refuse(word, 1)
            if interworking_call(pc, word) is not None:
                raise Unsupported("conditional call that changes the decoding mode")
            at += length
        # Whatever comes of it, the translator has now been told conditions for addresses within the block.
        translator.renew_at(address)
        translator.tainted.update(range(address + 2, address + 4 * count, 2))
        raw, texts = translator.translate(code, address, count)
        parts: list[tuple[int, list[Any]]] = []
        for op in raw:
            if op.opcode.name == "IMARK":
                parts.append((op.inputs[0].offset, []))
            else:
                parts[-1][1].append(op)
        if len(parts) != count:
            raise Unsupported("IT block that runs past the readable bytes")
        end = parts[-1][0] + texts[-1].length
        ops: list[Op] = []
        for number, ((start, part), text) in enumerate(zip(parts, texts, strict=True)):
            offset = start - address
            if number and f".{self._it_condition(code, number)}" not in text.mnem:
                # SLEIGH has forgotten the condition of this one, and of those after it.
                raise Unsupported(f"{text.mnem} in an IT block")
            corrected = self._corrected(part, text, bytes(code[offset : offset + text.length]), 1)
            ops.extend(_skips_resolved(corrected, start + text.length))
        text = "; ".join(f"{t.mnem} {t.body}".strip() for t in texts)
        mnemonic, _, operands = text.partition(" ")
        return Instruction(pc, bytes(code[: end - address]), tuple(ops), mnemonic, operands)

    def _it_condition(self, code: bytes, number: int) -> str:
        """The condition an IT instruction gives the `number`-th (from 1) instruction of its block."""
        low = code[1] if self.row.registers_big_endian else code[0]
        condition = low >> 4 if number == 1 else low >> 4 & 0xE | low >> 5 - number & 1
        return _CONDITIONS[condition]

    def _corrected(self, raw: list[Any], text: Any, used: bytes, mode: int) -> list[Op]:
        if len(self.row.modes) == 2 and self.row.registers_big_endian:
            unit = 2 if mode else 4  # the overlay's encodings are written in little-endian order
            used = b"".join(used[at : at + unit][::-1] for at in range(0, len(used), unit))
        ops = self.overlay.apply([self._convert(op) for op in raw], text.mnem, text.body, used, mode)
        self._check_program_counter(ops)
        return ops

    def _check_program_counter(self, ops: list[Op]) -> None:
        """Refuses P-code that reads the pc before writing it (stale) or writes it without a jump (lost)."""
        pc = self.registers[self.row.program_counter]
        written = jumped = False
        for op in ops:
            for varnode in op.inputs:
                if _overlap(varnode, pc):
                    if not written:
                        raise Unsupported("program counter as an operand")
                    jumped = jumped or op.opcode in BRANCHES
            written = written or (op.output is not None and _overlap(op.output, pc))
        if written and not jumped:
            raise Unsupported("program counter as a destination without a jump")

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
        if written and space is Space.CONST:
            return Varnode(Space.UNIQUE, _NOBODY_READS, raw.size)  # how SLEIGH writes to a register that is always 0
        zero = self._zero
        if zero is not None and space is Space.REGISTER and zero.offset <= varnode.offset < zero.offset + zero.size:
            return Varnode(Space.UNIQUE, _NOBODY_READS, raw.size) if written else Varnode(Space.CONST, 0, raw.size)
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


def _lost_its_branch(raw: list[Any], mnemonic: str) -> bool:
    """Whether this is the translation of a delay slot alone instead of a branch with its slot.

    SLEIGH recycles eight parser states in turn, without regard for the one the branch at hand already has if its
    address was decoded shortly before: the slot may then overwrite it. A translator without a history does not.
    """
    never_branches = mnemonic.strip("_") == "nal"  # a delay slot, and only the link register changes
    return len(raw[0].inputs) > 1 and not never_branches and not any(op.opcode.name in BRANCHES for op in raw)


def _moved(varnode: Varnode) -> Varnode:
    if varnode.space is not Space.UNIQUE:
        return varnode
    return varnode._replace(offset=varnode.offset + _SLOT_TEMPORARIES)


def _skips_resolved(ops: list[Op], following: int) -> list[Op]:
    """`ops` with branches to the following instruction (condition not met) made branches to their end."""
    resolved: list[Op] = []
    for index, op in enumerate(ops):
        target = op.inputs[0] if op.opcode in ("BRANCH", "CBRANCH") else None
        if target is not None and target.space is Space.RAM and target.offset == following:
            op = Op(op.opcode, None, (Varnode(Space.CONST, len(ops) - index, 4), *op.inputs[1:]))
        resolved.append(op)
    return resolved


def _overlap(a: Varnode, b: Varnode) -> bool:
    return a.space is b.space and a.offset < b.offset + b.size and b.offset < a.offset + a.size


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
def _language(sleigh_id: str) -> Any:
    """What pypcode knows of a language, looked for where it should be; pypcode would read the files of all machines."""
    import pypcode

    folder = Path(pypcode.SPECFILES_DIR) / sleigh_id.partition(":")[0] / "data" / "languages"
    for file in sorted(folder.glob("*.ldefs")):
        for language in pypcode.Arch(folder.parent.parent.name, str(file)).languages:
            if language.id == sleigh_id:
                return language
    return pypcode.ArchLanguage.from_id(sleigh_id)


@cache
def decoder_for(isa: str) -> Decoder:
    """The process-wide decoder of an instruction set (a SLEIGH context is costly and not thread-safe)."""
    return Decoder(isa_rows()[isa])
