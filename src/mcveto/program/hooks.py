"""Functions replaced by P-code: input functions and `assume`.

A hook stands at a code address instead of whatever is there. It is a synthetic instruction, so every engine runs it
with the one interpreter: an input function makes a fresh value of its width, extends it into the return registers and
returns by the calling convention; `assume` ends the run where its argument is zero.

All registers but the results keep their values: an assumption that is listed with the verdict.
"""

from __future__ import annotations

from mcveto.machine.isa import Decoder
from mcveto.machine.pcode import FreshOrigin, Instruction, Op, Space, Varnode


def input_function(decoder: Decoder, pc: int, bits: int, signed: bool, number: int = 0) -> Instruction:
    """A function at `pc` that returns a fresh value of `bits` bits.

    `number` (below 256) is the usual value of the fresh one: it tells whoever supplies the value which function asks.
    """
    row = decoder.row
    word = row.address_bytes
    size = max(1, -(-bits // 8))
    wide = 2 * word if size > word else word
    lines = [f"%raw:{size} = FRESH {number}:{size}"]
    if bits % 8:
        lines.append(f"%cut:{size} = INT_AND %raw, {(1 << bits) - 1}:{size}")
        if signed:
            sign = 1 << (bits - 1)
            lines += [f"%flip:{size} = INT_XOR %cut, {sign}:{size}", f"%value:{size} = INT_SUB %flip, {sign}:{size}"]
        else:
            lines.append(f"%value:{size} = COPY %cut")
    else:
        lines.append(f"%value:{size} = COPY %raw")
    extend = "INT_SEXT" if signed else "INT_ZEXT"
    lines.append(f"%result:{wide} = {extend} %value" if size < wide else f"%result:{wide} = COPY %value")
    if wide == word:
        lines.append(f"{row.return_registers[0]} = COPY %result")
    else:
        first, second = (word, 0) if row.big_endian else (0, word)
        lines.append(f"{row.return_registers[0]} = SUBPIECE %result, {first}:4")
        lines.append(f"{row.return_registers[1]} = SUBPIECE %result, {second}:4")
    ops = decoder.assembler.assemble("\n".join([*lines, *_return(decoder)]), {})
    origin = Varnode(Space.CONST, FreshOrigin.INPUT, 1)
    ops = [Op(op.opcode, op.output, (op.inputs[0], origin)) if op.opcode == "FRESH" else op for op in ops]
    kind = "signed" if signed else "unsigned"
    return Instruction(pc, b"", tuple(ops), "input", f"{bits} bits, {kind}")


def assume_function(decoder: Decoder, pc: int) -> Instruction:
    """A function at `pc` that ends the run unless its first argument is non-zero."""
    lines = [*_first_argument(decoder), "%zero:1 = INT_EQUAL %argument, 0:4", "TRAP assumption-failed, %zero"]
    ops = decoder.assembler.assemble("\n".join([*lines, *_return(decoder)]), {})
    return Instruction(pc, b"", tuple(ops), "assume", "")


def _first_argument(decoder: Decoder) -> list[str]:
    """The first argument as a C int in %argument."""
    row = decoder.row
    where = row.arguments[0]
    if where.startswith("stack+"):
        word, distance = row.address_bytes, int(where.removeprefix("stack+"))
        return [f"%slot:{word} = INT_ADD {row.stack_pointer}, {distance}:{word}", "%argument:4 = LOAD %slot"]
    if row.address_bytes == 4:
        return [f"%argument:4 = COPY {where}"]
    return [f"%argument:4 = SUBPIECE {where}, 0:4"]


def _return(decoder: Decoder) -> list[str]:
    row = decoder.row
    word = row.address_bytes
    if row.pushes_return_address:
        return [
            f"%back:{word} = LOAD {row.stack_pointer}",
            f"{row.stack_pointer} = INT_ADD {row.stack_pointer}, {word}:{word}",
            "RETURN %back",
        ]
    link = row.return_address
    if row.mode_register:
        return [
            f"%mode:{word} = INT_AND {link}, 1:{word}",
            f"{row.mode_register} = INT_NOTEQUAL %mode, 0:{word}",
            f"%back:{word} = INT_AND {link}, -2:{word}",
            "RETURN %back",
        ]
    if row.alignment == 2:
        return [f"%back:{word} = INT_AND {link}, -2:{word}", "RETURN %back"]
    return [f"%back:{word} = COPY {link}", "RETURN %back"]
