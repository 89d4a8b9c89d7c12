"""One instruction as C statements: its events in order, then its register changes, then where control goes.

Where control goes depends on the layout of the procedure and is left open (`End`). Statements are kept with their
nesting depth; a way that ends in a trap does not nest what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mcveto.machine.compiled.nodes import Node
from mcveto.machine.faults import FaultKind, Unsupported
from mcveto.machine.pcode import BRANCHES, FreshOrigin, Instruction, Space, Transfer
from mcveto.machine.registers import RegisterLayout

from .c_expressions import Expressions, type_bits
from .ways import Event, Explorer, Fork, Fresh, Leave, Load, Stop, Store, Way

_KEYWORDS = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while|asm|typeof|"
    r"bool|true|false|nullptr|main|errno|stdin|stdout|stderr|unix|linux|u\d+|mc\d+|mc_\w*"
)


def identifier(name: str) -> str:
    """A C identifier that resembles `name`; the initial dots of local labels are stripped."""
    text = re.sub(r"[^0-9A-Za-z_]", "_", name.lstrip("."))
    if not text or text[0].isdigit():
        text = f"_{text}"
    return f"{text}_" if _KEYWORDS.fullmatch(text) else text


def comment(text: str) -> str:
    """Text that cannot end or nest a comment."""
    cleaned = "".join(ch if ch.isprintable() and ch != "\\" else "?" for ch in text)
    return cleaned.replace("*/", "* /").replace("/*", "/ *")


@dataclass(frozen=True, slots=True)
class End:
    """Control goes to `target`, or to where `mc_pc` says; falling through, to the following instruction."""

    transfer: Transfer
    target: int | None


@dataclass(frozen=True, slots=True)
class Here:
    """The statement that notes the address of the instruction."""


@dataclass(frozen=True, slots=True)
class Line:
    depth: int
    content: str | End | Here


@dataclass(frozen=True, slots=True)
class Translated:
    """An instruction in C; `problem` says why it is a trap, if it is one without conditions."""

    instruction: Instruction
    lines: tuple[Line, ...]
    cells: frozenset[int]
    wide: bool
    problem: str = ""

    @property
    def following(self) -> int:
        """The program counter of the instruction behind it."""
        return self.instruction.pc + self.instruction.size

    def ends(self) -> Iterator[End]:
        return (self.resolved(line.content) for line in self.lines if isinstance(line.content, End))

    def resolved(self, end: End) -> End:
        """An end with its target, if it falls through."""
        return End(end.transfer, self.following) if end.transfer is Transfer.FALL else end


class InstructionPrinter:
    def __init__(
        self,
        explorer: Explorer,
        layout: RegisterLayout,
        address_bits: int,
        mode_cell: int | None,
        input_bits: Sequence[int],
    ) -> None:
        self._explorer = explorer
        self._input_bits = input_bits
        self.sizes: set[int] = set()
        """Sizes of the memory accesses that occur, in bytes."""
        self._cells = layout.cells
        self._names = _distinct([identifier(cell.name) for cell in layout.cells])
        self._address_bits = address_bits
        # The decoding mode is a function of the program counter: written by every instruction before it is read.
        self._mode_cell = mode_cell
        self._lines: list[Line] = []
        self._depth = 0
        self._expressions = Expressions(self.cell, self._line)
        self._written: set[int] = set()
        self._journal = False
        self.way: Way | None = None
        """The ways through the instruction translated last."""
        # Translations do not depend on the address unless the P-code mentions one.
        self._known: dict[tuple[object, ...], tuple[Translated, Way | None]] = {}

    def cell(self, number: int) -> tuple[str, int]:
        """(variable, width) of a register cell."""
        return self._names[number], self._cells[number].bits

    def translate(self, instruction: Instruction) -> Translated:
        key = None if _mentions_an_address(instruction) else (instruction.ops, instruction.pc & 1)
        known = self._known.get(key) if key is not None else None
        if known is not None:
            self.way = known[1]
            return replace(known[0], instruction=_light(instruction))
        self.way = None
        try:
            result = self._translate(instruction)
        except Unsupported as error:
            result = self.trap(instruction, error.what)
        result = replace(result, instruction=_light(instruction))
        if key is not None:
            self._known[key] = (result, self.way)
        return result

    def trap(self, instruction: Instruction, why: str) -> Translated:
        """The instruction as a trap: it is outside what is modelled."""
        return Translated(instruction, (Line(0, Here()), Line(0, _unsupported(why))), frozenset(), False, why)

    def _translate(self, instruction: Instruction) -> Translated:
        way = self.way = self._explorer.explore(instruction)
        self._lines, self._depth = [], 0
        self._written = set()
        self._expressions = Expressions(self.cell, self._line)
        self._expressions.count(_roots(way, self._mode_cell))
        self._journal = _needs_journal(way)
        if _can_trap(way):
            self._line(Here())
        if self._journal:
            self._line("MC_BEGIN();")
        self._way(way)
        problem = way.detail if isinstance(way, Stop) and way.kind is None else ""
        cells = frozenset(self._expressions.cells | self._written)
        wide = self._expressions.widest > 64 or any(self._cells[number].bits > 64 for number in cells)
        return Translated(instruction, tuple(self._lines), cells, wide, problem)

    def _line(self, content: str | End | Here) -> None:
        self._lines.append(Line(self._depth, content))

    def _way(self, way: Way) -> None:
        for event in way.events:
            self._event(event)
        if isinstance(way, Stop):
            self._line(_unsupported(way.detail) if way.kind is None else _fault(way.kind))
        elif isinstance(way, Leave):
            self._leave(way)
        elif isinstance(way.taken, Stop):
            self._branch(f"if ({self._expressions.condition(way.condition)}) {{", way.taken)
            self._line("}")
            self._way(way.other)
        elif isinstance(way.other, Stop):
            self._branch(f"if (!({self._expressions.condition(way.condition)})) {{", way.other)
            self._line("}")
            self._way(way.taken)
        else:
            self._branch(f"if ({self._expressions.condition(way.condition)}) {{", way.taken)
            self._branch("} else {", way.other)
            self._line("}")

    def _branch(self, head: str, way: Way) -> None:
        self._line(head)
        names = dict(self._expressions.names)
        self._depth += 1
        self._way(way)
        self._depth -= 1
        self._expressions.names = names

    def _event(self, event: Event) -> None:
        expressions = self._expressions
        if isinstance(event, Fresh):
            bits = type_bits(event.bits)
            if event.origin is FreshOrigin.INPUT:
                assert event.usual.op == "CONST"
                source = event.usual.value
                text = f"mc_input({source}u, {self._input_bits[source]}u)"
                bits = 64
            else:
                text = f"mc_undefined{bits}({event.bits}u, {expressions.text(event.usual, bits)})"
        elif isinstance(event, Load):
            bits = type_bits(8 * event.size)
            text = f"mc_load{self._accessed(event.size)}({self._address(event.address)})"
        else:
            held = type_bits(8 * event.size)
            store = "mc_jstore" if self._journal else "mc_store"
            value = expressions.text(event.value, held)
            self._line(f"{store}{self._accessed(event.size)}({self._address(event.address)}, {value});")
            return
        if expressions.used(event.value):
            expressions.declare(event.value, text, bits)
        else:
            self._line(f"(void){text};")

    def _accessed(self, size: int) -> int:
        if size > 16:
            raise Unsupported(f"access of {size} bytes")
        self.sizes.add(size)
        return 8 * size

    def _address(self, node: Node) -> str:
        return self._expressions.text(node, self._address_bits)

    def _leave(self, way: Leave) -> None:
        expressions = self._expressions
        writes = {number: node for number, node in way.writes.items() if number != self._mode_cell}
        writes = {number: node for number, node in writes.items() if not (node.op == "CELL" and node.value == number)}
        self._written |= writes.keys()
        for number, node in writes.items():
            if expressions.reads(node) & writes.keys() - {number}:
                expressions.keep(node)
        if way.transfer is not Transfer.FALL and expressions.reads(way.target) & writes.keys():
            expressions.keep(way.target)
        for number, node in writes.items():
            name, bits = self.cell(number)
            held = type_bits(bits)
            text = expressions.text(node, held)
            self._line(f"{name} = {text};" if bits in (32, 64, 128) else f"{name} = (u{_held(bits)})({text});")
        if way.transfer is Transfer.FALL:
            self._line(End(Transfer.FALL, None))
            return
        if way.target.op == "CONST":
            self._line(End(way.transfer, way.target.value))
            return
        self._line(f"mc_pc = {self._address(way.target)};")
        self._line(End(way.transfer, None))


def _distinct(names: Sequence[str]) -> list[str]:
    taken: set[str] = set()
    result = []
    for number, name in enumerate(names):
        name = name if name not in taken else f"{name}_{number}"
        taken.add(name)
        result.append(name)
    return result


def _held(bits: int) -> int:
    return next(width for width in (8, 16, 32, 64, 128) if bits <= width)


def held_type(bits: int) -> str:
    """The C type of a register of `bits` bits."""
    return f"u{_held(bits)}"


def _fault(kind: FaultKind) -> str:
    return "mc_system_call();" if kind is FaultKind.SYSTEM_CALL else f"mc_fault(MC_{kind.name});"


def _unsupported(why: str) -> str:
    return f"mc_unsupported(); /* {comment(why)} */"


def _walk(way: Way) -> Iterator[Way]:
    yield way
    if isinstance(way, Fork):
        yield from _walk(way.taken)
        yield from _walk(way.other)


def _roots(way: Way, mode_cell: int | None) -> Iterator[Node]:
    for part in _walk(way):
        for event in part.events:
            if isinstance(event, Fresh):
                yield event.usual
            else:
                yield event.address
                if isinstance(event, Store):
                    yield event.value
        if isinstance(part, Fork):
            yield part.condition
        elif isinstance(part, Leave):
            if part.transfer is not Transfer.FALL:
                yield part.target
            yield from (node for number, node in part.writes.items() if number != mode_cell)


def _light(instruction: Instruction) -> Instruction:
    """The instruction without its P-code, of which there would be too much in a large program."""
    return Instruction(instruction.pc, instruction.bytes, (), instruction.mnemonic, instruction.operands)


def _mentions_an_address(instruction: Instruction) -> bool:
    """Whether a branch in the P-code names an address, which may be the one behind this very instruction."""
    return any(op.opcode in BRANCHES and op.inputs[0].space is Space.RAM for op in instruction.ops)


def _can_trap(way: Way) -> bool:
    return any(
        isinstance(part, Stop) or any(isinstance(event, Load | Store) for event in part.events) for part in _walk(way)
    )


def _needs_journal(way: Way, stored: bool = False) -> bool:
    """Whether something can end the run after the instruction has stored something."""
    for event in way.events:
        if stored and isinstance(event, Load | Store):
            return True
        stored = stored or isinstance(event, Store)
    if isinstance(way, Fork):
        return _needs_journal(way.taken, stored) or _needs_journal(way.other, stored)
    return stored and isinstance(way, Stop)
