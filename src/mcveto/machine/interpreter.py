"""The P-code interpreter: the one place that knows what an instruction does, generic in its value domain.

`execute` runs the operations of one instruction in a domain and returns how and where control goes next. Operands are
resolved to cells once per instruction (`prepare`), temporaries that overlap are merged into one temporary cell.

P-code-relative branches stay inside the instruction; a branch to a ram address leaves it, also from its middle (cmov
skips to the next instruction, rep jumps to itself). A branch to the next instruction counts as falling through. On
machines with a decoding mode the successor's bit 0 is the mode register, so a code address is always complete.
Whatever is not understood raises Unsupported with the instruction and its address.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar, cast

from .domain import Domain
from .faults import Fault, FaultKind, Unsupported
from .isa import Decoder
from .operators import TEMPLATES
from .pcode import FreshOrigin, Instruction, Op, Space, Transfer, Varnode
from .registers import Piece

V = TypeVar("V")

# More decisions inside one instruction than this is an endless micro-loop, not an instruction.
MAX_MICRO_STEPS = 10_000

_SHIFTS = frozenset({"INT_LEFT", "INT_RIGHT", "INT_SRIGHT"})
_OPERATORS = frozenset(TEMPLATES) - _SHIFTS


class Step(NamedTuple):
    """How control leaves an instruction, and the next program counter as a value of the domain."""

    transfer: Transfer
    target: object


class _Temporary(NamedTuple):
    """Bits [low, low+bits) of temporary cell `number`."""

    number: int
    low: int
    bits: int
    total: int


class _Prepared(NamedTuple):
    opcode: str
    output: _Temporary | tuple[Piece, ...] | Varnode | None
    output_bits: int
    inputs: tuple[_Temporary | tuple[Piece, ...] | Varnode, ...]
    input_bits: tuple[int, ...]


class Interpreter(Generic[V]):
    def __init__(self, decoder: Decoder) -> None:
        self._row = decoder.row
        self._layout = decoder.layout
        self._mode_cell = decoder.layout.by_name.get(decoder.row.mode_register or "")

    def execute(self, instruction: Instruction, domain: Domain[V]) -> Step:
        """Runs `instruction` in `domain`; raises Fault or Unsupported where there is no next step."""
        try:
            return self._run(instruction, domain)
        except Unsupported as error:
            raise error.located(instruction.pc, instruction.text) from None

    def _run(self, instruction: Instruction, domain: Domain[V]) -> Step:
        if self._mode_cell is not None:
            domain.write_register(self._mode_cell, domain.constant(instruction.pc & 1, self._mode_cell.bits))
        prepared = cast(tuple[_Prepared, ...] | None, instruction.prepared)
        if prepared is None:
            prepared = instruction.prepared = self.prepare(instruction)
        following = self._row.code_address(instruction.pc) + instruction.size & self._row.address_mask
        temporaries: dict[int, V] = {}
        position = 0
        budget = MAX_MICRO_STEPS
        while position < len(prepared):
            opcode, output, output_bits, inputs, bits = prepared[position]
            position += 1
            budget -= 1
            if not budget:
                raise Unsupported("endless micro-loop inside one instruction")
            if opcode in _OPERATORS:
                arguments = tuple([self._read(operand, domain, temporaries) for operand in inputs])
                result = domain.apply(opcode, arguments, bits[0], output_bits)
            elif opcode == "COPY":
                result = self._read(inputs[0], domain, temporaries)
            elif opcode == "LOAD":
                result = domain.load(self._read(inputs[0], domain, temporaries), output_bits // 8)
            elif opcode == "STORE":
                address = self._read(inputs[0], domain, temporaries)
                domain.store(address, self._read(inputs[1], domain, temporaries), bits[1] // 8)
                continue
            elif opcode in _SHIFTS:
                value = self._read(inputs[0], domain, temporaries)
                amount = self._read(inputs[1], domain, temporaries)
                result = domain.shift(opcode, value, amount, bits[0], bits[1])
            elif opcode == "SUBPIECE":
                result = self._subpiece(inputs, bits, output_bits, domain, temporaries)
            elif opcode == "PIECE":
                high = self._read(inputs[0], domain, temporaries)
                result = domain.concatenate(high, self._read(inputs[1], domain, temporaries), bits[0], bits[1])
            elif opcode == "CBRANCH":
                if not domain.decide(self._read(inputs[1], domain, temporaries)):
                    continue
                destination = inputs[0]
                assert isinstance(destination, Varnode)
                if destination.space is Space.CONST:
                    position = _relative(position - 1, destination)
                    continue
                return self._leave(Transfer.JUMP, destination.offset, following, domain)
            elif opcode == "BRANCH":
                destination = inputs[0]
                assert isinstance(destination, Varnode)
                if destination.space is Space.CONST:
                    position = _relative(position - 1, destination)
                    continue
                return self._leave(Transfer.JUMP, destination.offset, following, domain)
            elif opcode == "CALL":
                destination = inputs[0]
                assert isinstance(destination, Varnode)
                return Step(Transfer.CALL, self._code_pointer(destination.offset, domain))
            elif opcode in _INDIRECT:
                target = self._read(inputs[0], domain, temporaries)
                return Step(_INDIRECT[opcode], self._with_mode(self._fitted(target, bits[0], domain), domain))
            elif opcode == "FRESH":
                usual = self._read(inputs[0], domain, temporaries)
                origin = inputs[1]
                assert isinstance(origin, Varnode)
                result = domain.fresh(output_bits, FreshOrigin(origin.offset), usual)
            elif opcode == "TRAP":
                kind = inputs[0]
                assert isinstance(kind, Varnode)
                if domain.decide(self._read(inputs[1], domain, temporaries)):
                    if kind.offset == FaultKind.UNSUPPORTED:
                        raise Unsupported("operands for which the manual leaves the result open")
                    raise Fault(FaultKind(kind.offset))
                continue
            elif opcode == "NOP":
                continue
            else:
                raise Unsupported(f"operation {opcode}")
            assert output is not None
            self._write(output, result, domain, temporaries)
        return Step(Transfer.FALL, self._code_pointer(following, domain))

    def _subpiece(
        self,
        inputs: tuple[_Temporary | tuple[Piece, ...] | Varnode, ...],
        bits: tuple[int, ...],
        output_bits: int,
        domain: Domain[V],
        temporaries: dict[int, V],
    ) -> V:
        """Drops inputs[1] low bytes of inputs[0], then truncates or zero-extends to the output."""
        value = self._read(inputs[0], domain, temporaries)
        dropped = inputs[1]
        assert isinstance(dropped, Varnode)
        low = 8 * dropped.offset
        available = max(bits[0] - low, 0)
        if available == 0:
            return domain.constant(0, output_bits)
        kept = min(available, output_bits)
        value = domain.extract(value, low, kept, bits[0]) if (low or kept != bits[0]) else value
        return value if kept == output_bits else domain.apply("INT_ZEXT", (value,), kept, output_bits)

    def _leave(self, transfer: Transfer, destination: int, following: int, domain: Domain[V]) -> Step:
        if destination == following:
            transfer = Transfer.FALL
        return Step(transfer, self._code_pointer(destination, domain))

    def _code_pointer(self, address: int, domain: Domain[V]) -> V:
        return self._with_mode(domain.constant(address, self._row.address_bits), domain)

    def _with_mode(self, address: V, domain: Domain[V]) -> V:
        if self._mode_cell is None:
            return address
        width = self._row.address_bits
        mode = domain.apply("INT_ZEXT", (domain.read_register(self._mode_cell),), self._mode_cell.bits, width)
        return domain.apply("INT_OR", (address, mode), width, width)

    def _fitted(self, target: V, bits: int, domain: Domain[V]) -> V:
        width = self._row.address_bits
        if bits == width:
            return target
        if bits > width:
            return domain.extract(target, 0, width, bits)
        return domain.apply("INT_ZEXT", (target,), bits, width)

    def _read(
        self, operand: _Temporary | tuple[Piece, ...] | Varnode, domain: Domain[V], temporaries: dict[int, V]
    ) -> V:
        if isinstance(operand, _Temporary):
            value = temporaries.get(operand.number)
            if value is None:
                raise Unsupported("P-code that reads a temporary before it is written")
            if operand.bits == operand.total:
                return value
            return domain.extract(value, operand.low, operand.bits, operand.total)
        if isinstance(operand, Varnode):
            if operand.space is Space.CONST:
                return domain.constant(operand.offset, 8 * operand.size)
            return domain.load(domain.constant(operand.offset, self._row.address_bits), operand.size)
        if len(operand) == 1:  # nearly always
            cell, low, bits = operand[0]
            value = domain.read_register(cell)
            return value if bits == cell.bits else domain.extract(value, low, bits, cell.bits)
        result: V | None = None
        width = 0
        for cell, low, bits in operand:
            value = domain.read_register(cell)
            if bits != cell.bits:
                value = domain.extract(value, low, bits, cell.bits)
            result = value if result is None else domain.concatenate(result, value, width, bits)
            width += bits
        assert result is not None
        return result

    def _write(
        self,
        operand: _Temporary | tuple[Piece, ...] | Varnode,
        value: V,
        domain: Domain[V],
        temporaries: dict[int, V],
    ) -> None:
        if isinstance(operand, _Temporary):
            if operand.bits != operand.total:
                old = temporaries.get(operand.number)
                if old is None:
                    old = domain.constant(0, operand.total)
                value = domain.insert(old, value, operand.low, operand.bits, operand.total)
            temporaries[operand.number] = value
        elif isinstance(operand, Varnode):
            domain.store(domain.constant(operand.offset, self._row.address_bits), value, operand.size)
        elif len(operand) == 1:  # nearly always
            cell, low, bits = operand[0]
            if bits != cell.bits:
                value = domain.insert(domain.read_register(cell), value, low, bits, cell.bits)
            domain.write_register(cell, value)
        else:
            remaining = total = sum(piece.bits for piece in operand)
            for cell, low, bits in operand:
                remaining -= bits
                part = value if bits == total else domain.extract(value, remaining, bits, total)
                if bits != cell.bits:
                    part = domain.insert(domain.read_register(cell), part, low, bits, cell.bits)
                domain.write_register(cell, part)

    def prepare(self, instruction: Instruction) -> tuple[_Prepared, ...]:
        """The instruction's operations with every operand resolved to cells."""
        temporaries = _merge_temporaries(instruction.ops, self._row.registers_big_endian)

        def resolve(varnode: Varnode) -> _Temporary | tuple[Piece, ...] | Varnode:
            if varnode.space is Space.UNIQUE:
                return temporaries[varnode.offset, varnode.size]
            if varnode.space is Space.REGISTER:
                return self._layout.pieces(varnode.offset, varnode.size)
            return varnode

        return tuple(
            _Prepared(
                op.opcode,
                None if op.output is None else resolve(op.output),
                0 if op.output is None else 8 * op.output.size,
                tuple(resolve(varnode) for varnode in op.inputs),
                tuple(8 * varnode.size for varnode in op.inputs),
            )
            for op in instruction.ops
        )


_INDIRECT = {"BRANCHIND": Transfer.JUMP, "CALLIND": Transfer.CALL, "RETURN": Transfer.RETURN}


def _relative(position: int, destination: Varnode) -> int:
    sign = 1 << (8 * destination.size - 1)
    return position + ((destination.offset ^ sign) - sign)


def _merge_temporaries(ops: tuple[Op, ...], big_endian: bool) -> dict[tuple[int, int], _Temporary]:
    """Every temporary varnode as a slice of a temporary cell; overlapping ones share a cell."""
    accesses = sorted(
        {(v.offset, v.size) for op in ops for v in (op.output, *op.inputs) if v and v.space is Space.UNIQUE}
    )
    result: dict[tuple[int, int], _Temporary] = {}
    group: list[tuple[int, int]] = []
    end = -1
    index = -1

    def close() -> None:
        for offset, size in group:
            low = end - offset - size if big_endian else offset - group[0][0]
            result[offset, size] = _Temporary(index, 8 * low, 8 * size, 8 * (end - group[0][0]))

    for offset, size in accesses:
        if offset >= end:
            close()
            group, index = [], index + 1
        group.append((offset, size))
        end = max(end, offset + size)
    close()
    return result
